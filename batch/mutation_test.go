//go:build mutation

package batch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/mutation"
)

// Every bug that the coordinator is given on purpose is noticed by a world, within a few
// seeds.
func TestMutations(t *testing.T) {
	const most = 1000
	tried := 0
	for _, m := range mutation.All() {
		if !m.Batches() {
			continue
		}
		tried++
		reached := 0
		mutation.Set(m, func() { reached++ })
		var err error
		seed := uint64(0)
		for ; seed < most && err == nil; seed++ {
			err = playSeed(seed)
		}
		mutation.Set(0, func() {})
		require.Positive(t, reached, "no seed has come to a hook of %v", m)
		if assert.Error(t, err, "%v is not noticed in %d seeds: %s", m, most, m.Doc()) {
			t.Logf("%v: %d seeds: %v", m, seed, err)
			require.NoError(t, playSeed(seed-1), "without %v", m)
		}
	}
	require.Positive(t, tried)
}
