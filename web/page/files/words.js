// Sentences that more than one view says.

import { attr, text } from "./dom.js";
import { count, share, list, many, time, since } from "./format.js";

const tones = new Map([["running", "good"], ["done", "good"], ["failed", "bad"], ["refused", "bad"]]);

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

// verdicts say what is wrong with a topology, what matters most first, or that nothing is:
// [{tone, text}, ...].
export function verdicts(d) {
  if (d.ended) return [{ tone: "", text: `It has ${d.status === "failed" ? "failed" : "ended"}${d.reason ? ": " + d.reason : ""}. These are its last numbers.` }];
  if (!d.graph) return [{ tone: "warn", text: `It does not run yet${d.reason ? ": " + d.reason : "."}` }];
  const all = [...(d.deaths ?? []).map((x) => ({ tone: "bad", text: dying(x, d) })), ...(d.stuck ?? []).map((e) => ({ tone: "bad", text: stuck(e, d) }))];
  if (d.silent) all.push({ tone: "bad", text: `Nothing is known of ${many(d.silent, "task")}: look at the nodes.` });
  if (d.status !== "running") all.push({ tone: "warn", text: `It is ${d.status}${d.reason ? ": " + d.reason : ""}.` });
  for (const cause of new Set(d.components.map((c) => c.cause).filter(Boolean))) all.push({ tone: "warn", text: held(d, cause) });
  all.push(...full(d));
  if (all.length) return all;
  const bolts = d.components.filter((c) => c.kind === "bolt");
  if (!d.window_ns || !bolts.length) return [];
  const most = bolts.reduce((a, b) => (b.busiest > a.busiest ? b : a));
  return [{ tone: "good", text: `Nothing is held up. The busiest task is one of ${most.component}, ${share(most.busiest).short} of the time.` }];
}

const ago = (moment, d) => since(moment, Date.parse(d.at)).short.replace(/^now$/, "just now");

function dying(x, d) {
  const lost = d.counts.lost ? ` ${many(d.counts.lost, "attempt at a message is", "attempts at messages are")} lost since it began.` : "";
  return `${x.component} has died ${x.times === 1 ? "once" : `${count(x.times).short} times`}, ${x.times === 1 ? "" : "the last time "}${ago(x.at, d)}${x.error ? ": " + x.error : ""}.${lost}`;
}

const stuck = (e, d) => `${e.task} ${e.text}; it was found so ${ago(e.last, d)}.`;

function held(d, cause) {
  const waiting = d.components.filter((c) => c.cause === cause);
  const names = list(waiting.map((c) => c.component));
  const most = Math.max(...waiting.map((c) => c.throttled));
  const slow = d.components.find((c) => c.component === cause);
  return `${names} ${waiting.length > 1 ? "wait" : "waits"} for ${cause}, up to ${share(most).short} of the time; its busiest task is busy ${share(slow?.busiest).short}, with ${many(slow?.counts.queued ?? 0, "tuple")} queued.`;
}

// full says which spouts read no more since as many messages are open as they may have.
function full(d) {
  const most = Number(d.settings?.["max-pending"]);
  if (!(most > 0)) return [];
  const spouts = d.components.filter((c) => reads(c) && d.per_task.some((t) => t.component === c.component && t.counts.open >= most));
  if (!spouts.length) return [];
  return [{ tone: "", text: `${list(spouts.map((c) => c.component))} ${spouts.length > 1 ? "have" : "has"} as many messages open as max-pending allows, ${count(most).exact} a task: more are read when some of them are done.` }];
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
