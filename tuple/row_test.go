package tuple

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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
		{schemaOf("a", "b"), []any{1}, `stream split.default has 2 fields ("a", "b"), but got 1 value`},
		{schemaOf("a"), []any{1, 2, 3}, `stream split.default has 1 field ("a"), but got 3 values`},
		{schemaOf("a"), nil, `stream split.default has 1 field ("a"), but got 0 values`},
		{schemaOf(), []any{1}, `stream split.default has 0 fields (none), but got 1 value`},
	} {
		require.Equal(t, tt.want, misuseOf(t, func() { r.Set(tt.schema, tt.values) }))
	}
	r.Set(schemaOf("a"), []any{"good"})
	require.Equal(t, 4, r.Text, "a row is good again after a mistake")
}

// The two ways to fill a row must agree, and rows are the same exactly if their
// kinds are, of which there may be more than a shape holds.
func TestRowSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []Kind {
			ks := rapid.SliceOfN(rapid.Uint8Range(0, uint8(kinds)-1), 0, 2*mostShape).Draw(t, name)
			out := make([]Kind, len(ks))
			for i, k := range ks {
				out[i] = Kind(k)
			}
			return out
		}
		fill := func(ks []Kind) (a, b Row) {
			values, boxes := make([]Value, len(ks)), make([]any, len(ks))
			for i, k := range ks {
				boxes[i] = drawValue(t, k)
				values[i] = mustValue(boxes[i])
			}
			s := fieldsOf(len(ks))
			a.Set(s, boxes)
			b.SetValues(s, values)
			require.Equal(t, a.Kinds, b.Kinds)
			require.Equal(t, a.Text, b.Text)
			return a, b
		}
		one, two := draw("kinds"), draw("other kinds")
		if rapid.Bool().Draw(t, "change one") && len(one) > 0 {
			two = slices.Clone(one)
			two[rapid.IntRange(0, len(two)-1).Draw(t, "which")] = Kind(rapid.Uint8Range(0, uint8(kinds)-1).Draw(t, "kind"))
		}
		a, b := fill(one)
		c, d := fill(two)
		e := RowOf(one)
		require.True(t, a.Same(&b) && b.Same(&a) && a.Same(&e))
		want := slices.Equal(one, two)
		require.Equal(t, []bool{want, want, want}, []bool{a.Same(&c), b.Same(&d), e.Same(&c)})
		var p Parcel
		p.Begin(one, 1)
		require.Equal(t, []bool{true, want}, []bool{p.Fits(&a), p.Fits(&c)})
	})
}

func TestRowSetValues(t *testing.T) {
	var r Row
	r.SetValues(schemaOf("a", "b", "c"), []Value{mustValue("whale"), mustValue(1), mustValue([]byte("ab"))})
	require.Equal(t, 7, r.Text)
	require.Equal(t, []Kind{KindString, KindInt64, KindBytes}, r.Kinds)
	r.SetValues(schemaOf("a"), []Value{{}})
	require.Equal(t, []Kind{KindNil}, r.Kinds)
	for n := range mostShape + 3 {
		var o Row
		o.Set(fieldsOf(n), make([]any, n))
		r.SetValues(fieldsOf(n), make([]Value, n))
		require.True(t, r.Same(&o), "%d fields", n)
	}
	require.Equal(t, `stream split.default has 1 field ("a"), but got 2 values`,
		misuseOf(t, func() { r.SetValues(schemaOf("a"), make([]Value, 2)) }))
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
