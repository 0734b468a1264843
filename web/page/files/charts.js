// Charts of a topology's last five minutes or hour, drawn by uPlot.

import { el, text, put, show } from "./dom.js";
import { count, rate, time } from "./format.js";

const HOUR = 3600; // points that are kept, one a second
const LEAST = 30; // seconds that are shown at least
const GAP = 8; // seconds without a point from which a line is broken
const QUIET = 15; // seconds without anything that was done from which the line of its latency is
const START = 10; // seconds in which spouts fill what is empty: the scale is that of later
const dark = matchMedia("(prefers-color-scheme: dark)");

// What points say is of the same window as the numbers above: the last value is what stands there.
const kinds = [
  { name: "Messages a second", format: rate, cut: true, lines: [["in", "rate", "--soft"], ["done", "done_rate", "--blue"], ["failed or lost", "failed_rate", "--red"]] },
  { name: "Latency of messages", format: time, lines: [["p50", "p50_ns", "--blue"], ["p99", "p99_ns", "--warn"]] },
  { name: "Open messages", format: count, lines: [["open", "open", "--green"]] },
];
const batches = { name: "Batches under way", format: count, lines: [["under way", "batches", "--green"]] };

// Charts are three, which show the same moments and share a cursor.
export class Charts {
  constructor() {
    this.points = [];
    this.seconds = 300;
    this.charts = kinds.map((k) => new Chart(k));
    const choose = (seconds, name) => el("button", { class: "button", type: "button", text: name, "aria-pressed": String(seconds === this.seconds), onclick: (e) => this.choose(seconds, e.target) });
    this.choices = el("div", { class: "choices", role: "group", "aria-label": "How far back" }, choose(300, "5 min"), choose(3600, "1 h"));
    this.root = el("section", { class: "charts", "aria-label": "Charts" }, this.choices, ...this.charts.map((c) => c.root));
    this.sized = new ResizeObserver(() => this.charts.forEach((c) => c.size()));
    this.sized.observe(this.root);
    this.turned = () => { this.charts.forEach((c) => c.make()); this.draw(); };
    dark.addEventListener("change", this.turned);
  }

  close() {
    this.sized.disconnect();
    dark.removeEventListener("change", this.turned);
    this.charts.forEach((c) => c.plot?.destroy());
  }

  // about takes what must be known of the topology: since when it runs, and whether in batches.
  about(d) {
    this.began = Date.parse(d.began) / 1000;
    const last = this.charts.at(-1);
    if (!d.batches || last.kind === batches) return;
    last.plot?.destroy();
    this.charts[this.charts.length - 1] = new Chart(batches);
    last.root.replaceWith(this.charts.at(-1).root);
    this.draw();
  }

  choose(seconds, button) {
    this.seconds = seconds;
    for (const b of this.choices.children) b.setAttribute("aria-pressed", String(b === button));
    this.draw();
  }

  add(points) {
    for (const p of points) {
      const at = Date.parse(p.at) / 1000;
      if (!this.points.length || at > this.points.at(-1).at) this.points.push({ ...p, at });
    }
    this.points.splice(0, this.points.length - HOUR);
    this.draw();
  }

  draw() {
    if (!this.points.length) return;
    const last = this.points.at(-1).at;
    const from = Math.max(last - this.seconds, Math.min(this.points[0].at, last - LEAST)); // what is young fills its chart soon
    const shown = [];
    for (const p of this.points) {
      if (p.at < from) continue;
      if (shown.length && p.at - shown.at(-1).at > GAP) shown.push({ at: p.at - 1 }); // nothing is known in between
      shown.push(p);
    }
    this.charts.forEach((c) => c.draw(shown, from, last, this.began + START));
  }
}

class Chart {
  constructor(kind) {
    this.kind = kind;
    this.values = kind.lines.map(() => el("output"));
    this.when = el("span", { class: "soft" });
    this.cut = el("span", { class: "soft", hidden: true });
    this.place = el("div", { class: "plot", role: "img", "aria-label": kind.name });
    const legend = kind.lines.map(([name, , colour], i) => el("span", { class: "line", "data-colour": colour.slice(2) }, name, " ", this.values[i]));
    this.root = el("figure", {}, el("figcaption", {}, el("b", { text: kind.name }), ...legend, this.cut, this.when), this.place);
  }

