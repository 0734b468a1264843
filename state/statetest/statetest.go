// Package statetest says what a store of states must do: tests that every state.Backend
// has to pass.
package statetest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// Run runs the tests. Each calls backend once for a place to use; it may be the same
// place each time, since the names of the states are those of the tests.
func Run(t *testing.T, backend func(t *testing.T) state.Backend) {
	for _, tt := range []struct {
		name string
		test func(*bench)
	}{
		{"rows come back as they were written", rows},
		{"states are apart", apart},
		{"a state stays when it is closed", stays},
		{"only the fence of a group may write", fences},
		{"a join with an older fence changes nothing", olderJoin},
		{"a refused write changes nothing in any group", whole},
		{"batches are written once", once},
		{"an undo takes back the whole batch and nothing else", undo},
		{"a batch is undone after a gap", gap},
		{"an undone batch is written by the next attempt", rewritten},
		{"without undo a batch stays and is written again", again},
		{"a batch stays only if it is fixed what it has", unfixed},
		{"what does not fit the record is refused", lost},
		{"a join compares attempts", attempts},
		{"a write goes on top of what its task has left", left},
		{"tasks do not disturb each other", tasks},
		{"a zombie writes before the join or not at all", zombie},
		{"a scan sees the rows of its groups", scan},
		{"large rows", large},
		{"many rows", many},
		{"closed beside a call", closed},
		{"as the model", property},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &bench{
				T: t, ctx: t.Context(), backend: backend(t), name: state.Name{Topology: t.Name(), State: "counts"},
				left: map[uint16]tuple.BatchID{}, by: map[uint16]map[tuple.TxID]tuple.Attempt{},
			}
			b.open()
			defer func() { require.NoError(t, b.store.Close()) }()
			tt.test(b)
		})
	}
}

func rows(b *bench) {
	f := fence(1, 1, 1)
	b.has(none(7, "a"), none(7, ""))
	b.has()
	require.NoError(b, b.join(f, 0, nil, 7, 1023))
	require.NoError(b, b.write(f, 1))
	deleted := state.Change{Key: state.Key{Group: 7, Bytes: "deleted"}, Row: state.Row{Tx: 1, Prev: []byte("it was")}}
	empty := state.Change{Key: state.Key{Group: 7, Bytes: "empty"}, Row: state.Row{Tx: 1, Value: []byte{}, Prev: []byte{}}}
	all := []state.Change{
		row(1023, "z", 1, "last group", ""), row(7, "", 1, "of the empty key", ""),
		row(7, "\x00", 1, "\x00\xff", "\x00"), row(7, "\xff\x00\xfe", 1, "v", "w"), row(7, "a", 1, "x", "y"), deleted, empty,
	}
	require.NoError(b, b.write(f, 1, all...))
	b.has(all...)
	slices.Reverse(all)
	b.has(append(all, none(7, "b"), none(8, "a"), all[0])...)

	// The Tx is that of the batch, whatever the rows say.
	require.NoError(b, b.write(f, 2, row(7, "a", 77, "x2", "x")))
	b.has(row(7, "a", 2, "x2", "x"))
}

func apart(b *bench) {
	f := fence(1, 1, 1)
	require.NoError(b, b.join(f, 0, nil, 7))
	require.NoError(b, b.write(f, 1, row(7, "a", 1, "x", "")))
	for _, name := range []state.Name{
		{Topology: b.name.Topology, State: "other"}, {Topology: b.name.Topology + "/counts", State: "counts"}, {Topology: "é /..\\", State: "../x"},
	} {
		for range 2 {
			_, err := b.backend.Find(b.ctx, name)
			require.ErrorIs(b, err, state.ErrNone, "%v: nobody has made it, nor did Find", name)
		}
		other, err := b.backend.Open(b.ctx, name)
		require.NoError(b, err, name)
		found, err := b.backend.Find(b.ctx, name)
		require.NoError(b, err, name)
		require.NoError(b, found.Close())
		got, err := other.Get(b.ctx, []state.Key{{Group: 7, Bytes: "a"}})
		require.NoError(b, err)
		require.Zero(b, got[0], name)
		require.ErrorIs(b, other.Write(b.ctx, &state.Write{Fence: f, Tx: 1, Rows: []state.Change{row(7, "a", 1, "x", "")}}), state.ErrFenced, name)
		require.NoError(b, other.Close())
	}
}

