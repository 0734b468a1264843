package trident

import (
	"context"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// Latest is a number behind all batches: for reading a state of which everything is
// committed, as after a run that has come to its end.
const Latest = tuple.TxID(math.MaxUint64)

// A Reader reads a state from outside the topology. It is good for several goroutines.
type Reader[K comparable, V any] struct {
	asker[K, V]
	committed tuple.TxID
}

// Open opens the state of a topology to read what was committed with batch committed and
// before. While the topology runs, a store may be one batch ahead of what is committed:
// that batch is left out for an Opaque state; for the other kinds, which do not have the
// value before, it is not. And a reader that is more than one batch behind cannot be served: it gets
// the value as it was before the last batch. If the place has no such state the error wraps
// state.ErrNone, and nothing is made there.
func (s *State[K, V]) Open(ctx context.Context, topology string, committed tuple.TxID) (*Reader[K, V], error) {
	r := &Reader[K, V]{asker[K, V]{st: s}, committed}
	if s.backend == nil {
		return nil, fmt.Errorf("%w: state %s: its backend is nil", ErrState, s.name)
	}
	if err := r.openOf(ctx, topology, s.backend.Find); err != nil {
		return nil, err
	}
	return r, nil
}

// Close gives the store back. Get, All and Top beside it or behind it may return an error.
func (r *Reader[K, V]) Close() error { return r.close() }

// Get returns the value of a key, and whether there is one.
func (r *Reader[K, V]) Get(ctx context.Context, key K) (v V, found bool, err error) {
	err = r.ask(ctx, r.committed, []K{key}, func(_ int, got V, yes bool) { v, found = got, yes })
	return v, found, err
}

// All calls f for each key that has a value, in no order, until it returns false.
func (r *Reader[K, V]) All(ctx context.Context, f func(K, V) bool) error {
	groups := tuple.Groups{}
	for i := range groups {
		groups[i] = math.MaxUint64
	}
	var bad error
	err := r.store.Scan(ctx, &groups, func(key state.Key, row state.Row) bool {
		v, found, err := r.value(row, r.committed)
		var k K
		if err == nil && found {
			err = r.keys.parse(key.Bytes, unsafe.Pointer(&k))
		}
		if err != nil {
			bad = fmt.Errorf("key %s: %w", Show([]byte(key.Bytes)), err)
			return false
		}
		return !found || f(k, v)
	})
	if bad != nil {
		return r.st.about(bad)
	}
	return err
}

// Top returns the first n keys with their values in the order of cmp, as of
// slices.SortFunc. It keeps 2n of them at a time.
func (r *Reader[K, V]) Top(ctx context.Context, n int, cmp func(a, b Pair[K, V]) int) ([]Pair[K, V], error) {
	var top []Pair[K, V]
	cut := func() {
		slices.SortFunc(top, cmp)
		top = slices.Delete(top, min(max(n, 0), len(top)), len(top))
	}
	err := r.All(ctx, func(k K, v V) bool {
		if top = append(top, Pair[K, V]{k, v}); len(top)/2 > n {
			cut()
		}
		return true
	})
	cut()
	return top, err
}
