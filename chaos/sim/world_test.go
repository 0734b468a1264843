package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/actor"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// calm is a world where everything arrives at once and costs 1 ns.
var calm = Config{Links: Links{Quick: -1, LateEvery: -1, FreezeEvery: -1}, Cost: -1}

// A toy is an actor made of functions; those it lacks do nothing.
type toy struct {
	start   func(actor.Context)
	receive func(actor.Context, any)
	turn    func(actor.Context) bool
	stopped func(actor.Context)
}

func (t *toy) Start(ctx actor.Context) {
	if t.start != nil {
		t.start(ctx)
	}
}

func (t *toy) Receive(ctx actor.Context, msg any) {
	if t.receive != nil {
		t.receive(ctx, msg)
	}
}

func (t *toy) Turn(ctx actor.Context) bool { return t.turn != nil && t.turn(ctx) }

func (t *toy) Stopped(ctx actor.Context) {
	if t.stopped != nil {
		t.stopped(ctx)
	}
}

// recorder is an actor that appends what it receives.
func recorder(to *[]any) *toy {
	return &toy{receive: func(_ actor.Context, msg any) { *to = append(*to, msg) }}
}

type said struct{ by, n int }

func TestOrder(t *testing.T) {
	overtaken := 0
	for seed := range uint64(50) {
		w := New(Config{Seed: seed})
		var got []any
		sink := w.Spawn("sink", recorder(&got))
		for by := range 5 {
			n := 0
			w.Spawn("talker", &toy{turn: func(ctx actor.Context) bool {
				ctx.Send(sink, said{by, n})
				n++
				return n < 200
			}})
		}
		require.NoError(t, w.Run(nil, Limit{}))
		require.Len(t, got, 1000)
		var next [5]int
		most := 0
		for _, m := range got {
			s := m.(said)
			require.Equal(t, next[s.by], s.n, "seed %d, talker %d", seed, s.by)
			next[s.by]++
			if s.n < most {
				overtaken++
			}
			most = max(most, s.n)
		}
		require.Equal(t, Left{}, w.Left())
	}
	// The twin: talkers do overtake each other, by much.
	require.Greater(t, overtaken, 1000)
}

// chatter runs some actors that use all of the contract under all the faults.
func chatter(seed uint64) (log string, hash uint64) {
	var text bytes.Buffer
	w := New(Config{Seed: seed, Log: &text, OnSend: func(from, to actor.Ref, msg any) (v Verdict) {
		if s, ok := msg.(said); ok && s.n%7 == 3 {
			v = Verdict{Copies: s.n % 2, Loose: s.n%3 == 0, Delay: time.Duration(s.n) * us, Drop: s.n%5 == 0}
		}
		return v
	}})
	var all []actor.Ref
	var make func(depth int) *toy
	make = func(depth int) *toy {
		n := 0
		return &toy{
			start: func(ctx actor.Context) {
				all = append(all, ctx.Self())
				ctx.After(time.Duration(ctx.Rand().IntN(1000))*us, "tick")
				if depth > 0 {
					ctx.Watch(ctx.Spawn("child", make(depth-1)))
				}
			},
			receive: func(ctx actor.Context, msg any) {
				to := all[ctx.Rand().IntN(len(all))]
				switch msg.(type) {
				case string:
					ctx.Block(func() any { w.Spend(30 * us); return 7 })
				case int:
					ctx.Send(to, said{depth, ctx.Rand().IntN(100)})
				case actor.Terminated:
					ctx.Spawn("heir", make(0))
				case said:
					w.Spend(time.Duration(ctx.Rand().IntN(10)) * us)
					if n++; n < 30 {
						ctx.Send(to, said{depth, ctx.Rand().IntN(100)})
					}
				}
			},
			stopped: func(ctx actor.Context) { ctx.Send(all[0], said{depth, 1}) },
		}
	}
	for range 6 {
		w.Spawn("root", make(3))
	}
	for i := range 8 {
		w.At(time.Duration(i+1)*400*us, "trouble", func() {
			switch ref := all[i*5%len(all)]; i % 5 {
			case 0:
				w.Kill(ref)
			case 1:
				w.Crash(ref)
			case 2:
				w.Freeze(ref, ms)
			case 3:
				w.Slow(ref, 3)
				w.FreezeLink(all[0], ref, ms)
			case 4:
				w.Stop(ref)
			}
		})
	}
	if err := w.Run(nil, Limit{Events: 1_000_000}); err != nil {
		panic(err)
	}
	if w.Left() != (Left{}) {
		panic(fmt.Sprintf("at rest with %v", w.Left()))
	}
	return text.String(), w.Hash()
}

