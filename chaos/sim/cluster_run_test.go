package sim

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/chaos"
)

// rare is what one in a hundred seeds may not have.
var rare = []string{"leader killed while a switch waits", "zombie whose tasks have moved", "position refused", "timed out", "inactive"}

// A cluster under the simulator: a hundred seeds always, a thousand by night.
func TestClusterSeeds(t *testing.T) {
	n := 100
	if os.Getenv("EGRET_LONG") != "" {
		n = 1000
	}
	s := ClusterSeeds(t.Context(), 1, n, ClusterOptions{}, nil)
	for _, f := range s.Failures {
		t.Error(f)
	}
	require.Equal(t, n, s.Seeds)
	for _, m := range clusterMoods {
		require.NotZero(t, s.Moods[m.name], "no seed is %s", m.name)
		for _, kind := range m.kinds {
			require.NotZero(t, s.Faults[kind], "no seed has a %s", kind)
		}
	}
	for _, f := range clusterFeatures {
		if n >= 1000 || !slices.Contains(rare, f) {
			require.NotZero(t, s.Features[f], "no seed has: %s", f)
		}
	}
	for _, c := range []chaos.Checker{
		chaos.Acks, chaos.Executions, chaos.Routing, chaos.Keys, chaos.Positions, chaos.Drained, chaos.Panics, chaos.Rest,
		chaos.Plans, chaos.Lives, chaos.Links, chaos.Quiet, chaos.Convergence,
	} {
		require.NotZero(t, s.Checks[c], "nobody has asked: %s", c.Claim())
	}
	for _, c := range []chaos.Checker{chaos.Acks, chaos.Executions, chaos.Positions, chaos.Rest, chaos.Plans, chaos.Lives, chaos.Links, chaos.Quiet, chaos.Convergence} {
		require.NotZero(t, s.Twins[c], "nobody has asked: %s", c.Twin())
	}
}

// The number of nodes that is asked for is that of the beginning.
func TestClusterNodes(t *testing.T) {
	var log strings.Builder
	_, err := Cluster(1, ClusterOptions{Nodes: 4, Once: true, Log: &log})
	require.NoError(t, err)
	require.Contains(t, log.String(), ", 4 nodes, ")
	require.Contains(t, log.String(), " spawn n3#4\n")
}

// Seeds in which something of the engine was once wrong. They mean other runs when more
// is drawn, so what was found has a test of its own as well where that is possible.
func TestClusterRegressions(t *testing.T) {
	for _, seed := range []uint64{
		13,  // what had ended was not told again of another plan
		43,  // a topology that was killed was said to be done
		92,  // a parcel of a task that stays came before the plan, and was passed on by the old one
		132, // a node whose tasks had ended was taken to be at rest: the log had not got their positions yet
		135, // the id of a retired task was given to another component, and a node had skipped the plan between
		320, // a task that began while its topology was inactive read before it heard of that
	} {
		_, err := Cluster(seed, ClusterOptions{Once: true})
		require.NoError(t, err)
	}
}
