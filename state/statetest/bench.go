package statetest

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// A bench is a state that is tested.
type bench struct {
	*testing.T
	ctx     context.Context
	backend state.Backend
	name    state.Name
	store   state.Store

	left map[uint16]tuple.BatchID                // the stamps that who has joined has left, or found
	by   map[uint16]map[tuple.TxID]tuple.Attempt // who has written a batch last: what its record would say
}

func (b *bench) open() {
	var err error
	b.store, err = b.backend.Open(b.ctx, b.name)
	require.NoError(b, err)
}

func (b *bench) reopen() {
	require.NoError(b, b.store.Close())
	b.open()
}

// join joins with a record in which the groups of last have these batches, of the attempts
// that have written them, and the others none.
func (b *bench) join(f tuple.Fence, committed tuple.TxID, last map[uint16]tuple.TxID, groups ...uint16) error {
	j := &state.Join{Fence: f, Groups: set(groups...), Committed: committed, Undo: true}
	if last != nil {
		j.Last = make([]tuple.BatchID, tuple.KeyGroups)
		for g, tx := range last {
			j.Last[g] = tuple.BatchID{Attempt: b.by[g][tx], Tx: tx}
		}
	}
	ahead, err := b.joinAs(j)
	require.True(b, ahead.Empty(), "what is undone stays nowhere")
	return err
}

func (b *bench) joinAs(j *state.Join) (tuple.Groups, error) {
	ahead, err := b.store.Join(b.ctx, j)
	for g := range j.Groups.All() {
		switch {
		case err != nil:
		case ahead.Has(g):
			b.leaves(g, tuple.BatchID{Attempt: j.Fence.Attempt, Tx: j.Committed + 1})
		case j.Last == nil:
			b.left[g] = tuple.BatchID{}
		default:
			b.left[g] = j.Last[g]
		}
	}
	return ahead, err
}

func (b *bench) leaves(g uint16, stamp tuple.BatchID) {
	if b.left[g] = stamp; b.by[g] == nil {
		b.by[g] = map[tuple.TxID]tuple.Attempt{}
	}
	b.by[g][stamp.Tx] = stamp.Attempt
}

func (b *bench) write(f tuple.Fence, tx tuple.TxID, rows ...state.Change) error {
	return b.writeAs(b.writing(f, tx, rows...))
}

// writing is what who has joined last writes.
func (b *bench) writing(f tuple.Fence, tx tuple.TxID, rows ...state.Change) *state.Write {
	w := &state.Write{Fence: f, Tx: tx, Last: make([]tuple.BatchID, tuple.KeyGroups), Rows: rows}
	for g, stamp := range b.left {
		w.Last[g] = stamp
	}
	return w
}

func (b *bench) writeAs(w *state.Write) error {
	if err := b.store.Write(b.ctx, w); err != nil {
		return err
	}
	for _, c := range w.Rows {
		b.leaves(c.Group, tuple.BatchID{Attempt: w.Fence.Attempt, Tx: w.Tx})
	}
	return nil
}

// has says which rows the store has of some keys.
func (b *bench) has(want ...state.Change) {
	b.Helper()
	keys := make([]state.Key, len(want))
	rows := make([]state.Row, len(want))
	for i, c := range want {
		keys[i], rows[i] = c.Key, c.Row
	}
	got, err := b.store.Get(b.ctx, keys)
	require.NoError(b, err)
	require.Len(b, got, len(want))
	for i := range got {
		if !same(rows[i], got[i]) {
			require.Fail(b, "another row", "%v: %v, want %v", keys[i], show(got[i]), show(rows[i]))
		}
	}
}

// same compares rows. No value is another one than an empty value.
func same(a, b state.Row) bool {
	return a.Tx == b.Tx && (a.Value == nil) == (b.Value == nil) && bytes.Equal(a.Value, b.Value) &&
		(a.Prev == nil) == (b.Prev == nil) && bytes.Equal(a.Prev, b.Prev)
}

func show(r state.Row) string {
	text := func(b []byte) string {
		if b == nil {
			return "none"
		}
		return fmt.Sprintf("%.40q", b)
	}
	return fmt.Sprintf("batch %d, %s, before it %s", r.Tx, text(r.Value), text(r.Prev))
}

func set(groups ...uint16) (s tuple.Groups) {
	for _, g := range groups {
		s.Add(g)
	}
	return s
}

func fence(epoch, round uint32, life tuple.Incarnation) tuple.Fence {
	return tuple.Fence{Attempt: tuple.Attempt{Epoch: epoch, Round: round}, Life: life}
}

// row is what a batch writes, or what is there; prev "" is none.
func row(g uint16, key string, tx tuple.TxID, value, prev string) state.Change {
	c := state.Change{Key: state.Key{Group: g, Bytes: key}, Row: state.Row{Tx: tx, Value: []byte(value)}}
	if prev != "" {
		c.Prev = []byte(prev)
	}
	return c
}

func none(g uint16, key string) state.Change {
	return state.Change{Key: state.Key{Group: g, Bytes: key}}
}
