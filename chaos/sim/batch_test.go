package sim

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/chaos"
)

// batchRare is what one in a hundred seeds may not have.
var batchRare = []string{"stale join", "batch found again", "unsynced write lost", "fenced write", "spout that begins late", "spout without splits"}

// Exactly-once topologies under the simulator: a hundred seeds always, a thousand by
// night.
func TestBatchSeeds(t *testing.T) {
	n := 100
	if os.Getenv("EGRET_LONG") != "" {
		n = 1000
	}
	s := BatchSeeds(t.Context(), 1, n, BatchOptions{}, nil)
	for _, f := range s.Failures {
		t.Error(f)
	}
	require.Equal(t, n, s.Seeds)
	for _, m := range batchMoods {
		require.NotZero(t, s.Moods[m.name], "no seed is %s", m.name)
		for _, kind := range m.kinds {
			require.NotZero(t, s.Faults[kind], "no seed has a %s", kind)
		}
	}
	for _, f := range batchFeatures {
		require.True(t, s.Features[f] > 0 || n < 1000 && slices.Contains(batchRare, f), "no seed has: %s", f)
	}
	for _, c := range []chaos.Checker{
		chaos.States, chaos.Record, chaos.Rounds, chaos.Markers, chaos.Reads, chaos.Positions, chaos.Order, chaos.Credit, chaos.Panics, chaos.Rest, chaos.Ending,
	} {
		require.NotZero(t, s.Checks[c], "nobody has asked: %s", c.Claim())
	}
	for _, c := range []chaos.Checker{chaos.States, chaos.Record, chaos.Rounds, chaos.Markers, chaos.Reads, chaos.Credit, chaos.Rest, chaos.Ending} {
		require.NotZero(t, s.Twins[c], "nobody has asked: %s", c.Twin())
	}
}

// Seeds in which something of the engine was once wrong. They mean other runs when more
// is drawn, so what was found has a test of its own as well.
func TestBatchRegressions(t *testing.T) {
	for _, seed := range []uint64{1} {
		_, err := Batches(seed, BatchOptions{Once: true})
		require.NoError(t, err)
	}
}
