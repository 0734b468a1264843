package egret_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// byRest sends a number to none, one or several of four tasks.
func byRest(topology.Sender) topology.Chooser {
	return func(t tuple.Tuple, to []int) []int { return append(to, restTasks(t.Int64("n"))...) }
}

func restTasks(n int64) []int {
	return [][]int{{}, {1}, {2, 0}, {0, 1, 2, 3}, {3, 3}}[n%5]
}

// hotKey is the key of every third number; the rest have 400.
func hotKey(n int64) string {
	if n%3 == 0 {
		return "hot"
	}
	return fmt.Sprint("key", n%600)
}

// Each of the rarer groupings gives tuples to the tasks it says, from a spout and
// from a bolt of two tasks, tracked or not, over the codec or not.
func TestRarerGroupings(t *testing.T) {
	const n, tasks = 20_000, 4
	for _, tt := range []struct {
		name  string
		group func(*topology.Component) topology.Subscription
		want  func(n int64) []int // the tasks of a number; nil: any one
	}{
		{"partial key", func(c *topology.Component) topology.Subscription { return c.PartialBy("key") }, nil},
		{"none", (*topology.Component).None, nil},
		{"direct", (*topology.Component).Direct, func(n int64) []int { return []int{int(n*7) % tasks} }},
		{"custom", func(c *topology.Component) topology.Subscription { return c.Custom("rest", byRest) }, restTasks},
	} {
		for _, by := range []string{"spout", "bolt"} {
			for _, c := range []egret.Config{
				{ParcelSize: 16}, {ParcelSize: 16, AlwaysEncode: true}, {Guarantee: new(topology.AtMostOnce)},
			} {
				t.Run(fmt.Sprintf("%s from a %s, encode %v", tt.name, by, c.AlwaysEncode), func(t *testing.T) {
					var got census
					top := topology.New("groups", func(b *topology.Builder) {
						direct := tt.name == "direct"
						from := b.Spout("in", spout.Generate(n, func(i int64, out *spout.Out) {
							if direct && by == "spout" {
								out.EmitDirect(int(i*7)%out.Tasks("default"), hotKey(i), i)
							} else {
								out.Emit(hotKey(i), i)
							}
						})).Emits("key", "n")
						if by == "bolt" {
							from = b.Bolt("mid", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
								if direct {
									out.EmitDirect(int(in.Int64("n")*7)%out.Tasks(), in.String("key"), in.Int64("n"))
								} else {
									out.Emit(in.String("key"), in.Int64("n"))
								}
								return nil
							}), from.Shuffle()).Emits("key", "n").Parallel(2)
						}
						b.Bolt("out", got.factory(), tt.group(from)).Parallel(tasks)
					})
					s, err := run(t, top, c)
					require.NoError(t, err)
					at, keys := map[int64][]int{}, map[string]map[int]bool{}
					for task := range tasks {
						for _, row := range got.got[task] {
							var i int64
							key, num, _ := strings.Cut(row, ",")
							fmt.Sscanf(num, "%d,", &i)
							at[i] = append(at[i], task)
							if keys[key] == nil {
								keys[key] = map[int]bool{}
							}
							keys[key][task] = true
						}
					}
					for i := range int64(n) {
						if tt.want == nil {
							require.Len(t, at[i], 1, "number %d", i)
							continue
						}
						want := slices.Sorted(slices.Values(tt.want(i)))
						require.Equal(t, want, slices.Concat([]int{}, at[i]), "number %d", i)
					}
					if tt.name == "partial key" {
						require.Len(t, keys, 401)
						for key, at := range keys {
							require.LessOrEqual(t, len(at), 2, "tasks of %s", key)
						}
						for task, k := range got.sizes(tasks) {
							require.InEpsilon(t, n/tasks, k, 0.05, "task %d", task)
						}
					}
					var transferred int64
					for _, x := range s.Tasks {
						if x.Component == map[string]string{"spout": "in", "bolt": "mid"}[by] {
							transferred += x.Streams[0].Transferred
						}
					}
					executed := 0
					for _, k := range got.sizes(tasks) {
						executed += k
					}
					require.EqualValues(t, executed, transferred)
				})
			}
		}
	}
}

