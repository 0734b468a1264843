package tuple

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

// hashOf hashes all of values.
func hashOf(values ...any) uint64 {
	r := Row{Cells: make([]Cell, len(values)), Kinds: make([]Kind, len(values))}
	if bad := r.fill(values); bad >= 0 {
		panic(badValue(values[bad]))
	}
	fields := make([]int, len(values))
	for i := range fields {
		fields[i] = i
	}
	return Hash(r.Cells, r.Kinds, fields)
}

// The hash decides which task owns a key, on every node and in every version.
// A change of testdata/hash.txt breaks every topology that is running.
func TestHashGolden(t *testing.T) {
	noon := time.Date(2024, 2, 29, 12, 0, 0, 1, time.UTC)
	var out strings.Builder
	for _, tt := range []struct {
		name string
		key  []any
	}{
		{`no fields`, nil},
		{`""`, []any{""}},
		{`"a"`, []any{"a"}},
		{`"abc"`, []any{"abc"}},
		{`"whale"`, []any{"whale"}},
		{`"é" (2 bytes)`, []any{"é"}},
		{`17 bytes`, []any{strings.Repeat("x", 17)}},
		{`200 bytes`, []any{strings.Repeat("x", 200)}},
		{`1000 bytes`, []any{strings.Repeat("x", 1000)}},
		{`no bytes`, []any{[]byte{}}},
		{`bytes of "whale"`, []any{[]byte("whale")}},
		{`1000 bytes of bytes`, []any{[]byte(strings.Repeat("x", 1000))}},
		{`nil`, []any{nil}},
		{`false`, []any{false}},
		{`true`, []any{true}},
		{`0`, []any{0}},
		{`1`, []any{1}},
		{`-1`, []any{-1}},
		{`min int64`, []any{math.MinInt64}},
		{`max int64`, []any{math.MaxInt64}},
		{`max uint64`, []any{uint64(math.MaxUint64)}},
		{`0.5`, []any{0.5}},
		{`-0.5`, []any{-0.5}},
		{`2^64`, []any{0x1p64}},
		{`-2^65`, []any{-0x1p65}},
		{`+Inf`, []any{math.Inf(1)}},
		{`-Inf`, []any{math.Inf(-1)}},
		{`NaN`, []any{math.NaN()}},
		{`time 2024-02-29T12:00:00.000000001Z`, []any{noon}},
		{`duration 1s`, []any{time.Second}},
		{`any point(3,-4)`, []any{Any(point{3, -4})}},
		{`("ab", "c")`, []any{"ab", "c"}},
		{`("a", "bc")`, []any{"a", "bc"}},
		{`("whale", 1)`, []any{"whale", 1}},
		{`(1, "whale")`, []any{1, "whale"}},
		{`(nil, nil)`, []any{nil, nil}},
		{`every kind`, []any{nil, true, -1, uint64(1), 0.5, "a", []byte("b"), noon, time.Hour, Any(label("c"))}},
	} {
		h := hashOf(tt.key...)
		fmt.Fprintf(&out, "%016x %4d  %s\n", h, KeyGroup(h), tt.name)
	}
	golden(t, "hash.txt", "# hash, key group, key\n"+out.String())
}

func TestHashOfText(t *testing.T) {
	// Published vectors of XXH3_64bits, seed 0.
	require.Equal(t, uint64(0x2d06800538d394c2), hashOf(""))
	require.Equal(t, uint64(0x78af5f94892f3950), hashOf("abc"))

	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		require.Equal(t, xxh3.HashString(s), hashOf(s))
		require.NotEqual(t, hashOf(s), hashOf([]byte(s)))
	})
}

func TestHashOfNumbers(t *testing.T) {
	same := func(t require.TestingT, first uint64, numbers ...any) {
		for _, n := range numbers {
			require.Equal(t, first, hashOf(n), "%T %v", n, n)
		}
	}
	same(t, hashOf(0), int8(0), uint(0), 0.0, math.Copysign(0, -1), float32(0))
	same(t, hashOf(-1), int32(-1), -1.0)
	same(t, hashOf(1<<53), uint64(1<<53), 0x1p53)
	same(t, hashOf(math.MinInt64), -0x1p63)
	same(t, hashOf(uint64(1<<63)), 0x1p63)
	same(t, hashOf(math.NaN()), math.Float64frombits(0x7ff0000000000001), math.Float64frombits(0xfff8000000000000), float32(math.NaN()))

	// A float is what it is, not what it was written as: 2^53+1 is no float.
	require.NotEqual(t, hashOf(1<<53+1), hashOf(float64(1<<53+1)))
	require.NotEqual(t, hashOf(uint64(math.MaxUint64)), hashOf(float64(math.MaxUint64)))
	require.NotEqual(t, hashOf(math.MaxInt64), hashOf(float64(math.MaxInt64)))

	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		if n >= 0 {
			same(t, hashOf(n), uint64(n))
		}
		if f := float64(n); f < 0x1p63 && int64(f) == n {
			same(t, hashOf(n), f)
		}
		u := rapid.Uint64().Draw(t, "u")
		if f := float64(u); f < 0x1p64 && uint64(f) == u {
			same(t, hashOf(u), f)
		}
	})
}

