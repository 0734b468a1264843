// Sentences that more than one view says.

import { attr, text } from "./dom.js";
import { count, share, list, many, time } from "./format.js";

const tones = { running: "good", done: "good", failed: "bad", refused: "bad" };

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
  attr(node, "data-tone", t.silent ? "bad" : (tones[t.status] ?? "warn"));
  attr(node, "title", t.reason);
}

// failures says of attempts at messages how they ended badly, since the run began.
export const failures = (c) => `${count(c.failed).short} failed, ${count(c.lost).short} lost, ${count(c.timed_out).short} timed out`;

// replays says why messages came again.
export const replays = (c) => `${count(c.replayed_failed).short} failed, ${count(c.replayed_lost).short} lost, ${count(c.replayed_timeout).short} timed out`;

// verdict says what holds a topology up, or that nothing does: {tone, text}.
export function verdict(d) {
  if (d.ended) return { tone: "", text: `It has ${d.status === "failed" ? "failed" : "ended"}${d.reason ? ": " + d.reason : ""}. These are its last numbers.` };
  if (!d.graph) return { tone: "warn", text: `It does not run yet${d.reason ? ": " + d.reason : "."}` };
  if (d.silent) return { tone: "bad", text: `Nothing is known of ${many(d.silent, "task")}: look at the nodes.` };
  const causes = new Set(d.components.map((c) => c.cause).filter(Boolean));
  if (causes.size) return { tone: "warn", text: [...causes].map((cause) => held(d, cause)).join(" ") };
  if (d.status !== "running") return { tone: "warn", text: `It is ${d.status}${d.reason ? ": " + d.reason : ""}.` };
  const bolts = d.components.filter((c) => c.kind === "bolt");
  if (!d.window_ns || !bolts.length) return { tone: "", text: "" };
  const most = bolts.reduce((a, b) => (b.busiest > a.busiest ? b : a));
  return { tone: "good", text: `Nothing is held up. The busiest task is one of ${most.component}, ${share(most.busiest).short} of the time.` };
}

function held(d, cause) {
  const waiting = d.components.filter((c) => c.cause === cause);
  const names = list(waiting.map((c) => c.component));
  const most = Math.max(...waiting.map((c) => c.throttled));
  const slow = d.components.find((c) => c.component === cause);
  return `${names} ${waiting.length > 1 ? "wait" : "waits"} for ${cause}, up to ${share(most).short} of the time; its busiest task is busy ${share(slow?.busiest).short}, with ${many(slow?.counts.queued ?? 0, "tuple")} queued.`;
}

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
