package tuple

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// requireSame wants two parcels to say the same. Where p has no text a has no
// pointer, so the bits of the numbers must be equal: a NaN stays the NaN it was.
func requireSame(t require.TestingT, p, a *Parcel) {
	require.Equal(t, []any{p.From, p.To, p.FromLife, p.ToLife, p.Input, p.Plan, p.Batch, p.Marker, p.n, TextOf(p.Cells, p.Kinds)},
		[]any{a.From, a.To, a.FromLife, a.ToLife, a.Input, a.Plan, a.Batch, a.Marker, a.n, a.text})
	require.True(t, slices.Equal(p.Kinds, a.Kinds), "kinds %v, not %v", a.Kinds, p.Kinds)
	require.True(t, slices.Equal(p.Slots, a.Slots), "slots %v, not %v", a.Slots, p.Slots)
	require.True(t, slices.Equal(p.Refs, a.Refs), "refs %v, not %v", a.Refs, p.Refs)
	require.True(t, slices.EqualFunc(p.Lists, a.Lists, slices.Equal[[]Ref]), "lists %v, not %v", a.Lists, p.Lists)
	require.Len(t, a.Cells, len(p.Cells))
	for i := range p.Cells {
		k, x, y := p.Kinds[i%len(p.Kinds)], p.Cells[i], a.Cells[i]
		switch {
		case k == KindString || k == KindBytes:
			require.Equal(t, x.text(), y.text(), "cell %d", i)
		case k == KindAny:
			require.Equal(t, *(*any)(x.ptr), *(*any)(y.ptr), "cell %d", i)
		case x != y:
			require.Equal(t, x, y, "cell %d", i)
		}
	}
}

func encode(t require.TestingT, p *Parcel) []byte {
	b, err := AppendParcel(nil, p)
	require.NoError(t, err)
	return b
}

// full is a parcel with all kinds and two trees.
func full() *Parcel {
	s := schemaOf("nil", "bool", "int64", "uint64", "float64", "string", "bytes", "time", "duration", "any")
	p := parcelOf(s,
		[]any{nil, true, math.MinInt64, uint64(math.MaxUint64), math.Inf(-1), "whale", []byte{0, 0xff}, time.Unix(minSecond+1, 0), time.Duration(math.MinInt64), Any(point{1, -2})},
		[]any{nil, false, 63, uint64(127), 0.5, "", []byte{}, time.Unix(0, 0), time.Second, Any(label(""))},
		[]any{nil, true, -64, uint64(128), math.NaN(), "é", []byte("é"), time.Unix(1<<32, 999), -time.Second, Any(point{3, 4})},
	)
	p.From, p.To, p.FromLife, p.ToLife, p.Input, p.Plan = 7, 300, NewIncarnation(1, 2), NewIncarnation(3, 4), 5, 6
	p.Slots = []Slot{
		{TreeID{1, NewIncarnation(1, 1), 41}, 0xe1, 2},
		{TreeID{math.MaxUint32, math.MaxUint64, math.MaxUint64}, math.MaxUint64, 1},
	}
	p.Refs = []Ref{{0, 17}, {1, math.MaxUint16}, {0, 0}}
	return p
}

// words is a parcel of word count: n tuples of (string, int64).
func words(n int, tracked bool) *Parcel {
	rows := make([][]any, n)
	for i := range rows {
		rows[i] = []any{fmt.Sprintf("word%04d", i*7919%10000), i % 100}
	}
	p := parcelOf(schemaOf("word", "count"), rows...)
	p.From, p.To, p.FromLife, p.ToLife = 1, 2, NewIncarnation(1, 1), NewIncarnation(1, 1)
	if tracked {
		p.Slots = []Slot{{TreeID{1, NewIncarnation(1, 1), 1000}, 0x1234567890abcdef, uint32(n)}}
		for i := range n {
			p.Refs = append(p.Refs, Ref{0, uint16(i / 8)})
		}
	}
	return p
}

// batched makes p one of a batch, and marker is what follows the last of it.
func batched(p *Parcel) *Parcel {
	p.Batch = BatchID{Attempt{3, 200}, 70000}
	return p
}