// All these are different keys, alone and in pairs, and with 64 bits no two of
// so few may meet.
func TestHashTellsApart(t *testing.T) {
	values := []any{
		nil, false, true, 0, 1, -1, uint64(math.MaxUint64), math.MinInt64, 0.5, 1.5, -0.5, math.Inf(1), math.Inf(-1), math.NaN(),
		0x1p64, -0x1p64, 1e300, math.Float64frombits(1), "", "a", "\x00", "\x00\x00\x00\x00\x00\x00\x00\x00", "\x01\x00\x00\x00\x00\x00\x00\x00",
		[]byte{}, []byte("a"), []byte{0}, make([]byte, 8), time.Unix(0, 0), time.Unix(0, 1), time.Duration(0), time.Duration(1),
		Any(point{}), Any(point{1, 0}), Any(label("a")), "nil", "true", "0",
	}
	seen := map[uint64]string{0: "the key without fields"}
	add := func(key ...any) {
		name := fmt.Sprintf("%#v", key)
		h := hashOf(key...)
		require.NotContains(t, seen, h, "%s hashes like %s", name, seen[h])
		seen[h] = name
	}
	for _, a := range values {
		add(a)
		for _, b := range values {
			add(a, b)
		}
	}
	add("a", "b", "c")
	add("ab", "c")
	add("a", "bc")
	add("", "abc")
	add("abc", "")
	add("abc")
}

func TestHashTakesFieldsInOrder(t *testing.T) {
	p := parcelOf(schemaOf("a", "b", "c"), []any{"x", 7, "y"})
	hash := func(fields ...int) uint64 { return Hash(p.Row(0), p.Kinds, fields) }
	require.Equal(t, hashOf("y"), hash(2))
	require.Equal(t, hashOf("x", "y"), hash(0, 2))
	require.Equal(t, hashOf("y", 7, "x"), hash(2, 1, 0))
	require.Equal(t, hashOf(), hash())
}

func TestHashOfBrokenCodec(t *testing.T) {
	require.Equal(t, `codec "stubborn" cannot encode a key: stubborn is not for export`,
		misuseOf(t, func() { hashOf(Any(stubborn{})) }))
}

func TestHashAllocatesNothing(t *testing.T) {
	p := parcelOf(schemaOf("a", "b", "c", "d", "e"), []any{"whale", -7, []byte("blubber"), 0.5, time.Second})
	fields := []int{0, 1, 2, 3, 4}
	require.Zero(t, testing.AllocsPerRun(100, func() { Hash(p.Row(0), p.Kinds, fields) }))
}

func TestOwner(t *testing.T) {
	for _, tasks := range []int{1, 2, 3, 7, 64, 1000, KeyGroups, 5000} {
		last, owned := 0, map[int]int{}
		for g := range KeyGroups {
			o := Owner(g, tasks)
			require.GreaterOrEqual(t, o, last, "the ranges are not contiguous")
			require.Less(t, o, tasks)
			last = o
			owned[o]++
		}
		require.Len(t, owned, min(tasks, KeyGroups))
		for o, n := range owned {
			require.InDelta(t, float64(KeyGroups)/float64(tasks), n, 1, "task %d of %d", o, tasks)
		}
	}
	require.Equal(t, KeyGroups-1, KeyGroup(math.MaxUint64))
}

// Keys as they come, one after the other, must spread over the groups.
func TestKeyGroupsSpread(t *testing.T) {
	for name, key := range map[string]func(i int) any{
		"int":      func(i int) any { return i },
		"negative": func(i int) any { return -1 - i },
		"float":    func(i int) any { return float64(i) + 0.5 },
		"word":     func(i int) any { return fmt.Sprintf("w%d", i) },
		"time":     func(i int) any { return time.Unix(int64(i), 0) },
	} {
		var n [KeyGroups]int
		for i := range 64 * KeyGroups {
			n[KeyGroup(hashOf(key(i)))]++
		}
		for g := range n {
			// 64 on average; 6 standard deviations are 48.
			require.InDelta(t, 64, n[g], 48, "%s: group %d", name, g)
		}
	}
}

var sinkHash uint64

func BenchmarkHash(b *testing.B) {
	for _, bb := range []struct {
		name   string
		values []any
	}{
		{"string", []any{"whale"}},
		{"int64", []any{1234567}},
		{"float64", []any{0.5}},
		{"string+int64", []any{"whale", 1234567}},
	} {
		b.Run("kind="+bb.name, func(b *testing.B) {
			fields, names := []int{0, 1}[:len(bb.values)], []string{"a", "b"}[:len(bb.values)]
			p := parcelOf(schemaOf(names...), bb.values)
			cells := p.Row(0)
			b.ReportAllocs()
			for b.Loop() {
				sinkHash += Hash(cells, p.Kinds, fields)
			}
		})
	}
}
