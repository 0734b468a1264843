package trident_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// outcome runs a program without trouble, in one batch or in several, and returns what
// came out of it, in order.
func outcome[T cmp.Ordered](t *testing.T, batches bool, define func(b *trident.Builder) *trident.Stream[T]) []T {
	t.Helper()
	var got []T
	top := trident.New("test", func(b *trident.Builder) {
		define(b).Peek(func(v T) { got = append(got, v) })
	})
	d := newDrive(t, 1, top, topology.Options{})
	d.whole = !batches
	d.run()
	slices.Sort(got)
	return got
}

func numbers(b *trident.Builder, name string, n ...int) *trident.Stream[int] {
	return trident.From[int](b, name, spout.Slice(n...))
}

func odd(n int) bool    { return n%2 != 0 }
func rest(n int) int    { return n % 3 }
func self(n int) int    { return n }
func plus(a, n int) int { return a + n }

func show[K comparable, V any](s *trident.Stream[trident.Pair[K, V]]) *trident.Stream[string] {
	return trident.Map(s, func(p trident.Pair[K, V]) string { return fmt.Sprintf("%v %v", p.Key, p.Value) })
}

// all collects numbers.
var all = trident.Aggregator[int, []int, string]{
	Init: func() []int { return nil },
	Add:  func(all []int, n int) []int { return append(all, n) },
	Done: func(all []int, emit func(string)) {
		slices.Sort(all)
		emit(fmt.Sprint(all))
	},
}

