package trident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

type hidden struct {
	Name string
	age  int
}

type twice struct {
	DelayMin int
	Delay    int `egret:"delay_min"`
}

// Each mistake is told by Build, in a sentence that says where and what to do.
func TestMistakes(t *testing.T) {
	sums := trident.StateOf[int, int]("sums", memory.New(), trident.Opaque)
	id := func(n int) int { return n }
	add := func(s *trident.Stream[int], st *trident.State[int, int]) *trident.Stream[trident.Pair[int, int]] {
		return trident.PersistentAggregate(trident.GroupBy(s, id), st, trident.Sum(id))
	}
	source := func(b *trident.Builder, k trident.Kind) *trident.Stream[int] {
		return trident.From[int](b, "in", spout.Slice(1), k)
	}
	for _, tt := range []struct {
		name   string
		define func(b *trident.Builder)
		err    error
		want   string
	}{
		{"a field that is not exported", func(b *trident.Builder) {
			trident.From[hidden](b, "in", spout.Slice(hidden{"", 1}.age))
		}, trident.ErrElement, "type trident_test.hidden, field age: it is not exported"},
		{"a type that is no value", func(b *trident.Builder) {
			trident.Map(source(b, trident.Opaque), func(int) map[string]int { return nil }).Shuffle().Peek(func(map[string]int) {})
		}, trident.ErrElement, "a map[string]int is no value of a tuple"},
		{"a field that is no value", func(b *trident.Builder) {
			trident.Map(source(b, trident.Opaque), func(int) struct{ A struct{ B []string } } { panic(0) }).Global().Filter(func(struct{ A struct{ B []string } }) bool { return true })
		}, trident.ErrElement, "field A.B: a []string is no value"},
		{"a mask of no field", func(b *trident.Builder) {
			b.Mask("card", "value")
			trident.By(source(b, trident.Opaque), id).Peek(func(int) {})
		}, topology.ErrField, `Mask: no stream has a field "card" (they have key, value)`},
		{"an empty mask", func(b *trident.Builder) { b.Mask(""); source(b, trident.Opaque) }, topology.ErrField, `Mask: no stream has a field ""`},
		{"a field twice", func(b *trident.Builder) {
			trident.From[twice](b, "in", spout.Slice(1))
		}, trident.ErrElement, `DelayMin and Delay are both the field "delay_min"`},
		{"a float key", func(b *trident.Builder) {
			trident.By(source(b, trident.Opaque), func(n int) float64 { return 1 }).Peek(func(int) {})
		}, trident.ErrElement, "type float64 cannot be a key"},
		{"a pointer key", func(b *trident.Builder) {
			trident.Aggregate(trident.GroupBy(source(b, trident.Opaque), func(n int) *int { return nil }), trident.Count[int]())
		}, trident.ErrElement, "Aggregate: type *int cannot be a key"},
		{"a value that says nothing", func(b *trident.Builder) {
			st := trident.StateOf[int, struct{}]("nothing", memory.New(), trident.Opaque)
			trident.Update(trident.GroupBy(source(b, trident.Opaque), id), st, func(int, struct{}, bool, []int) struct{} { return struct{}{} })
		}, trident.ErrElement, "state nothing: type struct {} has no fields"},
		{"opaque source, transactional state", func(b *trident.Builder) {
			add(source(b, trident.Opaque), trident.StateOf[int, int]("sums", memory.New(), trident.Transactional))
		}, trident.ErrUnsound, "state sums, which is transactional, with the source in, which is opaque"},
		{"non-transactional source", func(b *trident.Builder) {
			add(source(b, trident.NonTransactional), sums)
		}, trident.ErrUnsound, "messages of a batch that fails would be lost: make the source Opaque"},
		{"non-transactional state", func(b *trident.Builder) {
			add(source(b, trident.Transactional), trident.StateOf[int, int]("sums", memory.New(), trident.NonTransactional))
		}, trident.ErrUnsound, "what comes again would count again"},
		{"one of two sources", func(b *trident.Builder) {
			add(trident.Merge(source(b, trident.Transactional), trident.From[int](b, "other", spout.Slice(1))),
				trident.StateOf[int, int]("sums", memory.New(), trident.Transactional))
		}, trident.ErrUnsound, "the source other, which is opaque"},
		{"behind a state", func(b *trident.Builder) {
			changed := add(source(b, trident.Opaque), sums)
			trident.PersistentAggregate(trident.GroupBy(changed, func(p trident.Pair[int, int]) int { return p.Key }),
				trident.StateOf[int, int64]("more", memory.New(), trident.Transactional), trident.Count[trident.Pair[int, int]]())
		}, trident.ErrUnsound, "state more, which is transactional, with the source in"},
		{"parts by chance", func(b *trident.Builder) {
			sum := trident.Aggregator[int, int, int]{Init: func() int { return 0 }, Add: func(a, n int) int { return a + n }, Done: func(a int, emit func(int)) { emit(a) }}
			add(trident.PartitionAggregate(source(b, trident.Transactional), sum), trident.StateOf[int, int]("sums", memory.New(), trident.Transactional))
		}, trident.ErrUnsound, "behind PartitionAggregate of a shuffled stream"},
		{"query of a state that cannot be undone", func(b *trident.Builder) {
			in := source(b, trident.Transactional)
			st := trident.StateOf[int, int]("sums", memory.New(), trident.Transactional)
			add(in, st)
			trident.StateQuery(trident.GroupBy(in, id), st, func(_, _ int, _ bool, _ func(int)) {})
		}, trident.ErrUnsound, "StateQuery of state sums, which is transactional"},
		{"query of nothing", func(b *trident.Builder) {
			trident.StateQuery(trident.GroupBy(source(b, trident.Opaque), id), sums, func(_, _ int, _ bool, _ func(int)) {})
		}, trident.ErrState, "StateQuery of state sums: no operator of this topology changes it"},
		{"query of another kind", func(b *trident.Builder) {
			in := source(b, trident.Transactional)
			add(in, sums)
			trident.StateQuery(trident.GroupBy(in, id), trident.StateOf[int, int]("sums", memory.New(), trident.Transactional), func(_, _ int, _ bool, _ func(int)) {})
		}, trident.ErrState, "it is changed as one that is opaque and of int to int: use the same State for both"},
		{"query of other types", func(b *trident.Builder) {
			in := source(b, trident.Opaque)
			add(in, sums)
			trident.StateQuery(trident.GroupBy(in, id), trident.StateOf[int, string]("sums", memory.New(), trident.Opaque), func(int, string, bool, func(int)) {})
		}, trident.ErrState, "which is opaque and of int to string"},
		{"a state twice", func(b *trident.Builder) {
			in := source(b, trident.Opaque)
			add(in, sums)
			add(in, sums)
		}, trident.ErrState, "state sums: two operators change it"},
		{"a state without a place", func(b *trident.Builder) {
			add(source(b, trident.Opaque), trident.StateOf[int, int]("sums", nil, trident.Opaque))
		}, trident.ErrState, "state sums: its backend is nil"},
		{"a state of no kind", func(b *trident.Builder) {
			add(source(b, trident.Opaque), trident.StateOf[int, int]("sums", memory.New(), 7).Inexact())
		}, trident.ErrState, "state sums: there is no kind 7"},
		{"a source of no kind", func(b *trident.Builder) { source(b, 9).Peek(func(int) {}) }, trident.ErrState, "source in: give it one kind"},
		{"no cache", func(b *trident.Builder) { add(source(b, trident.Opaque), sums.Cached(1)) }, trident.ErrState, "it keeps 1 keys in memory"},
		{"two sizes", func(b *trident.Builder) {
			trident.Map(source(b, trident.Opaque), id).Parallel(2).Filter(odd).Parallel(3)
		}, trident.ErrParallel, "component map: its operators are given 2 tasks and 3"},
		{"a name of a source", func(b *trident.Builder) { source(b, trident.Opaque).Name("x") }, trident.ErrName, `Name("x"): a source or state has a name already`},
		{"a name behind a state", func(b *trident.Builder) {
			trident.Map(add(source(b, trident.Opaque), sums), func(p trident.Pair[int, int]) int { return p.Key }).Name("keys")
		}, trident.ErrName, `Name("keys"): the operator runs in the component of a state`},
		{"a name twice", func(b *trident.Builder) {
			trident.Map(source(b, trident.Opaque), id).Name("x").Shuffle().Filter(odd).Name("x")
		}, topology.ErrName, "the name is taken"},
		{"nothing to read", func(b *trident.Builder) {}, topology.ErrNoSpout, "has no spout"},
		{"a map of nothing", func(b *trident.Builder) { trident.Map[int, int](source(b, trident.Opaque), nil) }, trident.ErrFunction, "the function of Map is nil"},
		{"a flatmap of nothing", func(b *trident.Builder) { trident.FlatMap[int, int](source(b, trident.Opaque), nil) }, trident.ErrFunction, "the function of FlatMap is nil"},
		{"each of nothing", func(b *trident.Builder) { trident.Each[int, int](source(b, trident.Opaque), nil) }, trident.ErrFunction, "the function of Each is nil"},
		{"a filter of nothing", func(b *trident.Builder) { source(b, trident.Opaque).Filter(nil) }, trident.ErrFunction, "the function of Filter is nil"},
		{"a peek of nothing", func(b *trident.Builder) { source(b, trident.Opaque).Peek(nil) }, trident.ErrFunction, "the function of Peek is nil"},
		{"by no key", func(b *trident.Builder) { trident.By[int, int](source(b, trident.Opaque), nil).Peek(func(int) {}) }, trident.ErrFunction, "the key of By is nil"},
		{"groups by no key", func(b *trident.Builder) {
			trident.Aggregate(trident.GroupBy[int, int](source(b, trident.Opaque), nil), trident.Count[int]())
		}, trident.ErrFunction, "the key of GroupBy is nil"},
		{"a combiner that makes nothing", func(b *trident.Builder) {
			trident.Aggregate(trident.GroupBy(source(b, trident.Opaque), id), trident.Sum[int, int](nil))
		}, trident.ErrFunction, "Init of the Combiner of Aggregate is nil"},
		{"a combiner that does not combine", func(b *trident.Builder) {
			trident.PersistentAggregate(trident.GroupBy(source(b, trident.Opaque), id), sums, trident.Combiner[int, int]{Init: id})
		}, trident.ErrFunction, "Combine of the Combiner of state sums is nil"},
		{"a reducer without a zero", func(b *trident.Builder) {
			trident.PersistentReduce(trident.GroupBy(source(b, trident.Opaque), id), sums, trident.Reducer[int, int]{Reduce: func(a, b int) int { return a + b }})
		}, trident.ErrFunction, "Zero of the Reducer of state sums is nil"},
		{"a reducer that does not reduce", func(b *trident.Builder) {
			trident.Reduce(trident.GroupBy(source(b, trident.Opaque), id), trident.Reducer[int, int]{Zero: func() int { return 0 }})
		}, trident.ErrFunction, "Reduce of the Reducer of Reduce is nil"},
		{"an aggregator that says nothing", func(b *trident.Builder) {
			trident.AggregateGroups(trident.GroupBy(source(b, trident.Opaque), id), trident.Aggregator[int, int, int]{Init: func() int { return 0 }, Add: func(a, b int) int { return a + b }})
		}, trident.ErrFunction, "Done of the Aggregator of AggregateGroups is nil"},
		{"an aggregator that adds nothing", func(b *trident.Builder) {
			trident.PartitionAggregate(source(b, trident.Opaque), trident.Aggregator[int, int, int]{Init: func() int { return 0 }, Done: func(int, func(int)) {}})
		}, trident.ErrFunction, "Add of the Aggregator of PartitionAggregate is nil"},
		{"an update of nothing", func(b *trident.Builder) {
			trident.Update(trident.GroupBy(source(b, trident.Opaque), id), sums, nil)
		}, trident.ErrFunction, "the function of Update of state sums is nil"},
		{"a query of no function", func(b *trident.Builder) {
			in := source(b, trident.Opaque)
			add(in, sums)
			trident.StateQuery[int, int, int, int](trident.GroupBy(in, id), sums, nil)
		}, trident.ErrFunction, "the function of StateQuery of state sums is nil"},
		{"a join of nothing", func(b *trident.Builder) {
			in := source(b, trident.Opaque)
			trident.Join[int, int, int, int](trident.GroupBy(in, id), trident.GroupBy(in, id), nil)
		}, trident.ErrFunction, "the function of Join is nil"},
		{"a left join of nothing", func(b *trident.Builder) {
			in := source(b, trident.Opaque)
			trident.LeftJoin[int, int, int, int](trident.GroupBy(in, id), trident.GroupBy(in, id), nil)
		}, trident.ErrFunction, "the function of LeftJoin is nil"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := trident.New("test", tt.define).Build(topology.Options{})
			require.ErrorIs(t, err, tt.err)
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, 1, strings.Count(err.Error(), "\n")+1, "one mistake is told once:\n%v", err)
		})
	}
	t.Run("two definitions", func(t *testing.T) {
		var other *trident.Stream[int]
		_, err := trident.New("a", func(b *trident.Builder) { other = source(b, trident.Opaque) }).Build(topology.Options{})
		require.NoError(t, err)
		_, err = trident.New("b", func(b *trident.Builder) { trident.Merge(source(b, trident.Opaque), other) }).Build(topology.Options{})
		require.ErrorIs(t, err, trident.ErrStream)
		_, err = trident.New("b", func(b *trident.Builder) {
			trident.Join(trident.GroupBy(source(b, trident.Opaque), id), trident.GroupBy(other, id), func(_, _, _ int) int { return 0 })
		}).Build(topology.Options{})
		require.ErrorIs(t, err, trident.ErrStream)
	})
	t.Run("no definition", func(t *testing.T) {
		_, err := trident.New("b", nil).Build(topology.Options{})
		require.ErrorContains(t, err, "nil")
	})
	t.Run("inexact", func(t *testing.T) {
		for _, state := range []trident.Kind{trident.Opaque, trident.Transactional, trident.NonTransactional} {
			for _, k := range []trident.Kind{trident.Opaque, trident.Transactional, trident.NonTransactional} {
				_, err := trident.New("b", func(b *trident.Builder) {
					add(source(b, k), trident.StateOf[int, int]("sums", memory.New(), state).Inexact())
				}).Build(topology.Options{})
				require.NoError(t, err)
			}
		}
	})
}

