package spout_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

var oneField = []*tuple.Schema{{Component: "in", Stream: "default", Fields: []string{"x"}}}

// texts returns the messages of b, the fields of one separated by a space.
func texts(b *spout.Batch) []string {
	var all []string
	for i := range b.Len() {
		seg, cells := b.Message(i)
		p := &tuple.Parcel{Schema: oneField[0]}
		p.Begin(seg.Kinds, 1)
		p.AppendRun(cells, 1)
		var words []string
		for k := range p.Tuple(0).Len() {
			words = append(words, p.Tuple(0).At(k).String())
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

// next calls Next once for at most max messages.
func next(r spout.Reader, schemas []*tuple.Schema, max int) ([]string, error) {
	out, b := spout.NewOut(schemas), &spout.Batch{}
	out.Collect(b, max)
	err := r.Next(context.Background(), out)
	return texts(b), err
}

// readAll reads a split from a position, at most max messages a call, and
// checks that no call brings more. It gives up after calls calls.
func readAll(t require.TestingT, s spout.Source, split spout.Split, position string, max, calls int) []string {
	r, err := s.Open(context.Background(), split, position)
	require.NoError(t, err)
	if c, ok := r.(io.Closer); ok {
		defer func() { require.NoError(t, c.Close()) }()
	}
	var all []string
	for range calls {
		got, err := next(r, oneField, max)
		require.LessOrEqual(t, len(got), max)
		all = append(all, got...)
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
	}
	return all
}

func splitsOf(t require.TestingT, s spout.Source) []spout.Split {
	splits, err := s.Splits(context.Background())
	require.NoError(t, err)
	return splits
}

func TestStockSources(t *testing.T) {
	double := func(i int64, out *spout.Out) { out.Emit(2 * i) }
	for _, tt := range []struct {
		name   string
		source spout.Source
		want   map[spout.Split]string
	}{
		{"slice", spout.Slice("a", "b", "c"), map[spout.Split]string{"slice": "a b c"}},
		{"slice of numbers", spout.Slice(1, 2), map[spout.Split]string{"slice": "1 2"}},
		{"empty slice", spout.Slice[string](), map[spout.Split]string{"slice": ""}},
		{"rows", spout.Rows([]any{"a"}, []any{7}, []any{nil}), map[spout.Split]string{"rows": "a 7 nil"}},
		{"no rows", spout.Rows(), map[spout.Split]string{"rows": ""}},
		{"generate", spout.Generate(4, double), map[spout.Split]string{"generate": "0 2 4 6"}},
		{"generate, some", spout.Generate(6, func(i int64, out *spout.Out) {
			for range i % 3 {
				out.Emit(i)
			}
		}), map[spout.Split]string{"generate": "1 2 2 4 5 5"}},
		{"generate in splits", spout.GenerateSplits(2, 2, func(split int, i int64, out *spout.Out) {
			out.Emit(fmt.Sprint(split, "/", i))
		}), map[spout.Split]string{"generate:0": "0/0 0/1", "generate:1": "1/0 1/1"}},
		{"repeat", spout.Repeat(spout.Slice("a", "b"), 3), map[spout.Split]string{"slice": "a b a b a b"}},
		{"repeat once", spout.Repeat(spout.Slice("a", "b"), 1), map[spout.Split]string{"slice": "a b"}},
		{"repeat twice twice", spout.Repeat(spout.Repeat(spout.Slice("a", "b"), 2), 2), map[spout.Split]string{"slice": "a b a b a b a b"}},
		{"repeat nothing for ever", spout.Repeat(spout.Slice[int](), 0), map[spout.Split]string{"slice": ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, max := range []int{1, 2, 3, 1000} {
				got := map[spout.Split]string{}
				for _, split := range splitsOf(t, tt.source) {
					// A call of the function may bring two messages when there is room for one.
					room := max
					if tt.name == "generate, some" {
						room = max + 1
					}
					r, err := tt.source.Open(t.Context(), split, "")
					require.NoError(t, err)
					var all []string
					for err == nil {
						var some []string
						some, err = next(r, oneField, max)
						require.LessOrEqual(t, len(some), room)
						all = append(all, some...)
					}
					require.ErrorIs(t, err, io.EOF)
					_, err = next(r, oneField, max)
					require.ErrorIs(t, err, io.EOF, "the end stays the end")
					got[split] = strings.Join(all, " ")
				}
				require.Equal(t, tt.want, got, "max %d", max)
			}
		})
	}
}

// From every position that a reader ever gives, the rest is read again.
func TestStockResume(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 12).Draw(t, "items")
		times := rapid.IntRange(1, 4).Draw(t, "times")
		var source spout.Source
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			source, times = spout.Slice(items...), 1
		case 1:
			source = spout.Repeat(spout.Slice(items...), times)
		case 2:
			times = 1
			source = spout.GenerateSplits(1, int64(len(items))+1, func(_ int, i int64, out *spout.Out) {
				if i < int64(len(items)) {
					out.Emit(items[i])
				}
			})
		}
		var want []string
		for range times {
			for _, x := range items {
				want = append(want, fmt.Sprint(x))
			}
		}
		split := splitsOf(t, source)[0]
		r, err := source.Open(context.Background(), split, "")
		require.NoError(t, err)
		var sofar []string
		for err == nil {
			var got []string
			got, err = next(r, oneField, rapid.IntRange(1, 5).Draw(t, "max"))
			sofar = append(sofar, got...)
			rest := readAll(t, source, split, r.Position(), 3, 1000)
			require.Equal(t, want, append(sofar[:len(sofar):len(sofar)], rest...), "from %q", r.Position())
		}
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, want, sofar)
	})
}