func marker() *Parcel {
	p := batched(parcelOf(schemaOf()))
	p.Marker = true
	return p
}

// The wire form is spoken between programs that were not built at the same time:
// a change of testdata/wire.txt needs a new version.
func TestWireGolden(t *testing.T) {
	untracked := parcelOf(schemaOf("word", "count"), []any{"the", 1}, []any{"", -1}, []any{"whale", 300})
	untracked.From, untracked.To = 1, 2
	var out strings.Builder
	for _, p := range []*Parcel{parcelOf(schemaOf()), untracked, full(), batched(words(2, false)), marker()} {
		fmt.Fprintf(&out, "%d tuples of %v\n%s\n", p.Len(), p.Kinds, hex.Dump(encode(t, p)))
	}
	golden(t, "wire.txt", out.String())
}

func TestWireRoundTrip(t *testing.T) {
	for _, p := range []*Parcel{
		parcelOf(schemaOf()), parcelOf(schemaOf(), nil, nil), full(), words(1, false), words(256, true), words(MaxParcel, true),
		parcelOf(schemaOf("s"), []any{""}), parcelOf(schemaOf("b"), []any{[]byte{}}), parcelOf(schemaOf("s"), []any{strings.Repeat("x", 1<<20)}),
		batched(words(20, false)), marker(),
	} {
		b := encode(t, p)
		var back Parcel
		require.NoError(t, DecodeParcel(b, &back, p.Schema))
		requireSame(t, p, &back)
		require.Same(t, p.Schema, back.Schema)
		require.Equal(t, b, encode(t, &back))
	}
}

// drawParcel draws a parcel of 0 to 7 fields of all kinds.
func drawParcel(t *rapid.T) *Parcel {
	ks := rapid.SliceOfN(rapid.Uint8Range(0, uint8(kinds)-1), 0, 7).Draw(t, "kinds")
	n := rapid.OneOf(rapid.IntRange(0, 5), rapid.IntRange(0, 80)).Draw(t, "tuples")
	if rapid.IntRange(0, 30).Draw(t, "full") == 0 {
		n = MaxParcel
		ks = ks[:min(len(ks), 1)]
	}
	fields := make([]string, len(ks))
	for i := range fields {
		fields[i] = fmt.Sprint("f", i)
	}
	rows := make([][]any, n)
	for i := range rows {
		for _, k := range ks {
			rows[i] = append(rows[i], drawValue(t, Kind(k)))
		}
	}
	p := parcelOf(schemaOf(fields...), rows...)
	if n == 0 {
		for _, k := range ks {
			p.Kinds = append(p.Kinds, Kind(k))
		}
	}
	p.From, p.To = TaskID(rapid.Uint32().Draw(t, "from")), TaskID(rapid.Uint32().Draw(t, "to"))
	p.FromLife, p.ToLife = Incarnation(rapid.Uint64().Draw(t, "life")), Incarnation(rapid.Uint64().Draw(t, "life"))
	p.Input = int(rapid.Int32Range(0, math.MaxInt32).Draw(t, "input"))
	p.Plan = rapid.Uint32().Draw(t, "plan")
	if n > 0 && rapid.Bool().Draw(t, "tracked") {
		p.Slots = make([]Slot, rapid.OneOf(rapid.IntRange(1, min(n, 3)), rapid.IntRange(1, n)).Draw(t, "slots"))
		for i := range p.Slots {
			p.Slots[i].Tree = TreeID{TaskID(rapid.Uint32().Draw(t, "task")), Incarnation(rapid.Uint64().Draw(t, "life")), rapid.Uint64().Draw(t, "seq")}
			p.Slots[i].Edge = EdgeID(rapid.Uint64().Draw(t, "edge"))
		}
		for i := range n {
			s := i // every slot has a tuple
			if i >= len(p.Slots) {
				s = rapid.IntRange(0, len(p.Slots)-1).Draw(t, "slot")
			}
			r := Ref{uint16(s), rapid.Uint16().Draw(t, "index")}
			p.Slots[r.Slot].Count++
			if rapid.IntRange(0, 9).Draw(t, "several") == 0 {
				list := []Ref{r}
				for range rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 200)).Draw(t, "more") {
					r := Ref{uint16(rapid.IntRange(0, len(p.Slots)-1).Draw(t, "slot")), rapid.Uint16().Draw(t, "index")}
					p.Slots[r.Slot].Count++
					list = append(list, r)
				}
				r = Ref{Several, uint16(len(p.Lists))}
				p.Lists = append(p.Lists, list)
			}
			p.Refs = append(p.Refs, r)
		}
	}
	return p
}