// Tuples of all groupings whose tasks die are replayed, and a replay goes where
// its grouping says: the direct ones to the same task.
func TestRarerGroupingsAndDeaths(t *testing.T) {
	const n = 3000
	bubble(t, func(t *testing.T) {
		tries, done := newTally(), newTally()
		top := topology.New("deaths", func(b *topology.Builder) {
			in := b.Spout("in", spout.Generate(n, func(i int64, out *spout.Out) {
				out.EmitDirectTo("to", int(i)%3, fmt.Sprint(i), i)
				out.EmitTo("rest", fmt.Sprint(i%20), i)
			})).EmitsTo("to", "key", "n").EmitsTo("rest", "key", "n").Parallel(2)
			dying := func(name string) bolt.Factory {
				return factory(func() *made {
					index := 0
					return &made{
						prepare: func(_ context.Context, task *bolt.Task) error { index = task.Index; return nil },
						execute: func(in tuple.Tuple, out *bolt.Collector) error {
							i := in.Int64("n")
							if tries.add(fmt.Sprint(name, i, "@", index)) == 1 && i%250 == 17 {
								panic("boom")
							}
							out.Emit(in.String("key"), i)
							done.add(fmt.Sprint(name, i, "@", index))
							return nil
						},
					}
				})
			}
			to := b.Bolt("to", dying("to"), in.Stream("to").Direct()).Emits("key", "n").Parallel(3)
			rest := b.Bolt("rest", dying("rest"), in.Stream("rest").PartialBy("key")).Emits("key", "n").Parallel(3)
			b.Bolt("out", dying("out"), to.Custom("rest", byRest), rest.None()).Emits("key", "n").Parallel(4)
		})
		s, err := run(t, top, egret.Config{ParcelSize: 16})
		require.NoError(t, err)
		require.EqualValues(t, 2*n, s.Acked)
		require.Greater(t, s.Restarts, int64(12))
		all := done.get()
		for i := range int64(n) {
			for task := range 3 {
				k := all[fmt.Sprint("to", i, "@", task)]
				require.Equal(t, task == int(i)%3, k > 0, "number %d, task %d", i, task)
			}
			at := 0
			for task := range 3 {
				at += min(1, all[fmt.Sprint("rest", i, "@", task)])
			}
			require.Positive(t, at)
		}
	})
}

// What a bolt emits in Tick and Finish is grouped like the rest.
func TestOwnMessagesDirectAndCustom(t *testing.T) {
	for _, g := range []topology.Guarantee{topology.AtLeastOnce, topology.AtMostOnce} {
		var got, custom census
		top := topology.New("own", func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice("x")).Emits("s")
			end := b.Bolt("end", factory(func() *made {
				var to bolt.Output
				return &made{
					prepare: func(_ context.Context, task *bolt.Task) error { to = task.Output("to"); return nil },
					finish: func(out *bolt.Collector) error {
						for i := range 10 {
							out.Emit(i)
							out.To(to).EmitDirect(i%out.To(to).Tasks(), i)
						}
						return nil
					},
				}
			}), in.Global()).Emits("n").EmitsTo("to", "n")
			b.Bolt("direct", got.factory(), end.Stream("to").Direct()).Parallel(2)
			b.Bolt("custom", custom.factory(), end.Custom("rest", byRest)).Parallel(4)
		})
		_, err := run(t, top, egret.Config{Guarantee: &g})
		require.NoError(t, err)
		require.Equal(t, map[int][]string{0: {"0,", "2,", "4,", "6,", "8,"}, 1: {"1,", "3,", "5,", "7,", "9,"}}, got.got)
		require.Equal(t, map[int][]string{0: {"2,", "3,", "7,", "8,"}, 1: {"1,", "3,", "6,", "8,"}, 2: {"2,", "3,", "7,", "8,"}, 3: {"3,", "4,", "4,", "8,", "9,", "9,"}}, custom.got)
	}
}

