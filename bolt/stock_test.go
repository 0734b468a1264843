package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

// stream makes a schema with the fields that are named, separated by spaces.
func stream(fields string) *tuple.Schema {
	return &tuple.Schema{Component: "in", Stream: "default", Fields: strings.Fields(fields)}
}

// A parcel is used again for each tuple, so what is kept of one shows.
type feed struct {
	row tuple.Row
	p   tuple.Parcel
}

func (f *feed) tuple(s *tuple.Schema, values ...any) tuple.Tuple {
	f.row.Set(s, values)
	f.p.Reset()
	f.p.Schema = s
	f.p.Begin(f.row.Kinds, 1)
	f.p.AppendRun(f.row.Cells, 1)
	return f.p.Tuple(0)
}

// play runs a bolt from its first tuple to its end and returns what it emitted, a
// tuple a line, and the error of each tuple that failed.
func play(t require.TestingT, make bolt.Factory, s, to *tuple.Schema, rows ...[]any) (emitted, failed []string) {
	var r recorder
	b := make()
	task := &bolt.Task{Component: "it", Parallel: 1}
	if to != nil {
		task.Streams = []*tuple.Schema{to}
	}
	if p, ok := b.(bolt.Preparer); ok {
		if err := p.Prepare(context.Background(), task); err != nil {
			return nil, []string{err.Error()}
		}
	}
	out := bolt.NewCollector(context.Background(), task.Streams, &r)
	var f feed
	for _, row := range rows {
		if err := execute(b, f.tuple(s, row...), out); err != nil {
			failed = append(failed, err.Error())
		}
	}
	f.p.Reset()
	if end, ok := b.(bolt.Finisher); ok {
		require.NoError(t, end.Finish(out))
	}
	for _, row := range r.rows {
		emitted = append(emitted, strings.TrimSuffix(fmt.Sprint(row.values)[1:], "]"))
	}
	return emitted, failed
}

// execute is Execute as a task does it.
func execute(b bolt.Bolt, in tuple.Tuple, out *bolt.Collector) (err error) {
	defer func() {
		if what := recover(); what != nil {
			if err = tuple.Misused(what); err == nil {
				panic(what)
			}
			err = fmt.Errorf("misuse: %w", err)
		}
	}()
	if err := b.Execute(in, out); bolt.IsReject(err) {
		return fmt.Errorf("reject: %w", err)
	} else if err != nil {
		return err
	}
	return nil
}

func rows(values ...any) (all [][]any) {
	for _, v := range values {
		all = append(all, []any{v})
	}
	return all
}

func TestEachFilterFlatMap(t *testing.T) {
	broken := errors.New("broken")
	var leaked func(...any)
	for _, tt := range []struct {
		name    string
		make    bolt.Factory
		to      string
		emitted []string
		failed  []string
	}{
		{"each", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			if in.Int64("x") == 2 {
				return broken
			}
			out.Emit(in.Int64("x") * 10)
			return nil
		}), "y", []string{"10", "30"}, []string{"broken"}},
		{"filter", bolt.Filter(func(in tuple.Tuple) bool { return in.Int64("x") != 2 }), "y", []string{"1", "3"}, nil},
		{"filter, too few fields", bolt.Filter(func(in tuple.Tuple) bool { return in.Int64("x") == 2 }), "y z", nil, []string{
			`misuse: stream in.default has 2 fields ("y", "z"), but got 1 value`}},
		{"filter, no stream", bolt.Filter(func(in tuple.Tuple) bool { return in.Int64("x") == 2 }), "", nil, []string{
			`misuse: the component declares no stream: add .Emits(...)`}},
		{"flat map", bolt.FlatMap(func(in tuple.Tuple, yield func(...any)) {
			for i := range in.Int64("x") {
				yield(in.Int64("x"), i)
			}
		}), "x i", []string{"1 0", "2 0", "2 1", "3 0", "3 1", "3 2"}, nil},
		{"flat map, late yield", bolt.FlatMap(func(in tuple.Tuple, yield func(...any)) { leaked = yield }), "x", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var to *tuple.Schema
			if tt.to != "" {
				to = stream(tt.to)
			}
			emitted, failed := play(t, tt.make, stream("x"), to, rows(1, 2, 3)...)
			require.Equal(t, tt.emitted, emitted)
			require.Equal(t, tt.failed, failed)
		})
	}
	require.PanicsWithError(t, "yield was called after the function of FlatMap has returned", func() { leaked(1) })
}

