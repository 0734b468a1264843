package trident

import "github.com/egretstream/egret/topology"

// A Grouped is a stream whose elements have keys. Those of one key come together in one
// task, where they are aggregated, joined, or change the value that a state has for the
// key.
type Grouped[K comparable, T any] struct {
	s       *Stream[T]
	key     func(T) K
	noParts bool
}

// GroupBy groups the elements by a key. Keys are compared with ==; they are a bool,
// whole number, string, time.Time, time.Duration, or a struct of these.
func GroupBy[T any, K comparable](s *Stream[T], key func(T) K) *Grouped[K, T] {
	given(s, ErrStream, "the stream of GroupBy")
	s.b.wants(key, "the key of GroupBy")
	return &Grouped[K, T]{s: s, key: key}
}

// Identity returns its argument: GroupBy(words, trident.Identity) groups words by
// themselves.
func Identity[T any](v T) T { return v }

// GroupAll makes one group of all elements, in one task.
func (s *Stream[T]) GroupAll() *Grouped[struct{}, T] {
	given(s, ErrStream, "the stream of GroupAll")
	return &Grouped[struct{}, T]{s: s, key: func(T) struct{} { return struct{}{} }}
}

// WithoutParts makes a [Combiner] see all elements in the task of their key. Otherwise
// each task first combines what it has of a batch, so that one value for each key travels,
// and not all elements.
func (g *Grouped[K, T]) WithoutParts() *Grouped[K, T] {
	given(g, ErrStream, "the groups of WithoutParts")
	return &Grouped[K, T]{g.s, g.key, true}
}

// keyed returns the elements with their keys, in the task of the key.
func keyed[K comparable, T any](g *Grouped[K, T], what string) *Stream[Pair[K, T]] {
	given(g, ErrStream, "the groups of "+what)
	return gather(derive[Pair[K, T]](g.s, "group", pairs(g.key)), what)
}

// gather brings pairs to the task of their key.
func gather[K comparable, T any](s *Stream[Pair[K, T]], what string) *Stream[Pair[K, T]] {
	return through(s, topology.Fields, keyFields[K](s.b, what))
}

// parts returns values of the elements with their keys, in the task of the key: one for
// each task and batch, or for each element.
func parts[K comparable, T, V any](g *Grouped[K, T], c Combiner[T, V], what string) *Stream[Pair[K, V]] {
	given(g, ErrStream, "the groups of "+what)
	g.s.b.wants(c.Init, "Init of the Combiner of "+what)
	g.s.b.wants(c.Combine, "Combine of the Combiner of "+what)
	if g.noParts && c.initsAlike() && !fieldless[K]() { // the key travels alone
		var some T
		one := c.Init(some)
		keys := derive[alone[K]](g.s, "group", func(t *body, n *node) func(T) {
			next := outOf[alone[K]](t, n)
			return func(v T) { next(alone[K]{g.key(v)}) }
		})
		return across[Pair[K, V]](keys, topology.Fields, keyFields[K](g.s.b, what), func(t *body, n *node) func(alone[K]) {
			next := outOf[Pair[K, V]](t, n)
			return func(k alone[K]) { next(Pair[K, V]{k.Key, one}) }
		})
	}
	if g.noParts {
		return gather(derive[Pair[K, V]](g.s, "group", func(t *body, n *node) func(T) {
			next := outOf[Pair[K, V]](t, n)
			return func(v T) { next(Pair[K, V]{g.key(v), c.Init(v)}) }
		}), what)
	}
	return gather(derive[Pair[K, V]](g.s, "group", func(t *body, n *node) func(T) {
		return grouping(t, n, func(v T) (K, T) { return g.key(v), v }, c.Init, func(acc V, v T) V { return c.Combine(acc, c.Init(v)) })
	}), what)
}

// Aggregate returns one value for each key that a batch has: c of the elements of that
// key.
func Aggregate[K comparable, T, V any](g *Grouped[K, T], c Combiner[T, V]) *Stream[Pair[K, V]] {
	return derive[Pair[K, V]](parts(g, c, "Aggregate"), "aggregate", func(t *body, n *node) func(Pair[K, V]) {
		return grouping(t, n, split[K, V], Identity, c.Combine)
	})
}

