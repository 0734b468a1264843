package egret_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A bolt that takes 10 ms a tuple behind a spout that could do a million a second:
// the queue is bounded, nothing is replayed though messages wait for much longer
// than their timeout, ticks are on time, and the run can be stopped.
func TestSlowBolt(t *testing.T) {
	for _, c := range []egret.Config{{}, {MaxPending: 20_000}, {ParcelSize: 1}, {ParcelSize: 1024, MaxPending: 5000}} {
		t.Run(fmt.Sprint(c.MaxPending, c.ParcelSize), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c.MessageTimeout = time.Second
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				began := time.Now()
				var mu sync.Mutex
				var ticks []time.Duration
				top := topology.New("slow", func(b *topology.Builder) {
					in := b.Spout("in", spout.Generate(0, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
					b.Bolt("slow", factory(func() *made {
						return &made{
							execute: func(tuple.Tuple, *bolt.Collector) error { time.Sleep(10 * time.Millisecond); return nil },
							tick: func(*bolt.Collector) error {
								mu.Lock()
								defer mu.Unlock()
								ticks = append(ticks, time.Since(began))
								return nil
							},
						}
					}), in.Shuffle()).Every(time.Second)
				})
				r, err := egret.Start(ctx, top, quiet(c))
				require.NoError(t, err)
				size := cmpOr(c.ParcelSize, 256)
				pending := cmpOr(c.MaxPending, 65_536)
				for i := range 30 {
					time.Sleep(time.Second)
					s := r.Stats()
					require.LessOrEqual(t, stat(t, s, "slow/0").Queued, int64(64+size-1), "the window and a parcel less one")
					require.LessOrEqual(t, s.Open, int64(pending+256))
					require.Zero(t, s.TimedOut)
					require.InDelta(t, 100*(i+1), executed(s, "slow")[0], 2)
				}
				mu.Lock()
				seen := slices.Clone(ticks)
				mu.Unlock()
				require.InDelta(t, 29.5, len(seen), 0.6, "one in a second")
				for i, at := range seen {
					due := time.Duration(i+1) * time.Second
					require.GreaterOrEqual(t, at, due)
					require.LessOrEqual(t, at, due+20*time.Millisecond, "no tick waits for the queue")
				}
				s := r.Stats()
				require.Positive(t, stat(t, s, "in/0").Throttled)
				require.Zero(t, s.Replayed)
				cancel()
				synctest.Wait()
				open := r.Stats().Open
				s, err = r.Wait()
				if left := time.Duration(open) * 10 * time.Millisecond; left > 30*time.Second {
					require.ErrorIs(t, err, egret.ErrDrain)
					require.InDelta(t, 60*time.Second, s.Elapsed, float64(20*time.Millisecond))
				} else {
					require.NoError(t, err)
				}
				settled(t, s, err)
				require.Zero(t, s.Replayed)
			})
		})
	}
}

func cmpOr(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}

// MaxPending is never exceeded by more than the messages of one turn, whatever is
// done with the messages; and as soon as one is done another one may come.
func TestMaxPending(t *testing.T) {
	for _, pending := range []int{1, 2, 10, 100, 1000} {
		t.Run(strconv.Itoa(pending), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var open, most atomic.Int64
				tries := newTally()
				source := &numbers{n: 2000, prompt: true}
				var r *egret.Running
				top := topology.New("pending", func(b *topology.Builder) {
					in := b.Spout("in", source).Emits("n")
					mid := b.Bolt("mid", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
						n := in.String("n")
						if tries.add(n) == 1 {
							most.Store(max(most.Load(), open.Add(1)))
						}
						out.Emit(n)
						return nil
					}), in.Shuffle()).Emits("n")
					b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
						n := in.String("n")
						i, _ := strconv.Atoi(n)
						if i%997 == 0 && tries.add(n+"!") < 3 {
							return errBad // it counts while it waits for its replay
						}
						open.Add(-1)
						return nil
					}), mid.Shuffle())
				})
				ended := make(chan struct{})
				var worst int64
				r, err := egret.Start(context.Background(), top, quiet(egret.Config{MaxPending: pending}))
				require.NoError(t, err)
				go func() {
					defer close(ended)
					for {
						s := r.Stats()
						worst = max(worst, s.Open)
						if s.Acked == 2000 {
							return
						}
						time.Sleep(time.Millisecond)
					}
				}()
				s, err := r.Wait()
				<-ended
				require.NoError(t, err)
				settled(t, s, err)
				over := max(1, min(256, pending/8)) // a tree
				require.LessOrEqual(t, worst, int64(pending+over-1))
				require.LessOrEqual(t, most.Load(), int64(pending+over-1))
				require.Positive(t, worst)
				if pending == 1 {
					require.EqualValues(t, 1, most.Load())
				}
			})
		})
	}
}

