// What there is: topologies and nodes.

import { el, svg, table, put, text, attr, show, each, bar, sentence } from "./dom.js";
import { count, rate, share, time, bytes, span, quantile, many, NONE } from "./format.js";
import { every } from "./live.js";
import { of } from "./api.js";
import { status, failures, measured } from "./words.js";
import { confirm } from "./actions.js";

const WIDE = 300; // seconds of a sparkline: five minutes

export class Overview {
  topology = null;

  constructor(who) {
    this.who = who;
    this.sparks = new Map();
    this.topologies = table("Topologies", this.columns(), (t) => t.topology);
    this.nodes = table("Nodes", this.nodeColumns(), (n) => n.node);
    this.window = el("p", { class: "soft" });
    this.warning = el("p", { class: "banner", hidden: true });
    this.empty = el("div", { hidden: true }, sentence("No topology runs here."), el("p", { class: "soft" }, "Submit one with ", el("code", { text: "egret submit" }), ", and it appears."));
    this.list = el("section", {}, el("h1", { text: "Topologies" }), this.window, this.topologies, this.empty);
    this.machines = el("section", {}, el("h2", { text: "Nodes" }), this.nodes);
    this.loading = sentence("Waiting for the first numbers …");
    this.root = el("div", { class: "overview" }, this.warning, this.loading, this.list, this.machines);
    show(this.list, false);
    show(this.machines, false);
  }

  close() {
    for (const s of this.sparks.values()) s.stop();
  }

  go() {}

  refuse(error) {
    show(this.loading, true);
    text(this.loading, error.message);
  }

  hear(event, data) {
    if (event !== "overview") return;
    data = measured(data);
    this.cluster = data.cluster;
    this.at = data.at;
    show(this.loading, false);
    show(this.list, true);
    show(this.machines, data.nodes.length > 0);
    show(this.empty, data.topologies.length === 0);
    show(this.topologies, data.topologies.length > 0);
    show(this.window, data.topologies.length > 0);
    show(this.warning, Boolean(data.cluster) && !data.quorum);
    text(this.warning, "No quorum: what runs goes on, but nothing can be changed until most of the voting nodes answer.");
    const all = many(data.topologies.reduce((n, t) => n + t.tasks, 0), "task");
    text(this.window, data.window_ns ? `${all}. Rates, loads and latencies are those of the last ${span(data.window_ns)}.` : `${all}.`);
    this.topologies.list(data.topologies);
    this.nodes.list(data.nodes);
  }

  columns() {
    return [
      { name: "Topology", class: "name", make: (td, t) => td.append(el("a", { href: `#/t/${encodeURIComponent(t.topology)}`, text: t.topology }), el("small")), update: (td, t) => text(td.lastChild, `${t.guarantee}, ${many(t.tasks, "task")}`) },
      { name: "Status", make: (td) => td.append(el("span", { class: "status" })), update: (td, t) => status(td.firstChild, t) },
      { name: "In", class: "n", update: (td, t) => put(td, rate(t.rate)) },
      { name: "Done", class: "n", update: (td, t) => put(td, rate(t.done_rate)) },
      { name: "Last 5 min", class: "spark", make: (td, t) => td.append(this.spark(t).root), update: (td, t) => this.sparks.get(t.topology)?.add(this.at, t.done_rate) },
      { name: "p50", class: "n", title: "Half of the messages were done in less", update: (td, t) => put(td, quantile(t.complete, "p50_ns")) },
      { name: "p99", class: "n", title: "99 of 100 messages were done in less", update: (td, t) => put(td, quantile(t.complete, "p99_ns")) },
      { name: "Open", class: "n", title: "Messages of which not everything is done", update: (td, t) => put(td, t.guarantee === "exactly-once" ? NONE : count(t.counts.open)) },
      { name: "Failed or lost", class: "n", title: "Attempts that failed, were lost or timed out", update: (td, t) => { put(td, rate(t.failed_rate)); td.classList.toggle("bad", t.failed_rate > 0); attr(td, "title", failures(t.counts)); } },
    ];
  }

  spark(t) {
    const s = new Spark(t.topology);
    this.sparks.set(t.topology, s);
    return s;
  }

