package sim

import (
	"time"

	"github.com/egretstream/egret/chaos"
)

// healed reports whether nothing is done any more: all of the plan has been done, or
// it is so late that what has not been done will not be. From then on the adversary
// does nothing but to end the run.
func (a *adversary) healed() bool {
	if a.over {
		return true
	}
	now := a.w.now
	if len(a.early) > 0 {
		return false
	}
	if now <= healAfter {
		for i := range a.counts {
			if len(a.counts[i].wait) > 0 {
				return false
			}
		}
		for _, h := range a.faults {
			if h.last() >= now {
				return false
			}
		}
	}
	a.over = true
	return true
}

// last is when a fault is done for the last time, by time; -1 for one that waits for a
// count.
func (h *harm) last() time.Duration {
	switch w := &h.When; {
	case w.Once && w.From.Clock != chaos.Time:
		return -1
	case w.Once:
		return time.Duration(w.From.At)
	}
	return h.end()
}
