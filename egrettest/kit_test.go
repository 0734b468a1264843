package egrettest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/egrettest"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

// running emits how often it has had a word so far, which depends on the order of all
// words, and dies of what it cannot bear.
type running map[string]int

func (c running) Execute(in tuple.Tuple, out *bolt.Collector) error {
	word := in.String("word")
	c[strings.Clone(word)]++
	out.Emit(word, c[word])
	switch word {
	case "fails":
		return fmt.Errorf("%s: %w", word, errBroken)
	case "rejected":
		return bolt.Reject(errBroken)
	case "dies":
		panic(errBroken)
	case "misused":
		out.Emit(word)
	}
	return nil
}

func (c running) Finish(out *bolt.Collector) error {
	out.Emit("words", len(c))
	return nil
}

// several is a topology with whatever can come in a different order: two spouts,
// three tasks a bolt, a shuffle behind a shuffle, a bolt that gets all, a memory.
func several(b *topology.Builder) {
	left := b.Spout("left", spout.Slice("not read")).Emits("line").Parallel(2)
	right := b.Spout("right", spout.Slice("not read")).Emits("line").EmitsTo("late", "line", "at")
	words := b.Bolt("split", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
		for word := range strings.FieldsSeq(in.String("line")) {
			out.Emit(word)
		}
		return nil
	}), left.Shuffle(), right.Shuffle(), right.Stream("late").Shuffle()).Emits("word").Parallel(3)
	same := b.Bolt("same", bolt.Filter(func(tuple.Tuple) bool { return true }), words.Shuffle()).Emits("word").Parallel(3)
	b.Bolt("running", func() bolt.Bolt { return running{} }, same.By("word")).Emits("word", "n").Parallel(3)
	b.Bolt("all", func() bolt.Bolt { return running{} }, same.All()).Emits("word", "n").Parallel(3)
}

var severalInputs = []egrettest.Option{
	egrettest.Input("left", "the cow jumped over a moon", "this fails"),
	egrettest.Input("right", egrettest.To("late", "over the moon", 1), "", "this is rejected or fails"),
	egrettest.Input("left", "this is misused", "the cow", "dies", "the moon", "dies", "over the moon"),
}

// dump writes down all of a result.
func dump(r *egrettest.Result, components ...string) string {
	var b strings.Builder
	execution := func(x egrettest.Execution) {
		fmt.Fprintf(&b, "  %s.%s %q -> %s %q, %v\n", x.In.Component, x.In.Stream, x.In, x.Component, x.Emitted.Lines(), x.Err)
	}
	for _, c := range components {
		for _, t := range r.Tuples(c) {
			fmt.Fprintf(&b, "%s.%s %v %v\n", t.Component, t.Stream, t.Fields, t.Values)
		}
		for _, m := range r.Messages(c) {
			fmt.Fprintf(&b, "message of %s: %q acked %v dead %v\n", c, m.Tuple, m.Acked, m.Dead != nil)
			for _, x := range m.Executions {
				execution(x)
			}
		}
	}
	b.WriteString("failed\n")
	for _, x := range r.Failed {
		execution(x)
	}
	for _, l := range r.Dead {
		fmt.Fprintf(&b, "dead %s.%s %q: %v\n", l.Component, l.Stream, l.Tuple, l.Err)
	}
	fmt.Fprintln(&b, r.Err)
	return b.String()
}

// Whatever the scheduler does, the same inputs give the same result.
func TestSameResultEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // for the pause after a second death
		first := ""
		for i := range 50 {
			config := egret.Config{Seed: uint64(i + 1), Logger: slog.New(slog.DiscardHandler)}
			r := egrettest.Run(t, topology.New("several", several), append(slices.Clone(severalInputs), egrettest.Config(config))...)
			text := dump(r, "left", "right", "split", "same", "running", "all")
			if i == 0 {
				first = text
			}
			require.Equal(t, first, text, "run %d", i)
		}
	})
}

