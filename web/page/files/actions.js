// What changes something. A dialog says first what would happen, as the server sees it, and
// nothing is done before that is confirmed.

import { el, text, show } from "./dom.js";
import { many } from "./format.js";
import { ask, of } from "./api.js";

// title asks, done is what has been asked for, and next what follows from it.
const words = {
  activate: { name: "Activate", title: (a) => `Let ${a.topology} read on?`, done: (a) => `${a.topology} reads on` },
  deactivate: { name: "Deactivate", title: (a) => `Let ${a.topology} read nothing for now?`, done: (a) => `${a.topology} reads nothing for now`, next: "Activate lets it read on." },
  rebalance: { name: "Rebalance", title: (a) => `Rebalance ${a.topology}?`, done: (a) => `${a.topology} is rebalanced`, next: "Until that is done its status is changing, and it can be cancelled." },
  cancel: { name: "Cancel the rebalance", title: (a) => `Cancel the rebalance of ${a.topology}?`, done: (a) => `The rebalance of ${a.topology} is cancelled` },
  stop: { name: "Stop", title: (a) => `Stop ${a.topology}?`, done: (a) => `${a.topology} stops`, next: "Its last numbers stay here. In a cluster it goes on where it was when it is submitted again." },
  kill: { name: "Kill", title: (a) => `Kill ${a.topology}?`, done: (a) => `${a.topology} is killed`, next: "Its last numbers stay here until this page is closed.", danger: true },
  drain: { name: "Drain", title: (a) => `Move all tasks away from ${a.node}?`, done: (a) => `${a.node} is drained`, next: "Undrain lets it have tasks again." },
  undrain: { name: "Undrain", title: (a) => `Let ${a.node} have tasks again?`, done: (a) => `${a.node} may have tasks again` },
};

// buttons are those of a topology, for who may act. One that makes no sense now says why.
// One that has ended is in a cluster until it is killed: its positions are kept.
export function buttons(place, d, who) {
  const all = !who.act || (d.ended && !d.cluster) ? [] : d.ended ? ["kill"] : !d.cluster ? ["stop", "kill"] : [d.status === "inactive" ? "activate" : "deactivate", d.status === "changing" ? "cancel" : "rebalance", "stop", "kill"];
  const why = (word) => (d.cluster && !d.quorum ? "Nothing can be changed without a quorum" : d.status === "ending" && (d.cluster || word === "stop") ? "It is ending already" : d.status === "stopping" && word !== "kill" ? "It is stopping already" : d.status === "waiting" && word === "rebalance" ? "It does not run yet" : null);
  const key = all.map((word) => word + (why(word) ?? "")).join("\n");
  if (place.dataset.key !== key) {
    place.dataset.key = key;
    const focused = place.contains(document.activeElement) ? document.activeElement.dataset.word : null;
    place.replaceChildren(...all.map((word) => el("button", { class: "button", "data-word": word, text: words[word].name, disabled: why(word) !== null, title: why(word), "aria-label": why(word) && `${words[word].name}: ${why(word)}`, onclick: () => act(word, place.detail) })));
    if (focused) place.querySelector(`[data-word="${focused}"]`)?.focus();
    if (!who.act) place.append(el("span", { class: "soft", text: "You may look only" }));
  }
  place.detail = d;
}

function act(word, d) {
  if (word === "rebalance") rebalance(d);
  else confirm({ do: word, topology: d.topology });
}

// A dialog is gone when it is closed; Escape closes it, and focus goes back to where it was.
// done gives [title, what follows] when it was carried out.
function dialog(title, done) {
  const heading = el("h2", { id: "asked", text: title });
  const body = el("div");
  const wrong = el("p", { class: "wrong", role: "alert", hidden: true });
  const no = el("button", { class: "button", type: "button", text: "Cancel", onclick: () => root.close() });
  const yes = el("button", { class: "button main", type: "button", disabled: true });
  const root = el("dialog", { "aria-labelledby": "asked" }, heading, body, wrong, el("div", { class: "actions" }, no, yes));
  root.addEventListener("close", () => root.remove());
  document.body.append(root);
  root.showModal();
  no.focus();
  const fail = (e) => {
    text(wrong, e.message);
    show(wrong, true);
  };
  return { root, heading, body, yes, no, wrong, fail, done };
}

