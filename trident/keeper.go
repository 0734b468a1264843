package trident

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// A stateBody is a body whose first operator is a state.
type stateBody struct{ *body }

// Join and Commit are called elsewhere than on the task's turn, one at a time. They have
// the keeper for themselves, but for its batches: of these Commit has the one that it is
// called for, which nobody else touches until it has returned.
func (t *stateBody) Join(ctx context.Context, j *bolt.Join) error { return t.keeper.join(ctx, j) }

func (t *stateBody) Commit(ctx context.Context, b tuple.BatchID) (bolt.Written, error) {
	return t.keeper.commit(ctx, b)
}

// Settle implements bolt.Settler, for stores that want to know.
func (t *stateBody) Settle(ctx context.Context, committed tuple.TxID) error {
	return t.keeper.settle(ctx, committed)
}

type anyKeeper interface {
	settle(ctx context.Context, committed tuple.TxID) error
	join(ctx context.Context, j *bolt.Join) error
	commit(ctx context.Context, b tuple.BatchID) (bolt.Written, error)
	look(ctx context.Context, topology string, empty bool) error
	lookup(ctx context.Context, topology string, committed tuple.TxID, last []tuple.TxID, keys []string) ([]json.RawMessage, error)
	stored(ctx context.Context, topology string, committed tuple.TxID, last []tuple.TxID, keys [][]byte) ([][]byte, error)
}

// A keeper writes what batches change of a state: its part of one life of one task.
type keeper[K comparable, A, V any] struct {
	st      *State[K, V]
	change  func(key K, old V, found bool, acc A) V
	again   bool
	masked  bool // something of the topology is
	batches *memory[changes[K, A, V]]
	keys    *layout
	values  *layout

	store  state.Store
	task   string
	own    tuple.Groups // of the task
	fence  tuple.Fence
	cache  cache[K, row[V]]
	room   []byte
	last   []tuple.BatchID // stamps of the groups of own: what this task has left there, or found when it joined (T11)
	behind tuple.Groups    // have batch next already, of an attempt that has failed
	next   tuple.TxID      // behind the last committed one of the Join
}

// changes are what a batch does to a state.
type changes[K comparable, A, V any] struct {
	groups[K, A]
	values []V // after the commit: the new ones, in the order of all
}

func (c *changes[K, A, V]) clear() {
	c.groups.clear()
	clear(c.values)
	c.values = c.values[:0]
}

// A row is what the store has of a key.
type row[V any] struct {
	key   state.Key
	tx    tuple.TxID
	bytes []byte // nil: there is no value
	value V      // owns its memory
}

// show is a key in an error.
func (k *keeper[K, A, V]) show(key state.Key) string { return keyText(key, k.masked) }

// keyText is a key for people. What is masked may be in it under any name, so then it is not
// shown at all.
func keyText(key state.Key, masked bool) string {
	if masked {
		return tuple.Mask
	}
	return Show([]byte(key.Bytes))
}

func newKeeper[K comparable, A, V any](st *State[K, V], change func(K, V, bool, A) V, again bool) *keeper[K, A, V] {
	keys, _ := layoutOf(reflect.TypeFor[K]()) // Build has looked at the errors
	values, _ := layoutOf(reflect.TypeFor[V]())
	return &keeper[K, A, V]{st: st, change: change, again: again, keys: keys, values: values, cache: newCache[K, row[V]](st.cached)}
}

func (k *keeper[K, A, V]) open(ctx context.Context, task *bolt.Task) (err error) {
	for g := range tuple.KeyGroups {
		if tuple.Owner(g, task.Parallel) == task.Index {
			k.own.Add(uint16(g))
		}
	}
	k.task = fmt.Sprintf("%s/%d", task.Component, task.Index)
	k.store, err = k.st.backend.Open(ctx, state.Name{Topology: task.Topology, State: k.st.name})
	return final(err)
}

func (k *keeper[K, A, V]) close() error { return k.store.Close() }

func (k *keeper[K, A, V]) join(ctx context.Context, j *bolt.Join) error {
	if !mutation.Is(mutation.CacheKept) {
		k.cache.clear() // an undone value may be in it
	}
	k.fence, k.next, k.behind = j.Fence, j.Committed+1, tuple.Groups{}
	ahead, err := k.store.Join(ctx, &state.Join{Fence: j.Fence, Groups: k.own, Committed: j.Committed, Last: j.Last,
		Undo: k.st.kind == Opaque, Fixed: k.st.kind != Opaque && (j.Fixed || k.again)})
	if fenced, is := errors.AsType[*state.FencedError](err); is {
		return &bolt.FencedError{By: fenced.By, Err: err}
	}
	if err != nil {
		return final(err)
	}
	k.last = make([]tuple.BatchID, tuple.KeyGroups)
	copy(k.last, j.Last)
	for g := range ahead.All() {
		k.last[g] = tuple.BatchID{Attempt: j.Fence.Attempt, Tx: k.next}
	}
	if k.again {
		k.behind = ahead
	}
	return nil
}

// final has the run end for an error that no other life of the task can help with.
func final(err error) error {
	if _, unusable := errors.AsType[*state.UnusableError](err); unusable || errors.Is(err, state.ErrLost) {
		return bolt.Reject(err)
	}
	return err
}

func (k *keeper[K, A, V]) settle(ctx context.Context, committed tuple.TxID) error {
	if s, is := k.store.(state.Settler); is {
		return s.Settle(ctx, k.fence, committed)
	}
	return nil
}