// A filter passes on every kind as it is.
func TestFilterKeepsValues(t *testing.T) {
	var r recorder
	s := stream("a b c d e f g h i")
	out := bolt.NewCollector(t.Context(), []*tuple.Schema{s}, &r)
	var f feed
	values := []any{nil, true, int64(-1), uint64(math.MaxUint64), 2.5, "text", []byte("bytes"), time.Unix(7, 8).UTC(), time.Minute}
	require.NoError(t, bolt.Filter(func(tuple.Tuple) bool { return true })().Execute(f.tuple(s, values...), out))
	require.Equal(t, []taken{{0, values, 9}}, r.rows)
}

func TestCount(t *testing.T) {
	nan := math.Float64frombits(0x7ff8000000000123)
	for _, tt := range []struct {
		name   string
		fields []string
		in     string
		rows   [][]any
		want   []string
	}{
		{"words", []string{"word"}, "word", rows("the", "cow", "the", "", "the"), []string{" 1", "cow 1", "the 3"}},
		{"nothing", []string{"word"}, "word", nil, nil},
		{"all", nil, "word", rows("a", "b", 3), []string{"3"}},
		{"numbers of one value", []string{"n"}, "n",
			rows(1, uint64(1), 1.0, -1, -1.0, 0, math.Copysign(0, -1), 0.5, uint64(1<<63), float64(1<<63), math.NaN(), nan, math.Inf(-1), math.Inf(1), int64(math.MinInt64), -0x1p63),
			[]string{"NaN 2", "-Inf 1", "-9223372036854775808 2", "-1 2", "0 2", "0.5 1", "1 3", "9223372036854775808 2", "+Inf 1"}},
		{"nearly the same numbers", []string{"n"}, "n",
			rows(int64(1<<53+1), 0x1p53, uint64(math.MaxUint64), 0x1p64, int64(math.MinInt64), 0x1p63),
			[]string{"-9223372036854775808 1", "9.007199254740992e+15 1", "9007199254740993 1", "9.223372036854776e+18 1", "18446744073709551615 1", "1.8446744073709552e+19 1"}},
		{"kinds", []string{"n"}, "n",
			rows("1", 1, []byte("1"), true, false, true, nil, time.Unix(0, 1), time.Duration(1), "", []byte(nil), nil, time.Unix(0, 1)),
			[]string{"<nil> 2", "false 1", "true 2", "1 1", " 1", "1 1", "[] 1", "[49] 1", "1970-01-01 00:00:00.000000001 +0000 UTC 2", "1ns 1"}},
		{"two fields", []string{"b", "a"}, "a b",
			[][]any{{"x", "yz"}, {"xy", "z"}, {"x", "yz"}, {"x", 1}, {"", ""}, {"sx", "y"}, {"x", "ys"}},
			[]string{"1 x 1", "  1", "y sx 1", "ys x 1", "yz x 2", "z xy 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := stream(strings.Repeat("f ", len(tt.fields)) + "count")
			emitted, failed := play(t, bolt.Count(tt.fields...), stream(tt.in), to, tt.rows...)
			require.Empty(t, failed)
			require.Equal(t, tt.want, emitted)
		})
	}
}

type point struct{ X int }

func init() {
	tuple.RegisterCodec("bolt_test.point",
		func(dst []byte, p point) ([]byte, error) { return append(dst, byte(p.X)), nil },
		func(b []byte) (point, error) { return point{int(b[0])}, nil })
}

