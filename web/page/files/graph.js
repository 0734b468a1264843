// The graph of a topology. Where everything stands was worked out by the server (package
// graph); here it is drawn once, and then only numbers, lengths and colours change.
//
//	+--------------------+
//	|| count             |   the bar at the left: its queue
//	|| 12.4 k/s  busy 98%|   how high it is filled: how busy it is
//	|| queue 1.2k  p99 ..|
//	||  waits for top    |
//	+--------------------+

import { el, svg, text, attr } from "./dom.js";
import { brief, count, rate, share, quantile, many } from "./format.js";

const ROWS = [22, 42, 58, 77]; // where texts stand in a box, from its top
const HIGH = 88; // of a box, if its edges do not make it higher
const INSET = 14;
const MARGIN = 12; // of the drawing that the page does not need, since it has its own

// A Graph shows a drawing; open(href) is called when a box or an edge is chosen.
export class Graph {
  constructor() {
    this.root = el("div", { class: "graph", tabindex: 0, role: "group" });
    this.drawn = "";
    this.root.addEventListener("scroll", () => this.fade(), { passive: true });
    this.sized = new ResizeObserver(() => this.fade());
    this.sized.observe(this.root);
  }

  update(d, chosen) {
    const drawing = JSON.stringify(d.graph);
    if (drawing !== this.drawn) this.draw(d, drawing);
    const edge = (e) => `${e.from}\n${e.stream}\n${e.to}\n${e.input}`;
    const now = new Map(d.edges.map((e) => [edge(e), e]));
    d.components.forEach((c) => this.boxes.get(c.component)?.update(c, d.batches, chosen?.component === c.component && !chosen.stream));
    d.graph.edges.forEach((e) => this.edges.get(edge(e)).update(now.get(edge(e)), chosen?.component === e.from && chosen.stream === e.stream));
  }

  draw(d, drawing) {
    const g = d.graph;
    this.drawn = drawing;
    this.boxes = new Map();
    this.edges = new Map();
    const top = `#/t/${encodeURIComponent(d.topology)}/`;
    const [x0, y0] = [MARGIN, MARGIN];
    const [w, h] = [g.width - 2 * MARGIN, g.height - 2 * MARGIN];
    const picture = svg("svg", { viewBox: `${x0} ${y0} ${w} ${h}`, width: w, height: h, role: "group", "aria-label": g.about });
    picture.style.setProperty("--wide", w); // it shrinks a little to fit, and scrolls beyond
    for (const e of g.edges) {
      const x = new Edge(e, `${top}s/${encodeURIComponent(e.from)}/${encodeURIComponent(e.stream)}`);
      this.edges.set(`${e.from}\n${e.stream}\n${e.to}\n${e.input}`, x);
      picture.append(x.root);
    }
    g.components.forEach((b, i) => {
      const x = new Box(b, i, `${top}c/${encodeURIComponent(b.component)}`);
      this.boxes.set(b.component, x);
      picture.append(x.root);
    });
    attr(this.root, "aria-label", `Graph of ${d.topology}`);
    this.root.replaceChildren(picture);
    for (const e of this.edges.values()) e.measure();
    this.fade();
  }

  close() {
    this.sized.disconnect();
  }

  // fade shows at which sides there is more of it.
  fade() {
    const { scrollLeft: left, scrollWidth, clientWidth } = this.root;
    const right = scrollWidth - clientWidth - left;
    attr(this.root, "data-more", left > 1 && right > 1 ? "both" : left > 1 ? "left" : right > 1 ? "right" : null);
  }

  // focus goes back to what was open.
  focus(component, stream) {
    if (!stream) return this.boxes?.get(component)?.root.focus();
    for (const e of this.edges?.values() ?? []) if (e.from === component && e.stream === stream) return e.root.focus();
  }

  // reveal scrolls a box into the middle, if the graph is wider than its place.
  reveal(component) {
    const box = this.boxes?.get(component);
    if (!box) return;
    const picture = this.root.firstChild;
    const scale = picture.getBoundingClientRect().width / picture.viewBox.baseVal.width;
    this.root.scrollTo({ left: (box.x + box.w / 2) * scale - this.root.clientWidth / 2 });
  }
}

// A link in a picture is a real one: it is reached by Tab, opened by Enter, copied by a menu.
const link = (href, ...children) => svg("a", { href }, ...children);

class Box {
  constructor(b, i, href) {
    Object.assign(this, { name: b.component, kind: b.kind, about: b.about, x: b.x, w: b.w });
    const { x, y, w, h } = b;
    const source = b.kind === "spout" || b.kind === "queue";
    const rx = source ? 20 : 8;
    const shape = (props) => svg("rect", { x, y, width: w, height: h, rx, ...props });
    this.y = y;
    this.h = h;
    this.behind = [2, 1].map((k) => svg("rect", { class: "behind", x: x + 4 * k, y: y - 4 * k, width: w - 8 * k, height: h, rx }));
    this.level = svg("rect", { class: "level", x, width: w, "clip-path": `url(#box-${i})` });
    this.full = svg("rect", { class: "queue", x, width: 5, "clip-path": `url(#box-${i})` });
    const row = (k, cls, end) => svg("text", { class: cls, x: end ? x + w - INSET : x + INSET, y: y + (h - HIGH) / 2 + ROWS[k], "text-anchor": end ? "end" : "start" });
    this.texts = { name: row(0, "name"), rate: row(1, "number"), busy: row(1, "number", true), queue: row(2, "number"), late: row(2, "number", true), note: row(3, "note") };
    this.texts.name.textContent = b.component;
    this.title = svg("title");
    this.root = link(href, this.title, ...this.behind, shape({ class: "body" }), svg("clipPath", { id: `box-${i}` }, shape({})), this.level, this.full, shape({ class: "frame" }), ...Object.values(this.texts));
    this.root.dataset.component = b.component;
    this.source = source;
    attr(this.root, "class", `box ${source ? "source" : ""}`);
  }