func drawValue(t *rapid.T, k Kind) any {
	switch k {
	case KindNil:
		return nil
	case KindBool:
		return rapid.Bool().Draw(t, "bool")
	case KindInt64:
		return rapid.Int64().Draw(t, "int64")
	case KindUint64:
		return rapid.Uint64().Draw(t, "uint64")
	case KindFloat64:
		return math.Float64frombits(rapid.Uint64().Draw(t, "float64"))
	case KindString:
		return rapid.String().Draw(t, "string")
	case KindBytes:
		return rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
	case KindTime:
		return time.Unix(rapid.Int64Range(minSecond+1, maxSecond-1).Draw(t, "second"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond"))
	case KindDuration:
		return time.Duration(rapid.Int64().Draw(t, "duration"))
	default:
		if rapid.Bool().Draw(t, "point") {
			return Any(point{rapid.Int32().Draw(t, "x"), rapid.Int32().Draw(t, "y")})
		}
		return Any(label(rapid.String().Draw(t, "label")))
	}
}

// Decoding goes into one parcel again and again, as a link does it: nothing of
// what was in it before may show.
func TestWireRoundTripOfAll(t *testing.T) {
	var back Parcel
	rapid.Check(t, func(t *rapid.T) {
		p := drawParcel(t)
		b, err := AppendParcel([]byte("before"), p)
		require.NoError(t, err)
		require.Equal(t, "before", string(b[:6]))
		require.NoError(t, DecodeParcel(b[6:], &back, p.Schema))
		requireSame(t, p, &back)
	})
}

// Any prefix of a frame is corrupt, and so is a frame with something behind it.
func TestWireCut(t *testing.T) {
	for _, p := range []*Parcel{full(), words(9, true), words(3, false), parcelOf(schemaOf()), batched(words(3, false)), marker()} {
		b := encode(t, p)
		var into Parcel
		for i := range b {
			require.ErrorIs(t, DecodeParcel(b[:i], &into, p.Schema), ErrCorrupt, "%d of %d bytes", i, len(b))
			require.Zero(t, into.Len())
			require.Empty(t, into.Cells)
		}
		require.ErrorIs(t, DecodeParcel(append(b, 0), &into, p.Schema), ErrCorrupt)
	}
}

// A frame with one byte wrong is corrupt or a parcel, and never a panic.
func TestWireFlip(t *testing.T) {
	p := full()
	b := encode(t, p)
	var into Parcel
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if err := DecodeParcel(b, &into, p.Schema); err != nil {
				require.ErrorIs(t, err, ErrCorrupt)
			} else {
				require.NotEmpty(t, encode(t, &into))
			}
			b[i] ^= 1 << bit
		}
	}
}

func TestWireText(t *testing.T) {
	s := schemaOf("a", "b")
	var p Parcel
	first := encode(t, parcelOf(s, []any{"whale", []byte("blubber")}))
	require.NoError(t, DecodeParcel(first, &p, s))
	whale, blubber := p.Tuple(0).String("a"), p.Tuple(0).Bytes("b")
	require.Equal(t, 12, p.Text())
	require.Equal(t, cap(blubber), len(blubber), "an append to the bytes would write what follows them")

	clear(first) // the frame is the caller's again
	require.NoError(t, DecodeParcel(encode(t, parcelOf(s, []any{"ocean", []byte("foreign")})), &p, s))
	require.Equal(t, "whale", whale)
	require.Equal(t, "blubber", string(blubber))
	require.Equal(t, "ocean", p.Tuple(0).String("a"))

	require.NoError(t, DecodeParcel(encode(t, parcelOf(s, []any{"", []byte{}})), &p, s))
	require.Empty(t, p.Tuple(0).String("a"))
	require.NotNil(t, p.Tuple(0).Bytes("b"), "no bytes are empty, not nil, as on the sender's side")
	require.NoError(t, DecodeParcel(encode(t, parcelOf(s, []any{"whale", []byte{}})), &p, s))
	require.Equal(t, Cell{}, p.Cells[1], "an empty text points behind the buffer")
}

