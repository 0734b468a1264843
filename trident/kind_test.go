package trident_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// The table of kinds is true: pairs that are exact are exact with every seed, and of each
// of the others some seed shows that it is not, but none comes to a stop.
func TestKinds(t *testing.T) {
	in := make([]int64, 60)
	want := map[int64]int64{}
	for i := range in {
		in[i] = int64(i * 7919 % 40)
		want[in[i]%20]++
	}
	for _, source := range []trident.Kind{trident.Opaque, trident.Transactional, trident.NonTransactional} {
		for _, kind := range []trident.Kind{trident.Opaque, trident.Transactional, trident.NonTransactional} {
			exact := source != trident.NonTransactional && (kind == trident.Opaque || kind == trident.Transactional && source == trident.Transactional)
			t.Run(source.String()+" source, "+kind.String()+" state", func(t *testing.T) {
				wrong := 0
				for seed := range uint64(15) {
					counts := trident.StateOf[int64, int64]("counts", memory.New(), kind)
					if !exact {
						counts = counts.Inexact()
					}
					top := trident.New("test", func(b *trident.Builder) {
						s := trident.From[int64](b, "in", spout.Slice(in...), source)
						g := trident.GroupBy(s.Shuffle(), func(n int64) int64 { return n % 20 })
						trident.PersistentAggregate(g, counts, trident.Count[int64]()).Parallel(3)
					})
					d := newDrive(t, seed, top, topology.Options{})
					d.trouble = 300
					d.run()
					if !maps.Equal(want, contents(t, counts, "test")) {
						wrong++
					}
				}
				require.Equal(t, !exact, wrong > 0, "%d of 15 seeds are wrong", wrong)
				t.Logf("%d of 15 seeds are wrong", wrong)
			})
		}
	}
}

// A number that no kind has is shown as it is.
func TestKindOfNothing(t *testing.T) {
	require.Equal(t, "kind 9", trident.Kind(9).String())
	require.Equal(t, "transactional", trident.Transactional.String())
	require.Equal(t, "grouping 9", topology.Grouping(9).String())
	require.Equal(t, "guarantee 3", topology.Guarantee(3).String())
	require.Equal(t, "kind 3", metrics.Kind(3).String())
}