func stays(b *bench) {
	f := fence(2, 3, 1<<32|5)
	require.NoError(b, b.join(f, 0, nil, 7))
	require.NoError(b, b.write(f, 1, row(7, "a", 1, "x", "")))
	b.reopen()
	b.has(row(7, "a", 1, "x", ""))
	require.ErrorIs(b, b.join(fence(2, 3, 1<<32|4), 1, map[uint16]tuple.TxID{7: 1}, 7), state.ErrFenced)
	require.NoError(b, b.write(f, 2, row(7, "a", 2, "y", "x")), "the fence is still there")
	b.reopen()
	require.NoError(b, b.join(f, 1, map[uint16]tuple.TxID{7: 1}, 7), "undone after it was opened again")
	b.has(row(7, "a", 1, "x", ""))

	// Two who have it open see the same, and one that is closed does not close the other.
	other, err := b.backend.Open(b.ctx, b.name)
	require.NoError(b, err)
	require.NoError(b, other.Write(b.ctx, b.writing(f, 2, row(7, "b", 2, "z", ""))))
	require.NoError(b, other.Close())
	b.has(row(7, "b", 2, "z", ""))
}

func fences(b *bench) {
	require.ErrorIs(b, b.write(tuple.Fence{}, 1, row(7, "a", 1, "x", "")), state.ErrFenced, "nobody has joined, and writes")
	require.ErrorIs(b, b.write(fence(2, 2, 2), 1, row(7, "a", 1, "x", "")), state.ErrFenced, "nobody has joined")
	require.NoError(b, b.join(fence(2, 2, 2), 0, nil, 7))
	for _, f := range []tuple.Fence{fence(1, 2, 2), fence(2, 1, 2), fence(2, 2, 1), fence(3, 2, 2), fence(2, 3, 2), fence(2, 2, 3), fence(1, 9, 9), {}} {
		require.ErrorIs(b, b.write(f, 1, row(7, "a", 1, "x", "")), state.ErrFenced, "%v", f)
	}
	b.has(none(7, "a"))
	require.NoError(b, b.write(fence(2, 2, 2), 1, row(7, "a", 1, "x", "")))
	for i, f := range []tuple.Fence{fence(2, 2, 3), fence(2, 3, 1), fence(3, 0, 0)} {
		require.NoError(b, b.join(f, 1, map[uint16]tuple.TxID{7: 1}, 7), "%v", f)
		require.ErrorIs(b, b.write(fence(2, 2, 2), 9, row(7, "a", 9, "zombie", "x")), state.ErrFenced, "after %v", f)
		require.NoError(b, b.write(f, 2, row(7, "a", 2, fmt.Sprint(i), "x")), "%v", f)
	}
}

func olderJoin(b *bench) {
	last := map[uint16]tuple.TxID{7: 1, 8: 1}
	f := fence(2, 2, 2)
	require.NoError(b, b.join(f, 0, nil, 7, 8))
	require.NoError(b, b.write(f, 1, row(7, "a", 1, "x", ""), row(8, "b", 1, "x", "")))
	require.NoError(b, b.join(f, 1, last, 7, 8), "an equal one")
	require.NoError(b, b.write(f, 2, row(7, "a", 2, "y", "x"), row(8, "b", 2, "y", "x")))
	for _, g := range []tuple.Fence{fence(2, 2, 1), fence(2, 1, 9), fence(1, 9, 9)} {
		require.ErrorIs(b, b.join(g, 1, last, 7, 8), state.ErrFenced, "%v", g)
	}
	b.has(row(7, "a", 2, "y", "x"), row(8, "b", 2, "y", "x"))

	// One group is enough, and then the others do not change either.
	require.NoError(b, b.join(fence(3, 0, 1), 1, last, 8))
	require.ErrorIs(b, b.join(fence(2, 9, 1), 1, last, 7, 8), state.ErrFenced)
	b.has(row(7, "a", 2, "y", "x"), row(8, "b", 1, "x", ""))
	require.NoError(b, b.write(f, 3, row(7, "a", 3, "z", "y")))
}

