package cluster

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/tuple"
)

// Positions are a map that never changes, with R12.
func TestPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Positions
		model := map[[2]string]Position{}
		position := rapid.Custom(func(t *rapid.T) Position {
			return Position{
				rapid.SampledFrom([]string{"a", "b", "bb"}).Draw(t, "component"),
				fmt.Sprint(rapid.IntRange(0, 300).Draw(t, "split")),
				rapid.StringN(0, 3, -1).Draw(t, "position"),
				tuple.Incarnation(rapid.Uint64Range(0, 3).Draw(t, "life")),
			}
		})
		for range rapid.IntRange(0, 8).Draw(t, "commits") {
			batch := rapid.SliceOfN(position, 0, 200).Draw(t, "batch")
			old, after := 0, maps.Clone(model)
			for _, q := range batch {
				if had, ok := after[[2]string{q.Component, q.Split}]; ok && had.Life > q.Life {
					old++
				} else {
					after[[2]string{q.Component, q.Split}] = q
				}
			}
			was, wasAll := p, slices.Collect(p.All())
			next, got := p.with(slices.Clone(batch))
			require.Equal(t, old, got)
			require.Equal(t, wasAll, slices.Collect(was.All()), "it has changed")
			p, model = next, after
		}
		require.Equal(t, len(model), p.Len())
		all := slices.Collect(p.All())
		require.Len(t, all, len(model))
		require.True(t, slices.IsSortedFunc(all, Position.compare))
		parts := 0
		for _, c := range []string{"", "a", "b", "ba", "bb", "c"} {
			of := slices.Collect(p.Of(c))
			for _, q := range of {
				require.Equal(t, c, q.Component)
			}
			parts += len(of)
		}
		require.Equal(t, len(model), parts)
		for _, c := range p.chunks {
			require.NotEmpty(t, c)
			require.LessOrEqual(t, len(c), longest)
		}
		for at, want := range model {
			got, ok := p.At(at[0], at[1])
			require.True(t, ok)
			require.Equal(t, want, got)
		}
		_, ok := p.At("b", "none")
		require.False(t, ok)
	})
}

func many(n int) []Position {
	all := make([]Position, 0, n)
	for i := range n {
		all = append(all, Position{"lines", fmt.Sprintf("data/part-%06d.jsonl", i), fmt.Sprint(i * 4096), tuple.NewIncarnation(7, 1)})
	}
	return all
}

func BenchmarkCommit(b *testing.B) {
	all := many(100_000)
	p, _ := Positions{}.with(slices.Clone(all))
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("of=100000/positions=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			batch := make([]Position, n)
			for i := 0; b.Loop(); i++ {
				for k := range batch {
					batch[k] = all[(i+k*977)%len(all)]
				}
				p, _ = p.with(batch)
			}
		})
	}
}
