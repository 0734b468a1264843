// What is behind the tabs of a topology. What only some look at is asked for only while its
// tab is open.

import { el, table, put, text, attr, show, each, bar, sentence } from "./dom.js";
import { count, rate, share, time, quantile, since, many, value, NONE } from "./format.js";
import { every } from "./live.js";
import { of } from "./api.js";
import { Errors } from "./errors.js";
import { settle } from "./actions.js";
import { rounds } from "./words.js";

const MANY = 100; // tasks from which a tab is only written while it can be seen

export class Tabs {
  constructor(topology, who) {
    this.name = "tasks";
    const all = { tasks: new Tasks(), errors: new Errors(topology), open: new Open(topology), letters: new Letters(topology, who), batches: new Batches(), settings: new Settings() };
    this.all = all;
    const names = { tasks: "Tasks", errors: "Errors", open: "Open messages", letters: "Dead letters", batches: "Batches", settings: "Settings" };
    this.links = Object.keys(all).map((key) => el("a", { href: `#/t/${encodeURIComponent(topology)}/${key}`, "data-tab": key }, names[key], el("span", { class: "badge" })));
    this.place = el("div", { class: "tab" });
    this.seen = false; // who does not scroll down to a large table need not pay for it
    this.sight = new IntersectionObserver(([e]) => {
      this.seen = e.isIntersecting;
      if (this.seen && this.detail) this.all[this.name].update?.(this.detail);
    }, { rootMargin: "300px" });
    this.sight.observe(this.place);
    this.root = el("section", {}, el("nav", { class: "tabs", "aria-label": "More" }, ...this.links), this.place);
  }

  close() {
    this.all[this.name].close?.();
  }

  end() {
    this.close();
    this.sight.disconnect();
  }

  go(name = this.name) {
    if (!Object.hasOwn(this.all, name)) name = "tasks";
    if (this.place.firstChild && name === this.name) return;
    this.close();
    this.name = name;
    this.links.forEach((a) => attr(a, "aria-current", a.dataset.tab === name ? "page" : null));
    this.place.replaceChildren(this.all[name].root);
    this.all[name].open?.();
    if (this.detail) this.all[name].update?.(this.detail);
  }

  update(d) {
    this.detail = d;
    if (!this.place.firstChild) this.go();
    if (this.seen || d.tasks <= MANY) this.all[this.name].update?.(d);
    const n = { tasks: d.tasks, open: d.batches ? 0 : d.counts.open, letters: d.counts.dead };
    for (const a of this.links) text(a.lastChild, n[a.dataset.tab] ? " " + count(n[a.dataset.tab]).short : "");
    show(this.links.find((a) => a.dataset.tab === "batches"), Boolean(d.batches));
    show(this.links.find((a) => a.dataset.tab === "open"), !d.batches);
  }
}

// taskColumns are those of a table of tasks; most is the largest rate of its rows.
export function taskColumns(most, full) {
  const n = (name, f, title) => ({ name, class: "n", title, update: (td, t) => put(td, t.known ? f(t) : NONE) });
  return [
    { name: "Task", class: "name task", make: (td) => td.append(el("span"), el("small")), update: (td, t) => { text(td.firstChild, t.task); attr(td, "title", `${t.task} on ${t.node}`); text(td.lastChild, t.known ? (full ? "" : t.node) : "silent"); td.lastChild.classList.toggle("bad", !t.known); } },
    full && { name: "Node", update: (td, t) => text(td, t.node) },
    { name: "Rate", class: "wide", title: "Beside the busiest task of its component", make: (td) => { td.bar = bar(); td.append(td.bar); }, update: (td, t) => td.bar.update((t.rate ?? 0) / Math.max(most(t), 1e-9), t.known ? rate(t.rate) : NONE) },
    { name: "Busy", class: full ? "wide" : "n", title: "Share of the time in your code", make: (td) => { if (full) td.append((td.bar = bar())); }, update: (td, t) => (full ? td.bar.update(t.load, busy(t)) : put(td, busy(t))) },
    n("Queue", (t) => count(t.counts.queued), "Tuples that wait for it"),
    full && n("p50", (t) => quantile(t.execute.count ? t.execute : t.complete, "p50_ns")),
    n("p99", (t) => quantile(t.execute.count ? t.execute : t.complete, "p99_ns"), "Of a tuple in your code, or of a message of a spout"),
    full && { name: "Failed", class: "n failed", title: "Executions of a bolt, or attempts at messages of a spout", make: (td) => td.append(el("span"), el("small")), update: (td, t) => failed(td, t) },
    full && { name: "Restarts", class: "n", title: "Red: it has died a moment ago", update: (td, t) => { put(td, t.known ? count(t.counts.restarts) : NONE); td.classList.toggle("bad", Boolean(t.died)); } },
    full && { name: "Waits for", update: (td, t) => { text(td, t.throttled >= 0.05 || t.waits_for ? [t.waits_for || "room", t.throttled > 0 && share(t.throttled).short].filter(Boolean).join(", ") : ""); td.classList.toggle("slow", td.textContent !== ""); } },
  ].filter(Boolean);
}