// MaxPendingBytes bounds what is kept; a message that is larger goes alone.
func TestMaxPendingBytes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		big := make([]byte, 100_000)
		var most int64
		var r *egret.Running
		top := topology.New("bytes", func(b *topology.Builder) {
			in := b.Spout("in", spout.Generate(200, func(_ int64, out *spout.Out) { out.Emit(big) })).Emits("b")
			b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { time.Sleep(10 * time.Millisecond); return nil }), in.Shuffle())
		})
		r, err := egret.Start(context.Background(), top, quiet(egret.Config{MaxPendingBytes: 1_000_000, MessageTimeout: time.Second}))
		require.NoError(t, err)
		for range 100 {
			time.Sleep(10 * time.Millisecond)
			most = max(most, r.Stats().Open)
		}
		s, err := r.Wait()
		require.NoError(t, err)
		settled(t, s, err)
		require.EqualValues(t, 200, s.Acked)
		require.LessOrEqual(t, most, int64(16), "1 MB, and the batch that passes it")
		require.Positive(t, most)

		s, err = run(t, top, egret.Config{MaxPendingBytes: 1})
		require.NoError(t, err)
		require.EqualValues(t, 200, s.Acked)
	})
}

// One slow task of four behind a shuffle does not hold back the other three,
// whether a spout sends to them or a bolt that emits much for each tuple.
func TestSlowTaskBehindShuffle(t *testing.T) {
	for _, size := range []int{1, 64, 256, 1024} {
		for _, by := range []string{"spout", "bolt"} {
			if size%256 != 0 && by == "bolt" {
				continue // enough
			}
			t.Run(fmt.Sprint(by, size), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					top := topology.New("shuffle", func(b *topology.Builder) {
						from := b.Spout("in", spout.Generate(0, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
						if by == "bolt" {
							from = b.Bolt("mid", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
								for i := range in.Int64("n") % 20 {
									out.Emit(i)
								}
								return nil
							}), from.Shuffle()).Emits("n")
						}
						b.Bolt("out", factory(func() *made {
							pause := 200 * time.Microsecond
							return &made{
								prepare: func(_ context.Context, task *bolt.Task) error {
									if task.Index == 2 {
										pause = 20 * time.Millisecond
									}
									return nil
								},
								execute: func(tuple.Tuple, *bolt.Collector) error { time.Sleep(pause); return nil },
							}
						}), from.Shuffle()).Parallel(4)
					})
					r, err := egret.Start(context.Background(), top, quiet(egret.Config{ParcelSize: size}))
					require.NoError(t, err)
					time.Sleep(time.Second)
					before := executed(r.Stats(), "out")
					time.Sleep(2 * time.Second)
					after := executed(r.Stats(), "out")
					r.Stop()
					_, err = r.Wait()
					require.ErrorIs(t, err, egret.ErrDrain)
					for i := range after {
						n := after[i] - before[i]
						if i == 2 {
							require.InDelta(t, 100, n, 3)
						} else {
							require.InDelta(t, 10_000, n, 1_000, "task %d; all: %v", i, after)
						}
					}
				})
			})
		}
	}
}

// A task that is slowed a hundredfold and released again, again and again, comes
// back to its old rate each time.
func TestRateComesBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var slow atomic.Bool
		top := topology.New("rate", func(b *topology.Builder) {
			in := b.Spout("in", spout.Generate(0, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
			mid := b.Bolt("mid", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error { out.Emit(in.Int64("n")); return nil }), in.Shuffle()).Emits("n")
			b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error {
				if slow.Load() {
					time.Sleep(10 * time.Millisecond)
				} else {
					time.Sleep(100 * time.Microsecond)
				}
				return nil
			}), mid.Shuffle())
		})
		r, err := egret.Start(context.Background(), top, quiet(egret.Config{MessageTimeout: time.Second}))
		require.NoError(t, err)
		second := func() int64 {
			before := executed(r.Stats(), "out")[0]
			time.Sleep(time.Second)
			return executed(r.Stats(), "out")[0] - before
		}
		second()
		for range 4 {
			require.InDelta(t, 10_000, second(), 100)
			slow.Store(true)
			second() // what was queued for a quick task
			require.InDelta(t, 100, second(), 2)
			require.LessOrEqual(t, stat(t, r.Stats(), "out/0").Queued, int64(1500))
			slow.Store(false)
			require.InDelta(t, 10_000, second(), 600)
		}
		require.Zero(t, r.Stats().Replayed)
		r.Stop()
		r.Wait()
	})
}

