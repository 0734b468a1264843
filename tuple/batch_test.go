package tuple

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOf(rapid.Uint16Range(0, KeyGroups-1)).Draw(t, "groups")
		var g Groups
		require.True(t, g.Empty())
		for _, n := range in {
			g.Add(n)
		}
		want := slices.Compact(slices.Sorted(slices.Values(in)))
		require.Equal(t, want, slices.Collect(g.All()))
		require.Equal(t, len(in) == 0, g.Empty())
		for n := range uint16(KeyGroups) {
			require.Equal(t, slices.Contains(in, n), g.Has(n))
		}
		for first := range g.All() {
			require.Equal(t, want[0], first)
			break
		}
	})
}

func TestAttemptsAndFences(t *testing.T) {
	order := []Fence{
		{}, {Attempt{0, 1}, 9}, {Attempt{1, 0}, 0}, {Attempt{1, 0}, 3}, {Attempt{1, 7}, 2}, {Attempt{2, 0}, 1},
	}
	for i, a := range order {
		for k, b := range order {
			require.Equal(t, i < k, a.Less(b), "%v and %v", a, b)
			require.Equal(t, a.Attempt != b.Attempt && i < k, a.Attempt.Less(b.Attempt))
		}
	}
}
