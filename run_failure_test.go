package egret_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

var errBad = errors.New("bad")

// A bolt that always fails one key: MaxReplays + 1 attempts with their pauses, the
// others flow on, and the run ends with ErrDead.
func TestFailsOneKey(t *testing.T) {
	for _, tt := range []struct {
		replays int
		at      []time.Duration
	}{
		{egret.NoReplays, []time.Duration{0}},
		{3, []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond}},
		{0, []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond, 750 * time.Millisecond,
			1550 * time.Millisecond, 3150 * time.Millisecond, 6350 * time.Millisecond, 12750 * time.Millisecond}},
		{10, []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond, 750 * time.Millisecond,
			1550 * time.Millisecond, 3150 * time.Millisecond, 6350 * time.Millisecond, 12750 * time.Millisecond,
			22750 * time.Millisecond, 32750 * time.Millisecond}}, // 10 s is the most
	} {
		t.Run(fmt.Sprint(tt.replays), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				began := time.Now()
				var at []time.Duration
				others := newTally()
				top := straight(spout.Slice(texts(1000)...), func(in tuple.Tuple, _ *bolt.Collector) error {
					if in.String("n") == "500" {
						at = append(at, time.Since(began))
						return errBad
					}
					require.Zero(t, time.Since(began), "the others do not wait")
					others.add(in.String("n"))
					return nil
				})
				log := &logbook{}
				s, err := run(t, top, egret.Config{MaxReplays: tt.replays, Logger: log.logger()})
				require.ErrorIs(t, err, egret.ErrDead)
				require.ErrorContains(t, err, "messages are dead: 1")
				require.Equal(t, tt.at, at)
				require.Len(t, others.get(), 999)
				require.Equal(t, 999, others.sum(), "no other is executed twice")
				n := int64(len(tt.at))
				require.Equal(t, []int64{999, 1, n, n - 1, 0, 0, 0}, []int64{s.Acked, s.Dead, s.Failed, s.Replayed, s.Lost, s.TimedOut, s.Restarts})
				dead := log.with("message is dead")
				require.Len(t, dead, 1)
				require.Contains(t, dead[0], "bad")
				require.Contains(t, dead[0], "n=500")
			})
		})
	}
}

// A message that fails a few times and then gets through is no dead one.
func TestFailsAWhile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tries := newTally()
		top := straight(spout.Slice(texts(100)...), func(in tuple.Tuple, _ *bolt.Collector) error {
			if n := in.String("n"); tries.add(n) <= 3 && strings.HasSuffix(n, "7") {
				return errBad
			}
			return nil
		})
		s, err := run(t, top, egret.Config{})
		require.NoError(t, err)
		require.Equal(t, 350*time.Millisecond, s.Elapsed)
		require.Equal(t, []int64{100, 0, 30, 30}, []int64{s.Acked, s.Dead, s.Failed, s.Replayed})
		require.EqualValues(t, 30, stat(t, s, "in/0").ReplayedFailed)
		require.Equal(t, 130, tries.sum())
	})
}

// What is rejected and what is misused is dead at once, and nobody dies of it.
func TestRejects(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(in tuple.Tuple, out *bolt.Collector) error
		want string
	}{
		{"reject", func(tuple.Tuple, *bolt.Collector) error { return bolt.Reject(errBad) }, "bolt out: bad"},
		{"wrapped", func(tuple.Tuple, *bolt.Collector) error { return fmt.Errorf("seen: %w", bolt.Reject(errBad)) }, "bolt out: seen: bad"},
		{"field", func(in tuple.Tuple, _ *bolt.Collector) error { _ = in.String("wrod"); return nil }, `bolt out: stream in.default has no field "wrod" (it has "n")`},
		{"kind", func(in tuple.Tuple, _ *bolt.Collector) error { _ = in.Int64("n"); return nil }, `bolt out: field "n" of stream in.default is string, not int64`},
		{"position", func(in tuple.Tuple, _ *bolt.Collector) error { _ = in.At(1); return nil }, `bolt out: stream in.default has no position 1 (it has 1 field)`},
		{"arity", func(_ tuple.Tuple, out *bolt.Collector) error { out.Emit(1, 2); return nil }, `bolt out: stream out.default has 1 field ("n"), but got 2 values`},
		{"value", func(_ tuple.Tuple, out *bolt.Collector) error { out.Emit([]int{1}); return nil }, `bolt out: field "n" of stream out.default: `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				bad := 0
				log := &logbook{}
				top := straight(spout.Slice(texts(600)...), func(in tuple.Tuple, out *bolt.Collector) error {
					if in.String("n") == "300" {
						bad++
						return tt.do(in, out)
					}
					return nil
				})
				s, err := run(t, top, egret.Config{Logger: log.logger()})
				require.ErrorIs(t, err, egret.ErrDead)
				require.Equal(t, 1, bad, "one attempt")
				require.Zero(t, s.Elapsed)
				require.Equal(t, []int64{599, 1, 1, 0, 0, 0}, []int64{s.Acked, s.Dead, s.Failed, s.Replayed, s.Lost, s.Restarts})
				dead := log.with("message is dead: " + tt.want)
				require.Len(t, dead, 1, "%q", log.lines)
				require.Empty(t, log.with("task died"))
			})
		})
	}
}

