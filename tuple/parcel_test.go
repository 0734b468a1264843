package tuple

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestSchemaIndex(t *testing.T) {
	s := schemaOf("word", "count")
	require.Equal(t, []int{0, 1, -1, -1}, []int{s.Index("word"), s.Index("count"), s.Index("Word"), s.Index("")})
}

func TestTupleGetters(t *testing.T) {
	p := full()
	in := p.Tuple(0)
	require.Equal(t, 10, in.Len())
	require.Equal(t, p.Schema.Fields, in.Fields())
	require.Equal(t, []string{"split", "default"}, []string{in.Component(), in.Stream()})
	require.Equal(t, []any{true, int64(-1 << 63), uint64(1<<64 - 1), "whale", []byte{0, 0xff}, time.Unix(minSecond+1, 0).UTC(), time.Duration(-1 << 63)},
		[]any{in.Bool("bool"), in.Int64("int64"), in.Uint64("uint64"), in.String("string"), in.Bytes("bytes"), in.Time("time"), in.Duration("duration")})
	require.Equal(t, 0.5, p.Tuple(1).Float64("float64"))
	require.Equal(t, "é", p.Tuple(2).String("string"))
	require.Equal(t, point{1, -2}, in.Value("any").Any())
	require.True(t, in.Value("nil").IsNil())
	require.Equal(t, label(""), p.Tuple(1).At(9).Any())

	for i := range p.Len() {
		values := p.Tuple(i).AppendValues([]Value{mustValue("kept")})
		require.Equal(t, "kept", values[0].String())
		require.Len(t, values[1:], 10)
		for f, name := range p.Schema.Fields {
			require.Equal(t, values[1+f], p.Tuple(i).At(f))
			require.Equal(t, values[1+f], p.Tuple(i).Value(name))
			require.Equal(t, values[1+f], Value{p.Row(i)[f], p.Kinds[f]})
		}
	}
}

func TestTupleMisuse(t *testing.T) {
	in := parcelOf(schemaOf("word", "count"), []any{"the", 1}).Tuple(0)
	empty := parcelOf(schemaOf(), nil).Tuple(0)
	var none Tuple
	for want, read := range map[string]func(){
		`stream split.default has no field "wrod" (it has "word", "count")`: func() { in.String("wrod") },
		`stream split.default has no field "" (it has "word", "count")`:     func() { in.Value("") },
		`stream split.default has no field "word" (it has none)`:            func() { empty.Int64("word") },
		`field "count" of stream split.default is int64, not string`:        func() { in.String("count") },
		`field "word" of stream split.default is string, not int64`:         func() { in.Int64("word") },
		`field "word" of stream split.default is string, not uint64`:        func() { in.Uint64("word") },
		`field "word" of stream split.default is string, not bool`:          func() { in.Bool("word") },
		`field "word" of stream split.default is string, not float64`:       func() { in.Float64("word") },
		`field "word" of stream split.default is string, not []byte`:        func() { in.Bytes("word") },
		`field "word" of stream split.default is string, not time.Time`:     func() { in.Time("word") },
		`field "word" of stream split.default is string, not time.Duration`: func() { in.Duration("word") },
		`stream split.default has no position 2 (it has 2 fields)`:          func() { in.At(2) },
		`stream split.default has no position -1 (it has 2 fields)`:         func() { in.At(-1) },
		`stream split.default has no position 0 (it has 0 fields)`:          func() { empty.At(0) },
		`tuple used after Execute has returned: copy what you keep`:         func() { none.Len() },
	} {
		require.Equal(t, want, misuseOf(t, read))
	}
}

// A tuple that a bolt has kept must not read the values of a later one.
func TestTupleAfterReset(t *testing.T) {
	s := schemaOf("word", "count")
	p := parcelOf(s, []any{"the", 1})
	in := p.Tuple(0)
	word := in.String("word")
	p.Reset()
	var r Row
	r.Set(s, []any{"whale", 2})
	p.Begin(r.Kinds, 1)
	p.Append(&r)
	require.Equal(t, "whale", p.Tuple(0).String("word"))
	require.Equal(t, "the", word, "a string that was read is an ordinary string")
	for _, read := range []func(){
		func() { in.String("word") }, func() { in.Value("word") }, func() { in.At(0) }, func() { in.Len() }, func() { in.Fields() },
		func() { in.Component() }, func() { in.Stream() }, func() { in.AppendValues(nil) },
	} {
		require.Equal(t, "tuple used after Execute has returned: copy what you keep", misuseOf(t, read))
	}
}

func TestParcelFits(t *testing.T) {
	p := parcelOf(schemaOf("word", "count"), []any{"the", 1})
	require.True(t, p.Fits(kindsRow(KindString, KindInt64)))
	for _, ks := range [][]Kind{nil, {KindString}, {KindString, KindUint64}, {KindInt64, KindString}, {KindNil, KindInt64}, {KindAny, KindInt64}, {KindString, KindInt64, KindNil}} {
		require.False(t, p.Fits(kindsRow(ks...)), "%v", ks)
	}
	require.True(t, new(Parcel).Fits(kindsRow()))

	// More kinds than a shape has room for, and the empty row beside them.
	wide := make([]Kind, mostShape+1)
	p.Reset()
	p.Begin(wide, 1)
	require.True(t, p.Fits(kindsRow(wide...)))
	require.False(t, p.Fits(kindsRow(wide[1:]...)))
	require.False(t, p.Fits(kindsRow()))
	other := slices.Clone(wide)
	other[0] = KindAny
	require.False(t, p.Fits(kindsRow(other...)))

	p.Begin([]Kind{KindString}, 1)
	p.Reset()
	require.False(t, p.Fits(kindsRow(KindString)), "a parcel that was not begun again has no kinds")
}

