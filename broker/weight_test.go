package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What waits in the queue is bounded in bytes too.
func TestHeavyTuplesMakeTheWindowSmall(t *testing.T) {
	w := NewWindow(2, Settings{Bytes: 1 << 20})
	w.Worked(100_000, time.Millisecond)
	require.Equal(t, 8192, w.Size())
	w.Weighed(256, 256*100)
	require.Equal(t, 8192, w.Size(), "100 bytes a tuple are within the bound")
	w.Weighed(1, 200_000)
	require.Equal(t, 5, w.Size())
	limit, tell := w.Raise(0)
	require.False(t, tell, "the first limit is above the share")
	require.Equal(t, uint64(FirstLimit), limit)
	w.Executed(0, FirstLimit)
	limit, tell = w.Raise(0)
	require.True(t, tell, "who has used up its limit gets on, however small the share")
	require.LessOrEqual(t, limit, uint64(FirstLimit+5))
	w.Weighed(1, 10<<20)
	require.Equal(t, 1, w.Size(), "one tuple fits in any case")
	for range 100 {
		w.Weighed(256, 256*100)
	}
	require.Equal(t, 8192, w.Size(), "light tuples give the room back")
}

func TestWeightIsThatOfTheHeaviest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := NewWindow(1, Settings{Bytes: 1 << 20})
		w.Worked(100_000, time.Millisecond)
		for _, each := range rapid.SliceOfN(rapid.IntRange(0, 4<<20), 1, 50).Draw(t, "each") {
			w.Weighed(3, 3*each)
			require.LessOrEqual(t, (w.Size()-1)*each, 1<<20)
			require.GreaterOrEqual(t, w.Size(), 1)
		}
	})
}
