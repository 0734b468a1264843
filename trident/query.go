package trident

import (
	"context"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// A stateUse is what the planner knows of an operator that asks a state.
type stateUse struct {
	name string
	kind Kind
	is   string // its types
}

// StateQuery calls f for each element with the value that the state has for its key, and
// returns the stream of what f emits. found says whether there is one. The state is one
// that this topology changes, and what f sees of it is how it was before the batch of the
// element, wherever in the topology the state is changed. So a batch that comes again sees
// the same.
//
// The batch is processed when all batches before it are committed. An element waits
// until its batch is complete, and then the keys of the batch are read in one go.
func StateQuery[K comparable, T, V, U any](g *Grouped[K, T], st *State[K, V], f func(v T, value V, found bool, emit func(U))) *Stream[U] {
	given(g, ErrStream, "the groups of StateQuery of "+st.what())
	g.s.b.wants(f, "the function of StateQuery of "+st.what())
	s := keyed(g, "StateQuery")
	s.n.inputs[0].edge.settled = true
	out := derive[U](s, st.name+"-query", func(t *body, n *node) func(Pair[K, T]) {
		next := outOf[U](t, n)
		q := &asker[K, V]{st: st, masked: len(s.b.masks) > 0}
		t.opens, t.closes = append(t.opens, q.open), append(t.closes, q.close)
		m := remember(t, &memory[groups[K, []T]]{
			fresh: newGroups[K, []T],
			clear: (*groups[K, []T]).clear,
			done: func(g *groups[K, []T]) {
				keys := make([]K, len(g.all))
				for i := range g.all {
					keys[i] = g.all[i].key
				}
				err := q.ask(t.out.Context(), t.tx-1, keys, func(i int, v V, found bool) {
					for _, e := range g.all[i].acc {
						f(e, v, found, next)
					}
				})
				if err != nil && t.err == nil {
					t.err = err
				}
			},
		})
		return func(p Pair[K, T]) {
			all, _ := m.now.at(p.Key)
			*all = append(*all, p.Value)
		}
	})
	out.n.reads = &stateUse{st.name, st.kind, st.types()}
	st.check(s.b)
	return out
}

// An asker reads a state.
type asker[K comparable, V any] struct {
	st           *State[K, V]
	keys, values *layout
	store        state.Store
	masked       bool // something of the topology is
}

func (q *asker[K, V]) open(ctx context.Context, task *bolt.Task) error {
	return final(q.openOf(ctx, task.Topology, q.st.backend.Open))
}

// openOf opens the state by one of the methods of its backend.
func (q *asker[K, V]) openOf(ctx context.Context, topology string, open func(context.Context, state.Name) (state.Store, error)) (err error) {
	if q.keys, err = layoutOf(reflect.TypeFor[K]()); err != nil {
		return err
	}
	if q.values, err = layoutOf(reflect.TypeFor[V]()); err != nil {
		return err
	}
	q.store, err = open(ctx, state.Name{Topology: topology, State: q.st.name})
	return err
}

func (q *asker[K, V]) close() error { return q.store.Close() }

// ask calls f for each key with its value as it was when batch tx was committed and none
// behind it.
func (q *asker[K, V]) ask(ctx context.Context, tx tuple.TxID, keys []K, f func(i int, v V, found bool)) error {
	if len(keys) == 0 {
		return nil
	}
	ks := make([]state.Key, len(keys))
	for i := range keys {
		k, err := keyOf(q.keys, keys[i])
		if err != nil {
			return q.st.about(err)
		}
		ks[i] = k
	}
	rows, err := q.store.Get(ctx, ks)
	if err != nil {
		return err
	}
	for i, r := range rows {
		v, found, err := q.value(r, tx)
		if err != nil {
			return q.st.about(fmt.Errorf("key %s: %w", keyText(ks[i], q.masked), err))
		}
		f(i, v, found)
	}
	return nil
}

// value returns what r was when batch tx was committed and none behind it. A kind of
// state that keeps no value before has only the one that there is.
func (q *asker[K, V]) value(r state.Row, tx tuple.TxID) (v V, found bool, err error) {
	b := r.Value
	if r.Tx > tx && q.st.kind == Opaque {
		b = r.Prev
	}
	if b == nil {
		return v, false, nil
	}
	return v, true, q.values.parse(string(b), unsafe.Pointer(&v))
}