func TestStockIsPrompt(t *testing.T) {
	f := func(int64, *spout.Out) {}
	wait := spout.Func(func(context.Context, *spout.Out) error { return nil })
	for name, tt := range map[string]struct {
		source spout.Source
		prompt bool
	}{
		"slice":           {spout.Slice(1), true},
		"rows":            {spout.Rows([]any{1}), true},
		"generate":        {spout.Generate(1, f), true},
		"repeat slice":    {spout.Repeat(spout.Slice(1), 0), true},
		"func":            {wait, false},
		"repeat function": {spout.Repeat(wait, 0), false},
	} {
		r, err := tt.source.Open(t.Context(), splitsOf(t, tt.source)[0], "")
		require.NoError(t, err)
		_, prompt := r.(spout.Prompt)
		require.Equal(t, tt.prompt, prompt, name)
	}
}

func TestEndless(t *testing.T) {
	source := spout.Repeat(spout.Generate(2, func(i int64, out *spout.Out) { out.Emit(i) }), 0)
	require.Len(t, readAll(t, source, "generate", "", 7, 100), 700)
	source = spout.Generate(0, func(i int64, out *spout.Out) { out.Emit(i) })
	require.Len(t, readAll(t, source, "generate", "", 7, 100), 700)
}

// A function that emits nothing gives the turn back.
func TestGenerateNothing(t *testing.T) {
	source := spout.Generate(0, func(int64, *spout.Out) {})
	r, err := source.Open(t.Context(), "generate", "")
	require.NoError(t, err)
	got, err := next(r, oneField, 10)
	require.NoError(t, err)
	require.Empty(t, got)
	require.NotEqual(t, "0", r.Position())
}

func TestFunc(t *testing.T) {
	n := 0
	broken := errors.New("broken")
	source := spout.Func(func(_ context.Context, out *spout.Out) error {
		for !out.Full() {
			if n == 5 {
				return io.EOF
			}
			n++
			out.Emit(n)
			if n == 4 {
				return broken
			}
		}
		return nil
	})
	r, err := source.Open(t.Context(), "func", "")
	require.NoError(t, err)
	got, err := next(r, oneField, 3)
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3"}, got)
	require.Equal(t, "3", r.Position())
	_, err = next(r, oneField, 3)
	require.ErrorIs(t, err, broken)

	r, err = source.Open(t.Context(), "func", "3")
	require.NoError(t, err)
	got, err = next(r, oneField, 3)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"5"}, got, "goes on where the function goes on")
	require.Equal(t, "4", r.Position())
}

// A repeated reader that may wait returns what it has before it opens the next
// round.
func TestRepeatDoesNotWaitWithMessages(t *testing.T) {
	source := spout.Repeat(spout.Func(func(_ context.Context, out *spout.Out) error {
		out.Emit("x")
		return io.EOF
	}), 2)
	r, err := source.Open(t.Context(), "func", "")
	require.NoError(t, err)
	got, err := next(r, oneField, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, got)
	require.Equal(t, "1:", r.Position())
	got, err = next(r, oneField, 10)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"x"}, got)
}

// The rest of a round may be empty: that does not end the source, as an empty
// round does.
func TestRepeatFromTheEndOfARound(t *testing.T) {
	source := spout.Repeat(spout.Slice("a", "b"), 3)
	require.Equal(t, []string{"a", "b"}, readAll(t, source, "slice", "1:2", 10, 10))
	require.Empty(t, readAll(t, source, "slice", "3:", 10, 10))
}

// closing counts its open readers.
type closing struct {
	spout.Source
	open *int
}

func (c closing) Open(ctx context.Context, split spout.Split, position string) (spout.Reader, error) {
	r, err := c.Source.Open(ctx, split, position)
	*c.open++
	return closingReader{r, c.open}, err
}

type closingReader struct {
	spout.Reader
	open *int
}

func (c closingReader) Close() error { *c.open--; return nil }

