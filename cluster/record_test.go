package cluster

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/tuple"
)

// commits says that a batch of words has come to an end, and has written to one key group.
func commits(epoch uint32, tx tuple.TxID) Entry {
	var groups tuple.Groups
	groups.Add(7)
	return Entry{Batches: &Batches{"words", 1, batch.Entry{Epoch: epoch, Commit: &batch.Commit{
		Tx: tx, Positions: map[string]batch.Positions{"lines": {"book": fmt.Sprint(7 * tx)}}, Written: map[string]tuple.Groups{"count": groups},
	}}}}
}

// One coordinator at a time changes the record, batch after batch (T9), whatever comes
// late or twice.
func TestBatches(t *testing.T) {
	m, run, epoch := running(t)
	require.Nil(t, m.Submission("words").Record)
	life := func(restart uint32) tuple.Incarnation { return tuple.NewIncarnation(epoch, restart) }
	m.refused(ErrStale, commits(1, 1))
	m.must(begins(1, life(1)))
	m.must(commits(1, 1))
	before := m.Submission("words").Record
	m.refused(ErrStale, commits(1, 1))
	m.refused(ErrStale, commits(1, 3))
	m.must(commits(1, 2))
	require.Equal(t, tuple.TxID(1), before.Committed, "a picture stays as it is")
	require.Equal(t, "7", before.Positions["lines"]["book"])
	require.Equal(t, tuple.TxID(1), before.Last["count"][7])

	m.must(begins(2, life(2)))
	m.refused(ErrStale, commits(1, 3))
	require.Contains(t, m.refused(ErrStale, begins(3, life(1))), "a later life of the coordinator has begun")
	require.Contains(t, m.refused(ErrStale, begins(2, life(3))), "epoch 2 begins, and it has 2")
	m.must(commits(2, 3))
	r := m.Submission("words").Record
	require.Equal(t, tuple.TxID(3), r.Committed)
	require.Equal(t, "21", r.Positions["lines"]["book"])
	require.Equal(t, tuple.TxID(3), r.Last["count"][7])
	require.Zero(t, r.Last["count"][8])

	require.Contains(t, m.refused(ErrInvalid, begins(3, tuple.NewIncarnation(m.Epoch+1, 1))), "the last epoch is")
	m.refused(ErrInvalid, begins(3, 0))
	m.refused(ErrInvalid, Entry{Batches: &Batches{"words", run, batch.Entry{Epoch: 2, Commit: &batch.Commit{Tx: 4, Positions: map[string]batch.Positions{"lions": {"x": "1"}}}}}})
	m.refused(ErrStale, Entry{Batches: &Batches{"words", run + 1, batch.Entry{Epoch: 3, Begin: true, Life: life(3)}}})
	m.refused(ErrUnknown, Entry{Batches: &Batches{"swords", run, batch.Entry{Epoch: 3, Begin: true, Life: life(3)}}})

	var again State
	require.NoError(t, again.Restore([]byte(m.snapshot())))
	require.Equal(t, r, again.Submission("words").Record)
}

// What was committed of a topology that has ended is committed in the next one, whose
// coordinator the one before cannot be any more.
func TestBatchesOfTheNextRun(t *testing.T) {
	for _, status := range []Status{Failed, Stopped, Done} {
		m, run, epoch := running(t)
		m.must(begins(1, tuple.NewIncarnation(epoch, 1)))
		m.must(commits(1, 1))
		if status == Stopped {
			m.must(Entry{SetStatus: &SetStatus{"words", run, Stopping, clock}})
		}
		m.must(Entry{Finish: &Finish{"words", run, status, "", clock}})
		m.must(commits(1, 2)) // it was written before that was known
		m.must(Entry{Submit: &Submit{exactWords(), clock}})
		m.refused(ErrStale, commits(1, 3))
		require.Equal(t, tuple.TxID(2), m.Submission("words").Record.Committed)
	}
}

// Another version goes on with the record if it has its sources and states, or says what is
// gone and what begins in the middle; else it is refused, and what was there stays.
func TestBatchesOfTheNextVersion(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version func(*Spec)
		refused string
		states  []string // that the record has then
	}{
		{"the same", func(*Spec) {}, "", []string{"count"}},
		{"another source", func(s *Spec) { s.Components[0].Name = "rows" }, `has positions of source "lines", which the topology does not have: give it the name that it had; if it was left out on purpose, say Dropped("lines") in the definition; or kill the topology`, nil},
		{"a source less", func(s *Spec) { s.Components[0].Name, s.Dropped = "rows", []string{"lines"} }, "", []string{"count"}},
		{"another state", func(s *Spec) { s.Components[2].Name = "sum" }, `has batches of state "count"`, nil},
		{"no state", func(s *Spec) { s.Components[2].State = false }, `has batches of state "count"`, nil},
		{"a state less", func(s *Spec) {
			s.Components[2].Name, s.Components[2].State, s.Dropped = "print", false, []string{"count"}
		}, "", []string{}},
		{"a state more", func(s *Spec) { s.Components[1].State = true }, `the record of batches of run 1, of which 1 is the last one, does not know state "split"`, nil},
		{"a state that begins here", func(s *Spec) { s.Components[1].State, s.Components[1].FromHere = true, true }, "", []string{"count"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, run, epoch := running(t)
			m.must(begins(1, tuple.NewIncarnation(epoch, 1)))
			m.must(commits(1, 1))
			m.must(Entry{SetStatus: &SetStatus{"words", run, Stopping, clock}})
			m.must(Entry{Finish: &Finish{"words", run, Stopped, "", clock}})
			version := exactWords()
			tt.version(&version)
			if tt.refused != "" {
				require.Contains(t, m.refused(ErrUnfit, Entry{Submit: &Submit{version, clock}}), tt.refused)
				require.Equal(t, Stopped, m.Submission("words").Status)
				return
			}
			require.Equal(t, run, m.must(Entry{Submit: &Submit{version, clock}}).Before)
			r := m.Submission("words").Record
			require.Equal(t, tuple.TxID(1), r.Committed)
			require.Equal(t, "7", r.Positions["lines"]["book"])
			require.ElementsMatch(t, tt.states, slices.Collect(maps.Keys(r.Last)))
			var again State
			require.NoError(t, again.Restore([]byte(m.snapshot())))
			back, err := again.Snapshot()
			require.NoError(t, err)
			require.Equal(t, m.snapshot(), string(back))
		})
	}
}
