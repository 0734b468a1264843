package sim

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClusterOne(t *testing.T) {
	seed, _ := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	if seed == 0 {
		seed = 1
	}
	o := ClusterOptions{Unshrunk: true}
	if os.Getenv("LOG") != "" {
		f, err := os.Create(os.Getenv("LOG"))
		require.NoError(t, err)
		defer f.Close()
		o.Log = f
	}
	r, err := Cluster(seed, o)
	t.Log(r.Mood, r.Events, r.Time, r.Messages, r.Executions, r.Faults, r.Features)
	require.NoError(t, err)
}

func TestClusterSeeds(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("N"))
	if n == 0 {
		n = 100
	}
	first, _ := strconv.ParseUint(os.Getenv("FIRST"), 10, 64)
	if first == 0 {
		first = 1
	}
	s := ClusterSeeds(t.Context(), first, n, ClusterOptions{Once: os.Getenv("ONCE") != "", Unshrunk: os.Getenv("UNSHRUNK") != ""}, nil)
	for _, f := range s.Failures {
		t.Error(f)
	}
	t.Log(s.Failed, s.Seeds, s.Moods, s.Events, s.Time, s.Messages, s.Tuples, s.Faults, s.Features, s.Checks, s.Twins)
}
