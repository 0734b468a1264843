// Numbers for people. Each function returns {short, exact}: 12.4 k/s, and what it is exactly.

const SPACE = "\u00a0"; // a number and its unit stay in one line

export const NONE = { short: "–", exact: "–" };

// digits keeps three of them, as on an instrument.
function digits(x) {
  const a = Math.abs(x);
  if (a >= 99.95) return x.toFixed(0);
  if (a >= 9.995) return x.toFixed(1).replace(/\.0$/, "");
  return x.toFixed(2).replace(/\.?0+$/, "");
}

// scaled writes x with the unit of a thousand, a million, ... that fits.
function scaled(x, units) {
  let i = 0;
  while (Math.abs(x) >= 999.5 && i < units.length - 1) {
    x /= 1000;
    i++;
  }
  return [digits(x), units[i]];
}

const { format: grouped } = new Intl.NumberFormat("en-US", { maximumFractionDigits: 3 }); // toLocaleString makes one each time

// count is a number of things.
export function count(n = 0) {
  if (Math.abs(n) < 10000) return { short: Number.isInteger(n) ? grouped(n) : digits(n), exact: grouped(n) };
  const [s, unit] = scaled(n, ["", "k", "M", "G", "T"]);
  return { short: s + SPACE + unit, exact: grouped(n) };
}

// brief is a number of format.js where there is little room: 6.5 k instead of 6,543 or 6.54 k.
export const brief = ({ short, exact }) => (short.includes(",") ? brief({ short: `${Number(short.replace(",", "")) / 1000}${SPACE}k`, exact }) : short.replace(/^\d+\.\d+/, (s) => Number(s).toPrecision(2)));

// rate is things a second; undefined: nobody knows yet.
export function rate(x) {
  if (x === undefined) return NONE;
  const exact = `${grouped(x)} a second`;
  if (x > 0 && x < 0.01) return { short: "<0.01/s", exact };
  const [s, unit] = scaled(x, ["", "k", "M", "G"]);
  return { short: s + (unit ? SPACE + unit : "") + "/s", exact };
}

// bytes is a size.
export function bytes(n = 0) {
  const [s, unit] = scaled(n, ["B", "kB", "MB", "GB", "TB"]);
  return { short: s + SPACE + unit, exact: `${grouped(n)} bytes` };
}

// share is a part of a whole, 0 to 1; undefined: nobody knows yet.
export function share(x) {
  if (x === undefined) return NONE;
  const p = 100 * x;
  return { short: (p > 0 && p < 1 ? "<1" : p.toFixed(0)) + SPACE + "%", exact: `${digits(p)} %` };
}

// time is a length of it, in nanoseconds.
export function time(ns = 0) {
  const exact = ns < 1e9 ? `${grouped(ns / 1e3)} µs` : `${grouped(ns / 1e9)} s`;
  if (ns < 59.995e9) {
    const [s, unit] = scaled(ns, ["ns", "µs", "ms", "s"]);
    return { short: ns === 0 ? `0${SPACE}s` : s + SPACE + unit, exact };
  }
  const s = Math.round(ns / 1e9);
  const two = (a, u, b, v) => `${a}${SPACE}${u} ${b}${SPACE}${v}`;
  if (s < 3600) return { short: two(Math.floor(s / 60), "m", s % 60, "s"), exact };
  if (s < 86400) return { short: two(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "m"), exact };
  return { short: two(Math.floor(s / 86400), "d", Math.floor((s % 86400) / 3600), "h"), exact };
}

// span is the window of rates and latencies, in whole seconds.
export const span = (ns) => `${Math.max(1, Math.round(ns / 1e9))}${SPACE}s`;

// quantile is a latency out of a window in which something was measured, or none.
export const quantile = (latency, name) => (latency?.count ? time(latency[name]) : NONE);

// since is how long ago a moment was, as of another.
export function since(moment, now = Date.now()) {
  const ms = Math.max(0, now - new Date(moment));
  return { short: ms < 1000 ? "now" : time(1e9 * Math.floor(ms / 1000)).short + " ago", exact: new Date(moment).toLocaleString() };
}

// many is a number with its noun: 1 task, 2 tasks.
export const many = (n, one, more = one + "s") => `${count(n).short} ${n === 1 ? one : more}`;

// list joins names: a, b and c.
export function list(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

// value is a value of a tuple as text. A number is written as it came, with all its digits.
export function value(v) {
  if (v === null || v === undefined) return "nil";
  return typeof v === "string" ? v : JSON.stringify(v);
}

// parse reads JSON. A whole number that is too large for JavaScript's keeps its digits, where
// the browser can do that: value writes it.
export const parse = (s) =>
  JSON.parse(s, (_, v, context) => (Number.isInteger(v) && !Number.isSafeInteger(v) && context?.source && JSON.rawJSON ? JSON.rawJSON(context.source) : v));
