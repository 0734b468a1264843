// A list of errors: each once, how often, and behind it the tuple and the stack.

import { el, put, text, show, each, sentence } from "./dom.js";
import { count, since } from "./format.js";
import { every } from "./live.js";
import { of } from "./api.js";

// Errors are those of a topology, or of one component.
export class Errors {
  constructor(topology, component) {
    this.path = of(topology, "errors");
    this.component = component;
    this.note = sentence("Asking …");
    this.list = el("ul", { class: "errors", "aria-label": "Errors" });
    this.root = el("div", {}, this.note, this.list);
  }

  open() {
    this.stop = every(2000, this.path, (all, refusal) => {
      const mine = (all ?? []).filter((e) => !this.component || e.component === this.component);
      text(this.note, refusal ? refusal.message : mine.length ? "" : "No errors.");
      show(this.note, this.note.textContent !== "");
      if (all) each(this.list, mine, (e) => `${e.component}\n${e.kind}\n${e.text}`, () => one(!this.component));
    });
  }

  close() {
    this.stop?.();
  }
}

function one(names) {
  const kind = el("b", { class: "kind" });
  const said = el("span", { class: "said" });
  const often = el("span", { class: "number" });
  const when = el("span", { class: "soft" });
  const where = el("p", { class: "soft" });
  const tuple = el("pre");
  const stack = el("pre");
  const li = el("li", {}, el("details", {}, el("summary", {}, kind, said, often, when), where, el("h4", { text: "Tuple in hand" }), tuple, el("h4", { text: "Stack" }), stack));
  li.update = (e) => {
    text(kind, names ? `${e.component} ${e.kind}` : e.kind);
    text(said, e.text);
    put(often, { short: `${count(e.count).short}×`, exact: `${count(e.count).exact} times` });
    put(when, since(e.last));
    text(where, `Last in ${e.task} on ${e.node}; for the first time ${since(e.first).short}.`);
    part(tuple, e.tuple);
    part(stack, e.stack);
  };
  return li;
}

function part(pre, s) {
  text(pre, s ?? "");
  show(pre, Boolean(s));
  show(pre.previousSibling, Boolean(s));
}
