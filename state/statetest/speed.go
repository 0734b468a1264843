package statetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// Bench measures Get and Write of 5,000 rows of a word count, of a million words that
// become known one by one, in all key groups. It says how many rows that is in a second.
func Bench(b *testing.B, backend state.Backend) {
	const batch, words = 5_000, 1_000_000
	store, err := backend.Open(b.Context(), state.Name{Topology: fmt.Sprint(b.Name(), b.N), State: "counts"})
	require.NoError(b, err)
	defer store.Close()
	j := &state.Join{Fence: fence(1, 1, 1), Undo: true}
	for g := range uint16(tuple.KeyGroups) {
		j.Groups.Add(g)
	}
	_, err = store.Join(b.Context(), j)
	require.NoError(b, err)
	chance := rand.New(rand.NewPCG(1, 1))
	keys := make([]state.Key, batch)
	w := &state.Write{Fence: j.Fence, Last: make([]tuple.BatchID, tuple.KeyGroups)}
	b.ReportAllocs()
	for b.Loop() {
		w.Tx++
		w.Rows = w.Rows[:0]
		first := chance.IntN(words)
		for i := range keys { // no word twice
			word := (first + i*(words/batch)) % words
			keys[i] = state.Key{Group: uint16(word % tuple.KeyGroups), Bytes: fmt.Sprint("word ", word)}
		}
		rows, err := store.Get(b.Context(), keys)
		require.NoError(b, err)
		for i, k := range keys {
			w.Rows = append(w.Rows, state.Change{Key: k, Row: state.Row{Value: fmt.Appendf(nil, "%08d", w.Tx), Prev: rows[i].Value}})
		}
		require.NoError(b, store.Write(b.Context(), w))
		for _, k := range keys {
			w.Last[k.Group] = tuple.BatchID{Attempt: j.Fence.Attempt, Tx: w.Tx}
		}
	}
	b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "rows/s")
}