func TestOperators(t *testing.T) {
	type strings = *trident.Stream[string]
	text := func(s *trident.Stream[int]) strings {
		return trident.Map(s, func(n int) string { return fmt.Sprint(n) })
	}
	for _, tt := range []struct {
		name   string
		define func(b *trident.Builder) strings
		want   []string
	}{
		{"Map", func(b *trident.Builder) strings {
			return text(trident.Map(numbers(b, "in", 1, 2), func(n int) int { return n * 10 }))
		}, []string{"10", "20"}},
		{"FlatMap", func(b *trident.Builder) strings {
			return text(trident.FlatMap(numbers(b, "in", 0, 1, 2), func(n int, emit func(int)) {
				for range n {
					emit(n)
				}
			}))
		}, []string{"1", "2", "2"}},
		{"Each", func(b *trident.Builder) strings {
			return text(trident.Each(numbers(b, "in", 1, 2), func(n int, emit func(int)) error { emit(-n); return nil }))
		}, []string{"-1", "-2"}},
		{"Filter", func(b *trident.Builder) strings { return text(numbers(b, "in", 1, 2, 3).Filter(odd)) }, []string{"1", "3"}},
		{"two readers", func(b *trident.Builder) strings {
			in := numbers(b, "in", 1, 2)
			return trident.Merge(text(in), text(trident.Map(in, func(n int) int { return n + 5 })))
		}, []string{"1", "2", "6", "7"}},
		{"Merge", func(b *trident.Builder) strings {
			return text(trident.Merge(numbers(b, "a", 1), numbers(b, "b", 2).Shuffle(), numbers(b, "c", 3)))
		}, []string{"1", "2", "3"}},
		{"Merge with itself", func(b *trident.Builder) strings {
			in := numbers(b, "a", 1)
			return text(trident.Merge(in, in))
		}, []string{"1", "1"}},
		{"Merge with a later place", func(b *trident.Builder) strings {
			in := trident.Map(numbers(b, "a", 1), self)
			return text(trident.Merge(in, trident.Map(in.Shuffle(), self)))
		}, []string{"1", "1"}},
		{"Shuffle", func(b *trident.Builder) strings { return text(numbers(b, "in", 1, 2, 3).Shuffle()).Parallel(3) }, []string{"1", "2", "3"}},
		{"Broadcast", func(b *trident.Builder) strings { return text(numbers(b, "in", 1, 2).Broadcast()).Parallel(2) }, []string{"1", "1", "2", "2"}},
		{"Global", func(b *trident.Builder) strings {
			return trident.PartitionAggregate(numbers(b, "in", 1, 2, 3).Global(), all).Parallel(3)
		}, []string{"[1 2 3]"}},
		{"By", func(b *trident.Builder) strings {
			whole := trident.Aggregator[int, map[int]int, string]{
				Init: func() map[int]int { return map[int]int{} },
				Add:  func(m map[int]int, n int) map[int]int { m[n%3]++; return m },
				Done: func(m map[int]int, emit func(string)) {
					for k, n := range m {
						emit(fmt.Sprint(k, n))
					}
				},
			}
			return trident.PartitionAggregate(trident.By(numbers(b, "in", 1, 2, 3, 4, 5, 6, 7), rest), whole).Parallel(2)
		}, []string{"0 2", "1 3", "2 2"}},
		{"Aggregate", func(b *trident.Builder) strings {
			return show(trident.Aggregate(trident.GroupBy(numbers(b, "in", 1, 2, 3, 4, 5), rest), trident.Sum(self)))
		}, []string{"0 3", "1 5", "2 7"}},
		{"Aggregate without parts", func(b *trident.Builder) strings {
			return show(trident.Aggregate(trident.GroupBy(numbers(b, "in", 1, 2, 3, 4, 5), rest).WithoutParts(), trident.Sum(self)))
		}, []string{"0 3", "1 5", "2 7"}},
		{"Count without parts", func(b *trident.Builder) strings {
			return show(trident.Aggregate(trident.GroupBy(numbers(b, "in", 1, 2, 3, 4, 5), rest).WithoutParts(), trident.Count[int]()).Parallel(2))
		}, []string{"0 1", "1 2", "2 2"}},
		{"Count without parts that is no count any more", func(b *trident.Builder) strings {
			weights := trident.Count[int]()
			weights.Init = func(n int) int64 { return int64(n) }
			return show(trident.Aggregate(trident.GroupBy(numbers(b, "in", 1, 2, 3, 4, 5), rest).WithoutParts(), weights))
		}, []string{"0 3", "1 5", "2 7"}},
		{"Count, Min, Max", func(b *trident.Builder) strings {
			g := trident.GroupBy(numbers(b, "in", 1, 2, 3, 4, 5), odd)
			return trident.Merge(show(trident.Aggregate(g, trident.Count[int]())),
				show(trident.Aggregate(g, trident.Min(self))), show(trident.Aggregate(g, trident.Max(func(n int) float64 { return float64(n) / 2 }))))
		}, []string{"false 2", "false 2", "false 2", "true 1", "true 2.5", "true 3"}},
		{"GroupAll", func(b *trident.Builder) strings {
			return show(trident.Aggregate(numbers(b, "in", 1, 2, 3).Shuffle().GroupAll(), trident.Count[int]()).Parallel(2))
		}, []string{"{} 3"}},
		{"GroupAll without parts", func(b *trident.Builder) strings {
			return show(trident.Aggregate(numbers(b, "in", 1, 2, 3).Shuffle().GroupAll().WithoutParts(), trident.Count[int]()).Parallel(2))
		}, []string{"{} 3"}},
		{"GroupAll of nothing", func(b *trident.Builder) strings {
			return show(trident.Aggregate(numbers(b, "in", 1, 2, 3).Filter(func(n int) bool { return n > 5 }).GroupAll(), trident.Count[int]()))
		}, nil},
		{"Reduce", func(b *trident.Builder) strings {
			return show(trident.Reduce(trident.GroupBy(numbers(b, "in", 1, 2, 3, 4, 5), rest), trident.Reducer[int, int]{Zero: func() int { return 100 }, Reduce: plus}))
		}, []string{"0 103", "1 105", "2 107"}},
		{"AggregateGroups", func(b *trident.Builder) strings {
			return show(trident.AggregateGroups(trident.GroupBy(numbers(b, "in", 1, 2, 3, 4, 5), rest), all))
		}, []string{"0 [3]", "1 [1 4]", "2 [2 5]"}},
		{"Join", func(b *trident.Builder) strings {
			l, r := trident.GroupBy(numbers(b, "l", 1, 2, 4), rest), trident.GroupBy(numbers(b, "r", 3, 5, 7, 10), rest)
			return trident.Join(l, r, func(k, l, r int) string { return fmt.Sprint(k, ":", l, r) }).Parallel(2)
		}, []string{"1:1 10", "1:1 7", "1:4 10", "1:4 7", "2:2 5"}},
		{"Join with itself", func(b *trident.Builder) strings {
			g := trident.GroupBy(numbers(b, "l", 1, 4), rest)
			return trident.Join(g, g, func(k, l, r int) string { return fmt.Sprint(k, ":", l, r) })
		}, []string{"1:1 1", "1:1 4", "1:4 1", "1:4 4"}},
		{"LeftJoin", func(b *trident.Builder) strings {
			l, r := trident.GroupBy(numbers(b, "l", 1, 3), rest), trident.GroupBy(numbers(b, "r", 5, 7), rest)
			return trident.LeftJoin(l, r, func(k, l, r int, found bool) string { return fmt.Sprint(k, ":", l, r, found) })
		}, []string{"0:3 0 false", "1:1 7 true"}},
		{"PersistentAggregate of a count without parts", func(b *trident.Builder) strings {
			st := trident.StateOf[int, int64]("counts", memory.New(), trident.Opaque)
			return show(trident.PersistentAggregate(trident.GroupBy(numbers(b, "in", 1, 2, 3, 4), rest).WithoutParts(), st, trident.Count[int]()).Parallel(2))
		}, []string{"0 1", "1 2", "2 1"}},
		{"PersistentAggregate", func(b *trident.Builder) strings {
			st := trident.StateOf[int, int]("sums", memory.New(), trident.Opaque)
			return show(trident.PersistentAggregate(trident.GroupBy(numbers(b, "in", 1, 2, 3, 4), rest), st, trident.Sum(self)))
		}, []string{"0 3", "1 5", "2 2"}},
		{"PersistentReduce", func(b *trident.Builder) strings {
			st := trident.StateOf[int, int]("sums", memory.New(), trident.Opaque)
			return show(trident.PersistentReduce(trident.GroupBy(numbers(b, "in", 1, 2, 3, 4), rest), st, trident.Reducer[int, int]{Zero: func() int { return 7 }, Reduce: plus}))
		}, []string{"0 10", "1 12", "2 9"}},
		{"Update", func(b *trident.Builder) strings {
			st := trident.StateOf[int, string]("texts", memory.New(), trident.Opaque)
			return show(trident.Update(trident.GroupBy(numbers(b, "in", 1, 2, 4), rest), st, func(k int, old string, found bool, batch []int) string {
				slices.Sort(batch)
				return fmt.Sprint(k, old, found, batch)
			}))
		}, []string{"1 1false [1 4]", "2 2false [2]"}},
		{"StateQuery", func(b *trident.Builder) strings {
			st := trident.StateOf[int, int]("sums", memory.New(), trident.Opaque)
			in := numbers(b, "in", 1, 2, 4)
			trident.PersistentAggregate(trident.GroupBy(in, rest), st, trident.Sum(self))
			return trident.StateQuery(trident.GroupBy(in, rest), st, func(n, v int, found bool, emit func(string)) { emit(fmt.Sprint(n, v, found)) })
		}, []string{"1 0 false", "2 0 false", "4 0 false"}},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, outcome(t, false, tt.define)) })
	}
}