// A mistake in the choice of a task rejects the tuple in hand, says what is wrong,
// and harms no other. So does one of a chooser, which may come when a part of the
// tuple's tree is on its way.
func TestMistakesOfChoice(t *testing.T) {
	const n = 500
	bad := func(what func() []int) func(topology.Sender) topology.Chooser {
		return func(topology.Sender) topology.Chooser {
			return func(t tuple.Tuple, to []int) []int {
				if t.Int64("n") == 77 {
					return append(to, what()...)
				}
				return append(to, 0)
			}
		}
	}
	var kept tuple.Tuple
	for _, tt := range []struct {
		name   string
		group  func(*topology.Stream) topology.Subscription
		emit   func(out *bolt.Collector, n int64)
		choose func(topology.Sender) topology.Chooser
		want   string
	}{
		{name: "emit on a direct stream", group: (*topology.Stream).Direct, emit: func(out *bolt.Collector, n int64) { out.Emit(n) },
			want: "bolt mid: stream mid.default is direct: use EmitDirect and choose a task from 0 to 1"},
		{name: "no such task", group: (*topology.Stream).Direct, emit: func(out *bolt.Collector, n int64) { out.EmitDirect(2, n) },
			want: "bolt mid: stream mid.default is direct to tasks 0 to 1, but task 2 was chosen"},
		{name: "not direct", group: (*topology.Stream).Shuffle, emit: func(out *bolt.Collector, n int64) { out.EmitDirect(0, n) },
			want: "bolt mid: stream mid.default is not direct: use Emit, or subscribe to it with Direct()"},
		{name: "index", choose: bad(func() []int { return []int{0, 2} }),
			want: "custom grouping c of stream %s: it chose task 2, and there are tasks 0 to 1"},
		{name: "negative index", choose: bad(func() []int { return []int{-1} }),
			want: "custom grouping c of stream %s: it chose task -1, and there are tasks 0 to 1"},
		{name: "panic", choose: bad(func() []int { panic("no idea") }),
			want: "custom grouping c of stream %s: panic: no idea at run_groupings_test.go:"},
		{name: "runtime error", choose: bad(func() []int { return []int{[]int{}[n]} }),
			want: "custom grouping c of stream %s: panic: runtime error: index out of range [500] with length 0 at run_groupings_test.go:"},
		{name: "field", choose: func(topology.Sender) topology.Chooser {
			return func(t tuple.Tuple, to []int) []int {
				if t.Int64("n") == 77 {
					t.String("word")
				}
				return append(to, 1)
			}
		}, want: `custom grouping c of stream %s: stream %[1]s has no field "word"`},
		{name: "kept", choose: func(topology.Sender) topology.Chooser {
			kept = tuple.Tuple{}
			return func(t tuple.Tuple, to []int) []int {
				if t.Int64("n") == 76 {
					kept = t
				}
				if t.Int64("n") == 77 {
					kept.Int64("n")
				}
				return append(to, 1)
			}
		}, want: "custom grouping c of stream %s: tuple used after"},
	} {
		for _, by := range []string{"bolt", "spout"} {
			if by == "spout" && tt.choose == nil {
				continue // of a spout it ends the run
			}
			for _, g := range []topology.Guarantee{topology.AtLeastOnce, topology.AtMostOnce} {
				t.Run(fmt.Sprintf("%s, %s, %v", tt.name, by, g), func(t *testing.T) {
					var got, other atomic.Int64
					count := func(n *atomic.Int64) bolt.Factory {
						return bolt.Each(func(tuple.Tuple, *bolt.Collector) error { n.Add(1); return nil })
					}
					log := &logbook{}
					top := topology.New("mistakes", func(b *topology.Builder) {
						from := b.Spout("in", spout.Generate(n, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
						if by == "bolt" {
							from = b.Bolt("mid", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
								i := in.Int64("n")
								switch {
								case i == 77 && tt.emit != nil:
									tt.emit(out, i)
								case out.Tasks() > 0:
									out.EmitDirect(1, i)
								default:
									out.Emit(i)
								}
								return nil
							}), from.Shuffle()).Emits("n")
						}
						if tt.choose != nil {
							b.Bolt("other", count(&other), from.Global())
							b.Bolt("out", count(&got), from.Custom("c", tt.choose)).Parallel(2)
						} else {
							b.Bolt("out", count(&got), tt.group(from.Stream("default"))).Parallel(2)
						}
					})
					s, err := run(t, top, egret.Config{Guarantee: &g, Logger: log.logger(), ParcelSize: 10})
					require.EqualValues(t, n-1, got.Load())
					require.Zero(t, s.Restarts)
					want := tt.want
					if tt.choose != nil {
						want = fmt.Sprintf(want, map[string]string{"spout": "in.default", "bolt": "mid.default"}[by])
						want = by + " " + map[string]string{"spout": "in", "bolt": "mid"}[by] + ": " + want
						require.EqualValues(t, n, other.Load(), "who subscribed before got it")
					}
					if g == topology.AtMostOnce {
						require.NoError(t, err)
						if by == "spout" {
							require.Len(t, log.with("execution failed: "+want), 1)
						}
						return
					}
					require.ErrorIs(t, err, egret.ErrDead)
					require.EqualValues(t, 1, s.Dead)
					require.EqualValues(t, n-1, s.Acked)
					require.EqualValues(t, 1, s.Failed)
					require.Len(t, log.with("message is dead: "+want), 1)
				})
			}
		}
	}
}

