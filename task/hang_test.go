package task

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// originOf returns an origin that has emitted one tree of n messages, and the dead
// letters that it writes.
func originOf(t *testing.T, n int) (*origin, *spout.Batch, *[]*DeadLetter) {
	plan, err := topology.New("t", func(b *topology.Builder) {
		in := b.Spout("in", spout.Slice("x")).Emits("n")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.Shuffle())
	}).Build(topology.Options{Epoch: 1})
	require.NoError(t, err)
	life := tuple.NewIncarnation(1, 1)
	l := &loop{rnd: rand.New(rand.NewPCG(1, 2))}
	peers := []Peer{{Task: 0, Life: life, Ref: l}, {Task: 1, Life: life, Ref: l}}
	dead := new([]*DeadLetter)
	set := &Settings{
		ParcelSize: 256, MaxPending: 1 << 16, PendingBytes: 1 << 30, TreeSize: 256, MessageTimeout: time.Minute, MaxReplays: 8,
		Event: func(e Event) {
			if d, is := e.(*DeadLetter); is {
				*dead = append(*dead, d)
			}
		},
	}
	c := &core{}
	c.setup(plan, set, peers[0], peers, metrics.NewTask("in/0", 1, 0), l)
	c.start(l, nil)
	o := c.newOrigin()
	c.origin = o
	b := c.batches.get()
	var row tuple.Row
	for range n {
		row.Set(plan.Components[0].Streams[0], []any{"x"})
		b.Append(0, &row)
	}
	o.keep(b)
	require.Equal(t, n, o.emit(b, 0))
	return o, b, dead
}

func hung(index uint16, suspects int) acker.Fail {
	return acker.Fail{Index: index, Class: acker.Hung, Suspects: suspects, Err: "in bolt out, for 10s"}
}

// A tuple that comes of several attempts of one message fails it once when it kills.
func TestOnePanicIsOneFailure(t *testing.T) {
	o, b, _ := originOf(t, 1)
	for seq := range uint64(3) { // three attempts are lost
		var again *attempt
		for _, a := range o.blame {
			again = a
		}
		o.verdict(&acker.Verdict[run]{Seq: seq + 1, Outcome: acker.Lost, Holder: -1, Message: run{batch: b, n: 1, again: again}})
		require.True(t, o.replay())
	}
	var a *attempt
	for _, a = range o.blame {
	}
	late := func(seqs ...uint64) { // of one report
		o.pass++
		for _, seq := range seqs {
			o.tooLate(acker.Fail{Seq: seq, Class: acker.Panicked, Err: "panic"})
		}
	}
	late(1, 2, 3)
	require.Equal(t, 1, a.failures)
	late(1, 2, 3)
	require.Equal(t, 1, a.failures, "they were counted")
}

// A message dies of hangs when it was alone in hand at the last one and in hand at
// another, and of nothing less: not of being a neighbour, how often so ever.
func TestHangsOfAMessage(t *testing.T) {
	o, b, dead := originOf(t, 4)
	o.verdict(&acker.Verdict[run]{Seq: 1, Outcome: acker.Lost, Holder: -1, Message: run{batch: b, n: 4}, Fails: []acker.Fail{hung(1, 3), hung(2, 3), hung(3, 3)}})
	require.True(t, o.replay(), "at once")
	// Each is alone in its tree now: 2, 3, 4 and 5.
	again := map[int32]*attempt{}
	for _, a := range o.blame {
		again[a.index] = a
	}
	next := uint64(2)
	end := func(index int32, outcome acker.Outcome, fails ...acker.Fail) {
		o.verdict(&acker.Verdict[run]{Seq: next, Outcome: outcome, Holder: -1, Message: run{batch: b, first: index, n: 1, again: again[index]}, Fails: fails})
		next++
		require.True(t, o.replay())
	}
	end(0, acker.Done)
	for range 5 {
		end(1, acker.Lost, hung(0, 2))
	}
	require.Empty(t, *dead)
	end(1, acker.Lost, hung(0, 1))
	require.Len(t, *dead, 1)
	require.Equal(t, "hung 7 times in bolt out, for 10s", (*dead)[0].Err)
	require.Zero(t, (*dead)[0].Failures, "a hang is no failure")
	require.Equal(t, 7, (*dead)[0].Losses)
	require.Equal(t, []string{
		"one of 2 suspects of a hang: in bolt out, for 10s", "one of 2 suspects of a hang: in bolt out, for 10s",
		"one of 2 suspects of a hang: in bolt out, for 10s", "hung: in bolt out, for 10s",
	}, (*dead)[0].History)

	end(2, acker.Lost, hung(0, 1))
	require.Len(t, *dead, 2)
	require.Equal(t, "hung twice in bolt out, for 10s", (*dead)[1].Err)

	// It came back after all, and its ledger heard that first.
	end(3, acker.Done, hung(0, 2))
	end(3, acker.Done)
	require.Len(t, *dead, 2)
	m := o.c.m
	require.Equal(t, []int64{4, 2, 2, 1, 0}, []int64{m.Messages.Load(), m.Acked.Load(), m.Dead.Load(), m.Failed.Load(), m.Trying.Load()})
	require.Zero(t, o.open)
}

