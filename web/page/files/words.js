// Sentences that more than one view says.

import { attr, text } from "./dom.js";
import { count, many, time } from "./format.js";

const tones = new Map([["running", "good"], ["done", "good"], ["failed", "bad"], ["refused", "bad"], ["stopped", ""]]);

// measured leaves out what was not measured: of the first sample of all there are no rates.
export function measured(d) {
  if (d.window_ns) return d;
  const none = { rate: undefined, done_rate: undefined, failed_rate: undefined, load: undefined, busiest: undefined };
  const all = (list) => list?.map((x) => ({ ...x, ...none }));
  return { ...d, ...(d.topology && none), nodes: all(d.nodes), topologies: all(d.topologies), components: all(d.components), edges: all(d.edges), per_task: all(d.per_task) };
}

// status writes how a topology is, and in which tone.
export function status(node, t) {
  text(node, t.silent ? `${t.status}, ${many(t.silent, "task")} silent` : t.status);
  attr(node, "data-tone", t.silent ? "bad" : (tones.get(t.status) ?? "warn"));
  attr(node, "title", t.reason);
}

// failures says of attempts at messages how they ended badly, since the run began.
export const failures = (c) => `${count(c.failed).short} failed, ${count(c.lost).short} lost, ${count(c.timed_out).short} timed out`;

// replays says why messages came again.
export const replays = (c) => `${count(c.replayed_failed).short} failed, ${count(c.replayed_lost).short} lost, ${count(c.replayed_timeout).short} timed out`;

const causes = new Map([["death", "a task died"], ["moved", "tasks moved"], ["failure", "a batch failed"], ["timeout", "a batch timed out"]]);

// rounds are those of batches that began anew, by why: [[why, number], ...]. The first one of a
// run is none of them.
export const rounds = (all) => Object.entries(all ?? {}).filter(([why]) => why !== "start").map(([why, n]) => [causes.get(why) ?? why, n]);

// verdicts say what holds a topology up: what the server says matters most, and what its status
// waits for, if that is something else: [{tone, text}, ...].
export function verdicts(d) {
  const all = [d.verdict];
  if (d.graph && !d.ended && d.status !== "running") all.push({ tone: "warn", text: `It is ${d.status}${d.reason ? ": " + d.reason : ""}.` });
  return all.filter((v, i) => v?.text && all.findIndex((o) => o?.text === v.text) === i);
}

// reads reports whether messages come in by a component.
export const reads = (c) => c.kind === "spout" || c.kind === "queue";

// skew says how unevenly tasks are used, if that is worth a sentence and known.
export function skew(tasks) {
  const rates = tasks.map((t) => t.rate);
  const mean = rates.reduce((a, b) => a + b, 0) / rates.length;
  const most = Math.max(...rates);
  if (tasks.length < 2 || !(mean > 0) || !(most >= 1.5 * mean)) return "";
  return `${tasks[rates.indexOf(most)].task} gets ${(most / mean).toFixed(1)} times the mean.`;
}

// running says since when, or how long.
export const running = (t, now) => (Date.parse(t.began) > 0 ? `${t.ended ? "began" : "for"} ${time(1e9 * Math.round((now - Date.parse(t.began)) / 1000)).short}${t.ended ? " ago" : ""}` : "");
