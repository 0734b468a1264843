package task

import (
	"time"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/metrics"
)

// What people see of the coordinator of batches.

const (
	showEvery   = 100 * time.Millisecond // at most
	mostMissing = 5                      // tasks that are named
)

// showNow is the timer of what is shown.
type showNow struct{}

// showSoon shows before long what has changed.
func (t *coordTask) showSoon() {
	if !t.showing {
		t.showing = true
		t.after(showEvery, showNow{})
	}
}

func (t *coordTask) show() {
	t.showing = false
	if t.machine == nil {
		return
	}
	s := t.machine.Status()
	now := &metrics.BatchesNow{Attempt: s.Attempt.String(), Phase: s.Phase.String(), Held: s.Held, Record: s.Asked, Batches: []metrics.BatchInfo{}}
	for _, id := range s.Missing[:min(len(s.Missing), mostMissing)] {
		now.Missing = append(now.Missing, t.plan.TaskName(id))
	}
	for _, b := range s.Batches {
		now.Batches = append(now.Batches, metrics.BatchInfo{Tx: uint64(b.Tx), Stage: b.Stage.String(), Messages: b.Messages, Age: t.now - b.Began})
	}
	t.m.Batches.Last.Set(int64(s.Committed))
	t.m.Batches.Now.Put(now)
}

// cause is why a round has begun. The first one of a machine for another plan has begun
// because tasks were moved; if that did not wait until nothing was under way, their node
// has died.
func (t *coordTask) cause(e *batch.Event) batch.Cause {
	if e.Cause == batch.Start && t.plans > 1 && e.Round == 1 {
		if t.quiet {
			return batch.Moved
		}
		return batch.Death
	}
	return e.Cause
}