// confirm asks what an action would do, shows it, and does it if that is wanted.
export async function confirm(action) {
  const w = words[action.do];
  const d = dialog(w.title(action), () => [w.done(action), w.next]);
  text(d.yes, w.name);
  d.yes.classList.toggle("danger", Boolean(w.danger));
  d.body.append(el("p", { class: "soft", text: "Asking what that would do …" }));
  try {
    const effect = await ask("actions", { ...action, preview: true });
    d.body.replaceChildren(...told(effect));
    d.yes.disabled = false;
    d.yes.addEventListener("click", () => carry(d, () => ask("actions", action)));
  } catch (e) {
    d.body.replaceChildren();
    d.fail(e);
  }
}

// carry does it once, and says what came of it.
async function carry(d, doing) {
  d.yes.disabled = true;
  show(d.wrong, false);
  try {
    const effect = await doing();
    const [title, next] = d.done();
    text(d.heading, title);
    d.body.replaceChildren(...told(effect), ...(next ? [el("p", { class: "soft", text: next })] : []));
    d.yes.remove();
    text(d.no, "Close");
    d.no.focus();
  } catch (e) {
    d.yes.disabled = false;
    d.fail(e);
  }
}

// told is an effect: a sentence, and which task goes where.
function told(effect) {
  const moves = effect.moves ?? [];
  const move = (m) => el("li", {}, el("b", { text: m.task }), !m.from ? ` begins on ${m.to}` : !m.to ? ` ends on ${m.from}` : ` from ${m.from} to ${m.to}`);
  return [el("p", { text: effect.text }), moves.length > 0 && el("ul", { class: "moves", tabindex: 0, "aria-label": many(moves.length, "task moves", "tasks move") }, ...moves.map(move))].filter(Boolean);
}

// rebalance asks how many tasks components shall have, before it asks what that would do.
function rebalance(d) {
  const a = dialog(`Rebalance ${d.topology}`);
  const inputs = d.components.filter((c) => c.kind !== "coordinator").map((c, i) => ({ c, input: el("input", { id: `tasks-${i}`, type: "number", min: 1, max: 1024, required: true, value: c.tasks }) }));
  const form = el("form", { class: "numbers", id: "numbers" }, ...inputs.flatMap(({ c, input }) => [el("label", { for: input.id, text: c.component }), input]));
  a.body.append(el("p", { class: "soft", text: "Tasks of each component. Unchanged, tasks are only spread over the nodes again." }), form);
  text(a.yes, "What would move?");
  a.yes.disabled = false;
  const next = (e) => {
    e.preventDefault();
    const parallel = Object.fromEntries(inputs.filter(({ c, input }) => Number(input.value) !== c.tasks).map(({ c, input }) => [c.component, Number(input.value)]));
    a.root.close();
    confirm({ do: "rebalance", topology: d.topology, parallel });
  };
  a.yes.type = "submit";
  a.yes.setAttribute("form", form.id);
  form.addEventListener("submit", next);
  inputs[0]?.input.focus();
}

// settle replays or drops dead letters.
export function settle(topology, word, ids, done) {
  const letters = many(ids.length, "dead letter");
  const d = dialog(word === "replay" ? `Replay ${letters}?` : `Drop ${letters}?`, () => [word === "replay" ? "They are replayed" : "They are dropped"]);
  d.body.append(el("p", { text: word === "replay" ? "They go to the component that they died in once more, as new messages." : "They are deleted, and nothing of them is left." }));
  text(d.yes, word === "replay" ? "Replay" : "Drop");
  d.yes.classList.toggle("danger", word === "drop");
  d.yes.disabled = false;
  d.yes.addEventListener("click", () => carry(d, async () => {
    const effect = await ask(of(topology, "letters"), { do: word, ids });
    done();
    return effect;
  }));
}
