package sim

import (
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/tuple"
)

// What a record makes of the faults that are done to its world: they explain more
// than the usual.

func (rec *record) witness() witness {
	return witness{
		born:   func(id tuple.TaskID, n uint32) { rec.edges.born(rec.w.Now(), id, tuple.NewIncarnation(1, n)) },
		dies:   rec.killed,
		silent: rec.silent,
		lost:   func(n int) { rec.forgot += n },
		jumps:  rec.jumped,
		ending: rec.asked,
	}
}

// killed books that a task is killed.
func (rec *record) killed(id tuple.TaskID, crash bool) {
	rec.kills++
	rec.died(rec.plan.TaskName(id))
	if crash {
		rec.crashes++
	}
	for _, b := range rec.splits[rec.plan.Tasks[id].Component] {
		for _, m := range b.roots { // will be read again
			if !m.acked && m.dead == nil {
				m.death = len(rec.deaths) - 1
			}
		}
	}
	if b := rec.queues[rec.plan.Tasks[id].Component]; b != nil {
		for _, d := range b.open {
			d.m.death = len(rec.deaths) - 1
		}
	}
}

// silent books that something is late by d. Each quarter of the timeout a task says
// what waits in it; so much later, and with what else may be late, that is in time.
func (rec *record) silent(d time.Duration) {
	if d > rec.scene.set.MessageTimeout/4 {
		rec.stands(d)
	}
}

// jumped books that the clock of a task jumps. One jump, of any length, times out
// nothing; jumps that come quickly one after the other are a clock that is too fast,
// and what was heard of in time by all other clocks may time out by this one.
func (rec *record) jumped(id tuple.TaskID, d time.Duration) {
	j := &rec.jumps[id]
	if j.sum > 0 && rec.w.Now()-j.last < rec.scene.set.MessageTimeout {
		rec.stands(0)
	}
	j.last, j.sum = rec.w.Now(), j.sum+d
}

// A jump is what a task's clock is ahead, and the last time that it jumped.
type jump struct{ last, sum time.Duration }

// asked books that the run is asked to end.
func (rec *record) asked(f chaos.Fault, drain bool) {
	if !drain || f.Most > 0 {
		rec.stands(never) // while a run is stopped, the dead have no next life and are not told of
	}
	switch {
	case !drain:
		rec.stopped = true
	case !rec.drained:
		rec.drained, rec.drainedAt = true, rec.w.Now()
		rec.short = f.Most > 0
		rec.drainFor = f.Most
		if f.Most == 0 {
			rec.drainFor = drainFor
		}
	}
}