func whole(b *bench) {
	f := fence(1, 1, 1)
	require.NoError(b, b.join(f, 0, nil, 7, 8, 9))
	require.NoError(b, b.join(fence(1, 2, 1), 0, nil, 8))
	all := []state.Change{row(7, "a", 1, "x", ""), row(8, "b", 1, "x", ""), row(9, "c", 1, "x", "")}
	require.ErrorIs(b, b.write(f, 1, all...), state.ErrFenced)
	b.has(none(7, "a"), none(8, "b"), none(9, "c"))
	require.NoError(b, b.write(f, 1, all[0], all[2]), "the groups have no batch yet")
	require.ErrorIs(b, b.write(fence(1, 2, 1), 1, all...), state.ErrFenced)
	b.has(all[0], none(8, "b"), all[2])
}

func once(b *bench) {
	f := fence(1, 1, 1)
	require.NoError(b, b.join(f, 0, nil, 7, 8))
	require.NoError(b, b.write(f, 2, row(7, "a", 2, "x", "")))
	require.ErrorIs(b, b.write(f, 2, row(7, "a", 2, "y", "x")), state.ErrFenced)
	require.ErrorIs(b, b.write(f, 1, row(7, "a", 1, "y", "x")), state.ErrFenced)
	require.ErrorIs(b, b.write(f, 2, row(8, "b", 2, "y", ""), row(7, "c", 2, "y", "")), state.ErrFenced)
	b.has(row(7, "a", 2, "x", ""), none(8, "b"), none(7, "c"))
	require.NoError(b, b.write(f, 2, row(8, "b", 2, "y", "")), "group 8 has nothing of it")
	require.NoError(b, b.write(f, 3, row(7, "a", 3, "y", "x")))
}

func undo(b *bench) {
	f := fence(1, 1, 1)
	require.NoError(b, b.join(f, 0, nil, 7, 8, 9))
	before := []state.Change{row(7, "a", 1, "a1", ""), row(7, "b", 1, "b1", ""), row(7, "untouched", 1, "u1", ""), row(8, "a", 1, "other", "")}
	require.NoError(b, b.write(f, 1, before...))
	require.NoError(b, b.write(f, 2, row(7, "a", 2, "a2", "a1"), row(7, "old", 2, "o2", ""), row(8, "a", 2, "other2", "other")))
	require.NoError(b, b.write(f, 3, // batch 2 is committed; of batch 3 group 8 has nothing
		row(7, "a", 3, "a3", "a2"), row(7, "b", 3, "b3", "b1"), row(7, "new", 3, "n3", ""),
		state.Change{Key: state.Key{Group: 7, Bytes: "old"}, Row: state.Row{Prev: []byte("o2")}}, // deleted
		row(9, "x", 3, "x3", "")))
	last := map[uint16]tuple.TxID{7: 2, 8: 2}

	// Who joins one group undoes that one.
	require.NoError(b, b.join(fence(1, 2, 1), 2, last, 7))
	b.has(row(7, "a", 2, "a2", ""), row(7, "b", 2, "b1", ""), row(7, "untouched", 1, "u1", ""), none(7, "new"), row(7, "old", 2, "o2", ""),
		row(8, "a", 2, "other2", "other"), row(9, "x", 3, "x3", ""))
	require.NoError(b, b.join(fence(1, 2, 1), 2, last, 8, 9))
	b.has(row(8, "a", 2, "other2", "other"), none(9, "x"))

	// Twice does no harm: batch 2 is committed, and there is one previous value only.
	require.NoError(b, b.join(fence(1, 3, 1), 2, last, 7, 8, 9))
	b.has(row(7, "a", 2, "a2", ""), row(7, "b", 2, "b1", ""), row(8, "a", 2, "other2", "other"))
}