// Parameters are the topology's.
func TestParameters(t *testing.T) {
	type given struct {
		s  string
		i  int
		f  float64
		b  bool
		d  time.Duration
		ss []string
	}
	var got given
	top := trident.New("test", func(b *trident.Builder) {
		got = given{b.String("s", "x", "a string"), b.Int("i", 1, "an int"), b.Float("f", 1.5, "a float"),
			b.Bool("b", false, "a bool"), b.Duration("d", time.Second, "a duration"), b.Strings("ss", nil, "strings")}
		trident.From[int](b, "in", spout.Slice(1)).Peek(func(int) {})
	})
	_, err := top.Build(topology.Options{Params: map[string][]string{"s": {"y"}, "i": {"2"}, "f": {"2.5"}, "b": {"true"}, "d": {"2s"}, "ss": {"p", "q"}}})
	require.NoError(t, err)
	require.Equal(t, given{"y", 2, 2.5, true, 2 * time.Second, []string{"p", "q"}}, got)
	params, err := top.Params()
	require.NoError(t, err)
	require.Len(t, params, 6)
}

// The names of components and streams, and who gets what.
func TestPlans(t *testing.T) {
	id := func(n int) int { return n }
	st := func(name string) *trident.State[int, int64] {
		return trident.StateOf[int, int64](name, memory.New(), trident.Opaque)
	}
	for _, tt := range []struct {
		name   string
		define func(b *trident.Builder)
		want   string
	}{
		{"fused until elements leave", func(b *trident.Builder) {
			in := trident.From[int](b, "in", spout.Slice(1))
			trident.Map(trident.Map(in, id).Name("one").Filter(odd).Name("two").Parallel(2), id).Shuffle().Peek(func(int) {}).Parallel(3)
		}, "in: default(value) local-or-shuffle to one-two\none-two x2: default(value) shuffle to peek\npeek x3:\n"},
		{"directly behind a source", func(b *trident.Builder) {
			trident.From[int](b, "in", spout.Slice(1)).Parallel(2).Broadcast().Peek(func(int) {})
		}, "in x2: default(value) all to peek\npeek:\n"},
		{"one component for two readers", func(b *trident.Builder) {
			in := trident.From[int](b, "in", spout.Slice(1))
			trident.Map(in, id)
			in.Filter(odd)
		}, "in: default(value) local-or-shuffle to map\nmap:\n"},
		{"two sources in one component", func(b *trident.Builder) {
			m := trident.Map(trident.From[int](b, "a", spout.Slice(1)), id)
			trident.Merge(m, trident.From[int](b, "b", spout.Slice(1)).Filter(odd)).Global().Peek(func(int) {})
		}, "a: default(value) local-or-shuffle to map\nb: default(value) local-or-shuffle to map\nmap: default(value) global to peek\npeek:\n"},
		{"two sizes stay apart", func(b *trident.Builder) {
			m := trident.Map(trident.From[int](b, "a", spout.Slice(1)), id).Parallel(2)
			trident.Merge(m, trident.From[int](b, "b", spout.Slice(1)).Filter(odd).Parallel(3))
		}, "a: default(value) local-or-shuffle to map\nb: default(value) local-or-shuffle to filter\n" +
			"map x2: default(value) local-or-shuffle to merge\nfilter x3: default(value) local-or-shuffle to merge\nmerge:\n"},
		{"states", func(b *trident.Builder) {
			in := trident.From[int](b, "in", spout.Slice(1))
			g := trident.GroupBy(in, id)
			changed := trident.PersistentAggregate(g, st("counts"), trident.Count[int]()).Parallel(2)
			trident.PersistentAggregate(changed.GroupAll(), trident.StateOf[struct{}, int64]("all", memory.New(), trident.Opaque), trident.Count[trident.Pair[int, int64]]())
			trident.StateQuery(g, st("counts"), func(n int, _ int64, _ bool, _ func(int)) {})
		}, "in: default(value) local-or-shuffle to group\n" +
			"group: counts(key,value) by key to counts; counts-query(key,value) by key to counts-query\n" +
			"counts x2: default(value) global to all\nall:\ncounts-query:\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // it is the same each time
				plan, err := trident.New("test", tt.define).Build(topology.Options{})
				require.NoError(t, err)
				require.Equal(t, tt.want, planText(plan))
			}
		})
	}
}

func planText(p *topology.Plan) string {
	var s strings.Builder
	for _, n := range p.Components {
		if n.Coordinates {
			continue
		}
		s.WriteString(n.Name)
		if n.Parallel > 1 {
			s.WriteString(" x" + string(rune('0'+n.Parallel)))
		}
		s.WriteString(":")
		for i, r := range n.Outputs {
			if i > 0 {
				s.WriteString(";")
			}
			how := r.Grouping.String()
			if r.Grouping == topology.Fields {
				how = "by"
				for _, f := range r.Fields {
					how += " " + n.Streams[r.Stream].Fields[f]
				}
			}
			s.WriteString(" " + n.Streams[r.Stream].Stream + "(" + strings.Join(n.Streams[r.Stream].Fields, ",") + ") " + how + " to " + p.Components[r.To].Name)
		}
		s.WriteString("\n")
	}
	return s.String()
}
