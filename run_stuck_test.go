package egret_test

import (
	"context"
	"fmt"
	"strings"
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

// slow is a source of n numbers, one each d.
func slow(n int, d time.Duration) *numbers {
	return &numbers{n: n, chunk: 1, next: func(context.Context, string, int) error { time.Sleep(d); return nil }}
}

// While a task hangs, those that share no sender with it go on as if nothing were,
// and it is told of: at once, and again after twice as long. Then it comes back.
func TestStuckIsReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log, d := &logbook{}, newDiary()
		release := make(chan struct{})
		var began time.Time
		var late time.Duration
		top := topology.New("two", func(b *topology.Builder) {
			bad := b.Spout("bad", spout.Slice(texts(20)...)).Emits("n")
			b.Bolt("hangs", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				if in.String("n") == "3" {
					<-release
				}
				return nil
			}), bad.Shuffle())
			good := b.Spout("good", slow(100, 100*time.Millisecond)).Emits("n")
			b.Bolt("flows", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				n := in.String("n")
				var k int
				fmt.Sscan(n, &k)
				late = max(late, time.Since(began)-time.Duration(k+1)*100*time.Millisecond)
				return nil
			}), good.Shuffle())
		})
		began = time.Now()
		time.AfterFunc(33*time.Second, func() { d.at("released"); close(release) })
		s, err := run(t, top, egret.Config{StuckAfter: 8 * time.Second, Logger: log.logger()})
		require.NoError(t, err)
		require.Equal(t, 33*time.Second, s.Elapsed)
		require.Zero(t, late, "nobody waits who does not share a sender")
		require.Zero(t, s.Lost+s.Restarts+s.Failed)

		told := log.with("task stuck")
		require.Len(t, told, 3, "%q", told)
		for i, d := range []string{"8s", "16s", "32s"} {
			require.Contains(t, told[i], "task stuck: hangs/0 does not come back from Execute", told[i])
			require.Contains(t, told[i], "for="+d, "each time it is twice as long")
			require.Contains(t, told[i], `tuple={n: "3"}, or one of the`)
			require.Contains(t, told[i], "run_stuck_test.go:", "the stack says where")
			require.NotContains(t, told[i], "egret/task.")
		}
		back := log.with("came back")
		require.Len(t, back, 1)
		require.Contains(t, back[0], "task hangs/0 came back from Execute after 33s")
		require.EqualValues(t, 1, stat(t, s, "hangs/0").Stuck)
		require.Zero(t, stat(t, s, "flows/0").Stuck)
	})
}

// Rows that become slow all of a sudden are no hang: their task gets on. Nor is a
// call that comes back in time.
func TestSlowIsNotStuck(t *testing.T) {
	for _, tt := range []struct {
		name  string
		d     time.Duration
		n     int
		every int
	}{{"many slow ones", 150 * time.Millisecond, 100, 1}, {"nearly", 9 * time.Second, 5, 20}} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				log := &logbook{}
				top := straight(spout.Slice(texts(5000)...), func(in tuple.Tuple, _ *bolt.Collector) error {
					var n int
					if fmt.Sscan(in.String("n"), &n); n > 5000-20*tt.n && n%tt.every == 0 {
						time.Sleep(tt.d)
					}
					return nil
				})
				// The tuples before are quick, so many of them are one call.
				s, err := run(t, top, egret.Config{OnStuck: egret.Replace, Logger: log.logger(), TreeSize: 256, MessageTimeout: time.Hour})
				require.NoError(t, err)
				require.Zero(t, s.Restarts, "%q", log.with(""))
				require.Empty(t, log.with("stuck"))
			})
		})
	}
}

// A hanger is a bolt that hangs in Execute on a message, so often.
type hanger struct {
	key   string
	times int
	mu    sync.Mutex
	tries int
	got   *tally
	out   *tally
	calls *diary
	free  chan struct{}
	lives int
}

func newHanger(key string, times int) *hanger {
	return &hanger{key: key, times: times, got: newTally(), out: newTally(), calls: newDiary(), free: make(chan struct{})}
}

