package memory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// What is kept for the undo is that of one batch, however many there are.
func TestTheListOfOneBatchIsKept(t *testing.T) {
	name := state.Name{Topology: "wordcount", State: "counts"}
	b := New()
	store, err := b.Open(t.Context(), name)
	require.NoError(t, err)
	j := &state.Join{Fence: tuple.Fence{Life: 1}, Undo: true}
	j.Groups.Add(7)
	_, err = store.Join(t.Context(), j)
	require.NoError(t, err)
	last := make([]tuple.BatchID, tuple.KeyGroups)
	for tx := range tuple.TxID(100) {
		require.NoError(t, store.Write(t.Context(), &state.Write{Fence: j.Fence, Tx: tx + 1, Last: last, Rows: []state.Change{
			{Key: state.Key{Group: 7, Bytes: "a"}}, {Key: state.Key{Group: 7, Bytes: "b"}},
		}}))
		last[7] = tuple.BatchID{Tx: tx + 1}
	}
	require.Len(t, b.states[name].groups[7].written, 2)
	require.LessOrEqual(t, cap(b.states[name].groups[7].written), 4)
}
