package statetest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// tasks: each has groups of its own and counts in them, all at once.
func tasks(b *bench) {
	const n, batches = 4, 10
	var all sync.WaitGroup
	errs := make([]error, n)
	for task := range n {
		all.Go(func() {
			store, err := b.backend.Open(b.ctx, b.name)
			if err != nil {
				errs[task] = err
				return
			}
			errs[task] = errors.Join(b.count(store, task, n, batches), store.Close())
		})
	}
	all.Wait()
	require.NoError(b, errors.Join(errs...))
	for g := range uint16(4 * n) {
		want := row(g, "count", batches, strconv.Itoa(batches), strconv.Itoa(batches-1))
		b.has(want)
	}
}

// count writes batches in the groups of a task: every n-th one of 4n.
func (b *bench) count(store state.Store, task, n, batches int) error {
	f := fence(1, 1, tuple.Incarnation(task+1))
	j := &state.Join{Fence: f, Undo: true}
	var keys []state.Key
	for i := range 4 {
		g := uint16(i*n + task)
		j.Groups.Add(g)
		keys = append(keys, state.Key{Group: g, Bytes: "count"})
	}
	if _, err := store.Join(b.ctx, j); err != nil {
		return err
	}
	left := make([]tuple.BatchID, tuple.KeyGroups)
	for tx := tuple.TxID(1); tx <= tuple.TxID(batches); tx++ {
		rows, err := store.Get(b.ctx, keys)
		if err != nil {
			return err
		}
		w := &state.Write{Fence: f, Tx: tx, Last: left}
		for i, k := range keys {
			if rows[i].Tx != tx-1 {
				return fmt.Errorf("batch %d finds batch %d in group %d", tx, rows[i].Tx, k.Group)
			}
			w.Rows = append(w.Rows, state.Change{Key: k, Row: state.Row{Value: []byte(fmt.Sprint(tx)), Prev: rows[i].Value}})
		}
		if err := store.Write(b.ctx, w); err != nil {
			return err
		}
		for _, k := range keys {
			left[k.Group] = tuple.BatchID{Attempt: f.Attempt, Tx: tx}
		}
	}
	return nil
}

// zombie: one that was replaced writes at the same time as its successor joins. Either
// its batch was there and was undone, or it was refused.
func zombie(b *bench) {
	const groups, tries = 8, 40
	var all []uint16
	for g := range uint16(groups) {
		all = append(all, g)
	}
	var last map[uint16]tuple.TxID
	value, tx := "", tuple.TxID(1)
	for try := range uint32(tries) {
		old, next := fence(1, 2*try, 1), fence(1, 2*try+1, 1)
		require.NoError(b, b.join(old, tx-1, last, all...))
		var changes []state.Change
		for g := range uint16(groups) {
			changes = append(changes, row(groups-1-g, "a", tx, "zombie", value), row(groups-1-g, fmt.Sprint("new ", try), tx, "zombie", ""))
		}
		var wrote error
		var at sync.WaitGroup
		w := b.writing(old, tx, changes...)
		at.Go(func() { wrote = b.store.Write(b.ctx, w) })
		joined := b.join(next, tx-1, last, all...)
		at.Wait()
		require.NoError(b, joined)
		if wrote != nil {
			require.ErrorIs(b, wrote, state.ErrFenced)
		}
		for g := range uint16(groups) {
			b.has(none(g, fmt.Sprint("new ", try)))
		}
		changes = changes[:0]
		was := last
		last = map[uint16]tuple.TxID{}
		for g := range uint16(groups) {
			got, err := b.store.Get(b.ctx, []state.Key{{Group: g, Bytes: "a"}})
			require.NoError(b, err)
			require.Equal(b, value, string(got[0].Value))
			require.Equal(b, was[g], got[0].Tx)
			changes = append(changes, row(g, "a", tx, fmt.Sprint(try), value))
			last[g] = tx
		}
		require.NoError(b, b.write(next, tx, changes...))
		value = fmt.Sprint(try)
		tx++
	}
}

// closed: who still reads a store that somebody closes, as a query does or the write of a
// life that has ended, gets what there is or an error. So does who comes later.
func closed(b *bench) {
	f := fence(1, 1, 1)
	require.NoError(b, b.join(f, 0, nil, 7))
	require.NoError(b, b.write(f, 1, row(7, "a", 1, "x", "")))
	require.NoError(b, b.store.Close()) // so that other is the last one
	for range 10 {
		other, err := b.backend.Open(b.ctx, b.name)
		require.NoError(b, err)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 5 {
					rows, err := other.Get(b.ctx, []state.Key{{Group: 7, Bytes: "a"}})
					assert.True(b, err != nil || len(rows) == 1 && string(rows[0].Value) == "x", "%v %v", rows, err)
				}
			})
		}
		assert.NoError(b, other.Close())
		all.Wait()
		groups := set(7)
		_ = other.Scan(b.ctx, &groups, func(state.Key, state.Row) bool { return true })
		_, _ = other.Join(b.ctx, &state.Join{Fence: fence(0, 0, 1), Groups: set(7), Undo: true})
		_ = other.Write(b.ctx, &state.Write{Fence: fence(0, 0, 1), Tx: 1, Rows: []state.Change{row(7, "a", 1, "y", "")}})
		require.NoError(b, other.Close(), "twice")
	}
	b.open()
	b.has(row(7, "a", 1, "x", ""))
}
