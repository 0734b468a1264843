// What is beside the graph when a stream was chosen: who gets it, and a tap on it. Tuples are
// looked at only after "Look", and until the panel is closed.

import { el, put, text, attr, show, each, sentence } from "./dom.js";
import { count, rate, many, value } from "./format.js";
import { events, of } from "./api.js";

const MOST = 200; // rows that are kept

export class Stream {
  constructor(topology, { component, stream }, close) {
    Object.assign(this, { topology, component, stream });
    this.about = el("p", { class: "soft" });
    this.edges = el("ul", { class: "links" });
    this.where = el("input", { id: "where", type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
    this.most = el("select", { id: "most" }, ...[1, 10, 50].map((n) => el("option", { value: n, text: `${n}/s`, selected: n === 10 })));
    this.look = el("button", { class: "button main", text: "Look" });
    this.pause = el("button", { class: "button", type: "button", text: "Pause", hidden: true, "aria-pressed": "false", onclick: () => this.hold(!this.held) });
    this.form = el("form", { class: "tap" }, el("label", { for: "where", text: "Only where" }), this.where, el("div", { class: "line" }, el("label", { for: "most", text: "At most" }), this.most, this.look, this.pause));
    this.form.addEventListener("submit", (e) => { e.preventDefault(); this.abort ? this.stop() : this.start(); });
    this.note = el("p", { class: "soft note" });
    this.wrong = el("p", { class: "wrong", role: "alert", hidden: true });
    this.place = el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Tuples", hidden: true });
    this.root = el("div", {}, el("div", { class: "head" }, el("h2", { text: stream === "default" ? component : `${component}.${stream}` }), close), this.about, this.edges,
      el("h3", { text: "Look at its tuples" }), this.form, this.wrong, this.note, this.place);
  }

  close() {
    this.stop();
  }

  update(d) {
    const s = d.streams.find((x) => x.component === this.component && x.stream === this.stream);
    if (!s) {
      text(this.about, d.graph ? `${this.component} has no stream ${this.stream}.` : "It does not run yet.");
      return show(this.form, false);
    }
    this.fields ??= s.fields;
    const masked = s.masked ?? [];
    text(this.about, `stream with ${s.fields.map((f) => (masked.includes(f) ? `${f} (masked)` : f)).join(", ")}`);
    attr(this.where, "placeholder", this.example(s.fields.filter((f) => !masked.includes(f))));
    const gets = d.edges.filter((e) => e.from === this.component && e.stream === this.stream);
    each(this.edges, gets, (e) => `${e.to}\n${e.input}`, () => {
      const li = el("li");
      li.update = (e) => {
        text(li, `to ${e.to}: ${rate(e.rate).short}, ${many(e.total, "tuple")} in all${e.full ? `; ${this.component} waits here` : ""}`);
        li.classList.toggle("slow", e.full);
      };
      return li;
    });
    show(this.form, !s.no_tap && !d.ended);
    if (s.no_tap) text(this.note, `${d.topology} does not let anybody look at its tuples.`);
    else if (d.ended) text(this.note, "It has ended: no tuples come any more.");
    else if (!this.abort && !this.told) text(this.note, "Nothing is looked at now. A look shows a few tuples a second and slows nothing down.");
  }

  example(fields) {
    return fields.length ? `${fields[0]} == "whale"` : "";
  }

  start() {
    this.told = false;
    this.held = false;
    this.hold(false);
    this.rows = el("tbody");
    const names = this.fields ?? [];
    this.place.replaceChildren(el("table", { "aria-label": "Tuples" }, el("thead", {}, el("tr", {}, ...["Time", "Task", ...names].map((n) => el("th", { scope: "col", text: n })))), this.rows));
    this.abort = new AbortController();
    this.running(true);
    text(this.note, "Waiting for a tuple …");
    this.read(this.abort);
  }

  async read(abort) {
    const query = new URLSearchParams({ component: this.component, stream: this.stream, where: this.where.value.trim(), most: this.most.value });
    try {
      for await (const { data } of events(of(this.topology, `tap?${query}`), abort.signal)) if (data) this.take(data);
      if (abort === this.abort) this.ended("The server has ended it.");
    } catch (e) {
      if (abort === this.abort) this.ended(e.message);
    }
  }

  ended(why) {
    this.stop();
    text(this.wrong, why);
    show(this.wrong, true);
  }

  stop() {
    const abort = this.abort;
    this.abort = null;
    abort?.abort();
    this.running(false);
  }

  running(yes) {
    text(this.look, yes ? "Stop" : "Look");
    this.look.classList.toggle("main", !yes);
    show(this.pause, yes);
    if (yes) show(this.wrong, false);
    this.where.readOnly = yes;
    this.most.disabled = yes;
  }

  // hold keeps what is shown as it is; what comes meanwhile is counted and not shown.
  hold(yes) {
    this.held = yes;
    text(this.pause, yes ? "Go on" : "Pause");
    attr(this.pause, "aria-pressed", String(yes));
  }

  take(t) {
    if (t.error) {
      text(this.wrong, t.error);
      show(this.wrong, true);
    }
    if (!t.values) return this.tell(t);
    if (this.held) return;
    show(this.place, true);
    const at = new Date(t.at);
    const time = at.toLocaleTimeString([], { hourCycle: "h23" }) + "." + String(at.getMilliseconds()).padStart(3, "0");
    const cells = [time, t.task, ...t.values.map(value)].map((s, i) => el("td", { class: i > 1 ? "mono" : "soft", text: s }));
    this.rows.prepend(el("tr", {}, ...cells));
    while (this.rows.childElementCount > MOST) this.rows.lastChild.remove();
  }

  // tell says of how much of the stream one has seen how much.
  tell(t) {
    if (t.emitted === undefined && t.looked === undefined) return;
    this.told = true;
    const parts = [`Looked at ${count(t.looked).short} of ${count(t.emitted).short} tuples`];
    if (this.where.value.trim()) parts.push(`${count(t.matched).short} match`);
    parts.push(`${count(t.shown).short} shown`);
    if (t.failed) parts.push(`${count(t.failed).short} of which nothing can be asked so: ${t.failed_with}`);
    if (t.missed) parts.push(`${count(t.missed).short} missed, since this browser is slow`);
    put(this.note, { short: parts.join(", ") + ".", exact: `${count(t.looked).exact} of ${count(t.emitted).exact}` });
  }
}