func gap(b *bench) {
	f := fence(1, 1, 1)
	require.NoError(b, b.join(f, 0, nil, 7, 8))
	require.NoError(b, b.write(f, 1, row(7, "a", 1, "a1", "")))
	require.NoError(b, b.write(f, 5, row(7, "a", 5, "a5", "a1"), row(7, "b", 5, "b5", ""), row(8, "c", 5, "c5", "")))
	require.NoError(b, b.join(fence(1, 2, 1), 4, map[uint16]tuple.TxID{7: 1}, 7, 8))
	b.has(row(7, "a", 1, "a1", ""), none(7, "b"), none(8, "c"))

	// Batch 5 comes again, without the key that it had; and later ones have none.
	f = fence(1, 2, 1)
	require.NoError(b, b.write(f, 5, row(7, "b", 5, "b5", "")))
	require.NoError(b, b.join(fence(2, 0, 1), 100, map[uint16]tuple.TxID{7: 5}, 7, 8))
	b.has(row(7, "a", 1, "a1", ""), row(7, "b", 5, "b5", ""))
}

func rewritten(b *bench) {
	last := map[uint16]tuple.TxID{}
	f := fence(1, 0, 1)
	require.NoError(b, b.join(f, 0, nil, 7))
	for tx := tuple.TxID(1); tx <= 5; tx++ {
		value, before := fmt.Sprint(tx), ""
		if tx > 1 {
			before = fmt.Sprint(tx - 1)
		}
		for range 3 {
			require.NoError(b, b.write(f, tx, row(7, "a", tx, "wrong "+value, before), row(7, fmt.Sprint("only once ", f.Round), tx, "x", "")))
			f.Round++
			require.NoError(b, b.join(f, tx-1, last, 7))
		}
		require.NoError(b, b.write(f, tx, row(7, "a", tx, value, before)))
		last[7] = tx
	}
	b.has(row(7, "a", 5, "5", "4"))
	for round := range uint32(15) {
		b.has(none(7, fmt.Sprint("only once ", round)))
	}
}

func again(b *bench) {
	f := fence(1, 1, 1)
	j := &state.Join{Fence: f, Groups: set(7, 8), Fixed: true}
	join := func(want ...uint16) {
		ahead, err := b.joinAs(j)
		require.NoError(b, err)
		require.Equal(b, set(want...), ahead, "who has the batch behind the committed one")
	}
	join()
	write := func(tx tuple.TxID, rows ...state.Change) error {
		w := b.writing(j.Fence, tx, rows...)
		w.Again = true
		return b.writeAs(w)
	}
	require.NoError(b, write(1, row(7, "a", 1, "a1", ""), row(7, "b", 1, "b1", "")))
	j.Fence.Round++
	join(7)
	b.has(row(7, "a", 1, "a1", ""), row(7, "b", 1, "b1", ""))
	require.NoError(b, write(1, row(7, "c", 1, "c1", "")))
	require.NoError(b, write(1, row(7, "a", 1, "a1 again", "a0")))
	b.has(row(7, "a", 1, "a1 again", "a0"), row(7, "b", 1, "b1", ""), row(7, "c", 1, "c1", ""))
	require.ErrorIs(b, b.write(j.Fence, 1, row(7, "c", 1, "c1", "")), state.ErrFenced, "Again was not said")
	require.ErrorIs(b, write(0, row(7, "c", 0, "c0", "")), state.ErrFenced)

	// An undo knows of all times that the batch was written.
	j.Fence.Round++
	j.Undo, j.Fixed = true, false
	join()
	b.has(state.Change{Key: state.Key{Group: 7, Bytes: "a"}, Row: state.Row{Value: []byte("a0")}}, none(7, "b"), none(7, "c"))
}

// unfixed: a batch that is not undone was written before, if the record says what it has. If
// not it is of another record, and would be passed over when it comes again.
func unfixed(b *bench) {
	f := fence(1, 1, 1)
	j := &state.Join{Fence: f, Groups: set(7, 8)}
	_, err := b.joinAs(j)
	require.NoError(b, err, "nothing is there")
	require.NoError(b, b.write(f, 1, row(8, "b", 1, "b1", "")))
	j.Fence = fence(2, 1, 1)
	_, err = b.joinAs(j)
	require.ErrorIs(b, err, state.ErrLost)
	require.ErrorContains(b, err, "key group 8 has batch 1 of attempt 1.1 last, and the record does not say what that batch has")
	require.ErrorContains(b, err, b.name.String())
	require.NoError(b, b.write(f, 2, row(7, "a", 2, "a2", "")), "the fence has not changed")

	// One that was committed needs none.
	j.Committed, j.Last = 2, make([]tuple.BatchID, tuple.KeyGroups)
	j.Last[7], j.Last[8] = b.left[7], b.left[8]
	ahead, err := b.joinAs(j)
	require.NoError(b, err)
	require.True(b, ahead.Empty())
	b.has(row(7, "a", 2, "a2", ""), row(8, "b", 1, "b1", ""))
}

