package trident

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

type word string

type point struct{ X, Y int32 }

type color struct{ r, g, b byte }

func init() {
	tuple.RegisterCodec("trident.color",
		func(dst []byte, c color) ([]byte, error) { return append(dst, c.r, c.g, c.b), nil },
		func(b []byte) (color, error) {
			if len(b) != 3 {
				return color{}, errors.New("a color has three bytes")
			}
			return color{b[0], b[1], b[2]}, nil
		})
}

type embedded struct{ UserID uint64 }

type everything struct {
	B     bool
	I     int
	I8    int8
	I16   int16
	I32   int32
	I64   int64
	U     uint
	U8    uint8
	U16   uint16
	U32   uint32
	U64   uint64
	F32   float32
	F64   float64
	Text  word
	Bytes []byte
	At    time.Time
	For   time.Duration
	Color color
	Maybe *int16
	When  *time.Time
	Place point
	embedded
	_ int
}

type exported struct {
	Everything everything `egret:"all"`
	Embedded   embedded
}

type Embedded struct{ UserID uint64 }

func drawEverything(t *rapid.T) everything {
	e := everything{
		B: rapid.Bool().Draw(t, "b"), I: rapid.Int().Draw(t, "i"), I8: rapid.Int8().Draw(t, "i8"), I16: rapid.Int16().Draw(t, "i16"),
		I32: rapid.Int32().Draw(t, "i32"), I64: rapid.Int64().Draw(t, "i64"), U: rapid.Uint().Draw(t, "u"), U8: rapid.Uint8().Draw(t, "u8"),
		U16: rapid.Uint16().Draw(t, "u16"), U32: rapid.Uint32().Draw(t, "u32"), U64: rapid.Uint64().Draw(t, "u64"),
		F32: rapid.Float32().Draw(t, "f32"), F64: rapid.Float64().Draw(t, "f64"), Text: word(rapid.String().Draw(t, "text")),
		Bytes: []byte(rapid.String().Draw(t, "bytes")), At: time.Unix(0, rapid.Int64Range(-1<<61, 1<<61).Draw(t, "at")).UTC(),
		For: time.Duration(rapid.Int64().Draw(t, "for")), Color: color{rapid.Byte().Draw(t, "r"), 2, 3},
		Place: point{rapid.Int32().Draw(t, "x"), rapid.Int32().Draw(t, "y")},
	}
	if rapid.Bool().Draw(t, "maybe") {
		n, at := rapid.Int16().Draw(t, "n"), e.At.Add(1)
		e.Maybe, e.When = &n, &at
	}
	return e
}

// everything has an unexported embedded struct, which is refused; this has none.
type most struct {
	B        bool
	Rest     everyField
	Embedded // its fields are most's own
}

type everyField struct {
	I     int
	I8    int8
	I16   int16
	I32   int32
	I64   int64
	U     uint
	U8    uint8
	U16   uint16
	U32   uint32
	U64   uint64
	F32   float32
	F64   float64
	Text  word
	Bytes []byte
	At    time.Time
	For   time.Duration
	Color color
	Maybe *int16
	When  *time.Time
	Place point
}

func drawMost(t *rapid.T) most {
	e := drawEverything(t)
	return most{e.B, everyField{e.I, e.I8, e.I16, e.I32, e.I64, e.U, e.U8, e.U16, e.U32, e.U64, e.F32, e.F64, e.Text, e.Bytes, e.At, e.For, e.Color, e.Maybe, e.When, e.Place}, Embedded{e.U64}}
}

func layoutFor[T any](t require.TestingT) *layout {
	l, err := layoutOf(reflect.TypeFor[T]())
	require.NoError(t, err)
	return l
}

// sent returns v as it is after its way through a tuple and the codec.
func sent[T, U any](t require.TestingT, v T) (got U) {
	l := layoutFor[T](t)
	s := &tuple.Schema{Component: "c", Stream: "s", Fields: l.fields}
	var row tuple.Row
	row.SetValues(s, l.encode(nil, unsafe.Pointer(&v)))
	p := &tuple.Parcel{Schema: s}
	p.Begin(row.Kinds, 1)
	p.Append(&row)
	b, err := tuple.AppendParcel(nil, p)
	require.NoError(t, err)
	var back tuple.Parcel
	require.NoError(t, tuple.DecodeParcel(b, &back, s))
	layoutFor[U](t).decode(back.Tuple(0), 0, unsafe.Pointer(&got))
	return got
}

func stored[T any](t require.TestingT, v T) (got T, size int) {
	l := layoutFor[T](t)
	b, err := l.appendBytes(nil, unsafe.Pointer(&v))
	require.NoError(t, err)
	require.NoError(t, l.parse(string(b), unsafe.Pointer(&got)))
	return got, len(b)
}