// What an operator returns as an error fails the batch.
func TestEachFails(t *testing.T) {
	no := errors.New("no")
	top := trident.New("test", func(b *trident.Builder) {
		trident.Each(numbers(b, "in", 1, 2), func(n int, emit func(int)) error { return no })
	})
	plan, err := top.Build(topology.Options{})
	require.NoError(t, err)
	d := newDrive(t, 1, top, topology.Options{})
	d.begin()
	k := d.tasks[plan.Components[1].First]
	k.bolt.Batch(1)
	d.tasks[0].emits = 1
	d.tasks[0].Put(0, &d.sources[0].messages[0].row)
	require.ErrorIs(t, k.bolt.Execute(k.links[0][0].parcel.Tuple(0), k.out), no)
}

// A query sees the state as all batches before its own have left it, whatever fails,
// also behind the state: 1, 2, 3, ... for the elements of one key, one in each batch.
func TestStateQuerySeesWhatWasBefore(t *testing.T) {
	for _, behind := range []bool{false, true} {
		for seed := range uint64(10) {
			back := memory.New()
			counts := trident.StateOf[string, int64]("counts", back, trident.Opaque)
			seen := trident.StateOf[int64, int64]("seen", back, trident.Opaque)
			top := trident.New("test", func(b *trident.Builder) {
				in := trident.From[string](b, "in", spout.Slice("a", "a", "a", "a", "a", "a", "a", "a"))
				g := trident.GroupBy(in, trident.Identity)
				ask := g
				changed := trident.PersistentAggregate(g, counts, trident.Count[string]())
				if behind {
					ask = trident.GroupBy(trident.Map(changed, func(p trident.Pair[string, int64]) string { return p.Key }), trident.Identity)
				}
				found := trident.StateQuery(ask, counts, func(_ string, n int64, _ bool, emit func(int64)) { emit(n) })
				trident.PersistentAggregate(trident.GroupBy(found, trident.Identity), seen, trident.Count[int64]())
			})
			d := newDrive(t, seed, top, topology.Options{})
			d.size, d.trouble = 1, 100
			d.run()
			require.Equal(t, map[int64]int64{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1}, contents(t, seen, "test"), "behind %v, seed %d", behind, seed)
		}
	}
}