// The same for one task of four: the other three do not notice.
func TestRateOfOneComesBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var slow atomic.Bool
		top := topology.New("rate", func(b *topology.Builder) {
			in := b.Spout("in", spout.Generate(0, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
			b.Bolt("out", factory(func() *made {
				index := 0
				return &made{
					prepare: func(_ context.Context, task *bolt.Task) error { index = task.Index; return nil },
					execute: func(tuple.Tuple, *bolt.Collector) error {
						if index == 2 && slow.Load() {
							time.Sleep(100 * time.Millisecond)
						} else {
							time.Sleep(time.Millisecond)
						}
						return nil
					},
				}
			}), in.Shuffle()).Parallel(4)
		})
		r, err := egret.Start(context.Background(), top, quiet(egret.Config{MessageTimeout: time.Second}))
		require.NoError(t, err)
		rates := func(d time.Duration) (each []float64) {
			before := executed(r.Stats(), "out")
			time.Sleep(d)
			for i, n := range executed(r.Stats(), "out") {
				each = append(each, float64(n-before[i])/d.Seconds())
			}
			return each
		}
		rates(time.Second)
		for range 3 {
			for i, rate := range rates(2 * time.Second) {
				require.InDelta(t, 1000, rate, 100, "task %d", i)
			}
			slow.Store(true)
			for i, rate := range rates(20 * time.Second) {
				if i == 2 {
					require.InDelta(t, 10, rate, 1)
				} else {
					require.InDelta(t, 1000, rate, 100, "task %d", i)
				}
			}
			slow.Store(false)
			rates(time.Second)
		}
		require.Zero(t, r.Stats().Replayed)
		r.Stop()
		r.Wait()
	})
}

// A slow bolt at one end of a topology holds up who shares a sender with it, and
// nobody else.
func TestSlowBranch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		free := atomic.Int64{}
		top := topology.New("branches", func(b *topology.Builder) {
			one := b.Spout("one", spout.Generate(1000, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
			two := b.Spout("two", spout.Generate(1000, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
			b.Bolt("slow", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { time.Sleep(10 * time.Millisecond); return nil }), one.Shuffle())
			b.Bolt("quick", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { free.Add(1); return nil }), two.Shuffle())
		})
		r, err := egret.Start(context.Background(), top, quiet(egret.Config{}))
		require.NoError(t, err)
		synctest.Wait()
		require.EqualValues(t, 1000, free.Load())
		s, err := r.Wait()
		require.NoError(t, err)
		settled(t, s, err)
		require.Equal(t, 10*time.Second, s.Elapsed)
	})
}

// A single message is through at once when nobody else is there: no linger, no
// tick of a clock. A slow stream of them is, too, and its acks come as fast.
func TestNoWaitingWhenIdle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var late []time.Duration
		source := &numbers{n: 50, chunk: 1}
		source.next = func(context.Context, string, int) error { time.Sleep(37 * time.Millisecond); return nil }
		top := topology.New("idle", func(b *topology.Builder) {
			in := b.Spout("in", source).Emits("n")
			mid := b.Bolt("mid", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error { out.Emit(in.String("n")); return nil }), in.Shuffle()).Emits("n").Parallel(2)
			b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				i, _ := strconv.Atoi(in.String("n"))
				mu.Lock()
				defer mu.Unlock()
				late = append(late, time.Since(began)-time.Duration(i+1)*37*time.Millisecond)
				return nil
			}), mid.By("n")).Parallel(2)
		})
		s, err := run(t, top, egret.Config{})
		require.NoError(t, err)
		require.Len(t, late, 50)
		require.Zero(t, slices.Max(late))
		require.Zero(t, s.Latency.Longest, "acks come at once, too")
	})
}

// What a busy task has done is known soon, and not when it comes to rest.
func TestAcksOfABusyTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		top := straight(spout.Generate(0, func(i int64, out *spout.Out) { out.Emit(i) }), func(tuple.Tuple, *bolt.Collector) error {
			time.Sleep(10 * time.Millisecond)
			return nil
		})
		r, err := egret.Start(context.Background(), top, quiet(egret.Config{TreeSize: 1}))
		require.NoError(t, err)
		for range 10 {
			time.Sleep(time.Second)
			s := r.Stats()
			require.InDelta(t, executed(s, "out")[0], s.Acked, 5)
		}
		r.Stop()
		r.Wait()
	})
}
