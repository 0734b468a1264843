package trident

import (
	"context"
	"fmt"
	"reflect"
	"unsafe"
)

// An Ask gets committed values of a state from who runs the topology, as the method Query
// of egret.Cluster does. Keys and values are as stores have them; nil is no value.
type Ask func(ctx context.Context, topology, state string, keys [][]byte) ([][]byte, error)

// Query returns the values that a state of a running topology has for keys, as of the
// last batch that is committed, from any node of its cluster. A key without a value is not
// in what it returns.
//
//	counts := trident.StateOf[string, int64]("counts", nil, trident.Opaque)
//	got, err := trident.Query(ctx, egret.Cluster{}.Query, "wordcount", counts, "whale", "ship")
//
// Of the state only its name and its types are used: a node reads it where it is. What it
// says may be a moment old; that a batch which is not committed is left out is sure for an
// Opaque state only, see [State.Open]. What is there is read as it was written: if it cannot
// be a V, that is an error, and a whole number of another size can.
func Query[K comparable, V any](ctx context.Context, ask Ask, topology string, st *State[K, V], keys ...K) (map[K]V, error) {
	values := make(map[K]V, len(keys))
	if ask == nil {
		return nil, fmt.Errorf("nobody is asked for state %s of topology %s: give the method Query of an egret.Cluster", st.name, topology)
	}
	if len(keys) == 0 {
		return values, nil
	}
	wrap := func(err error) error { return fmt.Errorf("state %s of topology %s: %w", st.name, topology, err) }
	ks, err := layoutOf(reflect.TypeFor[K]())
	if err != nil {
		return nil, wrap(err)
	}
	vs, err := layoutOf(reflect.TypeFor[V]())
	if err != nil {
		return nil, wrap(err)
	}
	stored := make([][]byte, len(keys))
	for i := range keys {
		if stored[i], err = ks.appendBytes(nil, unsafe.Pointer(&keys[i])); err != nil {
			return nil, wrap(fmt.Errorf("%w: %w", ErrKey, err))
		}
	}
	got, err := ask(ctx, topology, st.name, stored)
	if err != nil {
		return nil, err
	}
	if len(got) != len(keys) {
		return nil, wrap(fmt.Errorf("%d values have come for %d keys", len(got), len(keys)))
	}
	for i, b := range got {
		if b == nil {
			continue
		}
		var v V
		if err := vs.parse(string(b), unsafe.Pointer(&v)); err != nil {
			return nil, wrap(err)
		}
		values[keys[i]] = v
	}
	return values, nil
}
