package trident_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// What is nil where a stream, groups or a state are to be is a mistake that Build tells,
// beside those before it.
func TestNil(t *testing.T) {
	type stream = trident.Stream[int]
	type groups = trident.Grouped[int, int]
	sums := trident.StateOf[int, int]("sums", memory.New(), trident.Opaque)
	id := func(n int) int { return n }
	one := trident.Aggregator[int, int, int]{Init: func() int { return 0 }, Add: func(a, _ int) int { return a }, Done: func(int, func(int)) {}}
	sum := trident.Reducer[int, int]{Zero: func() int { return 0 }, Reduce: func(a, b int) int { return a + b }}
	var s *stream
	var g *groups
	var st *trident.State[int, int]
	for want, use := range map[string]func(in *stream){
		"the stream of Name is nil":               func(*stream) { s.Name("x") },
		"the stream of Parallel is nil":           func(*stream) { s.Parallel(2) },
		"the stream of Map is nil":                func(*stream) { trident.Map(s, id) },
		"the stream of FlatMap is nil":            func(*stream) { trident.FlatMap(s, func(int, func(int)) {}) },
		"the stream of Each is nil":               func(*stream) { trident.Each(s, func(int, func(int)) error { return nil }) },
		"the stream of Filter is nil":             func(*stream) { s.Filter(odd) },
		"the stream of Peek is nil":               func(*stream) { s.Peek(func(int) {}) },
		"a stream of Merge is nil":                func(in *stream) { trident.Merge(in, s) },
		"the stream of Shuffle is nil":            func(*stream) { s.Shuffle() },
		"the stream of Broadcast is nil":          func(*stream) { s.Broadcast() },
		"the stream of Global is nil":             func(*stream) { s.Global() },
		"the stream of By is nil":                 func(*stream) { trident.By(s, id) },
		"the stream of GroupBy is nil":            func(*stream) { trident.GroupBy(s, id) },
		"the stream of GroupAll is nil":           func(*stream) { s.GroupAll() },
		"the stream of PartitionAggregate is nil": func(*stream) { trident.PartitionAggregate(s, one) },
		"the groups of WithoutParts is nil":       func(*stream) { g.WithoutParts() },
		"the groups of Aggregate is nil":          func(*stream) { trident.Aggregate(g, trident.Sum(id)) },
		"the groups of Reduce is nil":             func(*stream) { trident.Reduce(g, sum) },
		"the groups of AggregateGroups is nil":    func(*stream) { trident.AggregateGroups(g, one) },
		"the left of Join is nil": func(in *stream) {
			trident.Join(g, trident.GroupBy(in, id), func(_, _, _ int) int { return 0 })
		},
		"the groups of Join is nil": func(in *stream) {
			trident.Join(trident.GroupBy(in, id), g, func(_, _, _ int) int { return 0 })
		},
		"the left of LeftJoin is nil": func(in *stream) {
			trident.LeftJoin(g, trident.GroupBy(in, id), func(_, _, _ int, _ bool) int { return 0 })
		},
		"the groups of StateQuery of state sums is nil":       func(*stream) { trident.StateQuery(g, sums, func(int, int, bool, func(int)) {}) },
		"the groups of PersistentReduce of state sums is nil": func(*stream) { trident.PersistentReduce(g, sums, sum) },
		"the groups of Update of state sums is nil":           func(*stream) { trident.Update(g, sums, func(int, int, bool, []int) int { return 0 }) },
		"the groups of state sums is nil":                     func(*stream) { trident.PersistentAggregate(g, sums, trident.Sum(id)) },
		"a state is nil":                                      func(in *stream) { trident.PersistentAggregate(trident.GroupBy(in, id), st, trident.Sum(id)) },
	} {
		t.Run(want, func(t *testing.T) {
			_, err := trident.New("test", func(b *trident.Builder) {
				in := trident.From[int](b, "in", spout.Slice(1))
				in.Filter(nil)
				use(in)
			}).Build(topology.Options{})
			if st := trident.ErrStream; want == "a state is nil" {
				require.ErrorIs(t, err, trident.ErrState)
			} else {
				require.ErrorIs(t, err, st)
			}
			require.EqualError(t, err, "the function of Filter is nil\n"+want)
		})
	}
	require.PanicsWithValue(t, "own", func() {
		trident.New("test", func(*trident.Builder) { panic("own") }).Build(topology.Options{})
	})
}