func TestSeveral(t *testing.T) {
	r := egrettest.Run(t, topology.New("several", several), severalInputs[:2]...)
	require.ErrorIs(t, r.Err, egret.ErrDead)
	require.Equal(t, []string{"the cow jumped over a moon", "this fails"}, r.Tuples("left").Lines())
	require.Equal(t, []string{"over the moon 1"}, r.Stream("right", "late").Lines())
	require.Equal(t, [][]any{{""}, {"this is rejected or fails"}}, r.Stream("right", "default").Rows())
	require.Equal(t, "the cow jumped over a moon this fails over the moon this is rejected or fails",
		strings.Join(r.Tuples("split").Lines(), " "))
	require.Equal(t, []string{
		"the 1", "cow 1", "jumped 1", "over 1", "a 1", "moon 1", "this 1", "fails 1",
		"over 2", "the 2", "moon 2", "this 2", "is 1", "rejected 1", "or 1", "fails 2",
	}, r.Tuples("running").Lines()[:16])
	require.Len(t, r.Tuples("running"), 16+3, "and Finish of each task")
	require.Len(t, r.Tuples("all"), 3*(16+1))
	require.Equal(t, []string{"the cow jumped over a moon"}, r.Acked("left").Lines())
	require.Equal(t, []string{"over the moon 1", ""}, r.Acked("right").Lines())
	require.Len(t, r.Failed, 3*(1+3), "words that fail, in one task of running and in three of all")
	for _, x := range r.Failed {
		require.ErrorIs(t, x.Err, errBroken)
		require.Equal(t, x.In.String() == "rejected", bolt.IsReject(x.Err))
		require.Len(t, x.Emitted, 1)
	}
	require.Len(t, r.Dead, 2)
	require.Equal(t, "this fails", r.Dead[0].String())
	require.Equal(t, "this is rejected or fails", r.Dead[1].String())
	require.EqualError(t, r.Dead[0].Err, "fails: broken")
	require.EqualError(t, r.Dead[1].Err, "broken", "the first one")
	require.EqualValues(t, 5+3+3, r.Stats.Messages)
}

// one is a topology of a spout "in" of one field "n" and a bolt "out".
func one(factory bolt.Factory) *topology.Topology {
	return topology.New("one", func(b *topology.Builder) {
		in := b.Spout("in", spout.Slice(0, 1, 2)).Emits("n")
		b.Bolt("out", factory, in.Shuffle()).Emits("n")
	})
}

func pass(in tuple.Tuple, out *bolt.Collector) error {
	out.Emit(in.Value("n"))
	return nil
}

func TestPanics(t *testing.T) {
	r := egrettest.Run(t, one(bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
		out.Emit(in.Int64("n"))
		if in.Int64("n") == 2 {
			panic("two")
		}
		return nil
	})), egrettest.Input("in", 1, 2, 3, "four"))
	require.Equal(t, [][]any{{int64(1)}, {int64(2)}, {int64(3)}}, r.Tuples("out").Rows())
	require.Len(t, r.Failed, 2)
	require.EqualError(t, r.Failed[0].Err, "panic: two")
	require.Equal(t, `field "n" of stream in.default is string, not int64`, r.Failed[1].Err.Error())
	require.True(t, bolt.IsReject(r.Failed[1].Err))
	require.Equal(t, []string{"1", "3"}, r.Acked("in").Lines())
	require.Len(t, r.Dead, 2)
	require.EqualValues(t, 1, r.Stats.Restarts)
}

// What a death has cut off comes again as a whole, and is there once.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		died := false
		top := topology.New("lost", func(b *topology.Builder) {
			words := b.Bolt("pass", bolt.Each(pass), b.Spout("in", spout.Rows()).Emits("n").Shuffle()).Emits("n").Parallel(2)
			b.Bolt("out", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
				if in.Int64("n") == 5 && !died {
					time.Sleep(time.Second) // the others come and wait
					died = true
					panic("five")
				}
				return pass(in, out)
			}), words.Global()).Emits("n")
		})
		var rows []any
		var want []string
		for i := range 40 {
			rows = append(rows, i)
			if want = append(want, fmt.Sprint(i)); i == 5 {
				want = append(want, "5") // it had a failure and was tried again
			}
		}
		r := egrettest.Run(t, top, egrettest.Input("in", rows...), egrettest.AtOnce(), egrettest.Config(egret.Config{MaxReplays: 1}))
		require.NoError(t, r.Err)
		require.Greater(t, r.Stats.Lost, int64(1))
		require.Equal(t, want, r.Tuples("in").Lines())
		require.Equal(t, want, r.Tuples("pass").Lines())
		require.Len(t, r.Tuples("out"), 40)
		require.Len(t, r.Executions("out"), 41)
		require.Len(t, r.Failed, 1)
	})
}

