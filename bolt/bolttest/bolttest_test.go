package bolttest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/bolt/bolttest"
	"github.com/egretstream/egret/egrettest"
	"github.com/egretstream/egret/tuple"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An example has no *testing.T; two methods are enough.
type example struct{}

func (example) Helper()                           {}
func (example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

var errBroken = errors.New("broken")

// A batcher emits its words when it has three, when it is ticked, and at the end.
type batcher struct {
	words []string
	late  bolt.Output
}

func (b *batcher) Prepare(_ context.Context, task *bolt.Task) error {
	b.late = task.Output("late")
	return nil
}

func (b *batcher) Execute(in tuple.Tuple, out *bolt.Collector) error {
	switch word := in.String("word"); word {
	case "late":
		out.To(b.late).Emit(in.Component(), in.Stream())
	case "bad":
		out.Emit("before")
		return errBroken
	case "worse":
		return bolt.Reject(errBroken)
	case "worst":
		panic("worst")
	default:
		if b.words = append(b.words, strings.Clone(word)); len(b.words) == 3 {
			return b.flush(out)
		}
	}
	return nil
}

func (b *batcher) flush(out *bolt.Collector) error {
	out.Emit(strings.Join(b.words, "+"))
	b.words = nil
	return nil
}

func (b *batcher) Tick(out *bolt.Collector) error   { return b.flush(out) }
func (b *batcher) Finish(out *bolt.Collector) error { return b.flush(out) }

func newBatcher() bolt.Bolt { return &batcher{} }

var outputs = []bolttest.Part{bolttest.Emits("words"), bolttest.EmitsTo("late", "component", "stream")}

func parts(more ...bolttest.Part) []bolttest.Part { return append(outputs[:2:2], more...) }

func TestRun(t *testing.T) {
	words := bolttest.In("word")
	others := words.From("others", "default")
	r := bolttest.Run(t, newBatcher, parts(
		bolttest.Tick(),
		words.Rows("a", "b"),
		others.Row("late"),
		words.Row("late"),
		others.Row("c"), // three
		words.From("others", "more").Rows("d", "late"),
		bolttest.Tick(),
		words.Rows("e", "bad", "worse", 7, "f", "worst", "g"),
	)...)
	require.NoError(t, r.Err)
	require.Equal(t, []string{"", "others default", "in default", "a+b+c", "others more", "d", "before", "g"}, r.Tuples().Lines())
	require.Equal(t, []string{"others default", "in default", "others more"}, r.Stream("late").Lines())
	require.Equal(t, []string{"", "a+b+c", "d", "before", "g"}, r.Stream("default").Lines())

	var got []string
	for _, in := range r.Inputs {
		got = append(got, fmt.Sprint(in.Component, ".", in.Stream, " ", in.Tuple, " -> ", in.Emitted.Lines(), " ", in.Acked, " ", in.Err, " ", in.Rejected()))
	}
	require.Equal(t, []string{
		"in.default a -> [] true <nil> false",
		"in.default b -> [] true <nil> false",
		"others.default late -> [others default] true <nil> false",
		"in.default late -> [in default] true <nil> false",
		"others.default c -> [a+b+c] true <nil> false",
		"others.more d -> [] true <nil> false",
		"others.more late -> [others more] true <nil> false",
		"in.default e -> [] true <nil> false",
		"in.default bad -> [before] false broken false",
		"in.default worse -> [] false broken true",
		`in.default 7 -> [] false field "word" of stream in.default is int64, not string true`,
		"in.default f -> [] true <nil> false",
		"in.default worst -> [] false panic: worst false", // and e and f are forgotten
		"in.default g -> [] true <nil> false",
	}, got)
	require.ErrorIs(t, r.Inputs[8].Err, errBroken)
}

// Ticks and pauses in a bubble, where time is made up.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := bolttest.In("word")
		r := bolttest.Run(t, newBatcher, parts(
			bolttest.Every(time.Minute),
			words.Rows("a", "b"), bolttest.Wait(61*time.Second),
			words.Row("c"), bolttest.Wait(90*time.Second),
			words.Row("d"),
		)...)
		require.Equal(t, []string{"a+b", "c", "d"}, r.Tuples().Lines())
	})
}