func (k *keeper[K, A, V]) commit(ctx context.Context, b tuple.BatchID) (done bolt.Written, err error) {
	defer func() {
		err = final(err)
	}()
	if b.Attempt != k.fence.Attempt {
		return done, k.st.about(fmt.Errorf("the task has joined attempt %v", k.fence.Attempt))
	}
	if b.Tx == k.next {
		done.Groups = k.behind
	}
	c := k.batches.of(b.Tx)
	if c == nil || len(c.all) == 0 {
		return done, nil
	}
	rows, err := k.rows(ctx, c)
	if err != nil {
		return done, err
	}
	w := &state.Write{Fence: k.fence, Tx: b.Tx, Last: k.last, Again: k.st.kind != Opaque}
	var v V
	for i, r := range rows {
		done.Groups.Add(r.key.Group) // also of a key that an attempt before has written
		if r.tx > b.Tx || r.tx == b.Tx && k.st.kind == Opaque {
			return done, bolt.Reject(k.st.about(fmt.Errorf("key %s was changed by batch %d, which is not committed: %w", k.show(r.key), r.tx, state.ErrLost)))
		}
		if r.tx == b.Tx && k.st.kind == Transactional && !mutation.Is(mutation.AgainWritten) {
			c.values = append(c.values, r.value)
			continue
		}
		g := &c.all[i]
		v = k.change(g.key, r.value, r.bytes != nil, g.acc)
		if k.room, err = k.values.appendBytes(k.room[:0], unsafe.Pointer(&v)); err != nil {
			return done, bolt.Reject(k.st.about(fmt.Errorf("the value of key %s: %w", k.show(r.key), err)))
		}
		bytes := slices.Clone(k.room)
		if k.values.text {
			if err = k.values.parse(string(bytes), unsafe.Pointer(&v)); err != nil { // with memory of its own
				return done, bolt.Reject(k.st.about(fmt.Errorf("the value of key %s: %w", k.show(r.key), err)))
			}
		}
		change := state.Change{Key: r.key, Row: state.Row{Tx: b.Tx, Value: bytes}}
		if k.st.kind == Opaque && !mutation.Is(mutation.PrevLost) {
			change.Prev = r.bytes
		}
		w.Rows = append(w.Rows, change)
		c.values = append(c.values, v)
	}
	if len(w.Rows) == 0 {
		return done, nil
	}
	if err := k.store.Write(ctx, w); errors.Is(err, state.ErrFenced) {
		return done, &bolt.FencedError{Err: err}
	} else if err != nil {
		return done, err
	}
	for i := range w.Rows {
		k.last[w.Rows[i].Group] = w.Stamp()
	}
	done.Keys = len(w.Rows)
	at := 0
	for i, r := range rows {
		if at < len(w.Rows) && w.Rows[at].Key == r.key {
			r.tx, r.bytes, r.value = b.Tx, w.Rows[at].Value, c.values[i]
			at++
		}
	}
	return done, nil
}

// rows returns the rows of the keys of a batch, those that are not in the cache from the
// store.
func (k *keeper[K, A, V]) rows(ctx context.Context, c *changes[K, A, V]) ([]*row[V], error) {
	rows := make([]*row[V], len(c.all))
	var missing []state.Key
	for i := range c.all {
		if r := k.cache.get(c.all[i].key); r != nil {
			rows[i] = r
			continue
		}
		key, err := keyOf(k.keys, c.all[i].key)
		if err != nil {
			return nil, bolt.Reject(k.st.about(fmt.Errorf("a key: %w", err)))
		}
		if !k.own.Has(key.Group) {
			return nil, bolt.Reject(k.st.about(fmt.Errorf("key %s of group %d has come to task %s, which does not have the group", k.show(key), key.Group, k.task)))
		}
		rows[i] = &row[V]{key: key}
		missing = append(missing, key)
	}
	if len(missing) == 0 {
		return rows, nil
	}
	got, err := k.store.Get(ctx, missing)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if len(missing) == 0 {
			break
		}
		if r.key != missing[0] {
			continue
		}
		r.tx, r.bytes = got[0].Tx, got[0].Value
		if r.bytes != nil {
			if err := k.values.parse(string(r.bytes), unsafe.Pointer(&r.value)); err != nil {
				return nil, bolt.Reject(k.st.about(fmt.Errorf("key %s: %w", k.show(r.key), err)))
			}
		}
		var own K // whose text is r.key's, and not a parcel's
		if err := k.keys.parse(r.key.Bytes, unsafe.Pointer(&own)); err != nil {
			return nil, bolt.Reject(k.st.about(err))
		}
		k.cache.put(own, r)
		missing, got = missing[1:], got[1:]
	}
	return rows, nil
}

// keyOf returns the bytes of a key and its group, which is the one that tuples of the key
// are sent by.
func keyOf[K comparable](l *layout, k K) (state.Key, error) {
	b, err := l.appendBytes(nil, unsafe.Pointer(&k))
	if err != nil {
		return state.Key{}, err
	}
	group := 0
	if len(l.ops) > 0 {
		group = tuple.KeyGroup(tuple.HashValues(l.encode(make([]tuple.Value, 0, 8), unsafe.Pointer(&k))))
	}
	return state.Key{Group: uint16(group), Bytes: string(b)}, nil
}