// A panic hurts its tuple and its incarnation: that one fails and counts, what
// else the incarnation had is lost and comes again at once, long before the
// message timeout, and the incarnation after it is a new bolt.
func TestPanicInExecute(t *testing.T) {
	bubble(t, func(t *testing.T) {
		began := time.Now()
		lives := 0
		var hot []time.Duration
		got := newTally()
		log := &logbook{}
		top := topology.New("panics", func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice(texts(1000)...)).Emits("n")
			b.Bolt("out", factory(func() *made {
				lives++
				return &made{execute: func(in tuple.Tuple, _ *bolt.Collector) error {
					n := in.String("n")
					if n == "77" {
						hot = append(hot, time.Since(began))
						if len(hot) <= 3 {
							panic("boom")
						}
					}
					got.add(n)
					if n != "77" {
						require.Zero(t, time.Since(began), "what is lost comes again at once, and so does the task")
					}
					return nil
				}}
			}), in.Shuffle())
		})
		s, err := run(t, top, egret.Config{Logger: log.logger()})
		require.NoError(t, err)
		require.Len(t, got.get(), 1000)
		require.Equal(t, 4, lives)
		require.Equal(t, []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond}, hot,
			"its own back-off, which is longer than that of the task")
		require.EqualValues(t, 3, s.Restarts)
		require.EqualValues(t, 3, s.Failed)
		require.Positive(t, s.Lost)
		require.Zero(t, s.TimedOut)
		in := stat(t, s, "in/0")
		require.EqualValues(t, 3, in.ReplayedFailed)
		require.Equal(t, s.Lost, in.ReplayedLost)

		died := log.with("task died")
		require.Len(t, died, 3)
		require.Contains(t, died[0], `out/0: panic in Execute: boom; tuple {n: "77"}`)
		require.Contains(t, died[0], "component=out task=0")
		require.Contains(t, died[0], "run_failure_test.go", "the stack says where")
	})
}

// Restarts back off: at once, then 50 ms doubling to 10 s, and from the beginning
// after a life that was long enough.
func TestRestartsBackOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		began := time.Now()
		var born []time.Duration
		top := topology.New("panics", func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice(texts(1)...)).Emits("n")
			b.Bolt("out", factory(func() *made {
				born = append(born, time.Since(began))
				return &made{execute: func(in tuple.Tuple, _ *bolt.Collector) error { panic("boom") }}
			}), in.Shuffle())
		})
		s, err := run(t, top, egret.Config{MaxReplays: 4})
		require.ErrorIs(t, err, egret.ErrDead)
		ms := time.Millisecond
		// Each attempt kills one life. The next is made after the pause of the task,
		// and the next attempt is made after that of the message.
		require.Equal(t, []time.Duration{0, 0, 100 * ms, 250 * ms, 550 * ms, 1150 * ms}, born)
		require.EqualValues(t, 5, s.Restarts)
		require.EqualValues(t, 5, s.Failed)
		require.EqualValues(t, 1, s.Dead)
	})
}

