package sim

import (
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// queuesAtEnd checks the answers that queues have got when a run has come to its
// end: one for each message, or none if the life that had it was killed.
func (rec *record) queuesAtEnd() {
	for _, b := range rec.queues {
		if b != nil {
			b.atEnd()
		}
	}
}

func (b *queueBook) atEnd() {
	rec := b.rec
	b.look()
	now, whole := rec.w.Now(), rec.whole()
	last := make([]*delivery, b.total)
	acked, failed := map[string]int64{}, map[string]int64{}
	for _, d := range b.all {
		rec.twin(chaos.Answers)
		last[d.number] = d
		killed := d.to.proc.silent != never
		switch {
		case d.answered(now) && d.acked:
			acked[d.to.task]++
			if rec.scene.guarantee == topology.AtMostOnce && rec.scene.harmless() && !rec.halved {
				for _, e := range d.m.all {
					if e.tries == 0 {
						rec.violate(chaos.Executions, "%s is acked, but %s, and nothing has died", d.m.name, rec.where(e))
					}
				}
			}
		case d.answered(now):
			failed[d.to.task]++
		case !killed:
			rec.violate(chaos.Answers, "%s has no answer, and the life that had it was not killed", d.m.name)
		}
	}
	if b.fresh < b.total && whole {
		rec.violate(chaos.Acks, "%s has delivered %d messages of %d", rec.scene.parts[b.part].name, b.fresh, b.total)
	}
	for n, d := range last[:b.fresh] {
		settled := d.answered(now) && (d.acked || b.over(d))
		if !settled && whole && !b.plan.eager {
			rec.violate(chaos.Acks, "message %d of %s is neither acked nor given up", n, rec.scene.parts[b.part].name)
		}
	}
	for _, q := range b.lives {
		rec.twin(chaos.Closes)
		if q.proc.silent == never {
			if q.hand != 0 {
				rec.violate(chaos.Answers, "a life of %s has ended with %d messages in hand", q.task, q.hand)
			}
			if q.closed == 0 && q.open {
				rec.violate(chaos.Closes, "a life of %s was never closed", q.task)
			}
			failed[q.task] -= int64(q.behind) // which are in no books
		}
		if q.closed > 1 {
			rec.violate(chaos.Closes, "a life of %s was closed %d times", q.task, q.closed)
		}
	}
	if rec.kills > 0 {
		return // what was counted in the middle of a call counts
	}
	for _, m := range rec.ms {
		if rec.taskPart(m.Name) != b.part || !b.hasAll(m.Name) {
			continue // the counts of a life that was left behind in a call are nobody's
		}
		count := m.Acked.Load()
		if rec.scene.guarantee == topology.AtMostOnce {
			count = m.Untracked.Load()
		}
		if count != acked[m.Name] || m.HandedBack.Load() != failed[m.Name] {
			rec.violate(chaos.Laws, "%s counts %d acked and %d handed back, and was told %d and %d", m.Name, count, m.HandedBack.Load(), acked[m.Name], failed[m.Name])
		}
	}
}

// hasAll reports whether the queue has got back all messages of a task when a run
// was ended in the middle: if its last life was not killed or left behind.
func (b *queueBook) hasAll(task string) bool {
	all := true
	for _, q := range b.lives {
		if q.task == task {
			all = q.proc.silent == never && q.proc.left == never
		}
	}
	return all
}

// queueRoot checks the executions of a queue's message: it is emitted once.
func (rec *record) queueRoot(m *root) {
	for _, e := range m.all {
		rec.check(chaos.Executions)
		if e.tries > 1 {
			rec.violate(chaos.Executions, "%s: %s, and it is never replayed", m.name, rec.where(e))
		}
	}
	if len(m.dead) > 0 {
		rec.violate(chaos.DeadLetters, "%s is dead, and belongs to a queue", m.name)
	}
}

// taskPart returns the part of a task, by its name.
func (rec *record) taskPart(name string) int {
	for id := range rec.plan.Tasks {
		if rec.plan.TaskName(tuple.TaskID(id)) == name {
			return rec.plan.Tasks[id].Component
		}
	}
	return -1
}