func TestSameSeedSameRun(t *testing.T) {
	seen := map[uint64]bool{}
	all := ""
	for seed := range uint64(100) {
		log, hash := chatter(seed)
		again, hashAgain := chatter(seed)
		require.Equal(t, log, again, "seed %d", seed)
		require.Equal(t, hash, hashAgain, "seed %d", seed)
		require.False(t, seen[hash], "seed %d runs like another", seed)
		seen[hash] = true
		all += log
	}
	for _, what := range []string{"spawn", "start", "recv", "turn", "stopped", "end", "kill", "crash", "freeze", "slow", "link",
		"at", "lost", "cut", "drop", "copy", "block", "unblock"} {
		if !strings.Contains(all, " "+what+" ") {
			t.Errorf("no %s in all the runs", what)
		}
	}
}

func TestHashWithoutLog(t *testing.T) {
	run := func(c Config) uint64 {
		w := New(c)
		w.Send(w.Spawn("a", &toy{}), 3*time.Second) // has a String method
		require.NoError(t, w.Run(nil, Limit{}))
		return w.Hash()
	}
	var text bytes.Buffer
	require.Equal(t, run(Config{}), run(Config{Log: &text}))
	require.Contains(t, text.String(), " recv a#1 from outside time.Duration: 3s\n")
	require.NotEqual(t, run(Config{}), run(Config{Seed: 1}))
}

type classy struct{}

func (classy) Class() string { return "limit" }

func TestLog(t *testing.T) {
	var text bytes.Buffer
	c := calm
	c.Log = &text
	w := New(c)
	a := w.Spawn("a", &toy{receive: func(ctx actor.Context, msg any) {
		if msg == "go" {
			ctx.After(ms, classy{})
		}
	}})
	w.Send(a, "go")
	require.NoError(t, w.Run(nil, Limit{}))
	require.Equal(t, `0 spawn a#1
0 start a#1
1 recv a#1 from outside string
2 turn a#1
1000001 recv a#1 from a#1 sim.classy
1000002 turn a#1
`, string(bytes.ReplaceAll(text.Bytes(), []byte("limit"), []byte("sim.classy"))))
	require.Contains(t, text.String(), "from a#1 limit\n")
}

func TestTimersAreExact(t *testing.T) {
	for seed := range uint64(20) {
		w := New(Config{Seed: seed, Cost: -1})
		type due struct{ at, now time.Duration }
		var got []due
		w.Spawn("a", &toy{
			start: func(ctx actor.Context) {
				for range 100 {
					d := time.Duration(ctx.Rand().IntN(1000)) * ms
					ctx.After(d, ctx.Now()+d)
				}
				ctx.After(-5, ctx.Now()) // at once
			},
			receive: func(ctx actor.Context, msg any) { got = append(got, due{msg.(time.Duration), ctx.Now()}) },
		})
		require.NoError(t, w.Run(nil, Limit{}))
		require.Len(t, got, 101)
		for _, g := range got {
			// The actor may be busy with others that were due at the same time, 1 ns each.
			require.InDelta(t, g.at, g.now, 300)
		}
	}

	w := New(calm)
	var got []any
	w.Spawn("a", &toy{
		start: func(ctx actor.Context) {
			w.Spend(3 * ms)
			ctx.After(2*ms, "b")
			ctx.After(ms, "a")
			ctx.After(2*ms, "c")
		},
		receive: func(ctx actor.Context, msg any) { got = append(got, msg, ctx.Now()) },
	})
	require.NoError(t, w.Run(nil, Limit{}))
	require.Equal(t, []any{"a", 4 * ms, "b", 5 * ms, "c", 5*ms + 1}, got)
}