// What goes through a tuple or a store comes out as it went in.
func TestElementsComeThrough(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		v := drawMost(r)
		require.Equal(r, v, sent[most, most](r, v))
		got, _ := stored(r, v)
		require.Equal(r, v, got)
	})
	require.Equal(t, "x", sent[string, string](t, "x"))
	require.Equal(t, word("x"), sent[string, word](t, "x"))
	require.Equal(t, 3.5, sent[float64, float64](t, 3.5))
	require.Equal(t, color{1, 2, 3}, sent[color, color](t, color{1, 2, 3}))
	require.Equal(t, Pair[struct{}, int]{Value: 3}, sent[Pair[struct{}, int], Pair[struct{}, int]](t, Pair[struct{}, int]{Value: 3}))
	require.True(t, math.IsNaN(sent[float32, float64](t, float32(math.NaN()))))
}

func TestFields(t *testing.T) {
	require.Equal(t, []string{"b", "rest.i", "rest.i8", "rest.i16", "rest.i32", "rest.i64", "rest.u", "rest.u8", "rest.u16", "rest.u32", "rest.u64",
		"rest.f32", "rest.f64", "rest.text", "rest.bytes", "rest.at", "rest.for", "rest.color", "rest.maybe", "rest.when", "rest.place.x", "rest.place.y",
		"user_id"}, layoutFor[most](t).fields)
	require.Equal(t, []string{"value"}, layoutFor[word](t).fields)
	require.Equal(t, []string{"key.x", "key.y", "value"}, layoutFor[Pair[point, int]](t).fields)
	require.Equal(t, []string{"value.key", "value.value"}, layoutFor[Pair[struct{}, Pair[string, int]]](t).fields)
	for name, want := range map[string]string{"Name": "name", "DelayMin": "delay_min", "UserID": "user_id", "HTTPServer": "http_server", "X": "x", "ID": "id", "Day2": "day2", "A_B": "a_b"} {
		require.Equal(t, want, snake(name))
	}
	_, err := layoutOf(reflect.TypeFor[everything]())
	require.ErrorContains(t, err, "field embedded: it is not exported")
	_, err = layoutOf(reflect.TypeFor[exported]())
	require.ErrorContains(t, err, "field Everything.embedded: it is not exported")
	for _, typ := range []reflect.Type{reflect.TypeFor[any](), reflect.TypeFor[func()](), reflect.TypeFor[chan int](), reflect.TypeFor[**int](), reflect.TypeFor[*point](), reflect.TypeFor[[3]int](), reflect.TypeFor[complex128]()} {
		_, err := layoutOf(typ)
		require.ErrorContains(t, err, "is no value of a tuple", typ.String())
	}
}

// A value that does not fit is told with its field.
func TestMisfits(t *testing.T) {
	misuse := func(f func()) (err error) {
		defer func() { err = tuple.Misused(recover()) }()
		f()
		return nil
	}
	for _, tt := range []struct {
		f    func()
		want string
	}{
		{func() { sent[int, string](t, 3) }, `field "value" of stream c.s for its value of type string: it is int64, not string`},
		{func() { sent[int64, int8](t, 300) }, "300 does not fit into int8"},
		{func() { sent[int64, int16](t, -40000) }, "-40000 does not fit into int16"},
		{func() { sent[int64, int32](t, 1<<40) }, "does not fit into int32"},
		{func() { sent[uint64, uint8](t, 256) }, "256 does not fit into uint8"},
		{func() { sent[uint64, uint16](t, 1<<16) }, "does not fit into uint16"},
		{func() { sent[uint64, uint32](t, 1<<32) }, "does not fit into uint32"},
		{func() { sent[*int, int](t, nil) }, "it is nil, not int64: if it may be absent, declare it as *int"},
		{func() { sent[time.Time, time.Time](t, time.Time{}) }, "outside 1678-2262"},
		{func() { sent[point, Pair[int, color]](t, point{}) }, "of type trident.Pair[int,github.com/egretstream/egret/trident.color]"},
	} {
		require.ErrorContains(t, misuse(tt.f), tt.want)
	}
}

// Bytes that are no value of the type are refused, and never more than looked at.
func FuzzParse(f *testing.F) {
	v := most{Rest: everyField{At: time.Unix(5, 0), Text: "text", Bytes: []byte{1}}}
	l := layoutFor[most](f)
	b, err := l.appendBytes(nil, unsafe.Pointer(&v))
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte{byte(tuple.KindString), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{byte(tuple.KindTime), 0, 0, 0, 0, 0, 0, 0, 0x80})
	f.Add([]byte{byte(tuple.KindAny), 3, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		Show(b)
		for _, l := range []*layout{l, layoutFor[string](t), layoutFor[color](t), layoutFor[Pair[time.Time, *int]](t)} {
			p := reflect.New(l.typ).UnsafePointer()
			if l.parse(string(b), p) != nil {
				continue
			}
			again, err := l.appendBytes(nil, p)
			require.NoError(t, err)
			p2 := reflect.New(l.typ)
			require.NoError(t, l.parse(string(again), p2.UnsafePointer()))
			once, err := l.appendBytes(nil, p2.UnsafePointer())
			require.NoError(t, err)
			require.Equal(t, again, once)
		}
	})
}

