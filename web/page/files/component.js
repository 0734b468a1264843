// What is beside the graph when a component was chosen.

import { el, put, text, attr, show, each, table } from "./dom.js";
import { count, rate, share, span, time, quantile, many } from "./format.js";
import { skew, reads } from "./words.js";
import { taskColumns, facts } from "./tabs.js";
import { Errors } from "./errors.js";

export class Component {
  constructor(topology, component, close) {
    this.name = component;
    this.href = `#/t/${encodeURIComponent(topology)}/s/${encodeURIComponent(component)}/`;
    this.most = 0;
    this.about = el("p", { class: "soft", text: "Waiting for the first numbers …" });
    this.cause = el("p", { class: "verdict", "data-tone": "warn", hidden: true });
    this.doing = facts();
    this.skew = el("p", { class: "soft" });
    this.tasks = table("Tasks", taskColumns(() => this.most, false), (t) => t.task);
    this.streams = el("ul", { class: "links" });
    this.own = facts();
    this.ownTitle = el("h3", { text: "Its own metrics" });
    this.sinceBegan = facts();
    this.errors = new Errors(topology, component);
    this.errors.open();
    this.settings = facts();
    this.shown = el("div", { hidden: true }, this.cause, this.doing,
      el("h3", { text: "Tasks" }), this.skew, this.tasks, el("h3", { text: "Streams" }), this.streams, el("h3", { text: "Settings" }), this.settings,
      el("h3", { text: "Errors" }), this.errors.root, this.ownTitle, this.own, el("h3", { text: "Since it began" }), this.sinceBegan);
    this.root = el("div", {}, el("div", { class: "head" }, el("h2", { text: component }), close), this.about, this.shown);
  }

  close() {
    this.errors.close();
  }

  update(d) {
    const c = d.components.find((x) => x.component === this.name);
    show(this.shown, Boolean(c));
    if (!c) return text(this.about, d.graph ? `There is no component ${this.name} in ${d.topology}.` : "It does not run yet.");
    const source = reads(c);
    text(this.about, `${c.kind}, ${many(c.tasks, "task")}. Rates and latencies of the last ${span(d.window_ns)}.`);
    show(this.cause, Boolean(c.cause));
    text(this.cause, c.cause ? `It waits for ${c.cause}, ${share(c.throttled).short} of its time.` : "");
    const late = source ? c.complete : c.execute;
    this.doing.facts([
      [source ? "Messages" : "Executed", rate(c.rate)], ["Busy, mean", share(c.load)], ["Busy, busiest task", share(c.busiest)],
      ["Waits for room", share(c.throttled)], source ? ["Open", count(c.counts.open)] : ["Queue", count(c.counts.queued)],
      [source ? "Done after, p50" : "In your code, p50", quantile(late, "p50_ns")], ["p99", quantile(late, "p99_ns")], ["Longest", quantile(late, "longest_ns")], [source ? "Failed or lost attempts" : "Failed executions", rate(c.failed_rate)],
    ].filter(([name]) => !source || !(name.startsWith("Busy") || (name === "Open" && d.batches))));
    const mine = d.per_task.filter((t) => t.component === this.name);
    this.most = Math.max(...mine.map((t) => t.rate), 0);
    this.tasks.list(mine);
    text(this.skew, skew(mine));
    show(this.skew, this.skew.textContent !== "");
    this.links(d);
    this.settings.facts(settings(d, c));
    show(this.ownTitle, Boolean(c.own_metrics?.length));
    this.own.facts((c.own_metrics ?? []).map((o) => [o.name, own(o)]));
    const n = c.counts;
    const totals = source
      ? [["Messages", n.messages], ["Done", n.acked], ["Failed attempts", n.failed], ["Lost attempts", n.lost], ["Timed out attempts", n.timed_out], ["Replayed", n.replayed_failed + n.replayed_lost + n.replayed_timeout], ["Dead", n.dead], ["Handed back", n.handed_back], ["Abandoned", n.abandoned]]
      : [["Executed", d.edges.reduce((all, e) => all + (e.to === this.name ? e.total : 0), 0)], ["Failed executions", n.failed_tuples], ["Retained now", n.held]];
    this.sinceBegan.facts([...totals, ["Restarts", n.restarts], ["Stuck", n.stuck], ["Refused", n.refused]].map(([name, x]) => [name, count(x)]));
  }

  // links lead to the streams that it gets and emits, where they can be tapped.
  links(d) {
    const all = [
      ...d.edges.filter((e) => e.to === this.name).map((e) => ({ says: `gets ${name(e.from, e.stream)}, ${rate(e.rate).short}`, component: e.from, stream: e.stream })),
      ...d.streams.filter((s) => s.component === this.name).map((s) => ({ says: `emits ${s.stream} (${s.fields.join(", ")})`, component: s.component, stream: s.stream })),
    ];
    each(this.streams, all, (x) => `${x.says[0]}${x.component}\n${x.stream}`, () => {
      const a = el("a");
      const li = el("li", {}, a);
      li.update = (x) => {
        text(a, x.says);
        attr(a, "href", this.href.replace(/[^/]*\/$/, `${encodeURIComponent(x.component)}/`) + encodeURIComponent(x.stream));
      };
      return li;
    });
  }
}

// settings are what the topology says of a component: what it gets and how, and so on.
function settings(d, c) {
  const box = d.graph.components.find((b) => b.component === c.component);
  const gets = new Map(); // one stream may come in two groupings
  for (const e of d.graph.edges.filter((e) => e.to === c.component)) {
    const from = name(e.from, e.stream);
    gets.set(from, [...(gets.get(from) ?? []), e.grouping]);
  }
  const masked = d.streams.filter((s) => s.component === c.component && s.masked?.length);
  return [
    ["Kind", c.kind], ["Tasks", count(c.tasks)],
    ...[...gets].map(([from, how]) => [`Gets ${from}`, how.join(", ")]),
    box.every_ns && ["Ticks every", time(box.every_ns)], box.holds_ns && ["May hold a tuple for", time(box.holds_ns)],
    ...masked.map((s) => [s.stream === "default" ? "Masked" : `Masked in ${s.stream}`, s.masked.join(", ")]),
  ].filter(Boolean);
}

const name = (component, stream) => (stream === "default" ? component : `${component}.${stream}`);

// own writes a metric that a bolt counts for itself.
function own(o) {
  const s = o.value === null ? "–" : o.histogram ? many(o.histogram.buckets.reduce((n, b) => n + b.count, 0), "observation") : count(o.value).short;
  return { short: s, exact: `${o.kind}: ${o.help} ${o.histogram ? "" : count(o.value).exact}`.trim() };
}