  nodeColumns() {
    const state = (n) => [n.alive ? (n.draining ? "draining" : "alive") : "gone", n.leads ? "leads" : n.votes ? "votes" : ""].filter(Boolean).join(", ");
    return [
      { name: "Node", class: "name", make: (td) => td.append(el("span"), el("small")), update: (td, n) => { text(td.firstChild, n.node); text(td.lastChild, n.alive ? n.silent || n.version || "" : `${n.silent || "it is gone"}. If it does not come back: egret forget ${n.node}`); td.lastChild.classList.toggle("bad", Boolean(n.silent) || !n.alive); } },
      { name: "State", make: (td) => td.append(el("span", { class: "status" })), update: (td, n) => { text(td.firstChild, state(n)); attr(td.firstChild, "data-tone", n.alive && !n.silent ? (n.draining ? "warn" : "good") : "bad"); } },
      { name: "Tasks", class: "has", make: (td) => td.append(has()), update: (td, n) => td.firstChild.update(n) },
      { name: "CPU", class: "wide", title: "Of the cores that it may use", make: (td) => { td.bar = bar(); td.append(td.bar); }, update: (td, n) => td.bar.update(known(n) ? n.load : 0, known(n) ? { short: share(n.load).short, exact: `${share(n.load).exact} of ${many(n.cores, "core")}` } : NONE) },
      { name: "Memory", class: "n", update: (td, n) => put(td, known(n) ? bytes(n.memory) : NONE) },
      { name: "Up", class: "n", update: (td, n) => put(td, known(n) ? time(n.up_ns) : NONE) },
      { name: "", class: "act", update: (td, n) => this.drain(td, n) },
    ];
  }

  // drain is the button that takes a node's tasks away, or lets it have some again.
  drain(td, n) {
    if (!this.cluster || !this.who.act || !n.alive) return td.replaceChildren();
    const word = n.draining ? "undrain" : "drain";
    if (td.firstChild?.dataset.word === word) return;
    td.replaceChildren(el("button", { class: "button", "data-word": word, text: n.draining ? "Undrain" : "Drain", "aria-label": `${n.draining ? "Undrain" : "Drain"} ${n.node}`, onclick: () => confirm({ do: word, node: n.node }) }));
  }
}

// has is how many tasks a node has, and behind it which.
function has() {
  const [bare, often, list] = [el("span"), el("summary"), el("ul", { class: "moves" })];
  const root = el("div", {}, bare, el("details", {}, often, list));
  root.update = (n) => {
    for (const x of [bare, often]) put(x, { short: many(n.tasks, "task"), exact: `${count(n.tasks).exact} tasks` });
    show(bare, n.has.length === 0);
    show(root.lastChild, n.has.length > 0);
    each(list, n.has, (h) => h.topology, (h) => {
      const li = el("li", {}, el("a", { href: `#/t/${encodeURIComponent(h.topology)}/tasks`, text: h.topology }), el("span"));
      li.update = (h) => text(li.lastChild, ` ${h.tasks.join(", ")}`);
      return li;
    });
  };
  return root;
}

const known = (n) => n.alive && !n.silent;

// A Spark is the rate of messages that were done, small.
class Spark {
  constructor(topology) {
    this.points = []; // [seconds, rate]
    this.path = svg("path");
    this.root = svg("svg", { class: "sparkline", viewBox: "0 0 120 24", preserveAspectRatio: "none", role: "img" }, this.path);
    const from = new Date(Date.now() - WIDE * 1000).toISOString();
    this.stop = every(60000, of(topology, `history?since=${from}`), (points) => {
      this.stop(); // once is enough
      if (points) this.points.unshift(...points.map((p) => [Date.parse(p.at) / 1000, p.done_rate]).filter(([at]) => !(at >= this.points[0]?.[0])));
    });
  }

  add(moment, x) {
    if (x === undefined) return;
    const now = Date.parse(moment) / 1000;
    this.points.push([now, x]);
    while (this.points[0][0] < now - WIDE) this.points.shift();
    const wide = Math.max(Math.min(WIDE, now - this.points[0][0]), 1); // a young one begins at the left
    const most = Math.max(...this.points.map(([, y]) => y), 1e-9);
    const spot = ([at, y]) => `${(120 * (1 - (now - at) / wide)).toFixed(1)} ${(22 - (20 * y) / most).toFixed(1)}`;
    attr(this.path, "d", this.points.length < 2 ? null : "M" + this.points.map(spot).join("L"));
    attr(this.root, "aria-label", `messages done in the last ${time(1e9 * Math.round(wide)).short}, at most ${rate(most).short}`);
  }
}
