package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/actor"
)

// family spawns a parent with two children and appends who is Stopped to names.
func family(w *World, names *[]any) (parent, one, two actor.Ref) {
	end := func(name string) func(actor.Context) {
		return func(actor.Context) { *names = append(*names, name) }
	}
	parent = w.Spawn("parent", &toy{
		start: func(ctx actor.Context) {
			one = ctx.Spawn("one", &toy{stopped: end("one")})
			two = ctx.Spawn("two", &toy{stopped: end("two")})
		},
		receive: func(actor.Context, any) { *names = append(*names, "message") },
		stopped: end("parent"),
	})
	if err := w.Run(nil, Limit{}); err != nil {
		panic(err)
	}
	return parent, one, two
}

func TestStop(t *testing.T) {
	for seed := range uint64(100) {
		w := New(Config{Seed: seed})
		var stopped, heard []any
		parent, one, two := family(w, &stopped)
		watch(w, &heard, parent, one, two)
		require.NoError(t, w.Run(nil, Limit{}))
		w.Freeze(one, time.Second)
		w.Freeze(parent, ms)
		w.Stop(parent)
		w.Stop(parent)
		w.At(100*ms, "lost", func() { w.Send(parent, "lost") })
		require.NoError(t, w.Run(nil, Limit{}))
		require.Equal(t, []any{"two", "one", "parent"}, stopped, "children first, and the parent waits for them")
		require.ElementsMatch(t, []any{actor.Terminated{Ref: parent}, actor.Terminated{Ref: one}, actor.Terminated{Ref: two}}, heard)
		require.False(t, w.Alive(parent) || w.Alive(one) || w.Alive(two))
		require.Equal(t, Left{}, w.Left())

		heard = nil
		watch(w, &heard, parent)
		require.NoError(t, w.Run(nil, Limit{}))
		require.Equal(t, []any{actor.Terminated{Ref: parent}, actor.Terminated{Ref: parent}}, heard, "of one that has ended, at each Watch")
	}
}

// An actor that stops itself finishes its call and loses its mailbox.
func TestStopSelf(t *testing.T) {
	w := New(calm)
	var got []any
	sink := w.Spawn("sink", recorder(&got))
	a := w.Spawn("a", &toy{
		receive: func(ctx actor.Context, msg any) {
			ctx.Stop(ctx.Self())
			ctx.Send(sink, msg)
		},
		turn:    func(ctx actor.Context) bool { ctx.Send(sink, "turn"); return false },
		stopped: func(ctx actor.Context) { ctx.Send(sink, "stopped") },
	})
	require.NoError(t, w.Run(nil, Limit{}))
	w.Send(a, 1)
	w.Send(a, 2)
	require.NoError(t, w.Run(nil, Limit{}))
	require.Equal(t, []any{"turn", 1, "stopped"}, got)
	require.Equal(t, Left{}, w.Left())
}

func TestKill(t *testing.T) {
	for seed := range uint64(100) {
		w := New(Config{Seed: seed})
		var stopped, heard []any
		parent, one, two := family(w, &stopped)
		watcher := watch(w, &heard, parent, one, two, parent)
		require.NoError(t, w.Run(nil, Limit{}))
		w.Send(parent, "lost")
		w.Kill(parent)
		w.Kill(parent)
		require.False(t, w.Alive(parent) || w.Alive(one) || w.Alive(two))
		require.NoError(t, w.Run(nil, Limit{}))
		require.Empty(t, stopped)
		require.ElementsMatch(t, []any{actor.Terminated{Ref: parent}, actor.Terminated{Ref: one}, actor.Terminated{Ref: two}}, heard)
		require.True(t, w.Alive(watcher))
		require.Equal(t, Left{}, w.Left())
	}
}

// An actor killed in the middle of a call has said what it said before that
// time, by its own clock, and nothing else.
func TestKillInACall(t *testing.T) {
	for seed := range uint64(100) {
		loose := seed%2 == 1 // then in any order
		w := New(Config{Seed: seed, OnSend: func(_, _ actor.Ref, msg any) Verdict {
			_, isNews := msg.(actor.Terminated)
			return Verdict{Loose: loose && !isNews}
		}})
		var got []any
		r := recorder(&got)
		sink := w.Spawn("sink", r)
		var began time.Duration
		a := w.Spawn("a", &toy{receive: func(ctx actor.Context, msg any) {
			began = ctx.Now()
			for i := range 10 {
				w.Spend(ms)
				ctx.Send(sink, i)
			}
			ctx.Spawn("child", &toy{start: func(actor.Context) { t.Error("its parent was killed before") }})
		}})
		r.start = func(ctx actor.Context) { ctx.Watch(a) }
		w.Send(a, "go")
		require.NoError(t, w.Run(func() bool { return began > 0 }, Limit{}))
		w.At(began+4500*us, "kill", func() { w.Kill(a) })
		require.NoError(t, w.Run(nil, Limit{}))
		want := []any{0, 1, 2, 3, actor.Terminated{Ref: a}}
		if loose {
			require.ElementsMatch(t, want, got)
		} else {
			require.Equal(t, want, got, "the news is the last word")
		}
		require.Equal(t, Left{}, w.Left())
	}
}