// A whole tree whose every message the grouping rejects is dead, and one that goes
// nowhere is done: neither waits for anybody.
func TestNobodyGetsIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, to := range [][]int{{}, {5}} {
			top := topology.New("nobody", func(b *topology.Builder) {
				in := b.Spout("in", spout.Generate(1000, func(i int64, out *spout.Out) {
					out.Emit(i)
					out.EmitTo("unread", i)
				})).Emits("n").EmitsTo("unread", "n")
				nowhere := func(topology.Sender) topology.Chooser {
					return func(_ tuple.Tuple, dst []int) []int { return append(dst, to...) }
				}
				none := b.Bolt("none", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return errBad }), in.Custom("nowhere", nowhere)).Emits("n")
				b.Bolt("after", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return errBad }), none.Shuffle())
			})
			s, err := run(t, top, egret.Config{})
			if len(to) == 0 {
				require.NoError(t, err)
				require.EqualValues(t, 2000, s.Acked)
			} else {
				require.ErrorIs(t, err, egret.ErrDead)
				require.EqualValues(t, 1000, s.Acked)
				require.EqualValues(t, 1000, s.Dead)
			}
			require.Zero(t, s.TimedOut)
			require.Equal(t, []int64{0}, executed(s, "none"))
		}
	})
}

// A spout that chooses wrongly, a bolt that does so in Finish, and a custom
// grouping without a chooser end the run.
func TestMistakesThatEndTheRun(t *testing.T) {
	pass := bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil })
	for name, tt := range map[string]struct {
		define func(b *topology.Builder)
		want   string
	}{
		"spout emits on a direct stream": {func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice("x")).Emits("s")
			b.Bolt("out", pass, in.Direct())
		}, "stream in.default is direct: use EmitDirect and choose a task from 0 to 0"},
		"spout chooses no task": {func(b *topology.Builder) {
			in := b.Spout("in", spout.Generate(5, func(i int64, out *spout.Out) { out.EmitDirect(7, "x") })).Emits("s")
			b.Bolt("out", pass, in.Direct()).Parallel(7)
		}, "stream in.default is direct to tasks 0 to 6, but task 7 was chosen"},
		"spout is direct to nobody": {func(b *topology.Builder) {
			b.Spout("in", spout.Generate(5, func(i int64, out *spout.Out) { out.EmitDirect(0, "x") })).Emits("s")
		}, "stream in.default is not direct: use Emit, or subscribe to it with Direct()"},
		"finish": {func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice("x")).Emits("s")
			mid := b.Bolt("mid", factory(func() *made {
				return &made{finish: func(out *bolt.Collector) error { out.Emit("x"); return nil }}
			}), in.Shuffle()).Emits("s")
			b.Bolt("out", pass, mid.Direct())
		}, "mid/0: Finish: stream mid.default is direct"},
		"no chooser": {func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice("x")).Emits("s")
			b.Bolt("out", pass, in.Custom("c", func(topology.Sender) topology.Chooser { return nil }))
		}, "in/0: custom grouping c of stream in.default: its function has returned no chooser"},
		"no chooser of a bolt": {func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice("x")).Emits("s")
			mid := b.Bolt("mid", pass, in.Shuffle()).Emits("s")
			b.Bolt("out", pass, mid.Custom("c", func(topology.Sender) topology.Chooser { panic("boom") }))
		}, "mid/0: custom grouping c of stream mid.default: panic before there was a chooser: boom at run_groupings_test.go:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, topology.New("wrong", tt.define), egret.Config{})
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// A chooser is made for each task that sends, with what it needs to know, and may
// keep state.
func TestSenders(t *testing.T) {
	seen := newTally()
	var got census
	top := topology.New("senders", func(b *topology.Builder) {
		in := b.Spout("in", spout.Generate(90, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
		mid := b.Bolt("mid", bolt.Filter(func(tuple.Tuple) bool { return true }), in.Shuffle()).Emits("n").Parallel(2)
		b.Bolt("out", got.factory(), mid.Custom("round", func(s topology.Sender) topology.Chooser {
			seen.add(fmt.Sprintf("%s.%s %v from %d to %s of %d", s.Stream.Component, s.Stream.Stream, s.Stream.Fields, s.Index, s.To, s.Tasks))
			next := -1
			return func(_ tuple.Tuple, to []int) []int {
				next = (next + 1) % s.Tasks
				return append(to, next)
			}
		})).Parallel(3)
	})
	_, err := run(t, top, egret.Config{})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"mid.default [n] from 0 to out of 3": 1, "mid.default [n] from 1 to out of 3": 1}, seen.get())
	require.Len(t, got.got, 3)
	for _, k := range got.sizes(3) {
		require.InDelta(t, 30, k, 2)
	}
}

