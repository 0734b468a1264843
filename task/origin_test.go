package task

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A tree that times out makes those that follow half as large, down to one
// message, so that what a bolt forgets holds no neighbours; trees that get done
// let it grow back slowly.
func TestTreeSizeAdapts(t *testing.T) {
	plan, err := topology.New("t", func(b *topology.Builder) {
		in := b.Spout("in", spout.Slice("x")).Emits("n")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.Shuffle())
	}).Build(topology.Options{Epoch: 1})
	require.NoError(t, err)
	life := tuple.NewIncarnation(1, 1)
	l := &loop{rnd: rand.New(rand.NewPCG(1, 2))}
	peers := []Peer{{Task: 0, Life: life, Ref: l}, {Task: 1, Life: life, Ref: l}}
	set := &Settings{ParcelSize: 256, MaxPending: 1 << 16, PendingBytes: 1 << 30, TreeSize: 256, MessageTimeout: time.Minute, Event: func(Event) {}}
	c := &core{}
	c.setup(plan, set, peers[0], peers, metrics.NewTask("in/0", 1, 0), l)
	c.start(l, nil)
	o := c.newOrigin()
	c.origin = o

	b := c.batches.get()
	var row tuple.Row
	for range 10_000 {
		row.Set(plan.Components[0].Streams[0], []any{"x"})
		b.Append(0, &row)
	}
	o.keep(b)
	at := 0
	tree := func(outcome acker.Outcome) int {
		n := o.emit(b, at)
		o.verdict(&acker.Verdict[run]{Outcome: outcome, Holder: -1, Message: run{batch: b, first: int32(at), n: int32(n)}})
		at += n
		return n
	}
	for _, want := range []int{256, 128, 64, 32, 16, 8, 4, 2, 1, 1} {
		require.Equal(t, want, tree(acker.TimedOut))
	}
	for range 64 {
		require.Equal(t, 1, tree(acker.Done))
	}
	for range 64 {
		require.Equal(t, 2, tree(acker.Done), "one more after 64 trees")
	}
	require.Equal(t, 3, tree(acker.TimedOut))
	require.Equal(t, 1, tree(acker.Done))
	require.EqualValues(t, at, c.m.Attempts.Load())
	require.Equal(t, c.m.Messages.Load(), c.m.Acked.Load()+int64(o.open))
}