// failed says what of a task has failed: executions, or attempts at its messages.
function failed(td, { counts: c, known }) {
  const attempts = c.failed + c.lost + c.timed_out > 0;
  put(td.firstChild, known ? count(attempts ? c.failed : c.failed_tuples) : NONE);
  const also = [c.lost && `${count(c.lost).short}\u00a0lost`, c.timed_out && `${count(c.timed_out).short}\u00a0timed\u00a0out`].filter(Boolean);
  text(td.lastChild, attempts ? ["attempts", ...also].join(", ") : c.failed_tuples ? "executions" : "");
}

const busy = (t) => (t.known && t.execute.count ? share(t.load) : NONE); // what a spout does is not measured

class Tasks {
  constructor() {
    this.most = new Map(); // by component
    this.root = table("Tasks", taskColumns((t) => this.most.get(t.component), true), (t) => t.task);
  }

  update(d) {
    this.most.clear();
    for (const t of d.per_task) this.most.set(t.component, Math.max(this.most.get(t.component) ?? 0, t.rate ?? 0));
    this.root.list(d.per_task);
  }
}

// A Polled is a tab whose content is asked for every two seconds while it is open.
class Polled {
  constructor(path, empty) {
    this.path = path;
    this.empty = empty;
    this.note = sentence("Asking …");
    this.list = el("div", { class: "list" });
    this.root = el("div", {}, this.note, this.list);
  }

  open() {
    this.stop = every(2000, this.path, (items, refusal) => {
      text(this.note, refusal ? refusal.message : items.length ? "" : this.empty);
      show(this.note, this.note.textContent !== "");
      if (!refusal || refusal.status) this.take(items ?? []); // no answer: what is there stays
    });
  }

  close() {
    this.stop?.();
  }
}

class Open extends Polled {
  constructor(topology) {
    super(of(topology, "open?n=50"), "Nothing is open: everything that was read is done.");
    this.says = el("p", { class: "soft" });
    this.unfolded = new Set(); // keys of what is shown one by one
    this.list.append(this.says, (this.table = table("Oldest open messages", this.columns(), (t) => [t.task, value(t.tree), t.message].join(" "))));
  }

  columns() {
    return [
      { name: "Message", class: "name mono", make: (td) => this.cell(td), update: (td, t) => td.update(t) },
      { name: "Open for", class: "n", title: "Since it was first emitted", update: (td, t) => put(td, time(t.age_ns)) },
      { name: "Silent for", class: "n", title: "Since its spout last heard of it", update: (td, t) => put(td, time(t.silent_ns)) },
      { name: "Where it is", class: "long", make: (td) => td.append(el("ul", { class: "places" })), update: (td, t) => each(td.firstChild, t.places.length ? t.places : [{ task: "" }], (p) => p.task, (p) => this.place(p.task === t.task)) },
    ];
  }

  cell(td) {
    const [message, about] = [el("span"), el("small")];
    let key;
    const more = el("button", { class: "more", type: "button", onclick: () => { this.unfolded[this.unfolded.has(key) ? "delete" : "add"](key); this.take(this.trees); } });
    td.append(message, about, more);
    td.update = (t) => {
      key = t.key;
      text(message, t.unknown ? `${count(t.messages).short} messages, of which ${t.task} says no more` : t.message || "(not shown)");
      const also = t.messages > 1 && !t.unknown ? `and ${count(t.messages - 1).short} more that came with it, ` : "";
      text(about, `${also}${t.replay ? "a replay, " : ""}from ${t.task}${t.error ? `; before: ${t.error}` : ""}`);
      text(more, t.like ? (this.unfolded.has(key) ? "Fold them again" : `and ${t.like} younger ones like it: show them`) : "");
      show(more, t.like > 0);
      attr(td, "title", `tree ${value(t.tree)} of ${t.task} on ${t.node}`);
    };
  }