func TestWireEndsOldTuples(t *testing.T) {
	p := words(1, false)
	b := encode(t, p)
	old := p.Tuple(0)
	require.NoError(t, DecodeParcel(b, p, p.Schema))
	require.Contains(t, misuseOf(t, func() { old.Len() }), "after Execute has returned")
}

func TestAppendParcelBrokenCodec(t *testing.T) {
	for _, tt := range []struct {
		value any
		want  string
	}{
		{stubborn{}, `codec "stubborn", field "x" of stream split.default: stubborn is not for export`},
		{shrunk{}, `codec "shrunk", field "x" of stream split.default: it returned less than it was given to append to`},
	} {
		b, err := AppendParcel([]byte("kept"), parcelOf(schemaOf("w", "x"), []any{"the", Any(tt.value)}))
		require.EqualError(t, err, tt.want)
		require.Equal(t, "kept", string(b))
	}
	_, err := AppendParcel(nil, parcelOf(schemaOf("x"), []any{Any(stubborn{})}))
	require.ErrorIs(t, err, errStubborn)
}

// frame builds hostile bytes from numbers (one varint each), and byte slices and
// strings as they are.
func frame(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = appendUvarint(b, uint64(p))
		case uint64:
			b = appendUvarint(b, p)
		case string:
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

const head = "\x01\x02\x03\x04\x05\x06\x08" // version to opened

var long = bytes.Repeat([]byte{0xff}, 11) // no number

// hostile frames, for streams of as many fields as they say.
var hostile = []struct {
	name   string
	fields int
	b      []byte
	want   string // behind "corrupt parcel for stream split.default: "
}{
	{"nothing", 0, nil, "it does not begin with the version, 1 or 2"},
	{"another version", 0, frame(3, 0, 0, 0, 0, 0, 0, 0, 0), "it does not begin with the version, 1 or 2"},
	{"batch 0", 0, frame(2, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0), "batch 0 before byte 8"},
	{"no round", 0, frame(2, 0, 0, 0, 0, 0, 0, 1, 1), "no round of the batch at byte 9"},
	{"half a marker", 0, frame(2, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2), "marker 2 at byte 10, more than 1"},
	{"marker with tuples", 1, frame(2, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0), "1 tuples in a marker"},
	{"version only", 0, frame(1), "no sender at byte 1"},
	{"sender too great", 0, frame(1, 1<<32), "sender 4294967296 at byte 1, more than 4294967295"},
	{"receiver without end", 0, frame(1, 2, long), "no receiver at byte 2"},
	{"input too great", 0, frame(1, 2, 3, 4, 5, uint64(math.MaxUint64)), "input 18446744073709551615 at byte 5, more than 2147483647"},
	{"too few fields", 2, frame(head, 1, 2), "1 fields at byte 8, but the stream has 2"},
	{"too many fields", 1, frame(head, 2, 2, 2), "2 fields at byte 8, but the stream has 1"},
	{"endless fields", 1, frame(head, 1<<62), "number of fields 4611686018427387904 at byte 7, more than 2147483647"},
	{"kinds missing", 3, frame(head, 3, 2, 2), "3 fields at byte 8 in 2 bytes"},
	{"no such kind", 2, frame(head, 2, 2, 10, 0, 0, 0), "kind 10 at byte 9"},
	{"no number of tuples", 1, frame(head, 1, 2), "no number of tuples at byte 9"},
	{"too many tuples", 0, frame(head, 0, MaxParcel+1, 0, 0), "number of tuples 1025 at byte 8, more than 1024"},
	{"more slots than fit", 0, frame(head, 0, 2, 3), "3 slots for 2 tuples at byte 10 in 0 bytes"},
	{"too many slots", 0, frame(head, 0, 2, MaxSlots+1), "number of slots 65536 at byte 9, more than 65535"},
	{"slots without tuples", 0, frame(head, 0, 0, 1, 1, 1, 1, "edgeedge", 1, 0), "1 slots for no tuples at byte 10"},
	{"list cut", 0, frame(head, 0, 1, 1, 1, 1, 1, "edgeedge", 2, "\xff\xff\x00\x00", 2, "\x00\x00ix"), "2 anchors at byte 27 in 4 bytes"},
	{"list of nothing", 0, frame(head, 0, 1, 1, 1, 1, 1, "edgeedge", 2, "\xff\xff\x00\x00", 0, 0), "no anchors at byte 27"},
	{"list too long", 0, frame(head, 0, 1, 1, 1, 1, 1, "edgeedge", 2, "\xff\xff\x00\x00", MaxAnchors+1, 0), "number of anchors 4097 at byte 26, more than 4096"},
	{"list out of order", 0, frame(head, 0, 1, 1, 1, 1, 1, "edgeedge", 2, "\xff\xff\x01\x00", 1, "\x00\x00ix"), "tuple 0 has list 1, and 0 is next"},
	{"list of no slot", 0, frame(head, 0, 1, 1, 1, 1, 1, "edgeedge", 2, "\xff\xff\x00\x00", 2, "\x00\x00ix\x01\x00ix", 0), "an anchor is of slot 1 of 1"},
	{"list that does not count", 0, frame(head, 0, 1, 1, 1, 1, 1, "edgeedge", 1, "\xff\xff\x00\x00", 2, "\x00\x00ix\x00\x00ix", 0), "slot 0 counts 1 tuples and 2 refer to it"},
	{"slots missing", 0, frame(head, 0, 1000, 1000, "too few"), "1000 slots for 1000 tuples at byte 12 in 7 bytes"},
	{"refs missing", 0, frame(head, 0, 100, 1, 1, 1, 1, "edgeedge", 100, 0), "1 slots for 100 tuples at byte 10 in 13 bytes"},
	{"edge cut", 0, frame(head, 0, 1, 1, 1, uint64(math.MaxUint64), 1, "edge"), "no edge at byte 22"},
	{"refs cut", 0, frame(head, 0, 1, 1, 1, uint64(math.MaxUint64), 1, "edgeedge", 1, "r"), "no refs of 1 tuples at byte 31"},
	{"ref to no slot", 0, frame(head, 0, 1, 1, 1, 1, 1, "edgeedge", 1, "\x01\x00ix", 0), "tuple 0 is of slot 1 of 1"},
	{"slot counts too few", 0, frame(head, 0, 2, 1, 1, 1, 1, "edgeedge", 1, "\x00\x00ix\x00\x00ix", 0), "slot 0 counts 1 tuples and 2 refer to it"},
	{"slots count each other's", 0, frame(head, 0, 3, 2, 1, 1, 1, "edgeedge", 1, 1, 1, 1, "edgeedge", 2, "\x00\x00ix\x00\x00ix\x01\x00ix", 0), "slot 0 counts 1 tuples and 2 refer to it"},
	{"slot without tuples", 0, frame(head, 0, 2, 2, 1, 1, 1, "edgeedge", 0, 1, 1, 1, "edgeedge", 2, "\x01\x00ix\x01\x00ix", 0), "slot 0 counts 0 tuples and 0 refer to it"},
	{"slot counts too many", 0, frame(head, 0, 1, 1, 1, 1, 1, "edgeedge", 2, "\x00\x00ix", 0), "slot 0 counts 2 tuples and 1 refer to it"},
	{"text that is not there", 1, frame(head, 1, 5, 1, 0, 100, 1), "length of text 100 at byte 11, more than 2"},
	{"endless text", 1, frame(head, 1, 5, 1, 0, uint64(math.MaxUint64), 1), "length of text 18446744073709551615 at byte 11, more than 11"},
	{"1024 nil of nothing", 1, frame(head, 1, 0, 1024, 0, 0), "1024 tuples of 1 fields at byte 13 in 0 bytes"},
	{"a nil that is something", 1, frame(head, 1, 0, 2, 0, 0, 0, 1), `tuple 1, field "f0": no nil at byte 13`},
	{"half a bool", 1, frame(head, 1, 1, 2, 0, 0, 1, 2), `tuple 1, field "f0": no bool at byte 13`},
	{"endless int64", 1, frame(head, 1, 2, 1, 0, 0, long), `tuple 0, field "f0": no int64 at byte 12`},
	{"endless uint64", 1, frame(head, 1, 3, 1, 0, 0, long), `tuple 0, field "f0": no uint64 at byte 12`},
	{"half a float64", 1, frame(head, 1, 4, 1, 0, 0, "four"), `tuple 0, field "f0": no float64 at byte 12`},
	{"half a time", 1, frame(head, 1, 7, 1, 0, 0, "four"), `tuple 0, field "f0": no time.Time at byte 12`},
	{"string longer than the text", 1, frame(head, 1, 5, 2, 0, 3, 2, 2, "abc"), `tuple 1, field "f0": no string at byte 12`},
	{"string of endless length", 1, frame(head, 1, 5, 1, 0, 3, uint64(math.MaxUint64), "abc"), `tuple 0, field "f0": no string at byte 12`},
	{"[]byte longer than the text", 2, frame(head, 2, 5, 6, 1, 0, 3, 2, 2, "abc"), `tuple 0, field "f1": no []byte at byte 14`},
	{"text left over", 1, frame(head, 1, 5, 1, 0, 3, 2, "abc"), "1 bytes of text too many"},
	{"bytes left over", 1, frame(head, 1, 2, 1, 0, 0, 1, 2, 3), "2 bytes too many at byte 13"},
	{"bytes behind no tuples", 0, frame(head, 0, 0, 0, 0, 0), "1 bytes too many at byte 11"},
	{"no such codec", 1, frame(head, 1, 9, 1, 0, 0, 0, 4, "evil", 0), `no codec "evil" is registered here (byte 18)`},
	{"codec that was not named", 1, frame(head, 1, 9, 1, 0, 0, 1, 0), "number of a codec 1 at byte 12, more than 0"},
	{"codec with an endless name", 1, frame(head, 1, 9, 1, 0, 0, 0, 1<<40), "length of a codec's name 1099511627776 at byte 13, more than 6"},
	{"value of no length", 1, frame(head, 1, 9, 1, 0, 0, 0, 5, "label", 1), "no length of a value at byte 19"},
	{"value too long", 1, frame(head, 1, 9, 1, 0, 0, 0, 5, "label", "\xff\xff\xff\xff", "a"), "4294967295 bytes at byte 23, and 1 are left"},
	{"value of other bytes", 1, frame(head, 1, 9, 1, 0, 0, 0, 5, "point", "\x01\x00\x00\x00", "a"), `codec "point", tuple 0, field "f0": a point of 1 bytes`},
	{"value without way back", 1, frame(head, 1, 9, 1, 0, 0, 0, 7, "one way", "\x00\x00\x00\x00"), `codec "one way", tuple 0, field "f0": there is no way back`},
}

func fieldsOf(n int) *Schema {
	fields := make([]string, n)
	for i := range fields {
		fields[i] = fmt.Sprint("f", i)
	}
	return schemaOf(fields...)
}

func TestDecodeHostile(t *testing.T) {
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			into := words(5, true)
			err := DecodeParcel(tt.b, into, fieldsOf(tt.fields))
			require.ErrorIs(t, err, ErrCorrupt)
			require.EqualError(t, err, "corrupt parcel for stream split.default: "+tt.want)
			require.Zero(t, into.Len())
			require.Empty(t, into.Slots)
			require.Empty(t, into.Refs)
			require.Empty(t, into.Lists)
		})
	}
	var into Parcel
	err := DecodeParcel(frame(head, 1, 9, 1, 0, 0, 0, 7, "one way", "\x00\x00\x00\x00"), &into, fieldsOf(1))
	require.ErrorIs(t, err, errOneWay)
}

