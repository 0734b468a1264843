package sim

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/chaos"
)

// The engine under the simulator: a hundred seeds always, a thousand by night.
func TestSeeds(t *testing.T) {
	n := 100
	if os.Getenv("EGRET_LONG") != "" {
		n = 1000
	}
	s := Seeds(t.Context(), 1, n, Options{}, nil)
	for _, f := range s.Failures {
		t.Error(f)
	}
	require.Equal(t, n, s.Seeds)
	for _, key := range drawn(n >= 1000) {
		require.NotZero(t, s.Faults[key], "no seed has a %s", key)
	}
	require.GreaterOrEqual(t, s.Moods["peaceful"]*4, n, "a quarter is without faults")
	require.NotZero(t, s.Recovery.Deaths)
	for _, f := range featureNames {
		require.NotZero(t, s.Features[f], "no seed has: %s", f)
	}
	for _, c := range chaos.Checkers() {
		if c == chaos.Own || c.Cluster() || c.Batches() {
			continue // for topologies of users, and for clusters
		}
		require.NotZero(t, s.Checks[c], "nobody has asked: %s", c.Claim())
		require.NotZero(t, s.Twins[c], "nobody has asked: %s", c.Twin())
	}
}

func TestPeacefulSeedsHaveNoFaults(t *testing.T) {
	s := Seeds(t.Context(), 1, 20, Options{Peaceful: true, Once: true}, nil)
	require.Empty(t, s.Failures)
	require.Empty(t, s.Faults)
	require.Equal(t, map[string]int{"peaceful": 20}, s.Moods)
}

// The written log changes nothing, and says what the seed has drawn.
func TestSeedLog(t *testing.T) {
	var log strings.Builder
	quiet, err := Seed(3, Options{})
	require.NoError(t, err)
	loud, err := Seed(3, Options{Log: &log})
	require.NoError(t, err)
	require.Equal(t, quiet, loud)
	require.True(t, strings.HasPrefix(log.String(), "seed 3, "))
	require.Contains(t, log.String(), " tuples ")
}

func TestFailureNamesTheSeed(t *testing.T) {
	f := &Failure{Seed: 7, Violation: Violation{Invariant: "acks", What: "m is acked too early", At: 3}}
	require.EqualError(t, f, "seed 7: acks: m is acked too early (at 3ns); to see it again: egret chaos sim --seed 7 -v")
	f.Plan, f.Drawn = planOf("at 1s kill *"), 4
	require.EqualError(t, f, "seed 7: acks: m is acked too early (at 3ns); to see it again: egret chaos sim --seed 7 --plan 'at 1s kill *' -v (1 of its 4 faults)")
	f.Plan = chaos.Plan{}
	require.ErrorContains(t, f, "egret chaos sim --seed 7 --plan '' -v (0 of its 4 faults)")
}

// drawn are the keys of all faults that seeds draw, of Report.Faults. Some are rare.
func drawn(many bool) (keys []string) {
	rare := []chaos.Class{chaos.Lost, chaos.Held, chaos.StillQueued, chaos.Ask, chaos.Dry}
	for _, k := range chaos.Kinds() {
		if !onLinks(k) {
			keys = append(keys, string(k))
			continue
		}
		for _, c := range chaos.Classes() {
			may := checkClass(chaos.Fault{Kind: k, Class: c}, nil, true) == nil
			if may && (!slices.Contains(rare, c) || many && c != chaos.Lost) {
				keys = append(keys, string(k)+" "+string(c))
			}
		}
	}
	return keys
}