// A keeper retains what it gets until it is asked to let go.
type keeper struct{ held []*bolt.Held }

func (k *keeper) Execute(in tuple.Tuple, out *bolt.Collector) error {
	k.held = append(k.held, out.Retain(in))
	return nil
}

func (k *keeper) Flush(out *bolt.Collector) error {
	out.Anchor(k.held...).Emit(len(k.held))
	out.Emit("of its own")
	for _, h := range k.held {
		if h.String("word") == "bad" {
			h.Fail(errBroken)
		} else {
			h.Ack()
		}
	}
	k.held = nil
	return nil
}

func TestRetained(t *testing.T) {
	r := bolttest.Run(t, func() bolt.Bolt { return &keeper{} }, bolttest.Emits("n"), bolttest.In("word").Rows("a", "bad", "b"))
	require.NoError(t, r.Err)
	require.Equal(t, []string{"3", "of its own"}, r.Tuples().Lines())
	require.Equal(t, []string{"3"}, r.Inputs[0].Emitted.Lines(), "under the first that it comes of")
	require.ErrorIs(t, r.Inputs[1].Err, errBroken)
	require.Equal(t, []bool{true, false, true}, []bool{r.Inputs[0].Acked, r.Inputs[1].Acked, r.Inputs[2].Acked})
}

// Without rows there is still Finish.
func TestNothing(t *testing.T) {
	for _, tt := range []struct {
		more []bolttest.Part
		want []string
	}{
		{nil, []string{""}},
		{[]bolttest.Part{bolttest.In("word").Rows()}, []string{""}},
		{[]bolttest.Part{bolttest.Tick()}, []string{"", ""}},
	} {
		r := bolttest.Run(t, newBatcher, parts(tt.more...)...)
		require.NoError(t, r.Err)
		require.Empty(t, r.Inputs)
		require.Equal(t, tt.want, r.Tuples().Lines())
	}
}

// What ends the bolt is in the result.
func TestErr(t *testing.T) {
	r := bolttest.Run(t, newBatcher, bolttest.Emits("words"), bolttest.In("word").Rows("a"))
	require.ErrorContains(t, r.Err, "component it declares no stream late")
	for _, in := range r.Inputs {
		require.False(t, in.Acked)
	}
}

func TestMisuse(t *testing.T) {
	words := bolttest.In("word")
	for _, tt := range []struct {
		parts []bolttest.Part
		want  string
	}{
		{parts(words.Row("a", 1)), `egrettest: Input("in"), item 1: stream in.default has 1 field (word), but the row has 2 values: write []any{...} with one for each field`},
		{parts(words.Row("a"), bolttest.In("word", "n").Row("b", 1)), `bolttest: stream in.default is given with the fields (word) and (word, n): use From to tell them apart`},
		{parts(bolttest.In().Row()), `egrettest: spout in: stream default has no fields`},
		{parts(words.From("it", "default").Row("a")), `egrettest: bolt it: the name is taken: another component has it`},
		{parts(bolttest.Every(-1)), `egrettest: bolt it: the tick interval -1ns is not greater than zero`},
	} {
		require.PanicsWithValue(t, tt.want, func() { bolttest.Run(example{}, newBatcher, tt.parts...) })
	}
	require.PanicsWithValue(t, `egrettest: Tick("it"): the bolt is a *bolt.filter, which has no method Tick(*bolt.Collector) error`, func() {
		bolttest.Run(example{}, bolt.Filter(func(tuple.Tuple) bool { return true }), bolttest.Tick())
	})
	require.PanicsWithValue(t, "egrettest: bolt it: its factory is nil", func() { bolttest.Run(example{}, nil) })
	r := bolttest.Run(example{}, newBatcher, outputs...)
	require.PanicsWithValue(t, `egrettest: component it has no stream "early" (it has default, late)`, func() { r.Stream("early") })
}

var _ egrettest.T = example{}

func Example() {
	var t example // in a test, the *testing.T
	r := bolttest.Run(t, bolt.Count("word"),
		bolttest.Emits("word", "count"),
		bolttest.In("word").Rows("the", "cow", "the", 7))
	fmt.Println(r.Tuples())
	// Output:
	// 7 1
	// cow 1
	// the 2
}
