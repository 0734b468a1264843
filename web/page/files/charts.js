// Charts of a topology's last five minutes or hour, drawn by uPlot.

import { el, text, put, show } from "./dom.js";
import { count, rate, time } from "./format.js";

const HOUR = 3600; // points that are kept, one a second
const MINUTE = 60; // seconds that are shown at least
const GAP = 8; // seconds without a point from which a line is broken
const dark = matchMedia("(prefers-color-scheme: dark)");

const kinds = [
  { name: "Messages a second", format: rate, lines: [["in", "rate", "--soft"], ["done", "done_rate", "--blue"], ["failed", "failed_rate", "--red"]] },
  { name: "Latency of messages", format: time, lines: [["p50", "p50_ns", "--blue"], ["p99", "p99_ns", "--warn"]] },
  { name: "Open messages", format: count, lines: [["open", "open", "--green"]] },
];

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
    const from = Math.max(last - this.seconds, Math.min(this.points[0].at, last - MINUTE)); // what is young fills its chart soon
    const shown = [];
    for (const p of this.points) {
      if (p.at < from) continue;
      if (shown.length && p.at - shown.at(-1).at > GAP) shown.push({ at: p.at - 1 }); // nothing is known in between
      shown.push(p);
    }
    this.charts.forEach((c) => c.draw(shown, from, last));
  }
}

class Chart {
  constructor(kind) {
    this.kind = kind;
    this.values = kind.lines.map(() => el("output"));
    this.when = el("span", { class: "soft" });
    this.place = el("div", { class: "plot", role: "img", "aria-label": kind.name });
    const legend = kind.lines.map(([name, , colour], i) => el("span", { class: "line", "data-colour": colour.slice(2) }, name, " ", this.values[i]));
    this.root = el("figure", {}, el("figcaption", {}, el("b", { text: kind.name }), ...legend, this.when), this.place);
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
      scales: { x: { time: true, range: () => [this.from, this.to] }, y: { range: (_, __, most) => [0, (this.most = most) > 0 ? most * 1.1 : 1] } },
      axes: [
        { ...axis, size: 28, space: (_, i, from, to) => (to - from < 240 ? 56 : 38), values: (_, all, i, space, step) => all.map((s) => clock(s, step >= 60)) },
        { ...axis, size: 66, space: 32, values: (_, all) => all.map((v) => (v === 0 ? "0" : this.most > 0 ? this.kind.format(v).short : "")) },
      ],
      series: [{}, ...this.kind.lines.map(([, , c]) => ({ stroke: colour(c), width: 1.5, points: { show: false, size: 5, filter: alone } }))],
      hooks: { setCursor: [() => this.legend()] },
    }, this.data ?? [[], ...this.kind.lines.map(() => [])], this.place);
  }

  room() {
    return { width: Math.max(200, this.place.clientWidth), height: 150 };
  }

  size() {
    if (this.plot && this.plot.width !== this.room().width) this.plot.setSize(this.room());
  }

  draw(points, from, to) {
    Object.assign(this, { from, to });
    this.data = [points.map((p) => p.at), ...this.kind.lines.map(([, field]) => points.map((p) => (p.rate === undefined ? null : p[field] || (field.endsWith("_ns") ? null : 0))))];
    if (!this.plot) this.make();
    this.plot.setData(this.data);
    this.legend();
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

// alone finds the points that no line leads to, which would not be seen.
function alone(plot, i) {
  const all = plot.data[i];
  const found = [...all.keys()].filter((k) => all[k] != null && all[k - 1] == null && all[k + 1] == null);
  return found.length ? found : null;
}

const clock = (s, short) => new Date(1000 * s).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: short ? undefined : "2-digit", hourCycle: "h23" });
