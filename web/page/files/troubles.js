// What is wrong with the tasks of a topology: which have died a moment ago, and which do not
// come back from a call.

import { every } from "./live.js";
import { of } from "./api.js";

const RECENT = 120_000; // ms for which a death is news

// Troubles are those of a topology. They ask for its errors only if a task has died or was
// stuck at all, and call changed when they know more.
export class Troubles {
  constructor(topology, changed) {
    this.path = of(topology, "errors");
    this.changed = changed;
    this.restarts = new Map(); // of tasks, as they were last
    this.grew = new Map(); // when they did, by task
    this.errors = [];
  }

  close() {
    this.stop?.();
  }

  // mark writes into a detail what is known: died of a task and a component, a moment if it is
  // recent; deaths and stuck of all of it, for the sentences.
  mark(d) {
    if (d.counts.restarts + d.counts.stuck > 0 && !d.ended) {
      this.stop ??= every(3000, this.path, (errors) => {
        if (!errors) return;
        this.errors = errors;
        this.changed();
      });
    }
    const now = Date.parse(d.at);
    for (const t of d.per_task) {
      const n = t.counts.restarts;
      if (n > (this.restarts.get(t.task) ?? n)) this.grew.set(t.task, now);
      this.restarts.set(t.task, n);
    }
    const last = new Map(this.grew); // by task
    const died = this.errors.filter((e) => e.kind === "died");
    for (const e of died) last.set(e.task, Math.max(last.get(e.task) ?? 0, Date.parse(e.last)));
    const recent = (at) => (at > now - RECENT ? at : undefined);
    for (const t of d.per_task) t.died = recent(last.get(t.task));
    for (const c of d.components) {
      const own = d.per_task.filter((t) => t.component === c.component).map((t) => t.died ?? 0);
      c.died = recent(Math.max(0, ...own, ...died.filter((e) => e.component === c.component).map((e) => Date.parse(e.last))));
    }
    d.deaths = d.components.filter((c) => c.died).map((c) => {
      const mine = died.filter((e) => e.component === c.component); // the latest first
      return { component: c.component, at: c.died, error: mine[0]?.text, times: c.counts.restarts || mine.reduce((n, e) => n + e.count, 0) };
    }).sort((a, b) => b.times - a.times);
    d.stuck = this.errors.filter((e) => e.kind === "stuck" && this.holds(e, d, last));
  }

  // holds reports whether a call that did not come back still does not: its task does nothing,
  // and nothing else has been heard of it.
  holds(e, d, died) {
    const back = this.errors.some((o) => o.kind === "notice" && o.task === e.task && o.text.includes("came back") && o.last > e.last);
    const t = d.per_task.find((x) => x.task === e.task);
    return t?.known && !t.rate && !back && !(died.get(e.task) > Date.parse(e.last));
  }
}
