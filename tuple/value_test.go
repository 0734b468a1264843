package tuple

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestCellIsSmall(t *testing.T) {
	require.Equal(t, uintptr(16), unsafe.Sizeof(Cell{}))
}

type acceptance struct {
	in   any
	kind Kind
	out  any
	text string
}

// accepted is every type that Emit accepts, and what becomes of it. It is a
// function because the codecs of Any are registered by init functions.
func accepted() []acceptance {
	return []acceptance{
		{nil, KindNil, nil, "nil"},
		{true, KindBool, true, "true"},
		{false, KindBool, false, "false"},
		{int(-1), KindInt64, int64(-1), "-1"},
		{int8(-128), KindInt64, int64(-128), "-128"},
		{int16(-32768), KindInt64, int64(-32768), "-32768"},
		{int32(math.MinInt32), KindInt64, int64(math.MinInt32), "-2147483648"},
		{int64(math.MinInt64), KindInt64, int64(math.MinInt64), "-9223372036854775808"},
		{'é', KindInt64, int64(0xe9), "233"},
		{uint(1), KindUint64, uint64(1), "1"},
		{uint8(255), KindUint64, uint64(255), "255"},
		{uint16(65535), KindUint64, uint64(65535), "65535"},
		{uint32(math.MaxUint32), KindUint64, uint64(math.MaxUint32), "4294967295"},
		{uint64(math.MaxUint64), KindUint64, uint64(math.MaxUint64), "18446744073709551615"},
		{uintptr(7), KindUint64, uint64(7), "7"},
		{float32(0.5), KindFloat64, 0.5, "0.5"},
		{math.Inf(1), KindFloat64, math.Inf(1), "+Inf"},
		{"whale", KindString, "whale", "whale"},
		{"", KindString, "", ""},
		{[]byte("ab"), KindBytes, []byte("ab"), "[97 98]"},
		{[]byte{}, KindBytes, []byte{}, "[]"},
		{[]byte(nil), KindBytes, []byte{}, "[]"},
		{time.Unix(0, 5), KindTime, time.Unix(0, 5).UTC(), "1970-01-01T00:00:00.000000005Z"},
		{time.Minute, KindDuration, time.Minute, "1m0s"},
		{Any(point{1, 2}), KindAny, point{1, 2}, "{1 2}"},
		{Value{}, KindNil, nil, "nil"},
	}
}

func TestValueOf(t *testing.T) {
	for _, tt := range accepted() {
		v, err := ValueOf(tt.in)
		require.NoError(t, err)
		require.Equal(t, tt.kind, v.Kind(), "%#v", tt.in)
		require.Equal(t, tt.out, v.Any())
		require.Equal(t, tt.text, v.String())
		require.Equal(t, tt.kind == KindNil, v.IsNil())
		again, err := ValueOf(v)
		require.NoError(t, err)
		require.Equal(t, v, again)
	}
}

type word string // a type of one's own is no value

const useInstead = "use a built-in integer, float, bool, string, []byte, time.Time or time.Duration, or tuple.Any with a registered codec"

// What Emit refuses, and what is said about it.
var refused = []struct {
	in   any
	want string
}{
	{word("w"), "a tuple.word is no value: " + useInstead},
	{[]string{"a"}, "a []string is no value: " + useInstead},
	{new(int), "a *int is no value: " + useInstead},
	{map[string]int{}, "a map[string]int is no value: " + useInstead},
	{struct{}{}, "a struct {} is no value: " + useInstead},
	{1i, "a complex128 is no value: " + useInstead},
	{point{}, "a tuple.point is no value: " + useInstead}, // its codec is not asked for unless Any says so
	{time.Time{}, "time with Unix second -62135596800 is outside 1678-2262, which nanoseconds since 1970 can hold"},
	{time.Date(1677, 9, 21, 0, 0, 0, 0, time.UTC), "time with Unix second -9223372800 is outside 1678-2262, which nanoseconds since 1970 can hold"},
	{time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC), "time with Unix second 9246182400 is outside 1678-2262, which nanoseconds since 1970 can hold"},
}

func TestValueOfRefuses(t *testing.T) {
	for _, tt := range refused {
		v, err := ValueOf(tt.in)
		require.EqualError(t, err, tt.want)
		require.True(t, v.IsNil())
	}
}

func TestTimeIsUTCNanoseconds(t *testing.T) {
	zone := time.FixedZone("far", 5*60*60)
	for _, in := range []time.Time{
		time.Date(2024, 2, 29, 23, 59, 59, 999_999_999, zone),
		time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2262, 1, 1, 0, 0, 0, 1, zone),
		time.Unix(minSecond+1, 0),
		time.Unix(maxSecond-1, 999_999_999),
	} {
		v, err := ValueOf(in)
		require.NoError(t, err)
		require.True(t, in.Equal(v.Time()), "%v became %v", in, v.Time())
		require.Equal(t, time.UTC, v.Time().Location())
	}
	for _, second := range []int64{minSecond, maxSecond, math.MinInt64, math.MaxInt64} {
		_, err := ValueOf(time.Unix(second, 0))
		require.Error(t, err, "second %d", second)
	}
}

func TestBytesAreCopied(t *testing.T) {
	b := []byte("whale")
	v, err := ValueOf(b)
	require.NoError(t, err)
	clear(b)
	require.Equal(t, "whale", string(v.Bytes()))
}

// A value is read as the kind that it is, and as no other.
func TestValueGetters(t *testing.T) {
	getters := map[Kind]func(Value){
		KindBool:     func(v Value) { v.Bool() },
		KindInt64:    func(v Value) { v.Int64() },
		KindUint64:   func(v Value) { v.Uint64() },
		KindFloat64:  func(v Value) { v.Float64() },
		KindBytes:    func(v Value) { v.Bytes() },
		KindTime:     func(v Value) { v.Time() },
		KindDuration: func(v Value) { v.Duration() },
	}
	for _, tt := range accepted() {
		v, err := ValueOf(tt.in)
		require.NoError(t, err)
		for k, get := range getters {
			if k == v.Kind() {
				require.NotPanics(t, func() { get(v) })
			} else {
				require.Equal(t, "value is "+v.Kind().String()+", not "+k.String(), misuseOf(t, func() { get(v) }))
			}
		}
	}
	for _, tt := range []struct{ want, got any }{
		{true, mustValue(true).Bool()},
		{int64(-5), mustValue(-5).Int64()},
		{uint64(5), mustValue(uint(5)).Uint64()},
		{0.5, mustValue(0.5).Float64()},
		{[]byte("b"), mustValue([]byte("b")).Bytes()},
		{time.Unix(3, 0).UTC(), mustValue(time.Unix(3, 0)).Time()},
		{time.Hour, mustValue(time.Hour).Duration()},
	} {
		require.Equal(t, tt.want, tt.got)
	}
}

func mustValue(v any) Value {
	value, err := ValueOf(v)
	if err != nil {
		panic(err)
	}
	return value
}

func TestKindString(t *testing.T) {
	for k := range kinds {
		require.NotEmpty(t, k.String())
		require.NotContains(t, k.String(), "kind ")
	}
	require.Equal(t, "kind 10", kinds.String())
	require.Equal(t, "kind 255", Kind(255).String())
}

// The numbers of the kinds are part of the wire format.
func TestKindNumbers(t *testing.T) {
	require.Equal(t, []Kind{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		[]Kind{KindNil, KindBool, KindInt64, KindUint64, KindFloat64, KindString, KindBytes, KindTime, KindDuration, KindAny, kinds})
}