// A hang whose tree had been given back counts all the same, once.
func TestLateHang(t *testing.T) {
	o, b, dead := originOf(t, 2)
	o.verdict(&acker.Verdict[run]{Seq: 1, Outcome: acker.Lost, Holder: -1, Message: run{batch: b, n: 2}})
	late := hung(1, 1)
	late.Seq = 1
	o.tooLate(late)
	o.tooLate(late)
	require.True(t, o.replay(), "and it is replayed at once")
	require.Empty(t, *dead)
	late.Seq, late.Index = 3, 0
	o.tooLate(late)
	require.Empty(t, *dead, "it is on its way once more")
	for _, a := range o.blame {
		if a.index == 1 {
			require.True(t, a.hung)
			require.Equal(t, 2, a.hangs)
		}
	}
}

// A listener is a context that keeps what is sent and what is done to children.
type listener struct {
	loop
	sent      []any
	abandoned int
}

func (l *listener) Send(_ actor.Ref, msg any) { l.sent = append(l.sent, msg) }
func (l *listener) Abandon(actor.Ref)         { l.abandoned++ }

// The suspects of a hang are the messages of the rows in hand, each once; all that
// a tuple with several anchors comes of hang with it.
func TestBlame(t *testing.T) {
	plan, err := topology.New("t", func(b *topology.Builder) {
		in := b.Spout("in", spout.Slice("x")).Emits("n").Parallel(2)
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.Shuffle())
	}).Build(topology.Options{Epoch: 1})
	require.NoError(t, err)
	life := tuple.NewIncarnation(1, 1)
	l := &listener{}
	s := NewSupervisor(plan, &Settings{}, nil, nil)
	s.ctx = l
	s.children = []child{{life: life}, {life: life + 1}, {life: life}}
	p := &tuple.Parcel{
		Slots: []tuple.Slot{{Tree: tuple.TreeID{Task: 0, Incarnation: life, Seq: 7}}, {Tree: tuple.TreeID{Task: 1, Incarnation: life, Seq: 8}}, {Tree: tuple.TreeID{Task: 1, Incarnation: life + 1, Seq: 9}}},
		Refs:  []tuple.Ref{{Slot: 0, Index: 1}, {Slot: 0, Index: 1}, {Slot: 1, Index: 0}, {Slot: tuple.Several, Index: 0}, {Slot: 2, Index: 5}},
		Lists: [][]tuple.Ref{{{Slot: 0, Index: 1}, {Slot: 0, Index: 2}, {Slot: 2, Index: 4}}},
	}
	blame := func(first, end int) (all []acker.Report) {
		l.sent = nil
		var c call
		c.Begin(uint8(inExecute), 0, first, end)
		sight, _ := c.Look()
		s.blame(2, p, sight, 10*time.Second)
		for _, msg := range l.sent {
			all = append(all, *msg.(*acker.Report))
		}
		return all
	}
	fail := func(seq uint64, index uint16, suspects int) acker.Fail {
		return acker.Fail{Seq: seq, Index: index, Class: acker.Hung, Suspects: suspects, Err: "in bolt out, for 10s"}
	}
	to := func(task tuple.TaskID, life2 tuple.Incarnation, fails ...acker.Fail) acker.Report {
		return acker.Report{From: 2, FromLife: life, To: task, ToLife: life2, Fails: fails}
	}
	require.Equal(t, []acker.Report{to(0, life, fail(7, 1, 1))}, blame(0, 1))
	require.Equal(t, []acker.Report{to(0, life, fail(7, 1, 1))}, blame(0, 2), "two rows of one message")
	require.Empty(t, blame(2, 3), "its ledger is gone")
	require.Equal(t, []acker.Report{to(0, life, fail(7, 1, 1), fail(7, 2, 1)), to(1, life+1, fail(9, 4, 1))}, blame(3, 4))
	require.Equal(t, []acker.Report{to(0, life, fail(7, 1, 5), fail(7, 2, 5)), to(1, life+1, fail(9, 4, 5), fail(9, 5, 5))}, blame(0, 5))
}

// What the supervisor has looked into is never used again: it may look on.
func TestPinnedParcelIsNotUsedAgain(t *testing.T) {
	for _, pin := range []bool{false, true} {
		var task *boltTask
		executed := 0
		task, l, plan := startBolt(t, topology.AtMostOnce, func(tuple.Tuple, *bolt.Collector) error {
			if executed++; executed == 1 && pin {
				sight, _ := task.call.Look()
				p, still := task.call.Pin(sight)
				require.True(t, still)
				require.Equal(t, `{line: "a line"}`, describe(&topology.Plan{}, p, 0))
			}
			return nil
		}, byWord)
		life, schema := tuple.NewIncarnation(plan.Epoch, 1), plan.Components[0].Streams[0]
		var sent []*tuple.Parcel
		for range 2 {
			p := &tuple.Parcel{From: 0, FromLife: life, To: 1, ToLife: life, Schema: schema}
			p.Begin([]tuple.Kind{tuple.KindString}, 1)
			var row tuple.Row
			row.Set(schema, []any{"a line"})
			p.Append(&row)
			sent = append(sent, p)
			task.Receive(l, p)
		}
		for task.Turn(l) {
		}
		require.Equal(t, 2, executed)
		require.Equal(t, map[bool]int{true: 1, false: 0}[pin], sent[0].Len())
		require.Zero(t, sent[1].Len(), "those behind it go home")
	}
}