// A message that kills is counted by its panics, though its tree may be lost, and
// does not take its neighbours with it for ever.
func TestPoisonEnds(t *testing.T) {
	for _, parallel := range []int{1, 3} {
		t.Run(fmt.Sprint(parallel), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				kills := 0
				got := newTally()
				top := topology.New("poison", func(b *topology.Builder) {
					in := b.Spout("in", spout.Slice(texts(2000)...)).Emits("n")
					mid := b.Bolt("mid", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
						out.Emit(in.String("n"))
						return nil
					}), in.Shuffle()).Emits("n").Parallel(parallel)
					b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
						if in.String("n") == "1234" {
							kills++
							panic("boom")
						}
						got.add(in.String("n"))
						return nil
					}), mid.By("n")).Parallel(parallel)
				})
				s, err := run(t, top, egret.Config{})
				require.ErrorIs(t, err, egret.ErrDead)
				require.Equal(t, 9, kills, "MaxReplays + 1")
				require.Len(t, got.get(), 1999)
				require.EqualValues(t, 9, s.Failed)
				require.EqualValues(t, 1, s.Dead)
				require.Less(t, s.Elapsed, 30*time.Second)
			})
		})
	}
}

// Panics in Prepare and errors of it, of Tick and of Finish end the incarnation;
// a task that does nothing but die ends the run with what it died of.
func TestDyingOutsideExecute(t *testing.T) {
	for _, tt := range []struct {
		name string
		bad  func() *made
		want string
	}{
		{"factory", func() *made { panic("boom") }, "task out/0 has died 6 times in a row, the last time of: out/0: panic in Prepare: boom"},
		{"prepare panics", func() *made {
			return &made{prepare: func(_ ctx, task *bolt.Task) error { panic("boom") }}
		}, "out/0: panic in Prepare: boom"},
		{"prepare fails", func() *made {
			return &made{prepare: func(_ ctx, task *bolt.Task) error { return errBad }}
		}, "out/0: Prepare: bad"},
		{"no such output", func() *made {
			return &made{prepare: func(_ ctx, task *bolt.Task) error { task.Output("late"); return nil }}
		}, "out/0: panic in Prepare: component out declares no stream late"},
		{"tick panics", func() *made { return &made{tick: func(*bolt.Collector) error { panic("boom") }} }, "out/0: panic in Tick: boom"},
		{"tick fails", func() *made { return &made{tick: func(*bolt.Collector) error { return errBad }} }, "out/0: Tick: bad"},
		{"finish panics", func() *made { return &made{finish: func(*bolt.Collector) error { panic("boom") }} }, "out/0: panic in Finish: boom"},
		{"finish fails", func() *made { return &made{finish: func(*bolt.Collector) error { return errBad }} }, "out/0: Finish: bad"},
	} {
		for _, good := range []int{3, -1} { // the life from which on all is well
			t.Run(fmt.Sprint(tt.name, good), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					lives, finished, closed := 0, 0, 0
					source := &numbers{n: 100, chunk: 1, next: func(c ctx, _ string, _ int) error {
						time.Sleep(100 * time.Millisecond) // so that there is time to tick
						return c.Err()
					}}
					got := newTally()
					top := topology.New("dying", func(b *topology.Builder) {
						in := b.Spout("in", source).Emits("n")
						b.Bolt("out", factory(func() *made {
							m := &made{}
							if lives++; good < 0 || lives < good {
								m = tt.bad()
							} else {
								m.finish = func(*bolt.Collector) error { finished++; return nil }
							}
							m.close = func() error { closed++; return nil }
							m.execute = func(in tuple.Tuple, _ *bolt.Collector) error { got.add(in.String("n")); return nil }
							return m
						}), in.Shuffle()).Every(500 * time.Millisecond)
					})
					s, err := run(t, top, egret.Config{})
					prepared := !strings.Contains(tt.name, "prepare") && tt.name != "factory"
					if tt.name == "no such output" { // which no other life would mend
						require.ErrorContains(t, err, "out/0: Prepare: component out declares no stream late")
						require.Equal(t, 1, lives)
						require.Zero(t, s.Restarts)
						return
					}
					if good < 0 {
						require.ErrorContains(t, err, tt.want)
						require.ErrorContains(t, err, "task out/0 has died 6 times in a row")
						require.NotErrorIs(t, err, egret.ErrDead)
						require.EqualValues(t, 5, s.Restarts)
						require.Equal(t, 6, lives)
						if prepared {
							require.Equal(t, 6, closed)
						} else {
							require.Zero(t, closed)
						}
						return
					}
					require.NoError(t, err)
					require.Equal(t, 3, lives)
					require.Len(t, got.get(), 100)
					require.Equal(t, 1, finished)
					require.EqualValues(t, 2, s.Restarts)
					require.EqualValues(t, 100, s.Acked)
					if prepared {
						require.Equal(t, 3, closed, "once for each that was prepared")
					} else {
						require.Equal(t, 1, closed)
					}
				})
			})
		}
	}
}

