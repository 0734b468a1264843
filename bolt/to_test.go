package bolt_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

// noted is a sink that notes the stream of each tuple.
type noted struct{ streams []int }

func (n *noted) Put(stream int, _ *tuple.Row) { n.streams = append(n.streams, stream) }

// A collector of one stream is for that stream, however often and in whatever
// order it is used, and leaves the others alone.
func TestToKeepsToItsStream(t *testing.T) {
	n := &noted{}
	var schemas []*tuple.Schema
	for i := range 3 {
		schemas = append(schemas, &tuple.Schema{Component: "c", Stream: fmt.Sprint(i), Fields: []string{"a"}})
	}
	out := bolt.NewCollector(context.Background(), schemas, n)
	late, later := out.To(1), out.To(2)
	late.Emit(1)
	later.Emit(1)
	late.Emit(2)
	out.Emit(3)
	out.To(0).Emit(4)
	late.To(2).Emit(5)
	require.Equal(t, []int{1, 2, 1, 0, 0, 2}, n.streams)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		n.streams = n.streams[:0]
		out.To(1).Emit("x")
	}))
	for _, o := range []bolt.Output{-1, 3} {
		require.Panics(t, func() { out.To(o) })
	}
}