func (h *hanger) topology(n int, g topology.Guarantee) *topology.Topology {
	return topology.New("hangs", func(b *topology.Builder) {
		b.Guarantee(g)
		in := b.Spout("in", spout.Slice(texts(n)...)).Emits("n")
		mid := b.Bolt("mid", factory(func() *made {
			h.mu.Lock()
			h.lives++
			life := h.lives
			h.mu.Unlock()
			return &made{
				execute: func(in tuple.Tuple, out *bolt.Collector) error {
					n := in.String("n")
					if n == h.key {
						h.mu.Lock()
						h.tries++
						hang := h.tries <= h.times
						h.mu.Unlock()
						if hang {
							h.calls.at("life %d hangs", life)
							<-h.free
							h.calls.at("life %d back, %v", life, out.Context().Err())
							out.Emit("late")
							return nil
						}
					}
					h.got.add(n)
					out.Emit(n)
					return nil
				},
				close: func() error { h.calls.at("life %d closed", life); return nil },
			}
		}), in.Shuffle()).Emits("n")
		b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error { h.out.add(in.String("n")); return nil }), mid.Shuffle())
	})
}

// A message that hangs once is executed by the next life, and nothing is dead.
// When the old life comes back what it says is for nobody, and it is closed once.
func TestStuckIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h, log := newHanger("300", 1), &logbook{}
		time.AfterFunc(12*time.Second, func() { close(h.free) })
		// The run must last until it is back.
		top := h.topology(500, topology.AtLeastOnce)
		held := make(chan struct{})
		time.AfterFunc(20*time.Second, func() { close(held) })
		keep := topology.New("hangs", func(b *topology.Builder) {
			in := b.Spout("more", &numbers{n: 1, next: func(context.Context, string, int) error { <-held; return nil }}).Emits("n")
			b.Bolt("sink", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.Shuffle())
		})
		var other *egret.Stats
		done := make(chan struct{})
		go func() { // waited for below
			defer close(done)
			other, _ = run(t, keep, egret.Config{})
		}()
		s, err := run(t, top, egret.Config{OnStuck: egret.Replace, Logger: log.logger()})
		require.NoError(t, err)
		<-done
		require.Equal(t, 20*time.Second, other.Elapsed)
		require.Equal(t, 11*time.Second, s.Elapsed, "ten until it is stuck, and one for its goroutine at the end")
		require.Len(t, h.got.get(), 500)
		require.Len(t, h.out.get(), 500)
		require.EqualValues(t, 1, s.Restarts)
		require.Zero(t, s.Dead+s.Failed)
		require.Positive(t, s.Lost)
		require.EqualValues(t, 500, s.Acked)
		require.EqualValues(t, 1, stat(t, s, "mid/0").Stuck)
		require.Equal(t, []string{
			"0s life 1 hangs", "10s life 2 closed", "12s life 1 back, context canceled", "12s life 1 closed",
		}, h.calls.entries())
		require.Len(t, log.with("task stuck: mid/0 does not come back from Execute"), 1)
		require.Len(t, log.with("task died: mid/0: Execute did not come back for 10s"), 1)
		left := log.with("task mid/0 did not come back; its goroutine is left behind")
		require.Len(t, left, 1)
		require.Contains(t, left[0], "run_stuck_test.go:")
	})
}

// A message that always hangs is dead after two hangs, with one letter, and its
// neighbours live. What lives of before say when they come back is refused.
func TestAlwaysStuckIsDead(t *testing.T) {
	for _, tt := range []struct {
		name  string
		tree  int
		tasks int
	}{{"one task", 256, 1}, {"two tasks", 256, 2}, {"trees of one", 1, 1}} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				h, log := newHanger("300", 1000), &logbook{}
				c := egret.Config{OnStuck: egret.Replace, Logger: log.logger(), TreeSize: tt.tree, Parallel: map[string]int{"mid": tt.tasks}}
				s, err := run(t, h.topology(1000, topology.AtLeastOnce), c)
				require.ErrorIs(t, err, egret.ErrDead)
				require.Equal(t, []int64{999, 1}, []int64{s.Acked, s.Dead})
				require.Len(t, h.got.get(), 999)
				require.Len(t, h.out.get(), 999)
				require.EqualValues(t, 2, s.Restarts)
				dead := log.with("message is dead")
				require.Len(t, dead, 1)
				require.Contains(t, dead[0], "message is dead: hung twice in bolt mid, for 10s")
				require.Contains(t, dead[0], "n=300")
				require.Less(t, s.Elapsed, 26*time.Second)
				close(h.free)
				synctest.Wait()
				closed := newTally()
				for _, e := range h.calls.entries() {
					if strings.HasSuffix(e, "closed") {
						closed.add(rest(e))
					}
				}
				require.Len(t, closed.get(), h.lives)
				require.Equal(t, h.lives, closed.sum(), "each life once")
				require.Zero(t, h.out.get()["late"])
			})
		})
	}
}