// A bolt that is fed by several components and streams tells its inputs apart,
// whatever their groupings.
func TestInputsAreTold(t *testing.T) {
	for _, c := range []egret.Config{{}, {AlwaysEncode: true, ParcelSize: 3}} {
		got := newTally()
		top := topology.New("told", func(b *topology.Builder) {
			in := b.Spout("in", spout.Generate(100, func(i int64, out *spout.Out) {
				out.Emit(i)
				out.EmitDirectTo("to", 1, i)
			})).Emits("n").EmitsTo("to", "n")
			silent := b.Bolt("silent", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.Shuffle()).Emits("n")
			none := b.Bolt("none", bolt.FlatMap(func(tuple.Tuple, func(...any)) {}), in.None()).Emits("n")
			pass := b.Bolt("pass", bolt.Filter(func(tuple.Tuple) bool { return true }), in.PartialBy("n")).Emits("n").Parallel(2)
			b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				got.add(in.Component() + "." + in.Stream())
				return nil
			}), in.Stream("to").Direct(), in.PartialBy("n"), silent.Shuffle(), none.Shuffle(), pass.Custom("rest", byRest)).Parallel(4)
		})
		s, err := run(t, top, c)
		require.NoError(t, err)
		require.EqualValues(t, 200, s.Acked)
		require.Equal(t, map[string]int{"in.default": 100, "in.to": 100, "pass.default": 20 * (0 + 1 + 2 + 4 + 2)}, got.get())
	}
}