func TestShow(t *testing.T) {
	v := Pair[string, everyField]{"the", everyField{I: -1, Bytes: []byte{0xab}, At: time.Unix(0, 0), For: time.Second, Color: color{1, 2, 3}}}
	l := layoutFor[Pair[string, everyField]](t)
	b, err := l.appendBytes(nil, unsafe.Pointer(&v))
	require.NoError(t, err)
	require.Equal(t, "the -1 0 0 0 0 0 0 0 0 0 0 0  ab 1970-01-01T00:00:00Z 1s 010203 nil nil 0 0", Show(b))
	require.Contains(t, Show(b[:len(b)-1]), "damaged")
	require.Empty(t, Show(nil))
}

// An element costs no allocation on its way, but for what its pointers point at.
func TestElementsCostNoAllocation(t *testing.T) {
	type trip struct {
		From, To string
		Minutes  int
		At       time.Time
	}
	c, err := carrierOf[trip]()
	require.NoError(t, err)
	s := &tuple.Schema{Component: "c", Stream: "s", Fields: c.fields}
	got := 0
	p := &tuple.Parcel{Schema: s}
	sink := sinkFunc(func(_ int, r *tuple.Row) {
		p.Reset()
		p.Begin(r.Kinds, 1)
		p.Append(r)
	})
	b := &body{out: bolt.NewCollector(context.Background(), []*tuple.Schema{s}, sink)}
	send := c.send(b, 0).(func(trip))
	receive := c.receive(func(v trip) { got += v.Minutes })
	v := trip{"a", "b", 3, time.Unix(9, 0)}
	n := testing.AllocsPerRun(100, func() {
		send(v)
		receive(p.Tuple(0))
	})
	require.Zero(t, n)
	require.Equal(t, 101*3, got)
}

type sinkFunc func(stream int, row *tuple.Row)

func (f sinkFunc) Put(stream int, row *tuple.Row) { f(stream, row) }

// A key's group is the one that tuples are sent by.
func TestKeyGroups(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		type key struct {
			Name string
			N    int64
			U    uint8
			Yes  bool
			At   time.Time
		}
		k := key{rapid.String().Draw(r, "name"), rapid.Int64().Draw(r, "n"), rapid.Uint8().Draw(r, "u"), rapid.Bool().Draw(r, "yes"), time.Unix(rapid.Int64Range(0, 1e9).Draw(r, "at"), 0).UTC()}
		l := layoutFor[key](r)
		got, err := keyOf(l, k)
		require.NoError(r, err)
		var row tuple.Row
		row.SetValues(&tuple.Schema{Fields: l.fields}, l.encode(nil, unsafe.Pointer(&k)))
		require.Equal(r, row.KeyGroup([]int{0, 1, 2, 3, 4}), int(got.Group))
		one, err := keyOf(layoutFor[string](r), k.Name)
		require.NoError(r, err)
		row.SetValues(&tuple.Schema{Fields: []string{"value"}}, []tuple.Value{tuple.String(k.Name)})
		require.Equal(r, row.KeyGroup([]int{0}), int(one.Group))
	})
	none, err := keyOf(layoutFor[struct{}](t), struct{}{})
	require.NoError(t, err)
	require.Zero(t, none)
}

// The cache keeps the keys that were used last, and no more than its size.
func TestCache(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.IntRange(2, 20).Draw(r, "size")
		c := newCache[int, int](size)
		var used []int // the last ones, without those before
		for range rapid.IntRange(0, 200).Draw(r, "uses") {
			k := rapid.IntRange(0, 30).Draw(r, "k")
			got := c.get(k)
			if got == nil {
				c.put(k, &k)
			} else {
				require.Equal(r, k, *got)
			}
			require.LessOrEqual(r, len(c.young)+len(c.old), size)
			for i, u := range used {
				if u == k {
					used = append(used[:i], used[i+1:]...)
					break
				}
			}
			used = append(used, k)
			for _, u := range used[max(0, len(used)-size/2):] {
				require.True(r, c.young[u] != nil || c.old[u] != nil, "%d was used lately", u)
			}
		}
		c.clear()
		require.Nil(r, c.get(1))
	})
}

// What was not made for batches in hand is told, and not overwritten.
func TestTooManyBatches(t *testing.T) {
	m := &memory[int]{fresh: func() *int { return new(int) }, clear: func(n *int) { *n = 0 }, done: func(*int) {}}
	for tx := tuple.TxID(1); tx <= bolt.MaxAhead; tx++ {
		m.enter(tx)
	}
	require.Panics(t, func() { m.enter(bolt.MaxAhead + 1) })
	m.enter(1)
	m.complete(1)
	m.enter(bolt.MaxAhead + 1)
	require.Nil(t, m.of(1))
	require.NotNil(t, m.of(2))
	m.forget()
	require.Nil(t, m.of(2))
}
