package egrettest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/egrettest"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A broken test is one that has failed: Fatalf panics with the text.
type brokenTest struct{}

type failure string

func (brokenTest) Helper()                           {}
func (brokenTest) Fatalf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

// failed returns with what text f fails the test that it is given.
func failed(t *testing.T, f func(egrettest.T)) (text string) {
	t.Helper()
	defer func() {
		if what := recover(); what != nil {
			text = string(what.(failure))
		}
	}()
	f(brokenTest{})
	t.Error("it has not failed")
	return ""
}

func TestMisuse(t *testing.T) {
	top := topology.New("words", func(b *topology.Builder) {
		lines := b.Spout("lines", spout.Slice("a")).Emits("line").EmitsTo("late", "line", "at")
		b.Bolt("split", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), lines.Shuffle()).
			Emits("word").Parallel(b.Int("tasks", 1, ""))
	})
	type own struct{}
	for _, tt := range []struct {
		option egrettest.Option
		want   string
	}{
		{egrettest.Input("line", "x"), `Input: there is no spout "line" (have lines, split)`},
		{egrettest.Input("split", "x"), `Input: component split is a bolt: give the input to a spout (have lines, split)`},
		{egrettest.Input("lines", "ok", []any{"a", 1}), `Input("lines"), item 2: stream lines.default has 1 field (line), but the row has 2 values: write []any{...} with one for each field`},
		{egrettest.Input("lines", egrettest.To("late", "x")), `Input("lines"), item 1: stream lines.late has 2 fields (line, at), but the row has 1 value: write []any{...} with one for each field`},
		{egrettest.Input("lines", egrettest.To("early", "x")), `Input("lines"), item 1: spout lines has no stream "early" (it has default, late)`},
		{egrettest.Input("lines", own{}), `Input("lines"), item 1: field "line" of stream lines.default: a egrettest_test.own is no value: use a built-in integer, float, bool, string, []byte, time.Time or time.Duration, or tuple.Any with a registered codec`},
		{egrettest.Input("lines", egrettest.Tick("lines")), `Input("lines"), item 1: Tick: there is no bolt "lines" (have lines, split)`},
		{egrettest.Input("lines", egrettest.Tick("split")), `Tick("split"): the bolt is a bolt.each, which has no method Tick(*bolt.Collector) error`},
		{egrettest.Input("lines", egrettest.Wait(-time.Second)), `Input("lines"), item 1: Wait(-1s): a pause is not negative`},
		{egrettest.Bolt("splt", bolt.Count()), `Bolt: there is no component "splt" (have lines, split)`},
		{egrettest.Bolt("lines", bolt.Count()), `Bolt: component lines is a spout: give it an Input`},
		{egrettest.Bolt("split", nil), `Bolt("split", nil): a factory is needed`},
		{egrettest.Param("task", "1"), `unknown parameter "task" (have tasks)`},
		{egrettest.Param("tasks", "0"), `bolt split: parallelism 0 is not between 1 and 4096`},
		{egrettest.Config(egret.Config{MaxPending: -1}), `config: MaxPending is -1, but must be at least 1`},
	} {
		text := failed(t, func(t egrettest.T) { egrettest.Run(t, top, tt.option) })
		require.Equal(t, "egrettest: "+tt.want, text)
	}
	// All mistakes at once.
	text := failed(t, func(t egrettest.T) {
		egrettest.Run(t, top, egrettest.Input("line", "x"), egrettest.Input("lines", 1, egrettest.To("early", 1), own{}), egrettest.Bolt("splt", bolt.Count()))
	})
	require.Regexp(t, `(?s)splt.*"line".*"early".*test\.own`, text)

	r := egrettest.Run(brokenTest{}, top)
	for _, tt := range []struct {
		look func()
		want string
	}{
		{func() { r.Tuples("line") }, `there is no component "line" (have lines, split)`},
		{func() { r.Stream("lines", "early") }, `component lines has no stream "early" (it has default, late)`},
		{func() { r.Stream("line", "late") }, `there is no component "line" (have lines, split)`},
		{func() { r.Acked("line") }, `there is no component "line" (have lines, split)`},
		{func() { r.Messages("line") }, `there is no component "line" (have lines, split)`},
		{func() { r.Executions("line") }, `there is no component "line" (have lines, split)`},
		{func() { r.Executions("lines") }, `component lines is a spout: it executes nothing`},
	} {
		require.Equal(t, "egrettest: "+tt.want, failed(t, func(egrettest.T) { tt.look() }))
	}
}

// A run that does not come to rest fails the test, which hears what it waits for,
// and leaves nothing behind.
func TestDoesNotComeToRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		endless := topology.New("endless", func(b *topology.Builder) {
			b.Bolt("out", bolt.Each(pass), b.Spout("in", spout.Func(func(ctx context.Context, _ *spout.Out) error {
				<-ctx.Done()
				return ctx.Err()
			})).Emits("n").Shuffle()).Emits("n")
		})
		text := failed(t, func(t egrettest.T) { egrettest.Run(t, endless) })
		require.Equal(t, "egrettest: topology endless has not come to rest within 30s:\n"+
			"\tnothing is open: a source that is not replaced by an Input has not ended", text)
		require.Equal(t, 30*time.Second, time.Since(began))

		// The bolt waits for something that does not come, until its life ends.
		began = time.Now()
		waits := one(bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			if in.Int64("n") == 2 {
				<-out.Context().Done()
			}
			return nil
		}))
		text = failed(t, func(t egrettest.T) {
			egrettest.Run(t, waits, egrettest.Input("in", 1, egrettest.Wait(time.Hour), 2, 3), egrettest.Within(20*time.Second))
		})
		require.Equal(t, "egrettest: topology one has not come to rest within 20s:\n"+
			"\tmessage of in/0: in.default (2)\n"+
			"\tout/0 is in Execute with in.default (2)\n"+
			"\tthe inputs have given 3 of 4 items", text)
		require.Equal(t, time.Hour+20*time.Second, time.Since(began))

		// It does not come back at all: the test fails all the same.
		began = time.Now()
		var stuck sync.WaitGroup
		stuck.Add(1)
		text = failed(t, func(t egrettest.T) {
			egrettest.Run(t, one(bolt.Each(func(tuple.Tuple, *bolt.Collector) error { stuck.Wait(); return nil })), egrettest.Input("in", 1))
		})
		require.Contains(t, text, "out/0 is in Execute with in.default (1)")
		require.Contains(t, text, "and it does not stop: the code of a component does not return")
		require.Equal(t, 31*time.Second, time.Since(began))
		stuck.Done()
	})
}
