// Asking the API under api/v1, and hearing its events.

import { parse } from "./format.js";

const root = "api/v1/";

// A Refusal is what the API says no with, or that it did not answer: status 0.
export class Refusal extends Error {
  constructor(status, code, text) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

const silent = () => new Refusal(0, "no-answer", "The server does not answer.");

async function open(path, options) {
  let answer;
  try {
    answer = await fetch(root + path, { cache: "no-store", credentials: "same-origin", ...options });
  } catch (e) {
    if (e.name === "AbortError") throw e;
    throw silent();
  }
  if (answer.ok) return answer;
  let error = {};
  try {
    error = (await answer.json()).error ?? {};
  } catch {
    // not from the API itself: a proxy, perhaps
  }
  throw new Refusal(answer.status, error.code ?? "unknown", error.text ?? `The server answered ${answer.status}.`);
}

// ask returns what GET path answers, or POST if there is a body.
export async function ask(path, body, signal) {
  const options = { signal };
  if (body !== undefined) {
    Object.assign(options, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  }
  const answer = await (await open(path, options)).text();
  return answer ? parse(answer) : null;
}

// of is the path of something of a topology.
export const of = (topology, what = "") => `topologies/${encodeURIComponent(topology)}${what && "/" + what}`;

// events yields {event, data} of a stream of server-sent events until it ends, and {} for a
// sign of life that says nothing.
export async function* events(path, signal) {
  const answer = await open(path, { signal, headers: { Accept: "text/event-stream" } });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch((e) => {
      throw e.name === "AbortError" ? e : silent();
    });
    if (done) return;
    const all = (rest + value).split(/\r?\n\r?\n/);
    rest = all.pop();
    for (const one of all) yield event(one);
    if (all.length === 0) yield {};
  }
}

function event(block) {
  let name = "message";
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length ? { event: name, data: parse(data.join("\n")) } : {};
}