// What a replaced life emits when it comes back, while the run goes on, is refused
// and counted, in whatever call it was.
func TestZombiesAreRefused(t *testing.T) {
	for _, what := range []string{"execute", "tick", "finish", "prepare", "panic", "loop"} {
		for _, g := range []topology.Guarantee{topology.AtLeastOnce, topology.AtMostOnce} {
			t.Run(what+" "+g.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					free := make(chan struct{})
					d, got := newDiary(), newTally()
					log := &logbook{}
					var first atomic.Bool // lives run beside each other
					first.Store(true)
					var lives atomic.Int64
					top := topology.New("zombies", func(b *topology.Builder) {
						b.Guarantee(g)
						in := b.Spout("in", slow(60, time.Second)).Emits("n")
						mid := b.Bolt("mid", factory(func() *made {
							mine := lives.Add(1)
							hang := func(in string, out *bolt.Collector) {
								if what == in && first.CompareAndSwap(true, false) {
									<-free
									for range 1000 {
										if out != nil {
											out.Emit("late")
										}
									}
									d.at("%d back", mine)
								}
							}
							return &made{
								prepare: func(context.Context, *bolt.Task) error { hang("prepare", nil); return nil },
								execute: func(in tuple.Tuple, out *bolt.Collector) error {
									hang("execute", out)
									if what == "panic" && first.CompareAndSwap(true, false) {
										<-free
										d.at("%d back", mine)
										panic("late")
									}
									if what == "loop" && first.CompareAndSwap(true, false) {
										for out.Context().Err() == nil || len(free) == 0 {
											select {
											case <-free:
												d.at("%d back", mine)
												return nil
											default:
											}
											for range 300 {
												out.Emit("late")
											}
											time.Sleep(time.Second)
										}
									}
									out.Emit(in.String("n"))
									return nil
								},
								tick:   func(out *bolt.Collector) error { hang("tick", out); return nil },
								finish: func(out *bolt.Collector) error { hang("finish", out); return nil },
								close:  func() error { d.at("%d closed", mine); return nil },
							}
						}), in.Shuffle()).Emits("n").Every(500 * time.Millisecond)
						b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error { got.add(in.String("n")); return nil }), mid.Shuffle())
					})
					if what == "finish" { // another input keeps the run alive
						time.AfterFunc(60500*time.Millisecond+15*time.Second, func() { close(free) })
					} else {
						time.AfterFunc(30*time.Second, func() { close(free) })
					}
					s, err := run(t, top, egret.Config{OnStuck: egret.Replace, Logger: log.logger()})
					require.NoError(t, err)
					synctest.Wait()
					if what == "finish" {
						time.Sleep(time.Minute)
					}
					all := d.entries()
					require.Len(t, all, 3, "%q", all)
					require.ElementsMatch(t, []string{"1 back", "1 closed", "2 closed"}, []string{rest(all[0]), rest(all[1]), rest(all[2])})
					require.EqualValues(t, 1, s.Restarts)
					if what != "loop" {
						require.Zero(t, got.get()["late"])
					}
					if g == topology.AtLeastOnce {
						require.EqualValues(t, 60, s.Input)
						for _, n := range texts(60) {
							require.NotZero(t, got.get()[n], n)
						}
					}
					if what == "execute" || what == "loop" || what == "tick" && g == topology.AtLeastOnce {
						require.Positive(t, stat(t, s, "mid/0").Refused, "what came late is counted")
					}
					if what != "finish" {
						require.Len(t, log.with(", too late: what it says is refused"), 1)
					}
				})
			})
		}
	}
}

// rest is a diary's entry without its time.
func rest(entry string) string {
	_, text, _ := strings.Cut(entry, " ")
	return text
}