func TestParcelIsUsedAgain(t *testing.T) {
	s := schemaOf("word", "count")
	var r Row
	p := &Parcel{Schema: s}
	fill := func(n int) {
		p.Reset()
		require.Zero(t, p.Len()+p.Text()+len(p.Kinds)+len(p.Cells)+len(p.Slots)+len(p.Refs))
		r.Set(s, []any{letter, number})
		p.Begin(r.Kinds, n)
		p.Slots = append(p.Slots, Slot{Count: uint32(n)})
		for range n {
			p.Append(&r)
		}
		p.AppendRefs(0, 7, n)
		require.Equal(t, n, p.Len())
		require.Equal(t, n*len(letter), p.Text())
		require.Len(t, p.Cells, 2*n)
		require.Len(t, p.Refs, n)
		require.Equal(t, letter, p.Tuple(n-1).String("word"))
	}
	fill(10)
	first := &p.Cells[0]
	fill(3)
	fill(10)
	require.Same(t, first, &p.Cells[0])
	fill(11) // more than there was room for
	require.NotSame(t, first, &p.Cells[0])

	require.Zero(t, testing.AllocsPerRun(100, func() {
		p.Reset()
		r.Set(s, []any{letter, number})
		p.Begin(r.Kinds, 10)
		for range 10 {
			p.Append(&r)
		}
		p.AppendRefs(0, 0, 10)
	}))
}

// Rows that are put in together are there as if they had come one by one.
func TestParcelAppendRun(t *testing.T) {
	p := parcelOf(schemaOf("a", "b"), []any{"one", 1}, []any{"two", 2}, []any{"", 3})
	q := &Parcel{Schema: p.Schema}
	q.Begin(p.Kinds, 4)
	r := RowOf(p.Kinds)
	r.Cells = p.Row(2)
	q.Append(&r)
	q.AppendRun(p.Cells, 3)
	require.Equal(t, 4, q.Len())
	require.Equal(t, 6, q.Text())
	for i, want := range []int64{3, 1, 2, 3} {
		require.Equal(t, want, q.Tuple(i).Int64("b"))
	}
	q.AppendRefs(2, 5, 3)
	require.Equal(t, []Ref{{2, 5}, {2, 6}, {2, 7}}, q.Refs)
}

func TestTextOf(t *testing.T) {
	p := full()
	require.Equal(t, len("whale")+2+len("é")+len("é"), TextOf(p.Cells, p.Kinds))
	require.Equal(t, p.Text(), TextOf(p.Cells, p.Kinds))
	require.Equal(t, 7, TextOf(p.Row(0), p.Kinds))
	require.Zero(t, TextOf(nil, nil))
}

func TestCloneRow(t *testing.T) {
	p := full()
	for i := range p.Len() {
		clone := CloneRow(p.Row(i), p.Kinds)
		require.Len(t, clone, len(p.Kinds))
		for f, v := range clone {
			k, c := p.Kinds[f], p.Row(i)[f]
			require.Equal(t, k, v.Kind())
			if k != KindFloat64 { // one is a NaN
				require.Equal(t, Value{c, k}.Any(), v.Any())
			}
			if (k == KindString || k == KindBytes) && c.num > 0 {
				require.NotEqual(t, c.ptr, v.cell.ptr, "the text is shared with the parcel")
			}
		}
	}
}

// A parcel waits in a pool for its next use, perhaps for long.
func TestParcelLetsGo(t *testing.T) {
	held := func(p *Parcel) (n int) {
		for _, c := range p.Cells[:cap(p.Cells)] {
			if c.ptr != unsafe.Pointer(nil) {
				n++
			}
		}
		return n
	}
	big := parcelOf(schemaOf("s"), []any{string(make([]byte, 64<<10))}, []any{"x"})
	big.Reset()
	require.Zero(t, held(big), "much text")
	old := parcelOf(schemaOf("s"), []any{"x"}, []any{"y"}, []any{"z"})
	old.Reset() // keeps the three for now
	old.Begin([]Kind{KindString}, 1)
	old.Append(&Row{Cells: []Cell{textCell("big")}, Text: 64<<10 + 1})
	old.Reset()
	require.Zero(t, held(old), "texts of the use before")
	any := parcelOf(schemaOf("a"), []any{Any(point{})})
	any.Reset()
	require.Zero(t, held(any), "a value of unknown size")
}

func kindsRow(kinds ...Kind) *Row {
	r := RowOf(kinds)
	return &r
}

// A clone is as its tuple was, whatever becomes of the parcel, and shares no text.
func TestClone(t *testing.T) {
	p := full()
	for i := range p.Len() {
		var want []string
		for _, v := range p.Tuple(i).AppendValues(nil) {
			want = append(want, v.Kind().String()+" "+v.String())
		}
		c := p.Tuple(i).Clone()
		require.Equal(t, TextOf(p.Row(i), p.Kinds), c.p.Text())
		require.Equal(t, p.Schema.Component, c.Component())
		var got []string
		for k, v := range c.AppendValues(nil) {
			got = append(got, v.Kind().String()+" "+v.String())
			if v.Kind() == KindString && v.String() != "" {
				require.NotSame(t, unsafe.StringData(p.Tuple(i).At(k).String()), unsafe.StringData(v.String()))
			}
		}
		require.Equal(t, want, got)
		require.True(t, p.Tuple(i).In(p, i))
		require.False(t, c.In(p, i))
	}
	kept := p.Tuple(0).Clone()
	p.Reset()
	require.Equal(t, "whale", kept.String("string"))
}
