package sim

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/chaos"
)

// batchRare is what one in a hundred seeds may not have.
var batchRare = []string{"stale join", "stale order", "batch found again", "unsynced write lost", "fenced write", "spout that begins late", "spout without splits", "round after: timeout"}

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
		require.True(t, s.Features[f] > 0 || n < 1000 && (slices.Contains(batchRare, f) || strings.HasSuffix(f, " lost")), "no seed has: %s", f)
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

// What something of the engine was once wrong with, in the scenes of a few seeds.
func TestBatchRegressions(t *testing.T) {
	late := func(m int) batchDeed {
		return batchDeed{kind: "delay", class: "peers", lasts: 8 * time.Second, m: m}
	}
	var drains []batchDeed
	for k := range 8 {
		drains = append(drains, batchDeed{kind: "error", class: "written", n: 2 + 3*k}, batchDeed{kind: "drain", at: time.Duration(30+47*k) * time.Millisecond, n: 19})
	}
	again := []batchDeed{
		{kind: "repeat", class: "write", lasts: 8 * time.Second}, {kind: "delay", class: "failed", lasts: 8 * time.Second, m: 2},
		{kind: "delay", class: "write", lasts: 8 * time.Second, m: 1},
	}
	for k := range 8 {
		again = append(again, batchDeed{kind: "error", class: "complete", n: 1 + 5*k})
	}
	for _, was := range []struct {
		name  string
		seeds []uint64
		deeds []batchDeed // nil: as the seed draws it
	}{
		// A spout task said that it has input to a coordinator whose place it did not know,
		// and never again: the topology did nothing.
		{"unheard", []uint64{6, 15, 29}, []batchDeed{late(3), late(1)}},
		// A run that drained while a batch with fixed ranges came again said that its source
		// was not transactional.
		{"drain", []uint64{8, 24, 36}, drains},
		// A state whose Complete had failed wrote the batch again when it was told again, and
		// emitted it a second time.
		{"again", []uint64{2, 7, 9}, again},
		// Of a batch with fixed ranges a task waited for the splits of others, emitted the
		// rest of what it had read twice, or lost the position of a split that was not in it.
		{"fixed", []uint64{1, 6, 14, 37, 2844}, nil},
		// Of stores that break their word: one that loses what it has acknowledged to lives that
		// go on to write (any-older), and a copy with the same batches of other attempts
		// (txid-alone). Of a record that is put back: a state has a batch whose ranges it has
		// not (ahead-unfixed). None may be gone on with.
		{"lost", []uint64{14, 76, 99, 2024}, nil},
	} {
		t.Run(was.name, func(t *testing.T) {
			for _, seed := range was.seeds {
				_, err := Batches(seed, BatchOptions{Once: true, deeds: was.deeds, only: was.deeds != nil})
				require.NoError(t, err)
			}
		})
	}
}
