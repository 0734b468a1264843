package trident_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// sums is a topology that adds up the numbers below n, by their last digit.
func sums(n int64, name string, kind trident.Kind, st *trident.State[int64, int64]) *topology.Topology {
	return trident.New("sums", func(b *trident.Builder) {
		in := trident.From[int64](b, name, spout.Generate(n, func(i int64, o *spout.Out) { o.Emit(i) }), kind)
		trident.PersistentAggregate(trident.GroupBy(in, digit), st, trident.Sum(trident.Identity[int64])).Parallel(2)
	})
}

func digit(n int64) int64 { return n % 10 }

func sumsOf(n int64) map[int64]int64 {
	all := map[int64]int64{}
	for i := range n {
		all[digit(i)] += i
	}
	return all
}

// A record that is gone, and a state with one batch of it: that is not taken for the first
// batch of the new one. One that is undone begins anew, and is exact.
func TestFirstBatchOfAnotherRecord(t *testing.T) {
	for _, kind := range []trident.Kind{trident.Transactional, trident.Opaque} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := trident.StateOf[int64, int64]("sums", memory.New(), kind)
				s, err := egret.Run(t.Context(), sums(100, "in", kind, st), egret.Config{})
				require.NoError(t, err)
				require.EqualValues(t, 1, s.Batches.Committed)
				_, err = egret.Run(t.Context(), sums(5000, "in", kind, st), egret.Config{})
				if kind == trident.Opaque {
					require.NoError(t, err)
					require.Equal(t, sumsOf(5000), contents(t, st, "sums"))
					return
				}
				require.ErrorIs(t, err, state.ErrLost)
				require.ErrorContains(t, err, "batch 1 of attempt 1.1 last, and the record does not say what that batch has")
				require.Equal(t, sumsOf(100), contents(t, st, "sums"))
			})
		})
	}
}