// A chooser that fails for a tuple which is anchored to retained ones rejects
// those, wherever it is emitted: the tuple in hand, if there is one, is another.
func TestMistakesOfChoiceForRetained(t *testing.T) {
	const n = 500
	for name, mid := range map[string]bolt.Factory{
		"async": bolt.Async(8, func(_ context.Context, in tuple.Tuple, yield func(...any)) error {
			yield(in.Int64("n"))
			return nil
		}),
		"held": factory(func() *made {
			var kept []*bolt.Held
			var to bolt.Output
			emit := func(out *bolt.Collector) error {
				for _, h := range kept {
					out.Anchor(h).Emit(h.Int64("n"))
					out.Anchor(h).To(to).EmitDirect(int(h.Int64("n")%3), h.Int64("n"))
					h.Ack()
				}
				kept = nil
				return nil
			}
			return &made{
				prepare: func(_ context.Context, task *bolt.Task) error { to = task.Output("to"); return nil },
				execute: func(in tuple.Tuple, out *bolt.Collector) error {
					if kept = append(kept, out.Retain(in)); len(kept) < 7 {
						return nil
					}
					kept = kept[:6]
					if err := emit(out); err != nil {
						return err
					}
					kept = append(kept, out.Retain(in))
					return nil
				},
				tick:   emit,
				finish: emit,
			}
		}),
	} {
		for _, g := range []topology.Guarantee{topology.AtLeastOnce, topology.AtMostOnce} {
			t.Run(fmt.Sprint(name, " ", g), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var got, direct census
					top := topology.New("retained", func(b *topology.Builder) {
						from := b.Spout("in", spout.Generate(n, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
						c := b.Bolt("mid", mid, from.Shuffle()).Emits("n").EmitsTo("to", "n").Every(1e9)
						b.Bolt("out", got.factory(), c.Custom("c", func(s topology.Sender) topology.Chooser {
							return func(t tuple.Tuple, to []int) []int {
								if t.Int64("n")%100 == 77 {
									return append(to, s.Tasks)
								}
								return append(to, 0)
							}
						})).Parallel(2)
						b.Bolt("direct", direct.factory(), c.Stream("to").Direct()).Parallel(3)
					})
					s, err := run(t, top, egret.Config{Guarantee: &g, ParcelSize: 10})
					require.Equal(t, []int{n - 5, 0}, got.sizes(2))
					if name == "held" {
						require.Equal(t, []int{167, 167, 166}, direct.sizes(3))
					}
					require.Zero(t, s.Restarts)
					require.Zero(t, s.TimedOut)
					if g == topology.AtMostOnce {
						require.NoError(t, err)
						return
					}
					require.ErrorIs(t, err, egret.ErrDead)
					require.EqualValues(t, 5, s.Dead)
					require.EqualValues(t, n-5, s.Acked)
				})
			})
		}
	}
}

// After a mistake in an anchored emit, what the next tuples emit is anchored to
// them again.
func TestAnchorAfterAMistake(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tries := newTally()
		top := topology.New("after", func(b *topology.Builder) {
			in := b.Spout("in", spout.Generate(100, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
			mid := b.Bolt("mid", factory(func() *made {
				var held *bolt.Held
				return &made{
					execute: func(in tuple.Tuple, out *bolt.Collector) error {
						n := in.Int64("n")
						out.EmitDirect(0, n)
						switch {
						case n == 70 && held == nil:
							held = out.Retain(in)
						case n == 77:
							out.Anchor(held).Emit(n)
						}
						return nil
					},
					tick: func(*bolt.Collector) error {
						if held != nil {
							held.Ack()
						}
						return nil
					},
				}
			}), in.Shuffle()).Emits("n").Every(1e9)
			b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				n := in.Int64("n")
				if tries.add(fmt.Sprint(n)) == 1 && n == 80 {
					return errBad
				}
				return nil
			}), mid.Direct())
		})
		s, err := run(t, top, egret.Config{})
		require.ErrorIs(t, err, egret.ErrDead)
		require.EqualValues(t, 1, s.Dead)
		require.Equal(t, 2, tries.get()["80"])
		require.Equal(t, 1, tries.get()["70"])
	})
}
