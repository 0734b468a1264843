package sim

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/spout"
)

// The seeds reach what their checks are about: every reason for a message to be handed
// back, answers behind the end of a task, letters that are heard, replayed and dead,
// and runs that end in the middle.
func TestSeedsReach(t *testing.T) {
	reasons := []error{spout.ErrFailed, spout.ErrRejected, spout.ErrLost, spout.ErrTimedOut, spout.ErrUnfinished}
	times := map[string]int{}
	for seed := range uint64(200) {
		r := newRun(draw(seed+1, &Options{Tuples: 300}), nil)
		r.play()
		if r.rec.bad != nil {
			t.Fatalf("seed %d: %v", seed+1, r.rec.bad)
		}
		for _, b := range r.rec.queues {
			if b == nil {
				continue
			}
			for _, d := range b.all {
				if d.acked {
					times["acked"]++
				}
				for _, reason := range reasons {
					if errors.Is(d.why, reason) {
						times[reason.Error()]++
					}
				}
				if len(d.at) == 0 {
					times["none, of the killed"]++
				}
			}
			for _, q := range b.lives {
				times["behind the end"] += q.behind
			}
		}
		for _, m := range r.rec.all {
			times["heard"] += len(m.letters.heard)
			times["refused letters"] += m.letters.refused
			times["dead letters"] += len(m.letters.dead)
		}
		if r.rec.halved {
			times["half way"]++
		} else if r.rec.drained {
			times["drained"]++
		}
	}
	t.Log(times)
	for _, what := range []string{"acked", "none, of the killed", "behind the end", "heard", "refused letters", "dead letters", "half way", "drained"} {
		require.NotZero(t, times[what], what)
	}
	for _, reason := range reasons {
		require.NotZero(t, times[reason.Error()], reason.Error())
	}
}