// held is what a parcel that was new has allocated, but for its text.
func held(p *Parcel) int {
	lists := 0
	for _, refs := range p.Lists {
		lists += cap(refs) * int(unsafe.Sizeof(Ref{}))
	}
	return lists + cap(p.Lists)*24 + cap(p.Kinds) + cap(p.Cells)*int(unsafe.Sizeof(Cell{})) + cap(p.Slots)*int(unsafe.Sizeof(Slot{})) + cap(p.Refs)*int(unsafe.Sizeof(Ref{}))
}

// A cell of 16 bytes takes a byte on the wire; some more is the allocator's,
// which rounds up.
const maxGrowth = 20

// go test -fuzz=FuzzDecodeParcel ./tuple
// texts returns the values of p as texts.
func texts(p *Parcel) (all []string) {
	for i := range p.Len() {
		for _, v := range p.Tuple(i).AppendValues(nil) {
			all = append(all, v.String())
		}
	}
	return all
}

func TestDecodeInPlace(t *testing.T) {
	b := encode(t, words(20, true))
	var p Parcel
	require.NoError(t, DecodeInPlace(b, &p, words(20, true).Schema))
	require.Equal(t, texts(words(20, true)), texts(&p))
	at := uintptr(unsafe.Pointer(unsafe.StringData(p.Tuple(0).At(0).String())))
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	require.True(t, from <= at && at < from+uintptr(len(b)), "text is where it came")
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = DecodeInPlace(b, &p, p.Schema) }))
}