// What fails is tried again only if the test wants it.
func TestReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		top := one(bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			at = append(at, time.Since(began))
			out.Emit(len(at))
			if n := in.Int64("n"); n == 2 || n == 1 && len(at) < 3 {
				return errBroken
			}
			return nil
		}))
		r := egrettest.Run(t, top, egrettest.Input("in", 1, 2, 3), egrettest.Config(egret.Config{MaxReplays: 2}))
		ms := time.Millisecond
		require.Equal(t, []time.Duration{0, 50 * ms, 150 * ms, 150 * ms, 200 * ms, 300 * ms, 300 * ms}, at)
		require.Equal(t, []string{"1", "2", "3", "4", "5", "6", "7"}, r.Tuples("out").Lines())
		require.Equal(t, []string{"1", "3"}, r.Acked("in").Lines())
		require.Equal(t, 3, r.Dead[0].Failures)
		require.Equal(t, []string{"1", "1", "1", "2", "2", "2", "3"}, r.Tuples("in").Lines())
		require.Len(t, r.Messages("in")[1].Executions, 3)
	})
}

type ticking struct {
	began time.Time
	n     int64
	fail  bool
}

func (k *ticking) Execute(in tuple.Tuple, out *bolt.Collector) error {
	k.n += in.Int64("n")
	return pass(in, out)
}

func (k *ticking) Tick(out *bolt.Collector) error {
	out.Emit(fmt.Sprint("sum ", k.n, " at ", time.Since(k.began)))
	if k.fail {
		panic("tick")
	}
	return nil
}

func (k *ticking) Finish(out *bolt.Collector) error {
	out.Emit("finish")
	return nil
}

func TestTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		bolts := func() bolt.Bolt { return &ticking{began: began} }
		inputs := egrettest.Input("in", 1, egrettest.Tick("out"), egrettest.Wait(2500*time.Millisecond), 2, 3, egrettest.Tick("out"))
		r := egrettest.Run(t, one(bolts), inputs)
		require.Equal(t, []string{"1", "sum 1 at 0s", "2", "3", "sum 6 at 2.5s", "finish"}, r.Tuples("out").Lines())
		require.Equal(t, []string{"sum 1 at 0s", "sum 6 at 2.5s", "finish"}, r.Acked("out").Lines())
		require.NoError(t, r.Err)

		began = time.Now()
		top := topology.New("every", func(b *topology.Builder) {
			b.Bolt("out", bolts, b.Spout("in", spout.Rows()).Emits("n").All()).Emits("n").Every(time.Second).Parallel(2)
		})
		r = egrettest.Run(t, top, inputs)
		require.Equal(t, []string{"1", "1", "sum 1 at 0s", "sum 1 at 1s", "sum 1 at 2s", "sum 1 at 0s", "sum 1 at 1s", "sum 1 at 2s",
			"2", "2", "3", "3", "sum 6 at 2.5s", "sum 6 at 2.5s", "finish", "finish"}, r.Tuples("out").Lines())

		// A task that dies of its tick has ticked.
		began = time.Now()
		r = egrettest.Run(t, one(func() bolt.Bolt { return &ticking{began: began, fail: true} }), inputs)
		require.Equal(t, []string{"1", "2", "3", "finish"}, r.Tuples("out").Lines())
		require.EqualValues(t, 2, r.Stats.Restarts)
	})
}

func TestInputs(t *testing.T) {
	r := egrettest.Run(t, one(bolt.Each(pass)), egrettest.Input("in"))
	require.Empty(t, r.Tuples("out"))
	require.Empty(t, r.Acked("in"))
	require.NoError(t, r.Err)

	r = egrettest.Run(t, one(bolt.Each(pass)))
	require.Equal(t, []string{"0", "1", "2"}, r.Tuples("out").Lines(), "its own source")
	require.Equal(t, []string{"0", "1", "2"}, r.Acked("in").Lines())

	r = egrettest.Run(t, one(bolt.Each(pass)), egrettest.Input("in", []byte("bytes"), nil, []any{2.5}, time.Second, uint8(7)))
	require.Equal(t, [][]any{{[]byte("bytes")}, {nil}, {2.5}, {time.Second}, {uint64(7)}}, r.Tuples("out").Rows())
	require.Equal(t, "[98 121 116 101 115]\nnil\n2.5\n1s\n7", r.Tuples("out").String())

	r = egrettest.Run(t, one(bolt.Each(pass)), egrettest.Input("in", 1), egrettest.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return errBroken })))
	require.ErrorIs(t, r.Failed[0].Err, errBroken)

	top := topology.New("params", func(b *topology.Builder) {
		in := b.Spout("in", spout.Slice(b.Strings("say", nil, "what to say")...)).Emits("n")
		b.Bolt("out", bolt.Each(pass), in.Shuffle()).Emits("n").Parallel(b.Int("tasks", 1, "tasks"))
	})
	params := map[string][]string{"say": {"no"}, "tasks": {"2"}}
	r = egrettest.Run(t, top, egrettest.Config(egret.Config{Params: params}), egrettest.Param("say", "a", "b"))
	require.Equal(t, []string{"a", "b"}, r.Tuples("out").Sorted().Lines())
	require.Len(t, r.Stats.Tasks, 3)
	require.Equal(t, []string{"no"}, params["say"], "the config is the test's")
}