  update(c, batches, chosen) {
    const { rate: r, busy, queue, late, note } = this.texts;
    const load = this.source ? 0 : (c.load ?? 0);
    const bolt = c.kind === "bolt";
    text(r, c.kind === "coordinator" ? `batch ${batches ? batches.last + 1 : "–"}` : rate(c.rate).short);
    text(busy, bolt ? `busy ${share(c.load).short}` : c.counts.lost ? `${brief(count(c.counts.lost))} lost` : "");
    busy.classList.toggle("lost", !bolt && c.counts.lost > 0 && c.failed_rate > 0);
    text(queue, this.source && batches ? "in batches" : this.source ? `open ${brief(count(c.counts.open))}` : bolt ? `queue ${brief(count(c.counts.queued))}` : (batches?.now?.phase ?? ""));
    text(late, this.kind === "coordinator" ? "" : `p99 ${brief(quantile(this.source ? c.complete : c.execute, "p99_ns"))}`);
    this.fit(this.texts.name, this.name);
    const [tone, says] = this.says(c);
    this.fit(note, says);
    attr(this.root, "data-tone", tone);
    attr(this.root, "aria-current", chosen ? "true" : null);
    attr(this.level, "y", this.y + this.h * (1 - load));
    attr(this.level, "height", this.h * load);
    const queued = Math.min(1, Math.log2(1 + c.counts.queued / Math.max(1, c.tasks)) / 13); // full: 8,192 tuples a task
    attr(this.full, "y", this.y + this.h * (1 - queued));
    attr(this.full, "height", this.h * queued);
    this.behind.forEach((b, i) => attr(b, "visibility", c.tasks > 2 - i ? "visible" : "hidden"));
    const spoken = `${c.kind} ${c.component}: ${many(c.tasks, "task")}, ${rate(c.rate).short}${!bolt ? (c.counts.lost ? `, ${many(c.counts.lost, "attempt")} lost since it began` : "") : `, busy ${share(c.load).short}, ${many(c.counts.queued, "tuple")} queued`}, ${says}`;
    attr(this.root, "aria-label", spoken);
    text(this.title, spoken);
  }

  // says is the last line: what is wrong if something is, else what it is.
  says(c) {
    if (c.silent) return ["bad", `${many(c.silent, "task")} silent`];
    const { restarts, lost } = c.counts;
    if (c.died) return ["bad", restarts ? `died ${restarts === 1 ? "once" : `${brief(count(restarts))} times`}` : "died"];
    if (c.cause) return ["warn", `waits for ${c.cause}`];
    if (c.failed_rate > 0) return ["bad", `${rate(c.failed_rate).short} ${lost ? "failed or lost" : "failed"}`];
    return ["", (c.tasks > 1 ? `${this.kind} ×${c.tasks}` : this.kind) + (restarts ? `, ${many(restarts, "restart")}` : "")];
  }

  // fit writes what there is room for. All of it is in the title.
  fit(node, s) {
    if (node.said === s) return;
    node.said = s;
    node.textContent = s;
    for (let n = s.length - 1; n > 0 && node.getComputedTextLength() > this.w - 2 * INSET; n--) node.textContent = s.slice(0, n) + "…";
  }
}

class Edge {
  constructor(e, href) {
    Object.assign(this, { from: e.from, stream: e.stream, about: e.title });
    this.line = svg("path", { class: "line", d: e.path });
    this.tip = svg("path", { class: "tip" });
    this.rate = svg("text", { class: "rate", x: e.label_x, y: e.label_y + 17 });
    this.title = svg("title");
    this.root = link(href, this.title, svg("path", { class: "hit", d: e.path }), this.line, this.tip, svg("text", { class: "label", x: e.label_x, y: e.label_y - 8, text: e.label }), this.rate);
    attr(this.root, "class", "edge");
    Object.assign(this.root.dataset, { from: e.from, stream: e.stream, to: e.to });
  }

  // measure finds where the line ends, to the right, once it is in the page.
  measure() {
    this.long = this.line.getTotalLength();
    this.end = this.line.getPointAtLength(this.long);
  }

  update(e, chosen) {
    if (!e) return;
    const wide = e.rate > 0 ? Math.min(7, 1.5 + Math.log10(1 + e.rate)) : 1.5; // 10 k/s: 5.5
    const half = wide / 2 + 3;
    text(this.rate, rate(e.rate).short);
    attr(this.line, "stroke-width", wide.toFixed(2));
    attr(this.line, "stroke-dasharray", `${this.long - 7} 8`); // the tip goes on from there
    attr(this.tip, "d", `M${this.end.x - 8} ${this.end.y - half}l8 ${half}l-8 ${half}z`);
    attr(this.root, "data-tone", e.full ? "warn" : e.rate > 0 ? "" : "idle");
    attr(this.root, "aria-current", chosen ? "true" : null);
    const says = (f) => `${this.about}: ${f}, ${many(e.total, "tuple")} in all${e.full ? `. ${e.from} waits here for ${e.to}` : ""}`;
    attr(this.root, "aria-label", says(rate(e.rate).short));
    text(this.title, says(rate(e.rate).exact));
  }
}
