package trident

import (
	"reflect"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
)

// A Stream is a sequence of elements of type T, batch after batch, in a definition. It
// holds no elements: it says where they come from. Several operators may read one stream;
// each gets all of its elements.
//
// Operators are functions of this package if they change the type of the elements, and
// methods if they do not. The functions given to them are called by many tasks at the
// same time, and again for a batch that has failed. So they keep no memory of their own,
// and do not change what they are given. A panic in one ends the life of its task, and
// the batch comes again.
//
// Within a task elements are Go values of any type. Where they go to another task, and in
// states, they are a bool, number, string, []byte, time.Time, time.Duration, a pointer to
// one of these (nil if it is absent), a type with a codec (tuple.RegisterCodec), or a
// struct of such values or structs with exported fields only. A field DelayMin is the
// field delay_min of tuples; the tag `egret:"name"` gives it another name.
type Stream[T any] struct {
	b *Builder
	n *node
}

// From returns the stream of a source's messages. T says what they are: one with one
// field for a T that is no struct, else one with the fields of T, which the source may
// look at, as from.CSV does. A message of another kind fails its batch. name is the
// component's. Without a kind the source is Opaque; name it if the source can do more or
// should do less.
func From[T any](b *Builder, name string, source spout.Source, kind ...Kind) *Stream[T] {
	n := &node{kind: "source", name: name, source: source, isSource: true}
	if len(kind) > 0 {
		n.replay = kind[0]
	}
	if len(kind) > 1 || n.replay > NonTransactional {
		b.mistake(ErrState, "source %s: give it one kind: Opaque, Transactional or NonTransactional", name)
		n.replay = Opaque
	}
	return through(added[T](b, n), topology.LocalOrShuffle, 0)
}

// Name gives the component that the last operator runs in a name, for people, metrics and
// --parallel. Operators run in one component until elements go to other tasks; if several
// of them have names, the component's is all of them. Sources and states have names of
// their own.
func (s *Stream[T]) Name(name string) *Stream[T] {
	given(s, ErrStream, "the stream of Name")
	if s.n.ofSource() != nil || s.n.state != nil {
		s.b.mistake(ErrName, "Name(%q): a source or state has a name already", name)
	}
	s.n.name = name
	return s
}

// Parallel sets the number of tasks of the component that the last operator runs in: of
// the source, directly behind From. Without it there is one.
func (s *Stream[T]) Parallel(tasks int) *Stream[T] {
	given(s, ErrStream, "the stream of Parallel")
	n := s.n
	if source := n.ofSource(); source != nil {
		n = source
	}
	n.parallel, n.sized = tasks, true
	return s
}

// Map returns the stream of f of each element.
func Map[T, U any](s *Stream[T], f func(T) U) *Stream[U] {
	given(s, ErrStream, "the stream of Map")
	s.b.wants(f, "the function of Map")
	return derive[U](s, "map", func(t *body, n *node) func(T) {
		next := outOf[U](t, n)
		return func(v T) { next(f(v)) }
	})
}

// FlatMap returns the stream of what f emits for each element.
func FlatMap[T, U any](s *Stream[T], f func(v T, emit func(U))) *Stream[U] {
	given(s, ErrStream, "the stream of FlatMap")
	s.b.wants(f, "the function of FlatMap")
	return derive[U](s, "flatmap", func(t *body, n *node) func(T) {
		next := outOf[U](t, n)
		return func(v T) { f(v, next) }
	})
}

// Each is [FlatMap] with a function that may fail: an error fails the batch, which comes
// again. It is also the place for side effects. They happen again when the batch does;
// only states are exactly-once.
func Each[T, U any](s *Stream[T], f func(v T, emit func(U)) error) *Stream[U] {
	given(s, ErrStream, "the stream of Each")
	s.b.wants(f, "the function of Each")
	return derive[U](s, "each", func(t *body, n *node) func(T) {
		next := outOf[U](t, n)
		return func(v T) {
			if err := f(v, next); err != nil && t.err == nil {
				t.err = err
			}
		}
	})
}

// Filter keeps the elements for which f is true.
func (s *Stream[T]) Filter(f func(T) bool) *Stream[T] {
	given(s, ErrStream, "the stream of Filter")
	s.b.wants(f, "the function of Filter")
	return derive[T](s, "filter", func(t *body, n *node) func(T) {
		next := outOf[T](t, n)
		return func(v T) {
			if f(v) {
				next(v)
			}
		}
	})
}

// Peek calls f for each element, and passes it on.
func (s *Stream[T]) Peek(f func(T)) *Stream[T] {
	given(s, ErrStream, "the stream of Peek")
	s.b.wants(f, "the function of Peek")
	return derive[T](s, "peek", func(t *body, n *node) func(T) {
		next := outOf[T](t, n)
		return func(v T) { f(v); next(v) }
	})
}

// Merge returns the stream of all elements of the streams.
func Merge[T any](first *Stream[T], more ...*Stream[T]) *Stream[T] {
	given(first, ErrStream, "a stream of Merge")
	n := &node{kind: "merge", inputs: []input{{from: first.n}}}
	for _, s := range more {
		given(s, ErrStream, "a stream of Merge")
		if first.b.owns(s.b, "Merge") {
			n.inputs = append(n.inputs, input{from: s.n})
		}
	}
	n.make = func(t *body, n *node) []any {
		entries, next := make([]any, len(n.inputs)), outOf[T](t, n)
		for i := range entries {
			entries[i] = next
		}
		return entries
	}
	return added[T](first.b, n)
}

// Shuffle spreads the elements over the tasks of what follows, by preference to one with
// room.
func (s *Stream[T]) Shuffle() *Stream[T] {
	return through(given(s, ErrStream, "the stream of Shuffle"), topology.Shuffle, 0)
}

// Broadcast gives each element to every task of what follows.
func (s *Stream[T]) Broadcast() *Stream[T] {
	return through(given(s, ErrStream, "the stream of Broadcast"), topology.All, 0)
}

// Global gives all elements to the first task of what follows.
func (s *Stream[T]) Global() *Stream[T] {
	return through(given(s, ErrStream, "the stream of Global"), topology.Global, 0)
}

// By gives elements of equal keys to the same task of what follows.
func By[T any, K comparable](s *Stream[T], key func(T) K) *Stream[T] {
	given(s, ErrStream, "the stream of By")
	s.b.wants(key, "the key of By")
	there := through(derive[Pair[K, T]](s, "by", pairs(key)), topology.Fields, keyFields[K](s.b, "By"))
	return derive[T](there, "", func(t *body, n *node) func(Pair[K, T]) {
		next := outOf[T](t, n)
		return func(p Pair[K, T]) { next(p.Value) }
	})
}

// A Pair is a key and what belongs to it: the elements of streams behind a [Grouped]
// one.
type Pair[K comparable, V any] struct {
	Key   K
	Value V
}

func pairs[K comparable, T any](key func(T) K) func(*body, *node) func(T) {
	return func(t *body, n *node) func(T) {
		next := outOf[Pair[K, T]](t, n)
		return func(v T) { next(Pair[K, T]{key(v), v}) }
	}
}

// keyFields returns how many fields of a tuple a K is, and tells if it cannot be a key.
func keyFields[K comparable](b *Builder, what string) int {
	l, err := layoutOf(reflect.TypeFor[K]())
	if err == nil {
		err = l.key()
	}
	if err != nil {
		b.mistake(ErrElement, "%s: %v", what, err)
		return 0
	}
	return len(l.fields)
}