func lost(b *bench) {
	f := fence(1, 1, 1)
	require.NoError(b, b.join(f, 0, nil, 7, 8))
	require.NoError(b, b.write(f, 3, row(7, "a", 3, "a3", "")))
	require.NoError(b, b.write(f, 4, row(7, "a", 4, "a4", "a3"), row(8, "b", 4, "b4", "")))
	for _, tt := range []struct {
		committed tuple.TxID
		last      map[uint16]tuple.TxID
		want      string
	}{
		{5, map[uint16]tuple.TxID{7: 5, 8: 4}, "batch 4 of attempt 1.1 last, and batch 5 of attempt 0.0 was acknowledged"},
		{5, map[uint16]tuple.TxID{7: 4, 8: 5}, "batch 4 of attempt 1.1 last, and batch 5 of attempt 0.0 was acknowledged"},
		{4, map[uint16]tuple.TxID{7: 4}, "the record is of another time"},
		{4, map[uint16]tuple.TxID{7: 3, 8: 4}, "the record is of another time"},
		{2, map[uint16]tuple.TxID{7: 2}, "the record is of another time"}, // c+2
		{9, nil, "the record is of another time"},
		{0, nil, "the record is of another time"},
	} {
		err := b.join(fence(2, 1, 1), tt.committed, tt.last, 7, 8)
		require.ErrorIs(b, err, state.ErrLost, "%v", tt)
		require.ErrorContains(b, err, tt.want)
		require.ErrorContains(b, err, b.name.String())
	}
	err := b.join(fence(2, 1, 1), 4, map[uint16]tuple.TxID{7: 4, 8: 4, 9: 4}, 9)
	require.ErrorIs(b, err, state.ErrLost, "the store is new")
	b.has(row(7, "a", 4, "a4", "a3"), row(8, "b", 4, "b4", ""))
	require.NoError(b, b.write(f, 5, row(7, "a", 5, "a5", "a4")), "the fence has not changed")
	require.NoError(b, b.join(fence(2, 1, 1), 4, map[uint16]tuple.TxID{7: 4, 8: 4}, 7, 8))
	b.has(row(7, "a", 4, "a4", ""), row(8, "b", 4, "b4", ""))
}

// attempts: a stamp is one only with its attempt, so a copy that has the same batch of
// another attempt is found. What is undone has the stamp of the record again.
func attempts(b *bench) {
	stamp := func(epoch, round uint32, tx tuple.TxID) tuple.BatchID {
		return tuple.BatchID{Attempt: tuple.Attempt{Epoch: epoch, Round: round}, Tx: tx}
	}
	join := func(f tuple.Fence, undo bool, committed tuple.TxID, last tuple.BatchID) (bool, error) {
		j := &state.Join{Fence: f, Groups: set(7), Committed: committed, Last: make([]tuple.BatchID, tuple.KeyGroups), Undo: undo, Fixed: !undo}
		j.Last[7] = last
		ahead, err := b.joinAs(j)
		return ahead.Has(7), err
	}
	require.NoError(b, b.join(fence(1, 1, 1), 0, nil, 7))
	require.NoError(b, b.write(fence(1, 1, 1), 3, row(7, "a", 3, "a3", "")))
	for _, other := range []tuple.BatchID{stamp(1, 2, 3), stamp(2, 1, 3), stamp(1, 0, 3)} {
		_, err := join(fence(2, 1, 1), true, 3, other)
		require.ErrorIs(b, err, state.ErrLost, "%v", other)
		require.ErrorContains(b, err, fmt.Sprintf("key group 7 has batch 3 of attempt 1.1 last, and batch %v was committed", other))
	}
	b.has(row(7, "a", 3, "a3", ""))

	// Of the batch behind the last committed one any attempt will do.
	_, err := join(fence(2, 1, 1), true, 6, stamp(1, 1, 3))
	require.NoError(b, err)
	require.NoError(b, b.write(fence(2, 1, 1), 7, row(7, "a", 7, "a7", "a3")))
	_, err = join(fence(2, 2, 1), true, 6, stamp(1, 1, 3))
	require.NoError(b, err)
	b.has(row(7, "a", 3, "a3", ""))
	b.reopen()
	_, err = join(fence(2, 3, 1), true, 6, stamp(2, 1, 6))
	require.ErrorIs(b, err, state.ErrLost, "what was undone has the stamp of the record, and not that of the committed batch")
	_, err = join(fence(2, 3, 1), true, 90, stamp(1, 1, 3))
	require.NoError(b, err)

	// What stays is of the attempt that has found it.
	require.NoError(b, b.write(fence(2, 3, 1), 91, row(7, "a", 91, "a91", "a3")))
	ahead, err := join(fence(3, 1, 1), false, 90, stamp(1, 1, 3))
	require.NoError(b, err)
	require.True(b, ahead)
	b.reopen()
	_, err = join(fence(4, 1, 1), false, 91, stamp(2, 3, 91))
	require.ErrorIs(b, err, state.ErrLost)
	ahead, err = join(fence(4, 1, 1), false, 91, stamp(3, 1, 91))
	require.NoError(b, err)
	require.False(b, ahead)
	b.has(row(7, "a", 91, "a91", "a3"))
}

