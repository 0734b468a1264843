package egrettest

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// The next row comes neither too early nor never: step by step.
func TestQuiet(t *testing.T) {
	top := topology.New("quiet", func(b *topology.Builder) {
		in := b.Spout("in", spout.Rows()).Emits("n")
		b.Bolt("out", bolt.Count(), in.Shuffle()).Emits("n")
	})
	plan, err := top.Build(topology.Options{Epoch: 1})
	require.NoError(t, err)
	r, set := newRecorder(), &task.Settings{Event: func(task.Event) {}, Logger: slog.New(slog.DiscardHandler)}
	r.install(plan, set, &script{spouts: []string{"in"}})
	probe := set.Probe

	life := tuple.NewIncarnation(1, 1)
	row := tuple.RowOf([]tuple.Kind{tuple.KindNil})
	row.Cells = make([]tuple.Cell, 1)
	batch := &spout.Batch{Number: 1}
	parcel := func() *tuple.Parcel {
		p := &tuple.Parcel{To: 1, FromLife: life, ToLife: max(life, r.stations[1].dead+1), Schema: plan.Components[0].Streams[0]}
		p.Begin(row.Kinds, 1)
		p.Append(&row)
		return p
	}
	var p, q *tuple.Parcel
	seq := uint64(0)
	// emit is a row that an input has given, or an old one again.
	emit := func(n int, again bool) {
		if !again {
			r.hand()
		}
		seq++
		probe.Tree(tuple.TreeID{Incarnation: life, Seq: seq}, batch, n, 1)
		probe.Message(0, 0, &row)
		p = parcel()
		probe.Send(p)
		q = parcel()
		probe.Recode(p, q)
	}
	verdict := func(o acker.Outcome, fails ...acker.Fail) {
		set.Verdict(&task.Verdict{Tree: tuple.TreeID{Incarnation: life, Seq: seq}, Batch: batch, N: 1, Outcome: o, Fails: fails})
	}
	quiet := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.atRest()
	}
	var held [2]owner
	for _, step := range []struct {
		what  string
		do    func()
		quiet bool
	}{
		{"nothing was given", func() {}, true},
		{"it is on its way", func() { emit(0, false) }, false},
		{"it is in hand", func() { probe.Take(q) }, false},
		{"it is executed", func() { probe.Executed(q) }, false},
		{"it is acked", func() { verdict(acker.Done) }, true},

		{"another one", func() { emit(1, false); probe.Take(q) }, false},
		{"is retained", func() { probe.Retain(q, &held[0]) }, false},
		{"and its Execute returns", func() { probe.Executed(q) }, true},
		{"it is let go", func() { probe.Settled(1, &held[0], nil) }, false},
		{"and acked", func() { verdict(acker.Done) }, true},

		{"a call of Async", func() { emit(2, false); probe.Take(q); probe.Retain(q, &held[1]); probe.Away(1, 1); probe.Executed(q) }, false},
		{"comes back", func() { probe.Settled(1, &held[1], nil); probe.Away(1, -1) }, false},
		{"and is acked", func() { verdict(acker.Done) }, true},

		{"one fails", func() { emit(3, false); probe.Take(q); probe.Failed(q, errors.New("x")); probe.Executed(q) }, false},
		{"its tree is done", func() { verdict(acker.Done, acker.Fail{Class: acker.Failed}) }, false},
		{"it is tried again", func() { emit(3, true); probe.Take(q); probe.Failed(q, errors.New("x")); probe.Executed(q) }, false},
		{"and fails again", func() { verdict(acker.Done, acker.Fail{Class: acker.Failed}) }, false},
		{"it is dead", func() {
			set.Event(&task.DeadLetter{Task: "in/0", Stream: "default", Values: make([]tuple.Value, 1), Err: "x"})
		}, true},

		{"one is in hand", func() { emit(4, false); probe.Take(q) }, false},
		{"of which its task dies", func() { set.Event(&task.Died{Task: "out/0", Life: life}) }, false},
		{"it is given back", func() { verdict(acker.Lost) }, false},
		{"the spout hears of the death", func() { probe.Learned(0, task.Peer{Task: 1, Life: life + 1}) }, false},
		{"it comes again", func() { emit(4, true); probe.Take(q); probe.Executed(q) }, false},
		{"and is acked at last", func() { verdict(acker.Done) }, true},

		{"a task dies at rest", func() { set.Event(&task.Died{Task: "out/0", Life: life + 1}) }, false},
		{"the spout hears of it", func() { probe.Learned(0, task.Peer{Task: 1, Life: life + 2}) }, true},
	} {
		step.do()
		require.Equal(t, step.quiet, quiet(), step.what)
	}
	var result Result
	r.fill(&result)
	require.Len(t, result.executions, 6, "without the attempt that was lost")
	require.Len(t, result.Dead, 1)
	require.EqualError(t, result.Dead[0].Err, "x")
}

type owner struct{ _ byte }

func (*owner) Settle(error) {}