// A turn comes when the mailbox is dry, and again while it says so.
func TestTurns(t *testing.T) {
	for seed := range uint64(50) {
		w := New(Config{Seed: seed})
		var a *proc
		turns, received, inRow, rows := 0, 0, 0, 0
		ref := w.Spawn("a", &toy{
			receive: func(actor.Context, any) { received++; inRow = 0 },
			turn: func(actor.Context) bool {
				require.Zero(t, a.mailbox.len())
				turns++
				inRow++
				if inRow == 3 {
					rows++
				}
				return inRow < 3
			},
		})
		a = w.find(ref)
		for i := range 200 {
			w.Send(ref, i)
		}
		require.NoError(t, w.Run(nil, Limit{}))
		require.Equal(t, 200, received)
		require.Equal(t, 3, inRow, "the last message is followed by all the turns that were asked for")
		require.Positive(t, rows)
	}
}

func TestSpend(t *testing.T) {
	w := New(calm)
	var at []time.Duration
	factor := time.Duration(1)
	b := w.Spawn("b", &toy{receive: func(ctx actor.Context, _ any) { at = append(at, ctx.Now()) }})
	a := w.Spawn("a", &toy{receive: func(ctx actor.Context, msg any) {
		start := ctx.Now()
		for i := range 3 {
			w.Spend(ms)
			require.Equal(t, start+time.Duration(i+1)*factor*ms, ctx.Now())
			require.Equal(t, ctx.Now(), w.Now())
			ctx.Send(b, i)
		}
	}})
	require.NoError(t, w.RunFor(ms))
	zero := w.Now()
	w.Send(a, "x")
	w.Send(a, "y") // waits until a has spent its 3 ms for x
	require.NoError(t, w.Run(nil, Limit{}))
	for i := range at {
		at[i] -= zero
	}
	require.Equal(t, []time.Duration{ms, 2 * ms, 3 * ms, 4*ms + 1, 5*ms + 1, 6*ms + 1}, at)
	require.PanicsWithError(t, "sim: Spend outside a call: only an actor's code has time to spend", func() { w.Spend(1) })

	at = nil
	factor = 10
	w.Slow(a, 10)
	w.Send(a, "x")
	require.NoError(t, w.Run(nil, Limit{}))
	require.Equal(t, 20*ms, at[2]-at[0])
	require.Panics(t, func() { w.Slow(a, 0) })
}

func TestBlock(t *testing.T) {
	reordered := false
	for seed := range uint64(50) {
		w := New(Config{Seed: seed})
		var ran, got []any
		w.Spawn("a", &toy{
			start: func(ctx actor.Context) {
				for i := range 20 {
					ctx.Block(func() any { ran = append(ran, i); w.Spend(ms); return i })
				}
				require.Empty(t, ran, "Block returns at once")
				ctx.Block(func() any { return nil })
			},
			receive: func(ctx actor.Context, msg any) {
				if msg != nil {
					require.GreaterOrEqual(t, ctx.Now(), ms)
					got = append(got, msg)
				}
			},
		})
		require.NoError(t, w.Run(nil, Limit{}))
		require.ElementsMatch(t, ran, got)
		require.Len(t, got, 20)
		reordered = reordered || !slices.Equal(ran, got)
	}
	require.True(t, reordered)
}

func TestBlockOfTheDead(t *testing.T) {
	ran := 0
	for seed := range uint64(100) {
		w := New(Config{Seed: seed})
		a := w.Spawn("a", &toy{
			start: func(ctx actor.Context) {
				ctx.Block(func() any { ran++; return nil })
				w.Kill(ctx.Self())
				ctx.Block(func() any { t.Error("the dead do nothing"); return nil })
			},
			receive: func(actor.Context, any) { t.Error("the dead hear nothing") },
		})
		require.NoError(t, w.Run(nil, Limit{}))
		require.False(t, w.Alive(a))
		require.Equal(t, Left{}, w.Left())
	}
	require.Positive(t, ran)
	require.Less(t, ran, 100)
}

