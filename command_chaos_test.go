package egret

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/chaos/sim"
	"github.com/egretstream/egret/topology"
)

func TestChaosSim(t *testing.T) {
	top := []*topology.Topology{greet(io.Discard)}
	for _, tt := range []struct {
		line string
		code int
		out  string // is in the output
		errs string
	}{
		{"--seeds 3", ExitDone, "3 from 1 on, each twice, in ", ""},
		{"--seeds 2 --seed 9", ExitDone, "2 from 9 on, ", ""},
		{"--seed 9", ExitDone, "1 from 9 on, ", ""},
		{"--seed 9 -v", ExitDone, "seed 9, ", ""},
		{"-v --seeds 2", ExitUsage, "", "-v writes the events of one seed: say which with --seed"},
		{"--seeds -1", ExitUsage, "", "--seeds"},
		{"1", ExitUsage, "", "unknown command"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			code, out, errs := runLine(top, append([]string{"chaos", "sim"}, strings.Fields(tt.line)...)...)
			require.Equal(t, tt.code, code, errs)
			require.Contains(t, out, tt.out)
			require.Contains(t, errs, tt.errs)
			require.NotContains(t, errs, "of 3 seeds", "progress is for terminals")
			if strings.HasSuffix(tt.line, "-v") {
				require.NotContains(t, out, "invariants")
				require.Greater(t, strings.Count(out, "\n"), 100, "the events")
			}
		})
	}
	for _, args := range [][]string{{"chaos"}, {"chaos", "live"}} {
		code, out, errs := runLine(top, args...)
		require.Equal(t, ExitUsage, code)
		require.Empty(t, out)
		require.Contains(t, errs, "use chaos sim\nTry: "+program()+" chaos --help\n")
	}
	code, out, errs := runLine(top, "chaos", "sim", "--seeds", "4", "--json")
	require.Equal(t, ExitDone, code, errs)
	var s sim.Summary
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	require.Equal(t, 4, s.Seeds)
	require.Positive(t, s.Checks)
}

func TestChaosOutcome(t *testing.T) {
	o := chaosOptions{seeds: 3}
	require.NoError(t, o.outcome(&sim.Summary{Seeds: 3}))
	require.EqualError(t, o.outcome(&sim.Summary{Seeds: 2}), "interrupted after 2 of 3 seeds")
	s := &sim.Summary{Seeds: 3, Failures: []*sim.Failure{{Seed: 8, Violation: sim.Violation{Invariant: "acks", What: "too early", At: time.Second}}}}
	require.EqualError(t, o.outcome(s), "seed 8: acks: too early (at 1s); to see it again: egret chaos sim --seed 8 -v")
	for range 11 {
		s.Failures = append(s.Failures, s.Failures[0])
	}
	require.ErrorContains(t, o.outcome(s), "\nand 2 more")
}
