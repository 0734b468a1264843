// Which tasks have died a moment ago.

const RECENT = 60_000; // ms for which a death is news, as it is for the verdict

// Troubles remember what one detail alone does not say: which restarts are new.
export class Troubles {
  constructor() {
    this.restarts = new Map(); // of tasks, as they were last
    this.died = new Map(); // by task: when
  }

  // mark writes into a detail which of its tasks and components have died lately.
  mark(d) {
    const now = Date.parse(d.at);
    const died = (d.troubles ?? []).filter((x) => x.kind === "died" && Date.parse(x.at) > now - RECENT);
    for (const t of d.per_task) {
      const n = t.counts.restarts;
      if (n > (this.restarts.get(t.task) ?? n)) this.died.set(t.task, now);
      this.restarts.set(t.task, n);
    }
    for (const t of d.per_task) t.died = this.died.get(t.task) > now - RECENT || died.some((x) => x.task === t.task);
    const components = new Set([...died, ...d.per_task.filter((t) => t.died)].map((x) => x.component));
    for (const c of d.components) c.died = components.has(c.component);
  }
}