// left: a store that has not what its task has left there has lost something, however old
// that is which it has; and what is refused for one group is written in none.
func left(b *bench) {
	f := fence(1, 2, 1)
	require.NoError(b, b.join(f, 0, nil, 7, 8))
	require.NoError(b, b.write(f, 1, row(7, "a", 1, "a1", ""), row(8, "b", 1, "b1", "")))
	require.NoError(b, b.write(f, 3, row(7, "a", 3, "a3", "a1")))
	was := b.left[7]
	for _, other := range []tuple.BatchID{
		{}, {Attempt: was.Attempt, Tx: 2}, {Attempt: was.Attempt, Tx: 4}, {Attempt: was.Attempt, Tx: 9},
		{Attempt: tuple.Attempt{Epoch: 1, Round: 1}, Tx: 3}, {Attempt: tuple.Attempt{Epoch: 2, Round: 2}, Tx: 3},
	} {
		b.left[7] = other
		for _, again := range []bool{false, true} {
			w := b.writing(f, 4, row(8, "b", 4, "b4", "b1"), row(7, "a", 4, "a4", "a3"))
			w.Again = again
			err := b.store.Write(b.ctx, w)
			require.ErrorIs(b, err, state.ErrLost, "%v", other)
			require.NotErrorIs(b, err, state.ErrFenced)
			require.ErrorContains(b, err, "key group 7 has batch 3 of attempt 1.2 last")
			require.ErrorContains(b, err, b.name.String())
			if other.Tx > 0 {
				require.ErrorContains(b, err, fmt.Sprintf("this task has left batch %v there", other))
			}
			w.Fence = fence(1, 1, 1)
			require.ErrorIs(b, b.store.Write(b.ctx, w), state.ErrFenced, "a zombie knows nothing of what was lost")
		}
	}
	require.ErrorIs(b, b.store.Write(b.ctx, &state.Write{Fence: f, Tx: 4, Rows: []state.Change{row(7, "a", 4, "a4", "a3")}}), state.ErrLost, "nil is nothing")
	b.has(row(7, "a", 3, "a3", "a1"), row(8, "b", 1, "b1", ""))
	b.left[7] = was
	require.NoError(b, b.write(f, 4, row(8, "b", 4, "b4", "b1"), row(7, "a", 4, "a4", "a3")))
}

