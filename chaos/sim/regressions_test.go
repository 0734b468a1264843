package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/chaos"
)

// Seeds with the plans in which something was once wrong, in the engine or in what the
// simulator made of it. They mean other runs when more is drawn, so what was found in the
// engine has a test of its own as well.
func TestRegressions(t *testing.T) {
	for _, was := range []struct {
		seed uint64
		plan string
	}{
		{314, "panic b2/2 100%"}, // a panic counted for each attempt that its tuple came of
		{20106, "panic b2/* 0.2%"},
		{20348, "panic b2/* 0.6%"},
		{41585, "refuse b3/* 5%; break s0/0 0.5%; poison b1/* 0.05%"},
		{40720, "at 200µs hang s0/1 in fail for 1s; at event 100 stop"},
		{41768, ""},
		{43015, "reject b3/0 1%"},
		{129, "refuse b2/* 25%"},
		{70481, "lose save 60%; break s0/* 9.8%; at 1.05ms break s0/0 in open; at event 89 panic s0/0 in next; at 2.49ms panic b1/0 in tick"},
	} {
		plan, err := chaos.Parse(was.plan)
		require.NoError(t, err)
		_, err = Seed(was.seed, Options{Plan: &plan, Once: true})
		require.NoError(t, err)
	}
}
