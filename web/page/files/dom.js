// Making elements, and changing only what has changed. Whatever a topology says (names,
// values, errors) gets into the page by textContent or an attribute, and never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((c) => c !== undefined && c !== null && c !== false));
  return node;
}

// el makes an HTML element: el("p", {class: "note", text: "..."}, child, ...).
export const el = (tag, props = {}, ...children) => fill(document.createElement(tag), props, children);

// svg makes an SVG element in the same way.
export const svg = (tag, props = {}, ...children) => fill(document.createElementNS(SVG, tag), props, children);

// text changes what is written, if it has changed.
export function text(node, s) {
  if (node.textContent !== s) node.textContent = s;
}

// put shows a number of format.js: short to read, exact to point at.
export function put(node, f) {
  text(node, f.short);
  attr(node, "title", f.exact === f.short ? null : f.exact);
}

// attr changes an attribute, if it has changed; null takes it away.
export function attr(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// show makes a node visible or not.
export function show(node, yes) {
  if (node.hidden === yes) node.hidden = !yes;
}

// each keeps one child of parent for each item, in their order: make(item) makes one the
// first time that its key is seen, and child.update(item) is called each time.
export function each(parent, items, key, make) {
  const known = (parent.known ??= new Map());
  const now = new Set();
  let before = null;
  for (const item of items) {
    const k = key(item);
    if (now.has(k)) continue;
    now.add(k);
    let child = known.get(k);
    if (!child) {
      child = make(item);
      known.set(k, child);
    }
    child.update?.(item);
    const place = before ? before.nextSibling : parent.firstChild;
    if (place !== child) parent.insertBefore(child, place);
    before = child;
  }
  for (const [k, child] of known) {
    if (now.has(k)) continue;
    child.remove();
    known.delete(k);
  }
}

// table makes a table. A column is {name, class, make(cell, row), update(cell, item)}; on a
// narrow screen each cell says the name of its column. list(items) shows items.
export function table(label, columns, key) {
  const body = el("tbody", { role: "rowgroup" });
  const head = el("tr", { role: "row" }, ...columns.map((c) => el("th", { role: "columnheader", scope: "col", class: c.class, title: c.title, text: c.name })));
  const root = el("table", { role: "table", "aria-label": label }, el("thead", { role: "rowgroup" }, head), body);
  const make = (item) => {
    const cells = columns.map((c) => el("td", { role: "cell", class: c.class, "data-name": c.name }));
    const row = el("tr", { role: "row" }, ...cells);
    columns.forEach((c, i) => c.make?.(cells[i], item));
    row.update = (now) => columns.forEach((c, i) => c.update?.(cells[i], now, row));
    return row;
  };
  root.list = (items) => each(body, items, key, make);
  return root;
}

// bar is a share, from 0 to 1, as a length, with words beside it.
export function bar(kind = "") {
  const full = svg("rect", { class: "full", height: 6, width: 0, rx: 1 });
  const track = svg("svg", { class: `bar ${kind}`, viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { class: "track", width: 100, height: 6, rx: 1 }), full);
  const words = el("span", { class: "number" });
  const root = el("span", { class: "barred" }, track, words);
  root.update = (share, f) => {
    attr(full, "width", Math.round(1000 * Math.min(1, Math.max(0, share || 0))) / 10);
    put(words, f);
  };
  return root;
}

// sentence is for what is empty, broken or not there, and says what to do.
export const sentence = (s, ...more) => el("p", { class: "sentence", text: s }, ...more);
