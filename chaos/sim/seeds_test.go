package sim

import (
	gocontext "context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What many seeds come to does not depend on who plays them and who is done first.
func TestSeedsByOneAndByMany(t *testing.T) {
	var want string
	for _, players := range []int{1, 7} {
		shown := 0
		s := playAll(t.Context(), 40, 12, players, func(seed uint64) (Report, error) { return Seed(seed, Options{Once: true}) }, func(s *Summary) { shown++ })
		require.Equal(t, 12, shown)
		b, err := json.Marshal(s)
		require.NoError(t, err)
		if want == "" {
			want = string(b)
		}
		require.Equal(t, want, string(b), "%d players", players)
	}
}

// made is a seed that fails if it is odd.
func made(seed uint64) (Report, error) {
	r := Report{Seed: seed, Mood: "deadly", Events: 10, Time: time.Second, Recovery: []time.Duration{time.Duration(seed) * time.Millisecond}, Faults: map[string]int{"kill": 1}}
	if seed%2 == 1 {
		return r, &Failure{Seed: seed, Violation: Violation{Invariant: "acks"}}
	}
	return r, nil
}

// The failures that are kept are the first ones, in order, whoever is done first.
func TestFailuresAreInOrder(t *testing.T) {
	// The first seed is over when 399 others are, which is the worst that may happen.
	var others sync.WaitGroup
	others.Add(399)
	s := playAll(t.Context(), 1, 400, 3, func(seed uint64) (Report, error) {
		if seed == 1 {
			others.Wait()
		} else {
			defer others.Done()
		}
		return made(seed)
	}, nil)
	require.Equal(t, 400, s.Seeds)
	require.Equal(t, 200, s.Failed)
	require.Len(t, s.Failures, maxFailures)
	for i, f := range s.Failures {
		require.Equal(t, uint64(2*i+1), f.Seed)
	}
	require.Equal(t, map[string]int{"kill": 400}, s.Faults)
	require.Equal(t, 400, s.Recovery.Deaths)
	require.Equal(t, 400*time.Millisecond, s.Recovery.Max)
	require.InEpsilon(t, 200*time.Millisecond, s.Recovery.P50, 0.07)
	require.InEpsilon(t, 396*time.Millisecond, s.Recovery.P99, 0.07)
}

// Seeds that have begun are played to their end, and those that were run are the
// first ones.
func TestSeedsEndWithTheirContext(t *testing.T) {
	for _, players := range []int{1, 4} {
		ctx, stop := gocontext.WithCancel(t.Context())
		var mu sync.Mutex
		begun := map[uint64]bool{}
		s := playAll(ctx, 5, 1<<40, players, func(seed uint64) (Report, error) {
			mu.Lock()
			defer mu.Unlock()
			begun[seed] = true
			return made(seed)
		}, func(s *Summary) {
			if s.Seeds == 30 {
				stop()
			}
		})
		require.GreaterOrEqual(t, s.Seeds, 30)
		require.Len(t, begun, s.Seeds)
		for i := range s.Seeds {
			require.True(t, begun[uint64(5+i)])
		}
	}
	require.Zero(t, playAll(t.Context(), 1, 0, 2, made, nil).Seeds)
	require.Zero(t, playAll(t.Context(), 1, -1, 2, made, nil).Seeds)
}
