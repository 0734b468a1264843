// One topology: what it does, what holds it up, its graph, charts, and what is behind tabs.

import { el, put, text, attr, show, each, sentence } from "./dom.js";
import { count, rate, span, quantile, many } from "./format.js";
import { status, verdicts, failures, replays, rounds, running, measured } from "./words.js";
import { Graph } from "./graph.js";
import { Troubles } from "./troubles.js";
import { Charts } from "./charts.js";
import { Tabs } from "./tabs.js";
import { Component } from "./component.js";
import { Stream } from "./tap.js";
import { buttons } from "./actions.js";

export class Topology {
  constructor(topology, who) {
    this.topology = topology;
    this.who = who;
    this.href = `#/t/${encodeURIComponent(topology)}`;
    this.status = el("span", { class: "status" });
    this.about = el("span", { class: "soft" });
    this.actions = el("div", { class: "actions" });
    this.verdicts = el("div", { class: "verdicts" });
    this.troubles = new Troubles();
    this.figures = new Figures();
    this.graph = new Graph();
    this.charts = new Charts();
    this.tabs = new Tabs(topology, who);
    this.loading = sentence("Waiting for the first numbers …");
    this.shown = el("div", { class: "shown", hidden: true }, this.figures.root, this.verdicts, this.graph.root, this.charts.root, this.tabs.root);
    this.panel = el("aside", { class: "panel", tabindex: "-1", hidden: true });
    this.root = el("div", { class: "topology" },
      el("div", { class: "sheet" }, el("div", { class: "head" }, el("h1", { text: topology }), this.status, this.about, this.actions), this.loading, this.shown), this.panel);
    this.key = (e) => e.key === "Escape" && !e.defaultPrevented && !document.querySelector("dialog[open]") && this.beside && this.leave();
    document.addEventListener("keydown", this.key);
  }

  close() {
    document.removeEventListener("keydown", this.key);
    this.beside?.close();
    this.graph.close();
    this.charts.close();
    this.tabs.end();
  }

  // go shows a tab, or opens what is beside.
  go([what, component, stream]) {
    if (what !== "c" && what !== "s") {
      this.aside(null);
      this.tabs.go(what);
      return;
    }
    this.aside(what === "c" ? { component } : { component, stream: stream ?? "default" });
  }

  aside(chosen) {
    const before = this.chosen;
    this.beside?.close();
    this.beside = null;
    this.chosen = chosen;
    if (chosen) {
      const close = el("a", { class: "close", href: `${this.href}/${this.tabs.name}`, text: "Close", "aria-label": "Close the panel" });
      this.beside = chosen.stream ? new Stream(this.topology, chosen, close) : new Component(this.topology, chosen.component, close);
      attr(this.panel, "aria-label", chosen.stream ? `Stream ${chosen.component}.${chosen.stream}` : `Component ${chosen.component}`);
      this.panel.replaceChildren(this.beside.root);
      show(this.panel, true);
      this.panel.scrollTop = 0;
      this.panel.focus({ preventScroll: matchMedia("(min-width: 1000px)").matches });
    } else {
      show(this.panel, false);
      if (before) this.graph.focus(before.component, before.stream);
    }
    this.root.classList.toggle("beside", Boolean(chosen));
    if (this.detail) this.draw();
    if (chosen) this.graph.reveal(chosen.component);
  }

  leave() {
    location.hash = `${this.href}/${this.tabs.name}`;
  }

  refuse(error) {
    show(this.shown, false);
    show(this.loading, true);
    const why = error.status === 404 ? `${this.topology} has ended or was killed, or there never was a topology of that name. If it begins, it appears here.` : error.message;
    this.loading.replaceChildren(why, " ", el("a", { href: "#/", text: "See what there is." }));
  }

  hear(event, data) {
    if (event === "history") this.charts.add(data);
    else if (event === "point") this.charts.add([data]);
    else if (event === "detail" || event === "ended") {
      if (!data?.topology) return;
      this.detail = measured(data);
      this.draw();
    }
  }

  draw() {
    const d = this.detail;
    show(this.loading, false);
    show(this.shown, true);
    status(this.status, d);
    text(this.about, [d.guarantee, many(d.tasks, "task"), running(d, Date.parse(d.at)), d.window_ns ? `rates and latencies of the last ${span(d.window_ns)}` : ""].filter(Boolean).join(" · "));
    buttons(this.actions, d, this.who);
    this.troubles.mark(d);
    each(this.verdicts, verdicts(d).map((v, i) => ({ ...v, i })), (v) => v.i, () => {
      const p = el("p", { class: "verdict" });
      p.update = (v) => {
        text(p, v.text);
        attr(p, "data-tone", v.tone);
      };
      return p;
    });
    this.figures.update(d);
    this.charts.about(d);
    show(this.graph.root, Boolean(d.graph));
    if (d.graph) this.graph.update(d, this.chosen);
    this.tabs.update(d);
    this.beside?.update(d);
  }
}

// anew is how often batches came again, and why.
function anew(all) {
  const causes = rounds(all);
  return [count(sum(causes.map(([, n]) => n))), causes.map(([why, n]) => `${why} ${count(n).short}×`).join(", ") || "no batch came again"];
}

const sum = (all) => all.reduce((a, b) => a + b, 0);

// Figures are the numbers that matter most.
class Figures {
  constructor() {
    const figure = (name) => {
      const f = { number: el("dd", { class: "big" }), below: el("dd", { class: "soft" }) };
      f.root = el("div", {}, el("dt", { text: name }), f.number, f.below);
      return f;
    };
    this.all = Object.fromEntries([["in", "In"], ["done", "Done"], ["late", "Latency, p50"], ["open", "Open"], ["failed", "Failed or lost attempts"], ["again", "Replayed"], ["dead", "Dead letters"]].map(([key, name]) => [key, figure(name)]));
    this.root = el("dl", { class: "figures" }, ...Object.values(this.all).map((f) => f.root));
  }

  update(d) {
    const c = d.counts;
    const set = (key, f, below, bad) => {
      put(this.all[key].number, f);
      text(this.all[key].below, below);
      this.all[key].root.classList.toggle("bad", Boolean(bad));
    };
    set("in", rate(d.rate), many(c.messages, "message"));
    set("done", rate(d.done_rate), d.batches ? `${many(d.batches.messages, "message")} committed` : `${count(c.acked).short} in all`);
    const late = d.batches ? d.batches.latency_in_window : d.complete;
    set("late", quantile(late, "p50_ns"), late.count ? `p99 ${quantile(late, "p99_ns").short}` : d.batches ? "nothing committed in the window" : "nothing done in the window");
    const under = d.batches?.now?.batches ?? [];
    if (d.batches) set("open", count(under.length), `of ${many(sum(under.map((b) => b.messages)), "message")}`);
    else set("open", count(c.open), "not done yet");
    text(this.all.open.root.firstChild, d.batches ? "Batches under way" : "Open");
    set("failed", rate(d.failed_rate), failures(c), d.failed_rate > 0);
    if (d.batches) set("again", ...anew(d.batches.rounds));
    else set("again", count(c.replayed_failed + c.replayed_lost + c.replayed_timeout), replays(c));
    text(this.all.again.root.firstChild, d.batches ? "Rounds begun anew" : "Replayed");
    set("dead", count(c.dead), c.dead ? "given up" : "none", c.dead > 0);
  }
}
