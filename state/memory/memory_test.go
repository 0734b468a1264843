package memory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/state/statetest"
	"github.com/egretstream/egret/tuple"
)

func TestStore(t *testing.T) {
	statetest.Run(t, func(*testing.T) state.Backend { return memory.New() })
}

// What another process has written is lost, and the error says why.
func TestMemoryDoesNotOutliveItsProcess(t *testing.T) {
	store, err := memory.New().Open(t.Context(), state.Name{Topology: "wordcount", State: "counts"})
	require.NoError(t, err)
	j := &state.Join{Fence: tuple.Fence{Life: 1}, Committed: 3, Last: make([]tuple.BatchID, tuple.KeyGroups)}
	j.Groups.Add(7)
	j.Last[7].Tx = 2
	_, err = store.Join(t.Context(), j)
	require.ErrorIs(t, err, state.ErrLost)
	require.ErrorContains(t, err, "state wordcount/counts in memory, which cannot outlive its process")
}

func BenchmarkStore(b *testing.B) { statetest.Bench(b, memory.New()) }