func TestPanic(t *testing.T) {
	cause := errors.New("boom")
	for _, tt := range []struct {
		name string
		toy  *toy
	}{
		{"start", &toy{start: func(actor.Context) { panic(cause) }}},
		{"recv", &toy{receive: func(actor.Context, any) { panic(cause) }}},
		{"turn", &toy{turn: func(actor.Context) bool { panic(cause) }}},
		{"stopped", &toy{stopped: func(actor.Context) { panic(cause) }}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := New(Config{})
			var got []any
			a := w.Spawn("a", tt.toy)
			watch(w, &got, a)
			w.Send(a, "x")
			w.At(time.Second, "stop", func() { w.Stop(a) })
			err := w.Run(nil, Limit{})
			require.ErrorIs(t, err, cause)
			require.ErrorContains(t, err, "a#1 at ")
			require.ErrorContains(t, err, "in "+tt.name+": panic: boom\n")
			require.ErrorContains(t, err, "world_test.go", "the stack")
			require.ErrorIs(t, w.Err(), cause)
			require.NoError(t, w.Run(nil, Limit{}), "the others go on")
			require.Len(t, got, 1)
			require.Equal(t, a, got[0].(actor.Terminated).Ref)
			require.ErrorIs(t, got[0].(actor.Terminated).Err, cause)
		})
	}
}

// watch spawns an actor that watches others and records what it hears.
func watch(w *World, to *[]any, refs ...actor.Ref) actor.Ref {
	r := recorder(to)
	r.start = func(ctx actor.Context) {
		for _, ref := range refs {
			ctx.Watch(ref)
			ctx.Watch(ref)
		}
	}
	return w.Spawn("watcher", r)
}

func TestMisuse(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		start      func(*World, actor.Context)
	}{
		{"kept context", "the context of a#1 is used outside the call", func(w *World, ctx actor.Context) {
			ctx.Block(func() any { return ctx.Now() })
		}},
		{"no ref", "<nil> is no actor of this world", func(_ *World, ctx actor.Context) { ctx.Send(nil, 1) }},
		{"foreign ref", "is no actor of this world", func(_ *World, ctx actor.Context) { ctx.Watch(address{1, "x"}) }},
		{"step in a call", "cannot run the world", func(w *World, _ actor.Context) { w.Step() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := New(Config{})
			w.Spawn("a", &toy{start: func(ctx actor.Context) { tt.start(w, ctx) }})
			require.ErrorContains(t, w.Run(nil, Limit{}), tt.want)
		})
	}
	w := New(Config{})
	var late actor.Ref
	a := w.Spawn("a", &toy{stopped: func(ctx actor.Context) {
		late = ctx.Spawn("late", &toy{start: func(actor.Context) { t.Error("nobody would stop it") }})
	}})
	w.Stop(a)
	require.NoError(t, w.Run(nil, Limit{}))
	require.False(t, w.Alive(late))
	require.Equal(t, Left{}, w.Left())
}

// An actor that panics ends when its children have stopped.
func TestPanicOfAParent(t *testing.T) {
	w := New(Config{})
	var stopped, heard []any
	var child actor.Ref
	a := w.Spawn("a", &toy{
		start: func(ctx actor.Context) {
			child = ctx.Spawn("child", &toy{stopped: func(actor.Context) { stopped = append(stopped, w.Now()) }})
		},
		receive: func(_ actor.Context, msg any) { panic(msg) },
		stopped: func(actor.Context) { t.Error("it did not stop in good order") },
	})
	watch(w, &heard, a)
	require.NoError(t, w.Run(nil, Limit{}))
	w.Freeze(child, time.Minute)
	w.Send(a, "boom")
	w.Send(a, "boom")
	require.ErrorContains(t, w.Run(nil, Limit{}), "boom")
	require.NoError(t, w.RunFor(time.Second))
	require.True(t, w.Alive(a))
	require.NoError(t, w.Run(nil, Limit{}))
	require.Len(t, stopped, 1)
	require.False(t, w.Alive(a) || w.Alive(child))
	require.Len(t, heard, 1)
	require.EqualError(t, heard[0].(actor.Terminated).Err, "panic: boom")
	require.Equal(t, Left{}, w.Left())
}

