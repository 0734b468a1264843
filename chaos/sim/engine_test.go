package sim

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The engine under the simulator: a hundred seeds always, a thousand by night.
func TestSeeds(t *testing.T) {
	n := 100
	if os.Getenv("EGRET_LONG") != "" {
		n = 1000
	}
	if s := os.Getenv("SEEDS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	first := uint64(1)
	if s := os.Getenv("FIRST"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
	}
	o := Options{Peaceful: os.Getenv("PEACE") != ""}
	if os.Getenv("V") != "" {
		o.Log = os.Stdout
	}
	s := Seeds(t.Context(), first, n, o, nil)
	for _, f := range s.Failures {
		t.Error(f)
	}
	t.Logf("%+v", s)
	require.Equal(t, n, s.Seeds)
}