// Reduce returns one value for each key that a batch has: the elements of that key, added
// by r.
func Reduce[K comparable, T, V any](g *Grouped[K, T], r Reducer[T, V]) *Stream[Pair[K, V]] {
	given(g, ErrStream, "the groups of Reduce")
	r.check(g.s.b, "Reduce")
	return derive[Pair[K, V]](keyed(g, "Reduce"), "reduce", func(t *body, n *node) func(Pair[K, T]) {
		return grouping(t, n, split[K, T], func(v T) V { return r.Reduce(r.Zero(), v) }, r.Reduce)
	})
}

// AggregateGroups returns what a says of each key that a batch has.
func AggregateGroups[K comparable, T, A, U any](g *Grouped[K, T], a Aggregator[T, A, U]) *Stream[Pair[K, U]] {
	given(g, ErrStream, "the groups of AggregateGroups")
	a.check(g.s.b, "AggregateGroups")
	return derive[Pair[K, U]](keyed(g, "AggregateGroups"), "aggregate", func(t *body, n *node) func(Pair[K, T]) {
		next := outOf[Pair[K, U]](t, n)
		return groupsOf(t, split[K, T], func(v T) A { return a.Add(a.Init(), v) }, a.Add, func(k K, acc A) {
			a.Done(acc, func(u U) { next(Pair[K, U]{k, u}) })
		})
	})
}

// PartitionAggregate returns what a says of the elements of a batch that one task has,
// if it has any: of a part of the batch, whichever way it was cut. Put By, Global or Broadcast before
// it for parts that mean something.
func PartitionAggregate[T, A, U any](s *Stream[T], a Aggregator[T, A, U]) *Stream[U] {
	given(s, ErrStream, "the stream of PartitionAggregate")
	a.check(s.b, "PartitionAggregate")
	out := derive[U](s, "aggregate", func(t *body, n *node) func(T) {
		next := outOf[U](t, n)
		return groupsOf(t, func(v T) (struct{}, T) { return struct{}{}, v }, func(v T) A { return a.Add(a.Init(), v) }, a.Add,
			func(_ struct{}, acc A) { a.Done(acc, next) })
	})
	out.n.uneven = true
	return out
}

// alone is a key without a value.
type alone[K comparable] struct{ Key K }

func split[K comparable, V any](p Pair[K, V]) (K, V) { return p.Key, p.Value }

// grouping makes an operator that keeps a value for each key of a batch and emits pairs.
func grouping[E any, K comparable, T, V any](t *body, n *node, split func(E) (K, T), first func(T) V, add func(V, T) V) func(E) {
	next := outOf[Pair[K, V]](t, n)
	return groupsOf(t, split, first, add, func(k K, v V) { next(Pair[K, V]{k, v}) })
}

// groupsOf makes an operator that keeps a value for each key of a batch, and calls done
// for each when the batch is complete.
func groupsOf[E any, K comparable, T, A any](t *body, split func(E) (K, T), first func(T) A, add func(A, T) A, done func(K, A)) func(E) {
	m := remember(t, &memory[groups[K, A]]{
		fresh: newGroups[K, A],
		clear: (*groups[K, A]).clear,
		done: func(g *groups[K, A]) {
			for i := range g.all {
				done(g.all[i].key, g.all[i].acc)
			}
		},
	})
	return func(e E) {
		k, v := split(e)
		if acc, isNew := m.now.at(k); isNew {
			*acc = first(v)
		} else {
			*acc = add(*acc, v)
		}
	}
}

// groups has an A for each key, in the order in which the keys have come.
type groups[K comparable, A any] struct {
	index map[K]int32
	all   []group[K, A]
}

type group[K comparable, A any] struct {
	key K
	acc A
}

func newGroups[K comparable, A any]() *groups[K, A] {
	return &groups[K, A]{index: map[K]int32{}}
}

// at returns the A of a key, good until the next call.
func (g *groups[K, A]) at(k K) (acc *A, isNew bool) {
	i, ok := g.index[k]
	if !ok {
		i = int32(len(g.all))
		g.index[k] = i
		g.all = append(g.all, group[K, A]{key: k})
	}
	return &g.all[i].acc, !ok
}

func (g *groups[K, A]) clear() {
	clear(g.index)
	clear(g.all)
	g.all = g.all[:0]
}