func TestStockErrors(t *testing.T) {
	for _, tt := range []struct {
		make   bolt.Factory
		in, to string
		row    []any
		want   string
	}{
		{bolt.Count("word"), "word", "", nil, `component it counts and declares no stream: add .Emits("word", "count")`},
		{bolt.Count("word"), "word", "word", nil, `component it counts by 1 field and its stream default has 1 (word): it needs one more than it counts by, as in .Emits("word", "count")`},
		{bolt.Count(), "word", "a b", nil, `component it counts by 0 fields and its stream default has 2 (a, b): it needs one more than it counts by, as in .Emits("count")`},
		{bolt.Count("word"), "line", "word count", []any{"x"}, `misuse: stream in.default has no field "word" (it has "line")`},
		{bolt.Count("at"), "at", "at count", []any{tuple.Any(point{1})}, `reject: field "at" of stream in.default is a bolt_test.point, by which Count cannot count: emit a field with a plain value of it`},
		{bolt.Top(-1, "n"), "n", "n", nil, `component it keeps the top -1 tuples: it must be at least 0, which is all`},
		{bolt.Top(1, "n"), "n", "", nil, `component it keeps the top tuples and declares no stream: add .Emits(...) with the fields of its input`},
		{bolt.Top(1, "n"), "m", "m", []any{1}, `misuse: stream in.default has no field "n" (it has "m")`},
		{bolt.Top(1, "n"), "n", "n", []any{"1"}, `reject: field "n" of stream in.default is string, not a number, by which Top could order`},
		{bolt.Top(1, "n"), "n m", "n", []any{1, 2}, `reject: stream in.default has 2 fields and stream in.default, to which Top passes its tuples, has 1: give it as many`},
	} {
		var to *tuple.Schema
		if tt.to != "" {
			to = stream(tt.to)
		}
		var in [][]any
		if tt.row != nil {
			in = [][]any{tt.row}
		}
		emitted, failed := play(t, tt.make, stream(tt.in), to, in...)
		require.Equal(t, []string{tt.want}, failed)
		require.Empty(t, emitted)
	}
}

func TestTop(t *testing.T) {
	words := [][]any{{"the", 3}, {"cow", 1}, {"a", 3}, {"jumped", uint64(2)}, {"moon", 2.5}, {"nan", math.NaN()}, {"a", 3}}
	for _, tt := range []struct {
		n    int
		want []string
	}{
		{1, []string{"a 3"}},
		{2, []string{"a 3", "a 3"}},
		{3, []string{"a 3", "a 3", "the 3"}},
		{5, []string{"a 3", "a 3", "the 3", "moon 2.5", "jumped 2"}},
		{0, []string{"a 3", "a 3", "the 3", "moon 2.5", "jumped 2", "cow 1", "nan NaN"}},
		{100, []string{"a 3", "a 3", "the 3", "moon 2.5", "jumped 2", "cow 1", "nan NaN"}},
	} {
		emitted, failed := play(t, bolt.Top(tt.n, "count"), stream("word count"), stream("w c"), words...)
		require.Empty(t, failed)
		require.Equal(t, tt.want, emitted, "n %d", tt.n)
	}
	emitted, _ := play(t, bolt.Top(3, "count"), stream("word count"), stream("w c"))
	require.Empty(t, emitted)
}

// Whatever comes in whatever order: the top n are the first n of all in order.
func TestTopIsPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Custom(func(t *rapid.T) any {
			x := rapid.IntRange(-3, 3).Draw(t, "number")
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				return x
			case 1:
				return uint64(x * x)
			default:
				return float64(x) / 2
			}
		})
		in := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []any {
			return []any{rapid.SampledFrom([]any{"a", "b", 1, nil, true, []byte("x")}).Draw(t, "first"), number.Draw(t, "by"), number.Draw(t, "last")}
		}), 0, 30).Draw(t, "rows")
		s := stream("first by last")
		all, failed := play(t, bolt.Top(0, "by"), s, s, in...)
		require.Empty(t, failed)
		require.Len(t, all, len(in))
		n := rapid.IntRange(1, 35).Draw(t, "n")
		shuffled := rapid.Permutation(in).Draw(t, "shuffled")
		some, failed := play(t, bolt.Top(n, "by"), s, s, shuffled...)
		require.Empty(t, failed)
		require.Equal(t, fmt.Sprint(all[:min(n, len(all))]), fmt.Sprint(some))
	})
}

