package trident_test

import (
	"compress/gzip"
	"io"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// contents returns what a state has, when everything is committed.
func contents[K comparable, V any](t *testing.T, st *trident.State[K, V], topology string) map[K]V {
	t.Helper()
	r, err := st.Open(t.Context(), topology, trident.Latest)
	require.NoError(t, err)
	all := map[K]V{}
	require.NoError(t, r.All(t.Context(), func(k K, v V) bool { all[k] = v; return true }))
	require.NoError(t, r.Close())
	return all
}

func bookLines(t *testing.T, lines int) []string {
	f, err := os.Open("../examples/wordcount/counting/moby_dick.txt.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	all := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	return all[:min(lines, len(all))]
}

func words(line string, emit func(string)) {
	for w := range strings.FieldsFuncSeq(line, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) {
		emit(strings.ToLower(w))
	}
}

func plainCount(lines []string) map[string]int64 {
	counts := map[string]int64{}
	for _, l := range lines {
		words(l, func(w string) { counts[w]++ })
	}
	return counts
}

func wordcount(lines []string, counts *trident.State[string, int64], source trident.Kind, parts bool) *topology.Topology {
	return trident.New("wordcount", func(b *trident.Builder) {
		text := trident.From[string](b, "lines", spout.Slice(lines...), source)
		byWord := trident.GroupBy(trident.FlatMap(text, words).Name("split").Parallel(2), trident.Identity)
		if !parts {
			byWord = byWord.WithoutParts()
		}
		trident.PersistentAggregate(byWord, counts, trident.Count[string]()).Parallel(3)
	})
}

func TestWordcountPlan(t *testing.T) {
	counts := trident.StateOf[string, int64]("counts", memory.New(), trident.Opaque)
	plan, err := wordcount(nil, counts, trident.Opaque, true).Build(topology.Options{})
	require.NoError(t, err)
	require.Equal(t, topology.ExactlyOnce, plan.Guarantee)
	var names []string
	for _, n := range plan.Components {
		names = append(names, n.Name)
	}
	require.Equal(t, []string{"lines", "split", "counts", "coordinator"}, names)
	split, state := plan.Components[1], plan.Components[2]
	require.Equal(t, 2, split.Parallel)
	require.Equal(t, []string{"key", "value"}, split.Streams[0].Fields)
	require.Equal(t, "default", split.Streams[0].Stream)
	require.Equal(t, topology.Fields, split.Outputs[0].Grouping)
	require.Equal(t, []int{0}, split.Outputs[0].Fields)
	require.Equal(t, 3, state.Parallel)
	require.True(t, state.Stateful)
	require.False(t, split.Stateful)
}

// The words of the book, whatever fails, are those that plain code counts.
func TestWordcount(t *testing.T) {
	lines := bookLines(t, 1500)
	want := plainCount(lines)
	for _, tt := range []struct {
		name          string
		source, state trident.Kind
		parts         bool
		trouble       int
	}{
		{"opaque", trident.Opaque, trident.Opaque, true, 0},
		{"opaque in trouble", trident.Opaque, trident.Opaque, true, 2000},
		{"without parts", trident.Opaque, trident.Opaque, false, 10000},
		{"transactional source", trident.Transactional, trident.Opaque, true, 2000},
		{"transactional", trident.Transactional, trident.Transactional, true, 2000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			counts := trident.StateOf[string, int64]("counts", memory.New(), tt.state).Cached(500)
			d := newDrive(t, 1, wordcount(lines, counts, tt.source, tt.parts), topology.Options{})
			d.size, d.trouble = 200, tt.trouble
			d.run()
			got := contents(t, counts, "wordcount")
			require.True(t, maps.Equal(want, got), "%d words, not %d", len(got), len(want))
			t.Logf("%d batches, %d rounds", d.done, d.rounds)
		})
	}
}
