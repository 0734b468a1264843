package trident

import (
	"fmt"
	"reflect"

	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/state"
)

// A State is a map from K to V that outlives the tasks, and the run if its backend does.
// Each batch changes it once, whatever fails. It is a description and holds nothing: it
// may be used by several goroutines, and by the definition as well as by a program that
// reads the state, see [State.Open].
//
// What a store has of keys and values is in docs/trident-rules.md, for other programs.
type State[K comparable, V any] struct {
	name    string
	backend state.Backend
	kind    Kind
	inexact bool
	here    bool
	cached  int
}

// DefaultCached is how many keys a task of a state keeps in memory.
const DefaultCached = 1 << 16

// StateOf returns the state of that name in a backend. Its component has the same name,
// so a topology has one of a name.
func StateOf[K comparable, V any](name string, backend state.Backend, kind Kind) *State[K, V] {
	return &State[K, V]{name: name, backend: backend, kind: kind, cached: DefaultCached}
}

// Inexact returns the state with leave not to be exactly-once: with a kind that its
// sources are too weak for, see [Kind].
func (s *State[K, V]) Inexact() *State[K, V] {
	c := *s
	c.inexact = true
	return &c
}

// FromHere returns the state with leave to begin in the middle of the input, in a topology
// that goes on with an earlier run's batches, which know nothing of it. Without it such a
// run is refused. It has no meaning from the first batch on that the state is in.
func (s *State[K, V]) FromHere() *State[K, V] {
	c := *s
	c.here = true
	return &c
}

// Cached returns the state with at most so many keys kept in the memory of each task, at least 2:
// they are not read from the store again. Without it they are [DefaultCached].
func (s *State[K, V]) Cached(keys int) *State[K, V] {
	c := *s
	c.cached = keys
	return &c
}

// A stateNode is what the planner knows of a state.
type stateNode struct {
	name    string
	kind    Kind
	is      string // its types
	inexact bool
	local   bool // only one node has it
	here    bool // it may begin in the middle
	again   bool // a batch that comes again may have other keys, and nothing is undone
}

// PersistentAggregate changes the state by each batch: the value of a key becomes the
// old one combined with c of the elements. It returns the new values of the keys that a
// batch has changed, when they are committed.
//
//	counts := trident.StateOf[string, int64]("counts", backend, trident.Opaque)
//	trident.PersistentAggregate(trident.GroupBy(words, trident.Identity), counts, trident.Count[string]())
func PersistentAggregate[K comparable, T, V any](g *Grouped[K, T], st *State[K, V], c Combiner[T, V]) *Stream[Pair[K, V]] {
	return keep(parts(g, c, st.what()), st, Identity, c.Combine, func(_ K, old V, found bool, v V) V {
		if found {
			return c.Combine(old, v)
		}
		return v
	})
}

// PersistentReduce changes the state by each batch: the elements of a key are added to
// its value by r, in no order that is promised.
func PersistentReduce[K comparable, T, V any](g *Grouped[K, T], st *State[K, V], r Reducer[T, V]) *Stream[Pair[K, V]] {
	given(g, ErrStream, "the groups of PersistentReduce of "+st.what())
	r.check(g.s.b, st.what())
	return Update(g, st, func(_ K, old V, found bool, batch []T) V {
		if !found {
			old = r.Zero()
		}
		for _, v := range batch {
			old = r.Reduce(old, v)
		}
		return old
	})
}

// Update changes the state by each batch: the value of a key becomes what f makes of the
// old one, which it must not change, and of the batch's elements of that key, in no order that is
// promised. found says whether there is an old one.
func Update[K comparable, T, V any](g *Grouped[K, T], st *State[K, V], f func(key K, old V, found bool, batch []T) V) *Stream[Pair[K, V]] {
	given(g, ErrStream, "the groups of Update of "+st.what())
	g.s.b.wants(f, "the function of Update of "+st.what())
	return keep(keyed(g, st.what()), st, func(v T) []T { return []T{v} }, func(all []T, v T) []T { return append(all, v) }, f)
}

// about says which state it is with an error that is not of its store, which says so itself.
func (s *State[K, V]) about(err error) error {
	if err != nil {
		err = fmt.Errorf("state %s in %v: %w", s.name, s.backend, err)
	}
	return err
}

func (s *State[K, V]) what() string { return "state " + given(s, ErrState, "a state").name }

func (s *State[K, V]) types() string {
	return fmt.Sprintf("of %v to %v", reflect.TypeFor[K](), reflect.TypeFor[V]())
}

// keep adds a state that is changed by what first and add make of a batch.
func keep[K comparable, T, A, V any](s *Stream[Pair[K, T]], st *State[K, V], first func(T) A, add func(A, T) A, change func(K, V, bool, A) V) *Stream[Pair[K, V]] {
	out := derive[Pair[K, V]](s, "state", func(t *body, n *node) func(Pair[K, T]) {
		k := newKeeper[K, A, V](st, change, n.state.again)
		k.masked = len(s.b.masks) > 0
		next := outOf[Pair[K, V]](t, n)
		k.batches = remember(t, &memory[changes[K, A, V]]{
			fresh: func() *changes[K, A, V] { return &changes[K, A, V]{groups: *newGroups[K, A]()} },
			clear: (*changes[K, A, V]).clear,
			done: func(c *changes[K, A, V]) {
				if len(c.values) < len(c.all) {
					panic("trident: state " + st.name + ": a batch is complete that is not committed")
				}
				for i := range c.all {
					next(Pair[K, V]{c.all[i].key, c.values[i]})
				}
			},
		})
		t.keeper = k
		t.opens, t.closes = append(t.opens, k.open), append(t.closes, k.close)
		return func(p Pair[K, T]) {
			if acc, isNew := k.batches.now.at(p.Key); isNew || mutation.Is(mutation.SecondReplaces) {
				*acc = first(p.Value)
			} else {
				*acc = add(*acc, p.Value)
			}
		}
	})
	out.n.name = st.name
	out.n.state = &stateNode{name: st.name, kind: st.kind, is: st.types(), inexact: st.inexact, here: st.here}
	_, out.n.state.local = st.backend.(state.Local)
	st.check(s.b)
	return out
}

// check tells what is wrong with the state itself.
func (s *State[K, V]) check(b *Builder) {
	_, err := layoutOf(reflect.TypeFor[V]())
	if err == nil && reflect.TypeFor[V]().Kind() == reflect.Struct && fieldless[V]() {
		err = fmt.Errorf("type %v has no fields: a value that says nothing cannot be kept", reflect.TypeFor[V]())
	}
	if err != nil {
		b.mistake(ErrElement, "state %s: %v", s.name, err)
	}
	switch {
	case s.backend == nil:
		b.mistake(ErrState, "state %s: its backend is nil", s.name)
	case s.kind > NonTransactional:
		b.mistake(ErrState, "state %s: there is no kind %d", s.name, s.kind)
	case s.cached < 2:
		b.mistake(ErrState, "state %s: it keeps %d keys in memory: that must be at least 2", s.name, s.cached)
	}
}

func fieldless[V any]() bool {
	l, err := layoutOf(reflect.TypeFor[V]())
	return err == nil && len(l.fields) == 0
}
