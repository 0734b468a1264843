package sim

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/chaos"
)

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
	for _, c := range []chaos.Checker{
		chaos.States, chaos.Record, chaos.Rounds, chaos.Markers, chaos.Reads, chaos.Positions, chaos.Order, chaos.Credit, chaos.Panics, chaos.Rest, chaos.Ending,
	} {
		require.NotZero(t, s.Checks[c], "nobody has asked: %s", c.Claim())
	}
	for _, c := range []chaos.Checker{chaos.States, chaos.Record, chaos.Rounds, chaos.Markers, chaos.Reads, chaos.Credit, chaos.Rest, chaos.Ending} {
		require.NotZero(t, s.Twins[c], "nobody has asked: %s", c.Twin())
	}
	t.Logf("%d events, %d messages, %v", s.Events, s.Messages, s.Features)
}
