package egret

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// Of a letter that the topology has no stream for any more, fields are masked that are so
// anywhere in it; and all of them when nobody knows the topology.
func TestMaskOfOldLetters(t *testing.T) {
	plan, err := topology.New("masked", func(b *topology.Builder) {
		in := b.Spout("in", spout.Slice("x")).Emits("card").Mask("card").EmitsTo("open", "card")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.Shuffle(), in.Stream("open").Shuffle())
	}).Build(topology.Options{})
	require.NoError(t, err)
	masks := func(plan *topology.Plan, component, stream string) [2]bool {
		b := letterBox{plan: plan}
		s := b.schema(&task.DeadLetter{Component: component, Stream: stream, Fields: []string{"card", "n"}})
		return [2]bool{s.Masks(0), s.Masks(1)}
	}
	require.Equal(t, [2]bool{true, false}, masks(plan, "in", "default"))
	require.Equal(t, [2]bool{false, false}, masks(plan, "in", "open"))
	require.Equal(t, [2]bool{true, false}, masks(plan, "in", "gone"))
	require.Equal(t, [2]bool{true, false}, masks(plan, "gone", "default"))
	require.Equal(t, [2]bool{true, true}, masks(nil, "in", "default"))
}
