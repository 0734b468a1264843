package cluster

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/tuple"
)

// A history remembers what must never be otherwise again.
type history struct {
	given   uint32                       // the last epoch
	homes   map[tuple.Incarnation]Task   // by task and epoch of one topology at a time
	lives   map[string]tuple.Incarnation // of positions
	records map[Run]batch.Record
	running map[string]Run
}

// see checks a state against all that was seen before.
func (h *history) see(t require.TestingT, s *State, r Result) {
	if r.Epoch != 0 {
		require.Equal(t, h.given+1, r.Epoch, "epochs are given once, in order")
		h.given = r.Epoch
	}
	require.Equal(t, h.given, s.Epoch)
	for _, sub := range s.Submissions {
		if sub.Plan != nil {
			for id, task := range sub.Plan.Tasks {
				key := tuple.NewIncarnation(task.Epoch, uint32(id))
				had, ok := h.homes[key]
				require.True(t, !ok || had == task, "task %d has two homes in epoch %d", id, task.Epoch)
				h.homes[key] = task
			}
		}
		if h.running[sub.Topology] != sub.Run {
			h.running[sub.Topology] = sub.Run
			if sub.Positions.Len() == 0 {
				h.forget(sub.Topology)
			}
		}
		if r := sub.Record; r != nil {
			was := h.records[sub.Run]
			require.True(t, r.Epoch >= was.Epoch && r.Life >= was.Life && (r.Epoch > was.Epoch || r.Life == was.Life), "an epoch is one life's: %v, %v", was, r)
			require.True(t, r.Committed == was.Committed || r.Committed == was.Committed+1 || was.Epoch == 0, "batch after batch")
			h.records[sub.Run] = *r.Clone()
		}
		for p := range sub.Positions.All() {
			key := sub.Topology + " " + p.Component + " " + p.Split
			require.GreaterOrEqual(t, p.Life, h.lives[key], "an earlier life has committed")
			h.lives[key] = p.Life
		}
	}
}

func (h *history) forget(topology string) {
	for key := range h.lives {
		if key[:1] == topology {
			delete(h.lives, key)
		}
	}
}

// Entries that fit, nearly fit and come too late, in any order: what is said of epochs,
// homes, runs and positions holds at each step, a picture of each step stays as it was,
// and another node that gets the same log, with a restart from a snapshot on the way,
// knows the same.
func TestHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s, other State
		h := &history{homes: map[tuple.Incarnation]Task{}, lives: map[string]tuple.Incarnation{}, running: map[string]Run{}, records: map[Run]batch.Record{}}
		var pictures []State
		var shots []string
		for i := range rapid.IntRange(1, 60).Draw(t, "entries") {
			e := drawEntry(t, &s)
			if i == 0 {
				e = Entry{Found: &Found{"c1"}}
			}
			data, err := e.Encode()
			require.NoError(t, err)
			r := s.Apply(uint64(i+1), data)
			h.see(t, &s, r)
			require.NoError(t, s.check())
			if e.Forget != nil && r.Err == nil {
				h.forget(e.Forget.Topology)
			}
			pictures, shots = append(pictures, s), append(shots, shot(t, &s))

			require.Equal(t, r.Err == nil, other.Apply(uint64(i+1), data).Err == nil)
			require.Equal(t, shots[i], shot(t, &other))
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				other = State{}
				require.NoError(t, other.Restore([]byte(shots[i])))
			}
		}
		for i := range pictures {
			require.Equal(t, shots[i], shot(t, &pictures[i]), "picture %d has changed", i)
		}
	})
}

