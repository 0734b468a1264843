package tuple

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lives are ordered by epoch, then by restart: a zombie that restarts itself for
// ever stays below the first life of the next plan.
func TestIncarnationOrder(t *testing.T) {
	order := []Incarnation{0, NewIncarnation(0, 1), NewIncarnation(0, math.MaxUint32), NewIncarnation(1, 1), NewIncarnation(1, 2), NewIncarnation(2, 1), NewIncarnation(math.MaxUint32, math.MaxUint32)}
	require.IsIncreasing(t, order)
	i := NewIncarnation(3, 5)
	require.Equal(t, []uint32{3, 5}, []uint32{i.Epoch(), i.Restart()})
	require.Equal(t, "3.5", i.String())
	require.Equal(t, "7/3.5/41", TreeID{7, i, 41}.String())
}
