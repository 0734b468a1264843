package tuple

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRowSet(t *testing.T) {
	var r Row
	for _, tt := range accepted() {
		r.Set(schemaOf("x"), []any{tt.in})
		require.Equal(t, []Kind{tt.kind}, r.Kinds, "%#v", tt.in)
		require.Equal(t, tt.out, Value{r.Cells[0], r.Kinds[0]}.Any())
	}
	r.Set(schemaOf("a", "b", "c", "d"), []any{"whale", 1, []byte("ab"), ""})
	require.Equal(t, 7, r.Text)
	r.Set(schemaOf("a"), []any{"é"})
	require.Equal(t, 2, r.Text, "text of the row before")
	require.Len(t, r.Cells, 1)
	r.Set(schemaOf(), nil)
	require.Zero(t, r.Text)
	require.Empty(t, r.Cells)

	// A row that somebody made by hand has room for cells but not for kinds.
	r = Row{Cells: make([]Cell, 0, 8)}
	r.Set(schemaOf("a", "b"), []any{1, "b"})
	require.Equal(t, []Kind{KindInt64, KindString}, r.Kinds)
}

func TestRowSetRefuses(t *testing.T) {
	var r Row
	for _, tt := range refused {
		require.Equal(t, `field "b" of stream split.default: `+tt.want,
			misuseOf(t, func() { r.Set(schemaOf("a", "b", "c"), []any{1, tt.in, 2}) }))
	}
	for _, tt := range []struct {
		schema *Schema
		values []any
		want   string
	}{
		{schemaOf("a", "b"), []any{1}, `stream split.default has 2 fields ("a", "b"), but 1 values were emitted`},
		{schemaOf("a"), []any{1, 2, 3}, `stream split.default has 1 fields ("a"), but 3 values were emitted`},
		{schemaOf("a"), nil, `stream split.default has 1 fields ("a"), but 0 values were emitted`},
		{schemaOf(), []any{1}, `stream split.default has 0 fields (none), but 1 values were emitted`},
	} {
		require.Equal(t, tt.want, misuseOf(t, func() { r.Set(tt.schema, tt.values) }))
	}
	r.Set(schemaOf("a"), []any{"good"})
	require.Equal(t, 4, r.Text, "a row is good again after a mistake")
}

var number, letter = 1234567, "whale" // variables: constants never need a box

// The boxes of the values must stay on the stack of whoever calls Set.
func TestRowSetAllocatesNothing(t *testing.T) {
	var r Row
	two, four := schemaOf("word", "count"), schemaOf("a", "b", "c", "d")
	r.Set(four, []any{nil, nil, nil, nil}) // the row's own cells
	require.Zero(t, testing.AllocsPerRun(100, func() { r.Set(two, []any{letter, number}) }))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r.Set(four, []any{float64(number) / 3, time.Duration(number), time.Unix(int64(number), 0), uint32(number)})
	}))
	text := []byte(letter)
	require.Equal(t, 1.0, testing.AllocsPerRun(100, func() { r.Set(two, []any{text, number}) }), "the copy of the bytes")
}

func BenchmarkRowSet(b *testing.B) {
	b.Run("fields=2", func(b *testing.B) {
		var r Row
		s := schemaOf("word", "count")
		b.ReportAllocs()
		for b.Loop() {
			r.Set(s, []any{letter, number})
		}
	})
}