func TestRepeatCloses(t *testing.T) {
	open := 0
	source := spout.Repeat(closing{spout.Slice(1, 2), &open}, 0)
	r, err := source.Open(t.Context(), "slice", "")
	require.NoError(t, err)
	for range 10 {
		_, err := next(r, oneField, 3)
		require.NoError(t, err)
		require.LessOrEqual(t, open, 1)
	}
	require.NoError(t, r.(io.Closer).Close())
	require.Zero(t, open)
}

func TestStockErrors(t *testing.T) {
	f := func(int64, *spout.Out) {}
	for _, tt := range []struct {
		source          spout.Source
		split, position string
		want            string
	}{
		{spout.Slice(1), "slice", "x", `position "x" of split "slice" is not a number of messages: the position belongs to another source`},
		{spout.Slice(1), "slice", "-1", `position "-1" of split "slice" is not a number of messages: the position belongs to another source`},
		{spout.Slice(1), "slice", "2", `position 2 of split "slice" is behind its end, which is 1: the position belongs to another source`},
		{spout.Slice(1), "rows", "", `the source has no split "rows": it has changed since it listed its splits`},
		{spout.Slice(1), "slice:0", "", `the source has no split "slice:0": it has changed since it listed its splits`},
		{spout.GenerateSplits(2, 0, func(int, int64, *spout.Out) {}), "generate:2", "", `the source has no split "generate:2": it has changed since it listed its splits`},
		{spout.GenerateSplits(2, 0, func(int, int64, *spout.Out) {}), "generate", "", `the source has no split "generate": it has changed since it listed its splits`},
		{spout.Func(func(context.Context, *spout.Out) error { return nil }), "slice", "", `the source has no split "slice": it has changed since it listed its splits`},
		{spout.Func(func(context.Context, *spout.Out) error { return nil }), "func", "a", `position "a" of split "func" is not a number of messages: the position belongs to another source`},
		{spout.Repeat(spout.Slice(1), 0), "slice", "7", `position "7" of split "slice" is not the number of a round, a colon and a position: the position belongs to another source`},
		{spout.Generate(-1, f), "", "", `a source of generated messages has the length -1: it must be at least 0, which is endless`},
		{spout.GenerateSplits(0, 1, func(int, int64, *spout.Out) {}), "", "", `a source of generated messages has 0 splits: it needs at least 1`},
		{spout.Repeat(spout.Slice(1), -2), "", "", `a source is repeated -2 times: it must be at least 0, which is for ever`},
	} {
		var err error
		if tt.split == "" {
			_, err = tt.source.Splits(t.Context())
		} else {
			_, err = tt.source.Open(t.Context(), spout.Split(tt.split), tt.position)
		}
		require.EqualError(t, err, tt.want)
		require.True(t, spout.IsFatal(err), "%v", err)
	}
}

// A message of a stock source costs no allocation; a call of Next costs few.
func TestStockAllocates(t *testing.T) {
	items := make([]string, 1000)
	for i := range items {
		items[i] = fmt.Sprint("item ", i)
	}
	for name, source := range map[string]spout.Source{
		"slice":    spout.Slice(items...),
		"generate": spout.Generate(1000, func(i int64, out *spout.Out) { out.Emit(i + 1000) }),
		"repeat":   spout.Repeat(spout.Slice(items[:500]...), 2),
	} {
		out, b := spout.NewOut(oneField), &spout.Batch{}
		split := splitsOf(t, source)[0]
		allocs := testing.AllocsPerRun(20, func() {
			r, err := source.Open(context.Background(), split, "")
			for err == nil {
				b.Reset()
				out.Collect(b, 250)
				err = r.Next(context.Background(), out)
			}
		})
		require.Less(t, allocs, 20.0, name)
	}
}

func ExampleSlice() {
	source := spout.Slice("the cow", "jumped")
	show(source, "")
	show(source, "1")
	// Output:
	// slice: the cow, jumped
	// slice: jumped
}

func ExampleGenerateSplits() {
	show(spout.GenerateSplits(2, 3, func(split int, i int64, out *spout.Out) {
		out.Emit(int64(split)*100 + i)
	}), "")
	// Output:
	// generate:0: 0, 1, 2
	// generate:1: 100, 101, 102
}

func ExampleRepeat() {
	show(spout.Repeat(spout.Slice("tick", "tock"), 2), "")
	// Output: slice: tick, tock, tick, tock
}

// show prints what the engine would read.
func show(source spout.Source, position string) {
	splits, err := source.Splits(context.Background())
	for _, split := range splits {
		var r spout.Reader
		r, err = source.Open(context.Background(), split, position)
		var all []string
		for err == nil {
			var got []string
			got, err = next(r, oneField, 2)
			all = append(all, got...)
		}
		fmt.Printf("%s: %s\n", split, strings.Join(all, ", "))
	}
	if err != io.EOF {
		fmt.Println(err)
	}
}
