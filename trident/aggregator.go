package trident

import (
	"cmp"
	"reflect"
)

// A Combiner makes one value of many elements, in any order and in parts: each task makes
// a value of the elements that it has, and then these are combined. So Combine must give
// the same for (a, b) and (b, a), and for ((a, b), c) and (a, (b, c)). It does not
// change its arguments.
//
// There is no value of no elements: where there are none, nothing is combined and
// nothing emitted.
type Combiner[T, V any] struct {
	Init    func(T) V // the value of one element
	Combine func(a, b V) V

	alike uintptr // the code of an Init that gives the same for all elements
}

// A Reducer adds elements to a value, one after the other, in no order that is promised.
type Reducer[T, V any] struct {
	Zero   func() V // the value of no elements
	Reduce func(value V, element T) V
}

func (r *Reducer[T, V]) check(b *Builder, what string) {
	b.wants(r.Zero, "Zero of the Reducer of "+what)
	b.wants(r.Reduce, "Reduce of the Reducer of "+what)
}

// An Aggregator collects elements of a batch and says something about them in the end.
// An accumulator A that Add changes in place, such as a map, is fine: Init makes one for
// each batch.
type Aggregator[T, A, U any] struct {
	Init func() A
	Add  func(acc A, element T) A
	Done func(acc A, emit func(U))
}

func (a *Aggregator[T, A, U]) check(b *Builder, what string) {
	b.wants(a.Init, "Init of the Aggregator of "+what)
	b.wants(a.Add, "Add of the Aggregator of "+what)
	b.wants(a.Done, "Done of the Aggregator of "+what)
}

// Count counts elements.
func Count[T any]() Combiner[T, int64] {
	one := func(T) int64 { return 1 }
	return Combiner[T, int64]{
		Init:    one,
		Combine: func(a, b int64) int64 { return a + b },
		alike:   codeOf(one),
	}
}

// initsAlike reports whether Init is one that is known to give the same for all elements,
// and has not been replaced by another.
func (c *Combiner[T, V]) initsAlike() bool { return c.Init != nil && c.alike == codeOf(c.Init) }

func codeOf(f any) uintptr { return reflect.ValueOf(f).Pointer() }

// A Number can be added.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Sum adds f of the elements. Sums of floats depend on their order in the last digits.
func Sum[T any, N Number](f func(T) N) Combiner[T, N] {
	return Combiner[T, N]{Init: f, Combine: func(a, b N) N { return a + b }}
}

// Min finds the least f of the elements.
func Min[T any, V cmp.Ordered](f func(T) V) Combiner[T, V] {
	return Combiner[T, V]{Init: f, Combine: func(a, b V) V { return min(a, b) }}
}

// Max finds the greatest f of the elements.
func Max[T any, V cmp.Ordered](f func(T) V) Combiner[T, V] {
	return Combiner[T, V]{Init: f, Combine: func(a, b V) V { return max(a, b) }}
}