  make() {
    this.plot?.destroy();
    const css = getComputedStyle(document.documentElement);
    const colour = (name) => css.getPropertyValue(name).trim();
    const font = "11px system-ui, sans-serif";
    const axis = { stroke: colour("--soft"), font, grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    this.plot = new uPlot({
      ...this.room(),
      legend: { show: false },
      cursor: { sync: { key: "charts" }, y: false, drag: { x: false, y: false }, points: { size: 6 } },
      scales: { x: { time: true, range: () => [this.from, this.to] }, y: { range: () => [0, this.top] } },
      axes: [
        { ...axis, size: 28, space: (_, i, from, to) => (to - from < 240 ? 56 : 38), values: (_, all, i, space, step) => all.map((s) => clock(s, step >= 60)) },
        { ...axis, size: 66, space: 32, values: (_, all) => all.map((v) => (v === 0 ? "0" : this.empty ? "" : this.kind.format(v).short)) },
      ],
      series: [{}, ...this.kind.lines.map(([, , c]) => ({ stroke: colour(c), width: 1.5, points: { show: false, size: 5, filter: alone } }))],
      hooks: { setCursor: [() => this.legend()], draw: [(plot) => this.mark(plot, colour("--soft"))] },
    }, this.data ?? [[], ...this.kind.lines.map(() => [])], this.place);
  }

  room() {
    return { width: Math.max(200, this.place.clientWidth), height: 150 };
  }

  size() {
    if (this.plot && this.plot.width !== this.room().width) this.plot.setSize(this.room());
  }

  draw(points, from, to, settled) {
    Object.assign(this, { from, to });
    this.data = [points.map((p) => p.at), ...this.kind.lines.map(([, field]) => (field.endsWith("_ns") ? measured(points, field) : points.map((p) => (p.rate === undefined ? null : (p[field] ?? 0)))))];
    this.scale(settled);
    if (!this.plot) this.make();
    this.plot.setData(this.data);
    this.legend();
  }

  // scale fits what is shown, but for the first burst of a run, which would make all that
  // comes later flat. It is cut, and that is said.
  scale(settled) {
    const [at, ...lines] = this.data;
    const most = (from) => lines.reduce((all, line) => line.reduce((a, v, i) => (at[i] >= from && v > a ? v : a), all), 0);
    const [all, later] = [most(0), most(this.kind.cut && at.at(-1) > settled ? settled : 0)];
    this.empty = all === 0;
    this.top = 1.1 * (later || all) || 1;
    show(this.cut, all > this.top);
    if (all > this.top) put(this.cut, { short: `▲ at first up to ${this.kind.format(all).short}`, exact: this.kind.format(all).exact });
  }

  // mark puts a triangle where a line leaves the chart.
  mark(plot, colour) {
    const { ctx, bbox } = plot;
    const size = 4 * devicePixelRatio;
    ctx.fillStyle = colour;
    plot.data[0].forEach((at, i) => {
      if (!plot.data.slice(1).some((line) => line[i] > this.top)) return;
      const x = plot.valToPos(at, "x", true);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x - size, bbox.top + 1.5 * size);
      ctx.lineTo(x + size, bbox.top + 1.5 * size);
      ctx.fill();
    });
  }

  // legend has the values under the cursor, or the last ones.
  legend() {
    if (!this.data?.[0].length) return;
    const at = this.plot?.cursor.idx ?? this.data[0].length - 1;
    this.values.forEach((v, i) => put(v, this.data[i + 1][at] == null ? { short: "–", exact: "–" } : this.kind.format(this.data[i + 1][at])));
    text(this.when, this.plot?.cursor.idx == null ? "" : clock(this.data[0][at]));
    show(this.when, this.plot?.cursor.idx != null);
    this.place.setAttribute("aria-label", `${this.kind.name}, now ${this.kind.lines.map(([name], i) => `${name} ${this.values[i].textContent}`).join(", ")}`);
  }
}

// measured is a line of what is not measured in each moment: it goes on over short whiles in
// which nothing was (undefined, to uPlot), and is broken by longer ones (null).
function measured(points, field) {
  let last = -Infinity; // when there was something
  let from = 0; // the first place since
  const line = [];
  points.forEach((p, i) => {
    if (p.rate === undefined) last = -Infinity; // nobody knows what was
    line.push(p[field] || null);
    if (!p[field]) return;
    if (p.at - last <= QUIET) line.fill(undefined, from, i);
    [last, from] = [p.at, i + 1];
  });
  return line;
}

// alone finds the points that no line leads to, which would not be seen.
function alone(plot, i) {
  const known = [...plot.data[i].entries()].filter(([, v]) => v !== undefined);
  const found = known.filter(([, v], k) => v !== null && known[k - 1]?.[1] == null && known[k + 1]?.[1] == null).map(([k]) => k);
  return found.length ? found : null;
}

const clock = (s, short) => new Date(1000 * s).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: short ? undefined : "2-digit", hourCycle: "h23" });