func scan(b *bench) {
	f := fence(1, 1, 1)
	require.NoError(b, b.join(f, 0, nil, 7, 8, 1023))
	all := []state.Change{row(7, "a", 1, "x", ""), row(7, "", 1, "e", "p"), row(8, "b", 1, "y", ""), row(1023, "\xff", 1, "z", "")}
	require.NoError(b, b.write(f, 1, all...))
	require.Empty(b, b.scan(9), "a group without rows")
	require.Empty(b, b.scan())
	require.Len(b, b.scan(7), 2)
	got := b.scan(1023, 7, 9)
	require.Len(b, got, 3)
	for _, c := range []state.Change{all[0], all[1], all[3]} {
		require.True(b, same(c.Row, got[c.Key]), "%v: %v", c.Key, show(got[c.Key]))
	}

	calls := 0
	groups := set(7, 8, 1023)
	require.NoError(b, b.store.Scan(b.ctx, &groups, func(k state.Key, r state.Row) bool {
		calls++
		if calls == 1 { // f may call the store
			b.has(all...)
			require.NoError(b, b.write(f, 2, row(8, "c", 2, "new", "")))
		}
		return calls < 2
	}))
	require.Equal(b, 2, calls, "it ends when f says so")
	require.NoError(b, b.join(fence(1, 2, 1), 1, map[uint16]tuple.TxID{7: 1, 8: 1, 1023: 1}, 7, 8, 1023))
	require.Len(b, b.scan(7, 8, 1023), 4, "without what was undone")
}

// scan returns the rows that a scan sees. Nothing may be seen twice.
func (b *bench) scan(groups ...uint16) map[state.Key]state.Row {
	b.Helper()
	got := map[state.Key]state.Row{}
	s := set(groups...)
	require.NoError(b, b.store.Scan(b.ctx, &s, func(k state.Key, r state.Row) bool {
		_, twice := got[k]
		require.False(b, twice, "%v", k)
		got[k] = r
		return true
	}))
	return got
}

func large(b *bench) {
	f := fence(1, 1, 1)
	require.NoError(b, b.join(f, 0, nil, 7, 8))
	var all, before []state.Change
	for i := range 8 {
		old, value := bytes.Repeat([]byte{byte(i)}, 1<<20), bytes.Repeat([]byte{byte(i), 0xff}, 1<<19)
		k := state.Key{Group: uint16(7 + i%2), Bytes: string(rune('a'+i)) + string(bytes.Repeat([]byte{byte(i)}, 1000))}
		before = append(before, state.Change{Key: k, Row: state.Row{Tx: 1, Value: old}})
		all = append(all, state.Change{Key: k, Row: state.Row{Tx: 2, Value: value, Prev: old}})
	}
	require.NoError(b, b.write(f, 1, before...))
	require.NoError(b, b.write(f, 2, all...))
	b.has(all...)
	require.Len(b, b.scan(7, 8), 8)
	require.NoError(b, b.join(f, 1, map[uint16]tuple.TxID{7: 1, 8: 1}, 7, 8))
	b.has(before...)
}

func many(b *bench) {
	const n = 20_000
	f := fence(1, 1, 1)
	j := &state.Join{Fence: f, Undo: true, Last: make([]tuple.BatchID, tuple.KeyGroups)}
	for g := range uint16(tuple.KeyGroups) {
		j.Groups.Add(g)
	}
	_, err := b.joinAs(j)
	require.NoError(b, err)
	all := make([]state.Change, n)
	for i := range all {
		all[i] = row(uint16(i*7%tuple.KeyGroups), fmt.Sprint("word ", i), 1, fmt.Sprint(i), "")
	}
	require.NoError(b, b.write(f, 1, all...))
	b.has(all...)
	require.Len(b, b.scan(slices.Collect(func(yield func(uint16) bool) {
		for g := range uint16(tuple.KeyGroups) {
			yield(g)
		}
	})...), n)

	next := slices.Clone(all) // half of the old ones, and as many new ones
	for i := range next {
		if next[i].Tx, next[i].Prev = 2, next[i].Value; i%2 == 0 {
			next[i].Bytes, next[i].Prev = "new "+next[i].Bytes, nil
		}
		next[i].Value = []byte("changed")
	}
	require.NoError(b, b.write(f, 2, next...))
	b.has(next...)
	j.Committed = 1
	for g := range j.Last {
		j.Last[g] = tuple.BatchID{Attempt: f.Attempt, Tx: 1}
	}
	_, err = b.joinAs(j)
	require.NoError(b, err)
	b.has(all...)
	for i := range next {
		if i%2 == 0 {
			next[i] = none(next[i].Group, next[i].Bytes)
		} else {
			next[i] = all[i]
		}
	}
	b.has(next...)
}