func FuzzDecodeParcel(f *testing.F) {
	for _, tt := range hostile {
		f.Add(tt.b, uint8(tt.fields))
	}
	for _, p := range []*Parcel{parcelOf(schemaOf()), parcelOf(schemaOf(), nil, nil), full(), words(3, false), words(20, true), batched(words(3, false)), marker()} {
		b, err := AppendParcel(nil, p)
		require.NoError(f, err)
		f.Add(b, uint8(len(p.Kinds)))
	}
	f.Fuzz(func(t *testing.T, b []byte, fields uint8) {
		s := fieldsOf(int(fields))
		kept := bytes.Clone(b)
		var p, back, inPlace Parcel
		err := DecodeParcel(b, &p, s)
		require.Equal(t, kept, b, "decoding wrote to the frame")
		errInPlace := DecodeInPlace(kept, &inPlace, s)
		require.Equal(t, b, kept, "decoding wrote to the frame")
		require.Equal(t, err == nil, errInPlace == nil)
		require.Equal(t, texts(&p), texts(&inPlace))
		require.LessOrEqual(t, held(&p), maxGrowth*len(b)+256)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			require.Zero(t, p.Len())
			return
		}
		clear(b)
		for i := range p.Len() {
			for _, v := range p.Tuple(i).AppendValues(nil) {
				_ = v.String()
			}
		}
		again, err := AppendParcel(nil, &p)
		if err != nil { // of a codec that is made to fail
			require.Contains(t, p.Kinds, KindAny)
			return
		}
		require.LessOrEqual(t, len(again), len(kept), "the wire form is not the shortest")
		require.NoError(t, DecodeParcel(again, &back, s))
		requireSame(t, &p, &back)
	})
}

func BenchmarkWire(b *testing.B) {
	for _, tracked := range []bool{false, true} {
		p := words(256, tracked)
		frame := encode(b, p)
		b.Run(fmt.Sprintf("op=encode/tracked=%v", tracked), func(b *testing.B) {
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst, _ = AppendParcel(dst[:0], p)
			}
			perTuple(b, p, frame)
		})
		b.Run(fmt.Sprintf("op=decode/tracked=%v", tracked), func(b *testing.B) {
			var into Parcel
			b.ReportAllocs()
			for b.Loop() {
				if err := DecodeParcel(frame, &into, p.Schema); err != nil {
					b.Fatal(err)
				}
			}
			perTuple(b, p, frame)
		})
	}
}

func perTuple(b *testing.B, p *Parcel, frame []byte) {
	n := float64(p.Len())
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/tuple")
	b.ReportMetric(float64(len(frame))/n, "bytes/tuple")
}
