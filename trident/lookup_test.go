package trident_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
	"github.com/egretstream/egret/tuple"
)

// A lookup shows what is committed, though the store is a batch ahead.
func TestLookupIsCommitted(t *testing.T) {
	back := memory.New()
	at := time.Date(2026, 11, 30, 7, 0, 0, 0, time.UTC)
	top := trident.New("test", func(b *trident.Builder) {
		in := trident.GroupBy(trident.From[int](b, "in", spout.Slice(1)), func(int) time.Time { return at })
		trident.Update(in, trident.StateOf[time.Time, float64]("last", back, trident.Opaque),
			func(_ time.Time, old float64, found bool, _ []int) float64 {
				if found {
					return math.NaN()
				}
				return 1.5
			})
	})
	d := newDrive(t, 1, top, topology.Options{})
	d.run()
	plan, err := top.Build(topology.Options{})
	require.NoError(t, err)
	l, err := trident.LookupOf(plan, "last")
	require.NoError(t, err)
	last := make([]tuple.TxID, tuple.KeyGroups)
	for i := range last {
		last[i] = d.done
	}
	keys := []string{at.Format(time.RFC3339)}
	get := func(committed tuple.TxID) json.RawMessage {
		got, err := l.Get(t.Context(), committed, last, keys)
		require.NoError(t, err)
		return got[0]
	}
	require.Equal(t, "1.5", string(get(d.done)))
	require.Nil(t, get(d.done-1), "it was not there before")

	got, err := l.Get(t.Context(), 0, nil, keys)
	require.NoError(t, err)
	require.Nil(t, got[0], "nothing was ever written")
	_, err = l.Get(t.Context(), d.done, last, []string{"yesterday"})
	require.ErrorIs(t, err, trident.ErrKey)
	_, err = l.Get(t.Context(), d.done, last, []string{"2026-12-01T00:00:00Z"})
	require.ErrorIs(t, err, state.ErrLost, "a group that was written has rows")
	_, err = trident.LookupOf(plan, "first")
	require.ErrorIs(t, err, trident.ErrState)
	require.ErrorContains(t, err, `topology test has no state "first": it has last`)
}
