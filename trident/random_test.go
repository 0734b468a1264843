package trident_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// A program is a definition of random operators on numbers, and beside it the same on a
// slice. Only what does not depend on how batches are cut is in it.
type program struct {
	names []string
	steps []func(b *trident.Builder, s *trident.Stream[int64]) *trident.Stream[int64]
	plain []func([]int64) []int64
}

func (p *program) add(name string, step func(*trident.Builder, *trident.Stream[int64]) *trident.Stream[int64], plain func([]int64) []int64) {
	p.names, p.steps, p.plain = append(p.names, name), append(p.steps, step), append(p.plain, plain)
}

func each(f func(n int64, emit func(int64))) func([]int64) []int64 {
	return func(in []int64) (out []int64) {
		for _, n := range in {
			f(n, func(n int64) { out = append(out, n) })
		}
		return out
	}
}

func same(in []int64) []int64 { return in }

func drawProgram(t *rapid.T) *program {
	p := &program{}
	mod := rapid.Int64Range(2, 6)
	tasks := rapid.IntRange(1, 3)
	for range rapid.IntRange(0, 6).Draw(t, "steps") {
		k, n := mod.Draw(t, "k"), tasks.Draw(t, "tasks")
		switch what := rapid.IntRange(0, 8).Draw(t, "what"); what {
		case 0:
			f := func(v int64) int64 { return v*k + 1 }
			p.add("map", func(_ *trident.Builder, s *trident.Stream[int64]) *trident.Stream[int64] { return trident.Map(s, f) },
				each(func(v int64, emit func(int64)) { emit(f(v)) }))
		case 1:
			f := func(v int64) bool { return v%k != 0 }
			p.add("filter", func(_ *trident.Builder, s *trident.Stream[int64]) *trident.Stream[int64] { return s.Filter(f) },
				each(func(v int64, emit func(int64)) {
					if f(v) {
						emit(v)
					}
				}))
		case 2:
			f := func(v int64, emit func(int64)) {
				for i := range v % k {
					emit(v + i)
				}
			}
			p.add("flatmap", func(_ *trident.Builder, s *trident.Stream[int64]) *trident.Stream[int64] {
				return trident.FlatMap(s, f)
			}, each(f))
		case 3:
			p.add("shuffle", func(_ *trident.Builder, s *trident.Stream[int64]) *trident.Stream[int64] {
				return s.Shuffle().Parallel(n)
			}, same)
		case 4:
			p.add("by", func(_ *trident.Builder, s *trident.Stream[int64]) *trident.Stream[int64] {
				return trident.By(s, func(v int64) int64 { return v % k }).Parallel(n)
			}, same)
		case 5:
			p.add("broadcast", func(_ *trident.Builder, s *trident.Stream[int64]) *trident.Stream[int64] {
				return s.Broadcast().Parallel(n)
			}, each(func(v int64, emit func(int64)) {
				for range n {
					emit(v)
				}
			}))
		case 6:
			p.add("merge", func(_ *trident.Builder, s *trident.Stream[int64]) *trident.Stream[int64] {
				return trident.Merge(s, trident.Map(s.Shuffle(), func(v int64) int64 { return v + k }).Parallel(n))
			}, each(func(v int64, emit func(int64)) { emit(v); emit(v + k) }))
		case 7:
			p.add("diamond", func(_ *trident.Builder, s *trident.Stream[int64]) *trident.Stream[int64] {
				a := trident.Map(s, func(v int64) int64 { return v - k })
				return trident.Merge(a, s.Filter(func(v int64) bool { return v%2 == 0 }), s.Global())
			}, each(func(v int64, emit func(int64)) {
				emit(v - k)
				if v%2 == 0 {
					emit(v)
				}
				emit(v)
			}))
		case 8:
			// Another source.
			more := rapid.SliceOfN(rapid.Int64Range(0, 100), 0, 10).Draw(t, "more")
			name := string(rune('a' + len(p.steps)))
			p.add("source", func(b *trident.Builder, s *trident.Stream[int64]) *trident.Stream[int64] {
				return trident.Merge(s, trident.From[int64](b, name, spout.Slice(more...)))
			}, func(in []int64) []int64 { return append(append([]int64(nil), in...), more...) })
		}
	}
	return p
}

// The result of a program is that of the same on a slice, however batches are cut and
// interleaved, whatever is thrown away and comes again.
func TestRandomPrograms(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		in := rapid.SliceOfN(rapid.Int64Range(0, 1000), 0, 60).Draw(r, "in")
		p := drawProgram(r)
		seed := rapid.Uint64().Draw(r, "seed")
		parts, tasks, k := rapid.Bool().Draw(r, "parts"), rapid.IntRange(1, 4).Draw(r, "tasks"), rapid.Int64Range(1, 20).Draw(r, "k")
		back := memory.New()
		sums := trident.StateOf[int64, int64]("sums", back, trident.Opaque).Cached(rapid.IntRange(2, 30).Draw(r, "cached"))
		counts := trident.StateOf[int64, int64]("counts", back, trident.Opaque)
		most := trident.StateOf[int64, int64]("most", back, trident.Opaque)
		whole := trident.StateOf[struct{}, int64]("whole", back, trident.Opaque)
		top := trident.New("test", func(b *trident.Builder) {
			s := trident.From[int64](b, "in", spout.Slice(in...))
			for _, step := range p.steps {
				s = step(b, s)
			}
			g := trident.GroupBy(s, func(v int64) int64 { return v % k })
			if !parts {
				g = g.WithoutParts()
			}
			trident.PersistentAggregate(g, sums, trident.Sum(func(v int64) int64 { return v })).Parallel(tasks)
			changed := trident.PersistentReduce(g, counts, trident.Reducer[int64, int64]{
				Zero: func() int64 { return 0 }, Reduce: func(n, _ int64) int64 { return n + 1 },
			}).Parallel(tasks)
			// A state behind a state: the greatest count by the last digit.
			byDigit := trident.GroupBy(changed, func(p trident.Pair[int64, int64]) int64 { return p.Key % 3 })
			trident.PersistentAggregate(byDigit, most, trident.Max(func(p trident.Pair[int64, int64]) int64 { return p.Value })).Parallel(2)
			// Sums of batches, added.
			batches := trident.Aggregate(g, trident.Sum(func(v int64) int64 { return v }))
			trident.PersistentAggregate(batches.GroupAll(), whole, trident.Sum(func(p trident.Pair[int64, int64]) int64 { return p.Value })).Parallel(tasks)
		})
		wantSums, wantCounts, wantMost, wantWhole := map[int64]int64{}, map[int64]int64{}, map[int64]int64{}, map[struct{}]int64{}
		out := in
		for _, f := range p.plain {
			out = f(out)
		}
		if len(out) > 3000 {
			r.Skip("too many")
		}
		for _, v := range out {
			wantSums[v%k] += v
			wantCounts[v%k]++
			wantWhole[struct{}{}] += v
		}
		for key, n := range wantCounts {
			wantMost[key%3] = max(wantMost[key%3], n)
		}
		d := newDrive(t, seed, top, topology.Options{})
		d.size, d.trouble = 15, rapid.SampledFrom([]int{0, 300, 1000}).Draw(r, "trouble")
		d.run()
		require.Equal(r, wantSums, contents(t, sums, "test"), "%v", p.names)
		require.Equal(r, wantCounts, contents(t, counts, "test"), "%v", p.names)
		require.Equal(r, wantMost, contents(t, most, "test"), "%v", p.names)
		require.Equal(r, wantWhole, contents(t, whole, "test"), "%v", p.names)
	})
}