  place(own) {
    const li = el("li", {}, el("b"), el("span"));
    const call = (p) => `in ${p.during} for ${time(p.inside_ns).short}`;
    const inside = (p) => (p.hand ? call(p) + (p.others ? `, or one of ${count(p.others).short} others is` : "") : p.maybe ? `maybe: it does not answer${p.during ? `, ${call(p)}` : ""}` : "");
    li.update = (p) => {
      const parts = [inside(p), p.waits_ns ? `${own ? "emits it again" : "begins again"} in ${time(p.waits_ns).short}` : "", p.queued ? `${count(p.queued).short} queued${p.during && !p.hand ? ` (the task is ${call(p)})` : ""}` : "", p.held ? `${count(p.held).short} retained` : "", p.unsent ? `${count(p.unsent).short} wait for room` : ""];
      text(li.firstChild, p.task);
      text(li.lastChild, p.task ? ` on ${p.node}: ${parts.filter(Boolean).join(", ") || "nothing any more"}` : "on its way, or lost");
      li.classList.toggle("slow", Boolean(p.hand));
    };
    return li;
  }

  update(d) {
    this.all = d.counts.open;
    this.say();
  }

  say() {
    const n = (this.trees ?? []).reduce((all, t) => all + t.messages, 0);
    text(this.says, n < this.all ? `The oldest ${count(n).exact} of ${count(this.all).exact}, and where they are.` : "The oldest first, and where they are.");
  }

  take(trees) {
    this.trees = trees;
    show(this.list, trees.length > 0);
    this.table.list(folded(trees, this.unfolded));
    this.say();
  }
}

// folded puts replays that are in the same place for the same reason behind the oldest of them.
function folded(trees, unfolded) {
  const first = new Map(); // by what they have in common
  const all = [];
  for (const t of trees) {
    const alike = t.replay && t.messages === 1 && !t.unknown && t.places.every((p) => !p.hand);
    const key = alike ? JSON.stringify([t.task, t.error, t.places.map((p) => [p.task, p.during])]) : null;
    const head = first.get(key);
    if (alike && head) head.like++;
    if (head && alike && !unfolded.has(key)) continue;
    const row = { ...t, key, like: 0 };
    if (alike && !head) first.set(key, row);
    all.push(row);
  }
  return all;
}

class Letters extends Polled {
  constructor(topology, who) {
    super(of(topology, "letters?n=100"), "There are no dead letters.");
    this.topology = topology;
    this.chosen = new Set();
    this.letters = [];
    const button = (word, name) => el("button", { class: "button", type: "button", text: name, onclick: () => settle(topology, word, [...this.chosen], () => this.chosen.clear()) });
    this.acts = el("div", { class: "actions" }, button("replay", "Replay"), button("drop", "Drop"));
    this.all = el("input", { type: "checkbox", id: "all-letters", onchange: () => this.choose(this.all.checked ? this.letters.map((l) => l.id) : []) });
    this.table = table("Dead letters", this.columns(who), (l) => l.id);
    this.list.append(who.act ? el("div", { class: "bar-of-actions" }, this.all, el("label", { for: "all-letters", text: "All of these" }), this.acts) : "", this.table);
  }

  columns(who) {
    const box = (l) => el("input", { type: "checkbox", "aria-label": `Choose letter ${l.id}`, onchange: (e) => { e.target.checked ? this.chosen.add(l.id) : this.chosen.delete(l.id); this.sync(); } });
    return [
      who.act && { name: "", make: (td, l) => td.append(box(l)), update: (td, l) => (td.firstChild.checked = this.chosen.has(l.id)) },
      { name: "Died", make: (td) => td.append(el("span"), el("small")), update: (td, l) => { put(td.firstChild, since(l.died)); text(td.lastChild, l.waiting ? `${l.id}, to be replayed` : l.id); attr(td, "title", `${l.id}, kept by ${l.node}`); } },
      { name: "In", class: "name", update: (td, l) => text(td, l.task) },
      { name: "Error", class: "error", make: (td) => td.append(el("span"), attempts()), update: (td, l) => { text(td.firstChild, l.error); td.lastChild.update(l); } },
      { name: "Attempts", class: "n", update: (td, l) => put(td, count(l.failures + l.losses)) },
      { name: "Tuple", class: "mono", update: (td, l) => text(td, l.values.map((v, i) => `${l.fields[i] ?? i}: ${value(v)}`).join("\n")) },
    ].filter(Boolean);
  }

