package task

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A life that has a Ref of the one before it keeps that alive, which keeps the one before
// that: all lives that a task has ever had.
func TestALifeForgetsTheOneBefore(t *testing.T) {
	plan, err := topology.New("t", func(b *topology.Builder) {
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), b.Spout("in", spout.Slice("x")).Emits("n").Shuffle())
	}).Build(topology.Options{Epoch: 1})
	require.NoError(t, err)
	first, second := tuple.NewIncarnation(1, 1), tuple.NewIncarnation(1, 2)
	peers := []Peer{{Task: 0, Life: first, Ref: &loop{}}, {Task: 1, Life: first, Ref: &loop{}}}
	var c core
	c.setup(plan, new(Settings), Peer{Task: 1, Life: second}, peers, metrics.NewTask("out/0", 0, 1), &loop{})
	require.Equal(t, []Peer{peers[0], {Task: 1, Life: second}}, c.peers)
	require.NotNil(t, peers[1].Ref, "which are the supervisor's")
}