// What Tick and Finish emit is tracked by its task: who dies of it gets it again.
func TestOwnMessagesAreReplayed(t *testing.T) {
	for _, during := range []string{"tick", "finish"} {
		t.Run(during, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				got, deaths, ticks := newTally(), 0, 0
				say := func(out *bolt.Collector) error {
					for i := range 600 {
						out.Emit(fmt.Sprint(i))
					}
					return nil
				}
				source := &numbers{n: 2, chunk: 1, next: func(c ctx, _ string, _ int) error {
					time.Sleep(700 * time.Millisecond)
					return c.Err()
				}}
				top := topology.New("own", func(b *topology.Builder) {
					in := b.Spout("in", source).Emits("n")
					mid := b.Bolt("mid", factory(func() *made {
						m := &made{}
						if during == "finish" {
							m.finish = say
						} else {
							m.tick = func(out *bolt.Collector) error { ticks++; return say(out) }
						}
						return m
					}), in.Shuffle()).Emits("n").Every(time.Second)
					b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
						n := in.String("n")
						if n == "300" && deaths < 2 {
							deaths++
							panic("boom")
						}
						if n == "400" && got.add(n) <= 2 {
							return errBad
						}
						got.add(n)
						return nil
					}), mid.By("n"))
				})
				s, err := run(t, top, egret.Config{})
				require.NoError(t, err)
				require.Len(t, got.get(), 600)
				require.Equal(t, 2, deaths)
				require.EqualValues(t, 2, s.Input)
				require.EqualValues(t, 602, s.Messages, "%s", s)
				require.EqualValues(t, 602, s.Acked)
				require.EqualValues(t, 4, s.Failed)
				mid := stat(t, s, "mid/0")
				require.EqualValues(t, 4, mid.ReplayedFailed)
				require.Equal(t, s.Lost, mid.ReplayedLost)
				require.Less(t, s.Elapsed, 3*time.Second)
				if during == "tick" {
					require.Equal(t, 1, ticks)
				}
			})
		})
	}
}

// Verdicts and outputs do not depend on how tuples are packed.
func TestParcelSizes(t *testing.T) {
	type outcome struct {
		got                 map[string]int64
		acked, dead, failed int64
	}
	do := func(t *testing.T, c egret.Config) (o outcome) {
		o.got = map[string]int64{}
		tries := newTally()
		top := topology.New("sizes", func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice(texts(1500)...)).Emits("n")
			mid := b.Bolt("mid", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
				n := in.String("n")
				for i := range len(n) {
					out.Emit(n[i : i+1])
				}
				switch {
				case strings.HasSuffix(n, "50") && tries.add(n) <= 2:
					return errBad
				case strings.HasSuffix(n, "99"):
					return bolt.Reject(errBad)
				case n == "1111":
					return errBad
				}
				return nil
			}), in.Shuffle()).Emits("word").Parallel(2)
			sums := b.Bolt("count", func() bolt.Bolt { return counts{} }, mid.By("word")).Emits("word", "count").Parallel(3)
			b.Bolt("gather", func() bolt.Bolt { return gather{o.got} }, sums.Global())
		})
		s, err := run(t, top, c)
		require.ErrorIs(t, err, egret.ErrDead)
		o.acked, o.dead, o.failed = s.Acked, s.Dead, s.Failed
		return o
	}
	bubble(t, func(t *testing.T) {
		want := outcome{got: map[string]int64{}, dead: 16, acked: 1500 - 16 + 10, failed: 15*2 + 15 + 3}
		for i, n := range texts(1500) {
			times := int64(1)
			switch {
			case i%100 == 50:
				times = 3
			case i == 1111:
				times = 3
			}
			for k := range len(n) {
				want.got[n[k:k+1]] += times
			}
		}
		for _, size := range []int{1, 2, 3, 64, 255, 256, 257, 1024} {
			configs := []egret.Config{{}, {TreeSize: 7, MaxPending: 50}}
			if size == 1 || size == 256 {
				configs = append(configs, egret.Config{TreeSize: 1}, egret.Config{MaxPending: 3}, egret.Config{AlwaysEncode: true})
			}
			for _, c := range configs {
				c.ParcelSize, c.MaxReplays = size, 2
				require.Equal(t, want, do(t, c), "%+v", c)
			}
		}
	})
}