// What was never said does not hold up the news.
func TestNewsOfAKill(t *testing.T) {
	w := New(calm)
	var heard []any
	at := time.Duration(0)
	watcher := w.Spawn("watcher", &toy{receive: func(ctx actor.Context, msg any) {
		heard, at = append(heard, msg), ctx.Now()
	}})
	a := w.Spawn("a", &toy{start: func(ctx actor.Context) {
		w.Spend(time.Hour)
		ctx.Send(watcher, "an hour later")
	}})
	w.find(watcher).behavior.(*toy).start = func(ctx actor.Context) { ctx.Watch(a) }
	w.At(ms, "kill", func() { w.Kill(a) })
	require.NoError(t, w.RunFor(time.Minute))
	require.Equal(t, []any{actor.Terminated{Ref: a}}, heard)
	require.Equal(t, ms, at)
}

// A hook may kill the sender while it speaks.
func TestKillWhileSending(t *testing.T) {
	var w *World
	w = New(Config{OnSend: func(from, _ actor.Ref, msg any) Verdict {
		if msg == 3 {
			w.Kill(from)
		}
		return Verdict{}
	}})
	var got []any
	sink := w.Spawn("sink", recorder(&got))
	w.Spawn("a", &toy{
		start: func(ctx actor.Context) {
			for i := range 10 {
				ctx.Send(sink, i)
			}
			ctx.After(0, "x")
			ctx.Watch(sink)
			ctx.Stop(sink)
			ctx.Watch(ctx.Spawn("child", &toy{start: func(actor.Context) { t.Error("its parent is dead") }}))
		},
		receive: func(actor.Context, any) { t.Error("dead") },
	})
	require.NoError(t, w.Run(nil, Limit{}))
	require.Equal(t, []any{0, 1, 2}, got)
	require.True(t, w.Alive(sink))
	require.Equal(t, Left{}, w.Left())
}

// A crash loses the end of what is on its way, on some links more than on others.
func TestCrash(t *testing.T) {
	differ, lost, kept := 0, 0, 0
	for seed := range uint64(100) {
		w := New(Config{Seed: seed})
		var got [2][]any
		sinks := []actor.Ref{w.Spawn("sink", recorder(&got[0])), w.Spawn("sink", recorder(&got[1]))}
		a := w.Spawn("a", &toy{start: func(ctx actor.Context) {
			for i := range 20 {
				for _, s := range sinks {
					ctx.Send(s, i)
				}
			}
		}})
		require.NoError(t, w.Run(func() bool { return w.Left().Messages > 0 }, Limit{}))
		w.Crash(a)
		require.NoError(t, w.Run(nil, Limit{}))
		for _, g := range got {
			for i, m := range g {
				require.Equal(t, i, m)
			}
			lost += 20 - len(g)
			kept += len(g)
		}
		if len(got[0]) != len(got[1]) {
			differ++
		}
		require.Equal(t, Left{}, w.Left())
	}
	require.Greater(t, differ, 50)
	require.Greater(t, lost, 100)
	require.Greater(t, kept, 100)
}

func TestFreeze(t *testing.T) {
	w := New(calm)
	var at []time.Duration
	a := w.Spawn("a", &toy{
		start:   func(ctx actor.Context) { ctx.After(5*ms, "timer") },
		receive: func(ctx actor.Context, _ any) { at = append(at, ctx.Now()) },
	})
	require.NoError(t, w.RunFor(ms))
	w.Freeze(a, 20*ms)
	w.Freeze(a, 10*ms)
	w.Send(a, "x")
	require.NoError(t, w.Run(nil, Limit{}))
	require.Equal(t, []time.Duration{31 * ms, 31*ms + 1}, at)
}

func TestFreezeLink(t *testing.T) {
	w := New(calm)
	var got []any
	var at []time.Duration
	a := w.Spawn("a", &toy{receive: func(ctx actor.Context, msg any) {
		got, at = append(got, msg), append(at, ctx.Now())
	}})
	b := w.Spawn("b", &toy{receive: func(ctx actor.Context, msg any) { ctx.Send(a, msg) }})
	require.NoError(t, w.RunFor(ms))
	w.Send(a, 1)
	w.FreezeLink(nil, a, ms)
	w.Send(a, 2)
	w.Send(b, 3) // another link
	w.FreezeLink(b, b, time.Hour)
	require.NoError(t, w.Run(nil, Limit{}))
	require.Equal(t, []any{3, 1, 2}, got)
	require.Equal(t, []time.Duration{ms, 2 * ms, 2*ms + 1}, at)
}

func TestVerdicts(t *testing.T) {
	c := calm
	c.OnSend = func(from, to actor.Ref, msg any) Verdict {
		require.Nil(t, from)
		require.Equal(t, "a#1", to.(interface{ String() string }).String())
		switch msg {
		case "drop":
			return Verdict{Drop: true}
		case "thrice":
			return Verdict{Copies: 2}
		case "late":
			return Verdict{Delay: ms}
		case "loose":
			return Verdict{Delay: 2 * ms, Loose: true}
		}
		return Verdict{}
	}
	w := New(c)
	var got []any
	at := map[any]time.Duration{}
	a := w.Spawn("a", &toy{receive: func(ctx actor.Context, msg any) {
		got = append(got, msg)
		at[msg] = ctx.Now().Truncate(ms)
	}})
	for _, m := range []any{1, "drop", "thrice", 2, "loose", "late", 3} {
		w.Send(a, m)
	}
	require.NoError(t, w.Run(nil, Limit{}))
	require.Equal(t, map[any]time.Duration{1: 0, "thrice": 0, 2: 0, "late": ms, 3: ms, "loose": 2 * ms}, at)
	require.Len(t, got, 8)
	got = slices.DeleteFunc(got, func(m any) bool { return m == "thrice" }) // in any order
	require.Equal(t, []any{1, 2, "late", 3, "loose"}, got)
	require.Equal(t, Left{}, w.Left())
}