  choose(ids) {
    this.chosen = new Set(ids);
    this.take(this.letters);
  }

  sync() {
    for (const b of this.acts.children) b.disabled = this.chosen.size === 0;
    this.all.checked = this.letters.length > 0 && this.chosen.size === this.letters.length;
  }

  take(letters) {
    this.letters = letters;
    for (const id of this.chosen) if (!letters.some((l) => l.id === id)) this.chosen.delete(id);
    show(this.list, letters.length > 0);
    this.table.list(letters);
    this.sync();
  }
}

// attempts say how those at a dead letter have ended.
function attempts() {
  const [ends, list] = [el("summary"), el("ol")];
  const root = el("details", { class: "attempts" }, ends, list);
  root.update = (l) => {
    text(ends, `${count(l.failures).short} failed, ${count(l.losses).short} lost, replayed ${l.replayed === 1 ? "once" : `${count(l.replayed).short} times`}`);
    each(list, (l.history?.length ? l.history : ["How they ended is not kept."]).map((said, i) => [i, said]), ([i]) => i, () => {
      const li = el("li");
      li.update = ([, said]) => text(li, said);
      return li;
    });
  };
  return root;
}

// Batches are those of an exactly-once topology: what is under way, and what is committed.
class Batches {
  constructor() {
    this.says = el("p", { class: "verdict" });
    this.totals = facts();
    this.table = table("Batches under way", [
      { name: "Batch", class: "name", update: (td, b) => text(td, String(b.tx)) },
      { name: "Stage", update: (td, b) => text(td, b.stage) },
      { name: "Messages", class: "n", update: (td, b) => put(td, count(b.messages)) },
      { name: "Age", class: "n", update: (td, b) => put(td, time(b.age_ns)) },
    ], (b) => b.tx);
    this.root = el("div", {}, this.says, this.table, this.totals);
  }

  update({ batches: b }) {
    if (!b) return;
    const now = b.now;
    const missing = now?.missing?.length ? `, and waits for ${now.missing.join(", ")}` : now?.record ? ", and waits for its record to be stored" : "";
    text(this.says, now ? `Attempt ${now.attempt} is ${now.phase}${missing}${now.held ? "; no batch begins" : ""}.` : "Nothing is known of the coordinator yet.");
    attr(this.says, "data-tone", now?.missing?.length || now?.held ? "warn" : "");
    this.table.list(now?.batches ?? []);
    show(this.table, Boolean(now?.batches.length));
    this.totals.facts([
      ["Last committed", String(b.last)], ["Committed in this run", count(b.committed)], ["Messages in them", count(b.messages)],
      ["Messages a batch", b.committed ? count(Math.round(b.messages / b.committed)) : NONE], ["Keys written", count(b.keys)],
      ["Time to commit now, p50", quantile(b.latency_in_window, "p50_ns")], ["Time to commit now, p99", quantile(b.latency_in_window, "p99_ns")],
      ["Time to commit in all, p50", quantile(b.latency, "p50_ns")], ["Time to commit in all, p99", quantile(b.latency, "p99_ns")],
      ["Batches that failed", count(b.failed)], ["Batches begun again", count(b.replayed)], ["Rounds begun anew", rounds(b.rounds).map(([why, n]) => `${why} ${count(n).short}×`).join(", ") || "none"],
    ]);
  }
}

class Settings {
  constructor() {
    this.root = el("div", {}, (this.note = sentence("It has no parameters.")), (this.list = facts()));
  }

  update(d) {
    const all = Object.entries(d.settings ?? {});
    show(this.note, all.length === 0);
    this.list.facts(all.sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

// facts is a list of names with what they are: [[name, text or number of format.js], ...].
export function facts() {
  const root = el("dl", { class: "facts" });
  root.facts = (all) =>
    each(root, all, ([name]) => name, ([name]) => {
      const div = el("div", {}, el("dt", { text: name }), el("dd"));
      div.update = ([, f]) => put(div.lastChild, f.short === undefined ? { short: f, exact: f } : f);
      return div;
    });
  return root;
}
