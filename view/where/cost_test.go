package where

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/tuple"
)

// bounded sees that what is asked has no way back, so that each instruction is done at most
// once, and that its cost is known.
func bounded(t require.TestingT, f *Filter) {
	code := f.program.Bytecode
	require.LessOrEqual(t, len(code), 8*maxNodes)
	for _, op := range code {
		require.NotContains(t, []vm.Opcode{vm.OpJumpBackward, vm.OpBegin, vm.OpRange, vm.OpMap, vm.OpCreate, vm.OpStore}, op)
	}
	require.Positive(t, f.cost)
	require.LessOrEqual(t, f.cost, MaxCost)
}

// plain is stream without a field that takes the name of a function away.
var plain = &tuple.Schema{Component: "split", Stream: "default", Masked: stream.Masked, Fields: slices.Concat(stream.Fields[:12], []string{"other"})}

// longs are values that cost as much as they can.
func longs() [][]any {
	var rows [][]any
	for _, text := range []string{strings.Repeat("a", 2*MaxText), strings.Repeat("\xff", 2*MaxText), strings.Repeat("ɐ", MaxText), "12", "2026-07-01"} {
		rows = append(rows, []any{text, 1 << 62, uint64(1<<63 + 1), -1.5e300, []byte(text), time.Date(2261, 7, 1, 3, 0, 0, 999999999, time.FixedZone("ABCDE", 3601)),
			time.Duration(-1 << 63), true, nil, text, "4111-SECRET", nil, text})
	}
	return rows
}

// expressions are drawn by rule, and so that most of them are accepted.
func expressions() *rapid.Generator[string] {
	leaf := rapid.OneOf(
		rapid.SampledFrom([]string{"word", "body"}),
		rapid.SampledFrom([]string{"word", "count", "size", "ratio", "at", "took", "ok", "none", `$env["with-dash"]`, "12", "1.5", "true", `"a"`, `"ɐé"`, `"2026-07-01"`, `b"\xff"`}),
		rapid.Map(rapid.IntRange(0, 200), func(n int) string { return `"` + strings.Repeat("x", n) + `"` }),
	)
	var node func(depth int) *rapid.Generator[string]
	node = func(depth int) *rapid.Generator[string] {
		if depth == 0 {
			return leaf
		}
		return rapid.Custom(func(t *rapid.T) string {
			sub := func() string { return node(depth-1).Draw(t, "sub") }
			switch rapid.IntRange(0, 10).Draw(t, "kind") {
			case 0, 1:
				return leaf.Draw(t, "leaf")
			case 2, 9:
				return fmt.Sprintf("(%s + %s)", sub(), sub())
			case 3:
				op := rapid.SampledFrom([]string{"==", "<", "&&", "??", "in", "contains", "startsWith", "-", "*", "**", "%"}).Draw(t, "op")
				return fmt.Sprintf("(%s %s %s)", sub(), op, sub())
			case 4, 5, 6:
				name := rapid.SampledFrom(functions).Draw(t, "function")
				if slices.Contains([]string{"hasPrefix", "hasSuffix", "indexOf", "lastIndexOf", "max", "min", "trimPrefix", "trimSuffix"}, name) {
					return fmt.Sprintf("%s(%s, %s)", name, sub(), sub())
				}
				return fmt.Sprintf("%s(%s)", name, sub())
			case 7:
				name := rapid.SampledFrom(slices.Concat(methods, strings.Fields("Format String GoString MarshalText Local Location"))).Draw(t, "method")
				return fmt.Sprintf("%s.%s(%s)", sub(), name, rapid.SampledFrom([]string{"", "at", `"2006"`, "took"}).Draw(t, "argument"))
			case 8:
				return fmt.Sprintf("[%s, %s][%d]", sub(), sub(), rapid.IntRange(-2, 1).Draw(t, "index"))
			}
			return fmt.Sprintf("(%s matches %q ? %s : %s[1:])", sub(), rapid.StringMatching(`[a.]{1,3}(\(a\|.\*\)\{1,30\})?`).Draw(t, "pattern"), sub(), sub())
		})
	}
	return rapid.Custom(func(t *rapid.T) string { return node(rapid.IntRange(1, 5).Draw(t, "depth")).Draw(t, "text") })
}

// No expression that is accepted makes more than was computed before, of whatever tuple.
func TestCost(t *testing.T) {
	var rows []tuple.Tuple
	for _, r := range longs() {
		rows = append(rows, row(t, plain, r...))
	}
	accepted, made, size := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		e := expressions().Draw(t, "expression")
		f, err := Compile("none == ("+e+")", plain)
		if err != nil {
			require.NotContains(t, err.Error(), "SECRET")
			return
		}
		accepted++
		bounded(t, f)
		is := f.New()
		for _, r := range rows {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = is(r)
			runtime.ReadMemStats(&after)
			n := int(after.TotalAlloc - before.TotalAlloc)
			require.LessOrEqual(t, n, 4*f.cost+64<<10, "bytes that %q has made", e)
			made = max(made, n)
		}
		tree, err := parser.Parse(e)
		require.NoError(t, err)
		m := &meter{stream: plain, own: map[string]bool{}}
		most := m.of(tree.Node)
		if f, err = Compile(fmt.Sprintf("len(string(%s)) > %d", e, most), plain); err != nil {
			return
		}
		for _, r := range rows {
			larger, _ := f.New()(r)
			require.False(t, larger, "%q has more than %d bytes", e, most)
		}
		size = max(size, most)
	})
	t.Logf("%d accepted, up to %d bytes made, values of up to %d", accepted, made, size)
	require.Greater(t, accepted, 5, "the rule draws what is refused")
}

// What is refused is refused before much is done for it.
func TestRefusedAtOnce(t *testing.T) {
	for _, text := range []string{
		bomb(34), chain(199), chain(20), strings.Repeat("(", 999), strings.Repeat("[", 500) + strings.Repeat("]", 500), strings.Repeat("-", 999) + "1",
		`word matches "` + strings.Repeat(`\\pL{1000}`, 28) + `"`, `word matches "((((a{9}){9}){9}){9}){9}"`, strings.Repeat("word+", 190) + "word",
		strings.Repeat("string(", 140) + "word" + strings.Repeat(")", 140), strings.Repeat("not ", 249) + "ok", strings.Repeat("ok?", 300) + "1" + strings.Repeat(":1", 50),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Compile(text, stream)
		runtime.ReadMemStats(&after)
		require.Error(t, err, text)
		require.Less(t, int(after.TotalAlloc-before.TotalAlloc), 8<<20, text)
	}
}