func TestPanicInBlock(t *testing.T) {
	w := New(Config{})
	var got []any
	r := recorder(&got)
	r.start = func(ctx actor.Context) { ctx.Block(func() any { panic("boom") }) }
	a := w.Spawn("a", r)
	require.NoError(t, w.Run(nil, Limit{}))
	require.Len(t, got, 1)
	require.Equal(t, "boom", got[0].(actor.Panicked).Value)
	require.Contains(t, string(got[0].(actor.Panicked).Stack), "TestPanicInBlock")
	require.True(t, w.Alive(a))
}

// What is spent in a Block makes its result late and nothing else.
func TestSpendInBlock(t *testing.T) {
	w := New(calm)
	var at []time.Duration
	w.Spawn("a", &toy{
		start: func(ctx actor.Context) {
			ctx.Block(func() any { w.Spend(5 * ms); return 1 })
			ctx.After(ms, 2)
		},
		receive: func(ctx actor.Context, _ any) { at = append(at, ctx.Now()) },
	})
	require.NoError(t, w.Run(nil, Limit{}))
	require.Equal(t, []time.Duration{ms, 5 * ms}, at)
}

func TestCost(t *testing.T) {
	for _, tt := range []struct {
		name     string
		cost     time.Duration
		slow     float64
		min, max time.Duration // of 1000 turns
	}{
		{"default", 0, 1, 1000 * 20 * us, 1000 * 30 * us},
		{"slow", 0, 10, 1000 * 200 * us, 1000 * 300 * us},
		{"none", -1, 1, 1000, 1000},
		{"small", 500, 1, 1000 * 500, 1000 * 500},
		{"large", ms, 1, 1000 * 400 * us, 1000 * 600 * us},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := New(Config{Cost: tt.cost})
			var times []time.Duration
			a := w.Spawn("a", &toy{turn: func(ctx actor.Context) bool {
				times = append(times, ctx.Now())
				return len(times) <= 1000
			}})
			w.Slow(a, tt.slow)
			require.NoError(t, w.Run(nil, Limit{}))
			took := times[1000] - times[0]
			require.GreaterOrEqual(t, took, tt.min)
			require.LessOrEqual(t, took, tt.max)
		})
	}
}

func TestRun(t *testing.T) {
	w := New(calm)
	require.False(t, w.Step())
	require.ErrorIs(t, w.Run(func() bool { return false }, Limit{}), ErrRest)
	ticks := 0
	w.Spawn("clock", &toy{
		start:   func(ctx actor.Context) { ctx.After(time.Second, "tick") },
		receive: func(ctx actor.Context, _ any) { ticks++; ctx.After(time.Second, "tick") },
	})
	require.NoError(t, w.Run(func() bool { return ticks == 3 }, Limit{}))
	require.Equal(t, 3*time.Second, w.Now())

	err := w.Run(func() bool { return ticks == 100 }, Limit{Time: 10500 * ms})
	require.ErrorIs(t, err, ErrLimit)
	require.ErrorContains(t, err, "1 timers")
	require.Equal(t, 13, ticks)
	require.Equal(t, Left{Timers: 1}, w.Left())

	before := w.Events()
	require.ErrorIs(t, w.Run(nil, Limit{Events: 50}), ErrLimit)
	require.Equal(t, before+50, w.Events())

	now := w.Now()
	planned := time.Duration(0)
	w.At(now+1500*us, "plan", func() { planned = w.Now() })
	require.NoError(t, w.RunFor(time.Minute))
	require.Equal(t, now+time.Minute, w.Now())
	require.Equal(t, now+1500*us, planned)
	require.NoError(t, w.RunFor(0))
	require.NoError(t, New(Config{}).RunFor(time.Second))
}