// drawEntry draws an entry that was made for s, or for something that was once.
func drawEntry(t *rapid.T, s *State) Entry {
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "topology")
	all := nodes(rapid.IntRange(1, 3).Draw(t, "nodes"))
	run, base := Run(rapid.Uint32Range(0, s.Epoch).Draw(t, "run")), rapid.Uint32Range(0, s.Epoch).Draw(t, "base")
	spec := Spec{Topology: name, Components: chain(1, 2)}
	spec.Components[0].Spout, spec.Components[1].State = true, true
	switch rapid.IntRange(0, 5).Draw(t, "version") { // another one than before, perhaps
	case 0:
		spec.Components[0].Name = "d0"
	case 1:
		spec.Components[0].Name, spec.Dropped = "d0", []string{"c0"}
	case 2:
		spec.Components[1].State, spec.Dropped = false, []string{"c1"}
	}
	p := plan(spec.Components)
	if sub := s.Submission(name); sub != nil && rapid.IntRange(0, 9).Draw(t, "fits") > 0 {
		run, base = sub.Run, sub.epoch()
		way := rapid.SampledFrom([]func([]Component, *Plan, []Candidate) (*Plan, error){
			Place, Repair, Vacate,
			func(cs []Component, old *Plan, all []Candidate) (*Plan, error) {
				return Resize(cs, old, all, map[string]int{"c1": rapid.IntRange(1, 3).Draw(t, "parallel")})
			},
		}).Draw(t, "way")
		var err error
		p, err = way(sub.Components, sub.Plan, all)
		require.NoError(t, err)
	}
	if rapid.IntRange(0, 9).Draw(t, "spoiled") == 0 {
		task := &p.Tasks[rapid.IntRange(0, len(p.Tasks)-1).Draw(t, "id")]
		task.Home = Home{9, 1}
	}
	status := rapid.SampledFrom([]Status{Active, Inactive, Stopping, Ending, Stopped, Done, Failed}).Draw(t, "status")
	var record batch.Record
	if sub := s.Submission(name); sub != nil {
		record = *sub.Record.Clone()
	}
	tx := record.Committed + tuple.TxID(rapid.IntRange(0, 2).Draw(t, "tx"))
	var groups tuple.Groups
	groups.Add(rapid.Uint16Range(0, tuple.KeyGroups-1).Draw(t, "group"))
	batches := rapid.SampledFrom([]batch.Entry{
		{Epoch: record.Epoch + 1, Begin: true, Life: tuple.NewIncarnation(base, 1)},
		{Epoch: record.Epoch, Fix: &batch.Fix{Tx: tx, Ranges: map[string]batch.Ranges{"c0": {"x": {To: "1", Messages: 1}}}}},
		{Epoch: record.Epoch, Commit: &batch.Commit{Tx: tx, Positions: map[string]batch.Positions{"c0": {"x": fmt.Sprint(tx)}}, Written: map[string]tuple.Groups{"c1": groups}}},
	}).Draw(t, "batches")
	return rapid.SampledFrom([]Entry{
		{Found: &Found{"c2"}},
		{Submit: &Submit{spec, clock}},
		{SetStatus: &SetStatus{name, run, status, clock}},
		{SetPlan: &SetPlan{name, run, base, p}}, {SetPlan: &SetPlan{name, run, base, p}},
		{ProposeNext: &ProposeNext{name, run, base, p, "why"}}, {ProposeNext: &ProposeNext{name, run, base, p, "why"}},
		{Switch: &Switch{name, run, base}}, {Switch: &Switch{name, run, base}}, {Switch: &Switch{name, run, base}},
		{CancelNext: &CancelNext{name, run, base}},
		{Commit: &Commit{name, run, slices.Concat(
			positions("c0", tuple.NewIncarnation(base, 1), "x", "y"), positions("c0", tuple.NewIncarnation(base+1, 0), "z"))}},
		{Commit: &Commit{name, run, positions("c0", tuple.NewIncarnation(base, rapid.Uint32Range(0, 2).Draw(t, "restart")), "x", "z")}},
		{Batches: &Batches{name, run, batches}}, {Batches: &Batches{name, run, batches}},
		{Finish: &Finish{name, run, status, "reason", clock}},
		{Forget: &Forget{name, run}},
		{SawNode: &SawNode{all[len(all)-1].Node, "n", "h:1", Boot(rapid.IntRange(0, 3).Draw(t, "boot"))}},
		{DrainNode: &DrainNode{all[len(all)-1].Node, rapid.Bool().Draw(t, "on")}},
		{ForgetNode: &ForgetNode{all[len(all)-1].Node}},
	}).Draw(t, "entry")
}