// kept is a sink that remembers where the first string of its last row lies.
type kept struct{ text *byte }

func (k *kept) Put(_ int, row *tuple.Row) {
	p := &tuple.Parcel{Schema: stream("first")}
	p.Begin(row.Kinds, 1)
	p.AppendRun(row.Cells, 1)
	k.text = unsafe.StringData(p.Tuple(0).At(0).String())
}

// What is kept is cloned, so that it does not keep the text of a whole parcel.
func TestStockClones(t *testing.T) {
	word := strings.Repeat("word", 3)
	for name, tt := range map[string]struct {
		make   bolt.Factory
		to     string
		cloned bool
	}{
		"count":        {bolt.Count("word"), "word count", true},
		"count by two": {bolt.Count("word", "n"), "word n count", true},
		"top":          {bolt.Top(1, "n"), "word n", true},
		"filter":       {bolt.Filter(func(tuple.Tuple) bool { return true }), "word n", false},
	} {
		var k kept
		b := tt.make()
		out := bolt.NewCollector(t.Context(), []*tuple.Schema{stream(tt.to)}, &k)
		var f feed
		require.NoError(t, b.Execute(f.tuple(stream("word n"), word, 1), out))
		if end, ok := b.(bolt.Finisher); ok {
			require.NoError(t, end.Finish(out))
		}
		require.Equal(t, tt.cloned, k.text != unsafe.StringData(word), name)
	}
}

// Counting and filtering of plain values cost no allocation once a key is known.
func TestStockAllocates(t *testing.T) {
	s := stream("word n")
	words := stream("word count")
	for name, tt := range map[string]struct {
		make bolt.Factory
		to   *tuple.Schema
	}{
		"count":        {bolt.Count("word"), words},
		"count by two": {bolt.Count("word", "n"), stream("word n count")},
		"filter":       {bolt.Filter(func(in tuple.Tuple) bool { return in.Int64("n") == 7 }), s},
		"top":          {bolt.Top(1, "n"), s},
	} {
		b := tt.make()
		out := bolt.NewCollector(context.Background(), []*tuple.Schema{tt.to}, nowhere{})
		var f feed
		in := f.tuple(s, "the", 7)
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = b.Execute(in, out) }), name)
	}
}

type nowhere struct{}

func (nowhere) Put(int, *tuple.Row) {}

func BenchmarkStock(b *testing.B) {
	s := stream("word n")
	for _, bb := range []struct {
		name string
		make bolt.Factory
	}{
		{"bolt=count", bolt.Count("word")},
		{"bolt=filter", bolt.Filter(func(in tuple.Tuple) bool { return in.Int64("n") == 7 })},
		{"bolt=top", bolt.Top(10, "n")},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			it := bb.make()
			out := bolt.NewCollector(b.Context(), []*tuple.Schema{s}, nowhere{})
			var f feed
			in := f.tuple(s, "the", 7)
			for b.Loop() {
				_ = it.Execute(in, out)
			}
		})
	}
}

func ExampleCount() {
	emitted, _ := play(nil, bolt.Count("word"), stream("word"), stream("word count"), rows("the", "cow", "the")...)
	fmt.Println(strings.Join(emitted, "\n"))
	// Output:
	// cow 1
	// the 2
}

func ExampleTop() {
	s := stream("word count")
	emitted, _ := play(nil, bolt.Top(2, "count"), s, s, []any{"cow", 1}, []any{"the", 2}, []any{"moon", 1})
	fmt.Println(strings.Join(emitted, "\n"))
	// Output:
	// the 2
	// cow 1
}

func ExampleFlatMap() {
	split := bolt.FlatMap(func(in tuple.Tuple, yield func(...any)) {
		for word := range strings.FieldsSeq(in.String("line")) {
			yield(word)
		}
	})
	emitted, _ := play(nil, split, stream("line"), stream("word"), rows("the cow", "jumped")...)
	fmt.Println(strings.Join(emitted, "\n"))
	// Output:
	// the
	// cow
	// jumped
}