// At once, many rows are under way at the same time, and all is there in the end.
func TestAtOnce(t *testing.T) {
	var rows []any
	for i := range 1000 {
		rows = append(rows, fmt.Sprint("the ", i))
	}
	r := egrettest.Run(t, topology.New("several", several), egrettest.AtOnce(),
		egrettest.Input("left", rows...), egrettest.Input("right", rows...))
	require.NoError(t, r.Err)
	require.Len(t, r.Acked("left"), 1000)
	require.Equal(t, rows[999], r.Acked("right")[999].Values[0])
	require.Equal(t, []string{"the", "0", "the", "1"}, r.Tuples("split").Lines()[:4])
	require.Len(t, r.Tuples("running"), 4000+3)
}

// Nothing is acked where nothing is tracked, but all tuples are there.
func TestAtMostOnce(t *testing.T) {
	g := topology.AtMostOnce
	r := egrettest.Run(t, topology.New("several", several), append(severalInputs[:2:2], egrettest.Config(egret.Config{Guarantee: &g}))...)
	require.NoError(t, r.Err)
	require.Len(t, r.Tuples("running"), 16+3)
	require.Equal(t, []string{"the 1", "cow 1", "jumped 1", "over 1", "a 1", "moon 1"}, r.Tuples("running").Lines()[:6])
	require.Empty(t, r.Acked("left"))
	require.Empty(t, r.Dead)
	require.Len(t, r.Messages("left"), 2)
	require.Len(t, r.Failed, 12)
}

// A queue can be given an input, and one of its own hears of everything.
func TestQueue(t *testing.T) {
	jobs := from.NewMemory(10)
	top := topology.New("queue", func(b *topology.Builder) {
		b.Bolt("out", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			if in.String("n") == "fails" {
				return errBroken
			}
			return pass(in, out)
		}), b.Queue("in", jobs.Queue).Emits("n").Shuffle(), b.Spout("more", spout.Rows()).Emits("n").Shuffle()).Emits("n")
	})
	r := egrettest.Run(t, top, egrettest.Input("in", "a", "fails", "b"), egrettest.Input("more", "c"))
	require.Equal(t, []string{"a", "b", "c"}, r.Tuples("out").Lines())
	require.ErrorIs(t, r.Dead[0].Err, errBroken)

	for _, n := range []string{"a", "fails", "b"} {
		_, err := jobs.Push(t.Context(), n)
		require.NoError(t, err)
	}
	jobs.Close()
	r = egrettest.Run(t, top, egrettest.Input("more", "c", "fails", "d"))
	require.Equal(t, []string{"a", "b", "c", "d"}, r.Tuples("out").Sorted().Lines())
	require.Equal(t, []string{"a", "b"}, r.Acked("in").Lines())
	require.Len(t, r.Failed, 2)
	require.Len(t, r.Dead, 1, "what the queue got back is its own")
	require.Len(t, jobs.Failed(), 1)
}

type lossy struct{ A, B byte }

func init() {
	tuple.RegisterCodec("egrettest.lossy",
		func(dst []byte, v lossy) ([]byte, error) { return append(dst, v.A), nil },
		func(b []byte) (lossy, error) { return lossy{A: b[0]}, nil })
}

// What travels has been through the codec, so one that loses something shows.
func TestEncodes(t *testing.T) {
	r := egrettest.Run(t, one(bolt.Each(pass)), egrettest.Input("in", tuple.Any(lossy{1, 2})))
	require.Equal(t, [][]any{{lossy{1, 2}}}, r.Tuples("in").Rows())
	require.Equal(t, [][]any{{lossy{1, 0}}}, r.Tuples("out").Rows())
	require.Equal(t, "{1 0}", r.Tuples("out")[0].String())
}

// An error that ends the run is in the result.
func TestRunError(t *testing.T) {
	top := topology.New("bad", func(b *topology.Builder) {
		in := b.Spout("in", spout.Func(func(context.Context, *spout.Out) error { return spout.Fatal(errBroken) })).Emits("n")
		b.Bolt("out", bolt.Each(pass), in.Shuffle()).Emits("n")
	})
	r := egrettest.Run(t, top)
	require.ErrorIs(t, r.Err, errBroken)
	require.Empty(t, r.Tuples("in"))
}
