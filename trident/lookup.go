package trident

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// ErrKey reports a text that is no key of a state.
var ErrKey = errors.New("bad key")

// A Lookup reads a state for who does not know its types, as the command query. It is good
// for several goroutines.
type Lookup struct {
	topology string
	keeper   anyKeeper
}

// LookupOf returns what reads a state of a plan that comes of [New]. An error wraps
// ErrState: the plan has no such state.
func LookupOf(p *topology.Plan, name string) (*Lookup, error) {
	var have []string
	for i := range p.Components {
		n := &p.Components[i]
		if !n.Stateful {
			continue
		}
		b, is := n.Bolt().(*stateBody)
		if !is {
			continue
		}
		if n.Name == name {
			return &Lookup{p.Topology, b.keeper}, nil
		}
		have = append(have, n.Name)
	}
	text := "it has none"
	if len(have) > 0 {
		text = "it has " + strings.Join(have, ", ")
	}
	return nil, fmt.Errorf("%w: topology %s has no state %q: %s", ErrState, p.Topology, name, text)
}

// Get returns the values of keys as of when a batch was committed, as [State.Open] does;
// nil where there is none. last are the last batches that have written to the key groups,
// as the record has them; nil: the state was never written.
//
// A key is text as it is, a time as in RFC 3339, a duration as in 1m30s, and anything else
// JSON. An error wraps ErrKey if a text is none of that, and state.ErrLost if the place has
// nothing of what the record says was written there.
func (l *Lookup) Get(ctx context.Context, committed tuple.TxID, last []tuple.TxID, keys []string) ([]json.RawMessage, error) {
	return l.keeper.lookup(ctx, l.topology, committed, last, keys)
}

// Stored is Get for who knows the types, see [Query]: keys and values are as stores have them.
func (l *Lookup) Stored(ctx context.Context, committed tuple.TxID, last []tuple.TxID, keys [][]byte) ([][]byte, error) {
	return l.keeper.stored(ctx, l.topology, committed, last, keys)
}

func (k *keeper[K, A, V]) lookup(ctx context.Context, topology string, committed tuple.TxID, last []tuple.TxID, texts []string) ([]json.RawMessage, error) {
	keys := make([]K, len(texts))
	for i, text := range texts {
		var err error
		if keys[i], err = keyFrom[K](text); err != nil {
			return nil, fmt.Errorf("state %s: %w: %q is no %v: %w", k.st.name, ErrKey, text, reflect.TypeFor[K](), err)
		}
	}
	return lookUp(ctx, k.st, topology, committed, last, keys, func(_ *layout, v V) (json.RawMessage, error) { return shown(v) })
}

func (k *keeper[K, A, V]) stored(ctx context.Context, topology string, committed tuple.TxID, last []tuple.TxID, texts [][]byte) ([][]byte, error) {
	l, err := layoutOf(reflect.TypeFor[K]())
	if err != nil {
		return nil, err
	}
	keys := make([]K, len(texts))
	for i, text := range texts {
		if err := l.parse(string(text), unsafe.Pointer(&keys[i])); err != nil {
			return nil, fmt.Errorf("state %s: %w: %w", k.st.name, ErrKey, err)
		}
	}
	return lookUp(ctx, k.st, topology, committed, last, keys, func(l *layout, v V) ([]byte, error) { return l.appendBytes(nil, unsafe.Pointer(&v)) })
}

// lookUp returns what is made of the values of keys, nil where there is none.
func lookUp[K comparable, V any, T ~[]byte](ctx context.Context, st *State[K, V], topology string, committed tuple.TxID, last []tuple.TxID, keys []K, of func(*layout, V) (T, error)) ([]T, error) {
	values := make([]T, len(keys))
	if !slices.ContainsFunc(last, func(tx tuple.TxID) bool { return tx > 0 }) {
		return values, nil // and nothing is made where the state is to be
	}
	r, err := st.Open(ctx, topology, committed)
	if errors.Is(err, state.ErrNone) {
		return nil, st.nothing(slices.Max(last))
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var bad error
	err = r.ask(ctx, committed, keys, func(i int, v V, found bool) {
		if found && bad == nil {
			values[i], bad = of(r.values, v)
		}
	})
	if err = errors.Join(err, bad); err != nil {
		return nil, err
	}
	for i := range keys {
		if values[i] == nil {
			if err := r.holds(ctx, keys[i], last); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

// holds returns an error if the group of a key was written, and has nothing in it. Rows
// are never deleted, so then it is not this store that was written.
func (r *Reader[K, V]) holds(ctx context.Context, key K, last []tuple.TxID) error {
	k, err := keyOf(r.keys, key)
	if err != nil || last[k.Group] == 0 {
		return r.st.about(err)
	}
	var group tuple.Groups
	group.Add(k.Group)
	some := false
	err = r.store.Scan(ctx, &group, func(state.Key, state.Row) bool { some = true; return false })
	if err == nil && !some {
		err = r.st.nothing(last[k.Group])
	}
	return err
}

// nothing is the error that nothing is there of what a batch has written.
func (s *State[K, V]) nothing(tx tuple.TxID) error {
	return s.about(fmt.Errorf("%w: nothing is here of what batch %d has written: a state in memory ends with its process, and one on a disk is where its task is", state.ErrLost, tx))
}

// keyFrom makes a key of text.
func keyFrom[K comparable](text string) (k K, err error) {
	switch p := any(&k).(type) {
	case *time.Duration:
		*p, err = time.ParseDuration(text)
		return k, err
	case *time.Time:
		*p, err = time.Parse(time.RFC3339Nano, text)
		return k, err
	}
	if v := reflect.ValueOf(&k).Elem(); v.Kind() == reflect.String {
		v.SetString(text)
		return k, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&k); err != nil {
		return k, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return k, errors.New("something follows it")
	}
	return k, nil
}

// shown makes JSON of a value. What JSON does not have, as a float that is no number, is
// text.
func shown(v any) (json.RawMessage, error) {
	if d, is := v.(time.Duration); is {
		v = d.String()
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	if _, is := errors.AsType[*json.UnsupportedValueError](err); is {
		b.Reset()
		err = e.Encode(fmt.Sprint(v))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
