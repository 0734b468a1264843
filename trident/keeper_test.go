package trident

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/state"
	inmemory "github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/tuple"
)

// empty is a backend and a store that has nothing and takes everything.
type empty struct{ wrote *state.Write }

func (e *empty) String() string                                        { return "empty" }
func (e *empty) Open(context.Context, state.Name) (state.Store, error) { return e, nil }
func (e *empty) Find(context.Context, state.Name) (state.Store, error) { return e, nil }
func (e *empty) Join(context.Context, *state.Join) (tuple.Groups, error) {
	return tuple.Groups{}, nil
}
func (e *empty) Write(_ context.Context, w *state.Write) error { e.wrote = w; return nil }
func (e *empty) Close() error                                  { return nil }
func (e *empty) Get(_ context.Context, k []state.Key) ([]state.Row, error) {
	return make([]state.Row, len(k)), nil
}
func (e *empty) Scan(context.Context, *tuple.Groups, func(state.Key, state.Row) bool) error {
	return nil
}

// keeperOf returns a keeper of text by text that was given a batch.
func keeperOf(t *testing.T, parallel int) (*keeper[string, string, string], *empty) {
	e := &empty{}
	k := newKeeper[string, string, string](StateOf[string, string]("last", e, Opaque), func(_, _ string, _ bool, v string) string { return v }, false)
	k.batches = &memory[changes[string, string, string]]{
		fresh: func() *changes[string, string, string] {
			return &changes[string, string, string]{groups: *newGroups[string, string]()}
		},
		clear: (*changes[string, string, string]).clear,
	}
	require.NoError(t, k.open(t.Context(), &bolt.Task{Topology: "t", Component: "last", Parallel: parallel}))
	require.NoError(t, k.join(t.Context(), &bolt.Join{Fence: tuple.Fence{Attempt: tuple.Attempt{Epoch: 1, Round: 1}}}))
	return k, e
}

func add(k *keeper[string, string, string], tx tuple.TxID, key, value string) {
	k.batches.enter(tx)
	acc, _ := k.batches.now.at(key)
	*acc = value
}

// What the cache keeps shares no memory with the tuples that it came of: one short text
// would keep all of a parcel's.
func TestCacheOwnsItsMemory(t *testing.T) {
	k, _ := keeperOf(t, 1)
	parcel := "key value"
	add(k, 1, parcel[:3], parcel[4:])
	_, err := k.commit(t.Context(), tuple.BatchID{Attempt: k.fence.Attempt, Tx: 1})
	require.NoError(t, err)
	within := func(s string) bool {
		p, q := uintptr(unsafe.Pointer(unsafe.StringData(s))), uintptr(unsafe.Pointer(unsafe.StringData(parcel)))
		return p >= q && p < q+uintptr(len(parcel))
	}
	require.True(t, within(parcel[4:]))
	r := k.cache.get("key")
	require.Equal(t, "value", r.value)
	require.False(t, within(r.value))
	require.False(t, within(k.cache.young["key"].key))
	require.False(t, within(r.key.Bytes))
}

// A commit of another attempt, one of a key that belongs to another task and one that
// would go behind what the store has are refused, and write nothing.
func TestCommitRefuses(t *testing.T) {
	k, e := keeperOf(t, 1)
	add(k, 1, "a", "b")
	_, err := k.commit(t.Context(), tuple.BatchID{Attempt: tuple.Attempt{Epoch: 1, Round: 2}, Tx: 1})
	require.ErrorContains(t, err, "state last in empty: the task has joined attempt 1.1")
	require.Nil(t, e.wrote)

	k, e = keeperOf(t, tuple.KeyGroups)
	add(k, 1, "a", "b")
	_, err = k.commit(t.Context(), tuple.BatchID{Attempt: k.fence.Attempt, Tx: 1})
	require.True(t, bolt.IsReject(err))
	require.ErrorContains(t, err, "has come to task last/0, which does not have the group")
	require.Nil(t, e.wrote)

	k, _ = keeperOf(t, 1)
	for range 2 { // the second time it is behind what was written
		add(k, 1, "a", "b")
		_, err = k.commit(t.Context(), tuple.BatchID{Attempt: k.fence.Attempt, Tx: 1})
	}
	require.ErrorIs(t, err, state.ErrLost)
	require.True(t, bolt.IsReject(err))

	// A store in the place of the one that this task has written to: it knows its fence.
	k, _ = keeperOf(t, 1)
	for tx := range tuple.TxID(2) {
		store, err := inmemory.New().Open(t.Context(), state.Name{})
		require.NoError(t, err)
		_, err = store.Join(t.Context(), &state.Join{Fence: k.fence, Groups: k.own, Undo: true})
		require.NoError(t, err)
		k.store = store
		add(k, tx+1, "a", "b")
		if _, err = k.commit(t.Context(), tuple.BatchID{Attempt: k.fence.Attempt, Tx: tx + 1}); tx == 0 {
			require.NoError(t, err)
			k.cache.clear()
			continue
		}
		require.ErrorIs(t, err, state.ErrLost)
		require.True(t, bolt.IsReject(err), "the run ends with that")
		require.ErrorContains(t, err, "2 of attempt 1.1 would write, and key group")
		require.ErrorContains(t, err, "has nothing last, and this task has left batch 1 of attempt 1.1 there")
	}

	// Another attempt has joined the store: the task counts that.
	k, _ = keeperOf(t, 1)
	k.store, err = inmemory.New().Open(t.Context(), state.Name{})
	require.NoError(t, err)
	later := tuple.Fence{Attempt: tuple.Attempt{Epoch: 1, Round: 2}}
	_, err = k.store.Join(t.Context(), &state.Join{Fence: later, Groups: k.own, Undo: true})
	require.NoError(t, err)
	add(k, 1, "a", "b")
	_, err = k.commit(t.Context(), tuple.BatchID{Attempt: k.fence.Attempt, Tx: 1})
	require.ErrorIs(t, err, state.ErrFenced)
	_, is := errors.AsType[*bolt.FencedError](err)
	require.True(t, is && !bolt.IsReject(err))

	k, _ = keeperOf(t, 1)
	written, err := k.commit(t.Context(), tuple.BatchID{Attempt: k.fence.Attempt, Tx: 2})
	require.NoError(t, err)
	require.Equal(t, bolt.Written{}, written, "a batch without elements writes nothing")
}

// What no other try helps with ends the run, and what may come back does not.
func TestFinal(t *testing.T) {
	require.NoError(t, final(nil))
	require.False(t, bolt.IsReject(final(errors.New("away"))))
	require.False(t, bolt.IsReject(final(state.ErrFenced)))
	for _, err := range []error{state.ErrLost, &state.UnusableError{Err: errors.New("damaged")}} {
		err = fmt.Errorf("state x: %w", err)
		require.True(t, bolt.IsReject(final(err)))
		require.ErrorContains(t, final(err), err.Error())
	}
}

// A key that may be masked is in no error of its state.
func TestKeysAreMasked(t *testing.T) {
	for masked, want := range map[bool]string{false: "key 4111-22 of group", true: "key ••• of group"} {
		k, _ := keeperOf(t, 1)
		k.masked, k.own = masked, tuple.Groups{} // as if it were of another task
		add(k, 1, "4111-22", "value")
		_, err := k.commit(t.Context(), tuple.BatchID{Attempt: k.fence.Attempt, Tx: 1})
		require.ErrorContains(t, err, want)
	}
}
