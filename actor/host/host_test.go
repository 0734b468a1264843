package host_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/actor/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A script is a behaviour made of functions; those that are nil do nothing.
type script struct {
	start   func(actor.Context)
	receive func(actor.Context, any)
	turn    func(actor.Context) bool
	stopped func(actor.Context)
}

func (s *script) Start(c actor.Context) {
	if s.start != nil {
		s.start(c)
	}
}

func (s *script) Receive(c actor.Context, msg any) {
	if s.receive != nil {
		s.receive(c, msg)
	}
}

func (s *script) Turn(c actor.Context) bool { return s.turn != nil && s.turn(c) }

func (s *script) Stopped(c actor.Context) {
	if s.stopped != nil {
		s.stopped(c)
	}
}

// bubble runs f with a host whose clock is made up. The host is closed at the end
// in any case, and nothing may be left of it.
func bubble(t *testing.T, f func(t *testing.T, h *host.Host)) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Config{Seed: 1})
		defer h.Close()
		f(t, h)
	})
}

// A log is what actors did, in order. They take turns in it only by the order of
// messages, so the lock is for the race detector's peace.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *log) take() []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

func TestLife(t *testing.T) {
	bubble(t, func(t *testing.T, h *host.Host) {
		var l log
		a := h.Spawn("a", &script{
			start:   func(actor.Context) { l.add("start") },
			receive: func(_ actor.Context, msg any) { l.add("receive %v", msg) },
			turn:    func(actor.Context) bool { l.add("turn"); return false },
			stopped: func(actor.Context) { l.add("stopped") },
		})
		require.Equal(t, []string{"start", "turn"}, l.take())
		h.Send(a, 1)
		require.Equal(t, []string{"receive 1", "turn"}, l.take())
		h.Stop(a)
		require.Equal(t, []string{"stopped"}, l.take())
		h.Send(a, 2)
		h.Stop(a)
		require.Empty(t, l.take())
		require.EqualValues(t, 1, h.Dropped())
		require.Equal(t, "a", fmt.Sprint(a))
	})
}

// Whatever was sent is received before the next turn, also what the actor sends
// itself during one, and turns go on as long as there is more.
func TestTurnOnlyWhenDry(t *testing.T) {
	bubble(t, func(t *testing.T, h *host.Host) {
		var l log
		work := 3
		h.Spawn("a", &script{
			start: func(c actor.Context) { c.Send(c.Self(), "a"); c.Send(c.Self(), "b") },
			receive: func(c actor.Context, msg any) {
				l.add("receive %v", msg)
				if msg == "b" {
					c.Send(c.Self(), "c")
				}
			},
			turn: func(c actor.Context) bool {
				l.add("turn")
				work--
				switch work {
				case 1:
					c.Send(c.Self(), "d")
				case 0:
					c.Send(c.Self(), "e") // just before the mailbox goes idle
				}
				return work > 0
			},
		})
		require.Equal(t, []string{
			"receive a", "receive b", "receive c", "turn", "turn", "receive d", "turn", "receive e", "turn",
		}, l.take())
	})
}

// An actor that always has more to do hears what is said to it all the same.
func TestControlBetweenTurns(t *testing.T) {
	h := host.New(host.Config{})
	defer h.Close()
	heard := make(chan int)
	turns := 0
	a := h.Spawn("busy", &script{
		receive: func(actor.Context, any) { heard <- turns },
		turn:    func(actor.Context) bool { turns++; return true },
	})
	last := -1
	for range 100 {
		h.Send(a, "how far?")
		n := <-heard
		require.GreaterOrEqual(t, n, last)
		last = n
	}
	h.Stop(a) // and so Close ends
}

func TestOrderPerPair(t *testing.T) {
	const senders, each = 8, 20_000
	h := host.New(host.Config{})
	defer h.Close()
	type numbered struct{ from, n int }
	done := make(chan error, 1)
	var next [senders]int
	left := senders * each
	to := h.Spawn("to", &script{receive: func(_ actor.Context, msg any) {
		m := msg.(numbered)
		if next[m.from] != m.n {
			done <- fmt.Errorf("sender %d: got %d, want %d", m.from, m.n, next[m.from])
		}
		next[m.from]++
		if left--; left == 0 {
			done <- nil
		}
	}})
	for s := range senders {
		sent := 0
		h.Spawn("from", &script{turn: func(c actor.Context) bool {
			for range 100 {
				c.Send(to, numbered{s, sent})
				sent++
			}
			return sent < each
		}})
	}
	require.NoError(t, <-done)
	require.Zero(t, h.Dropped())
}

// Every message is followed by a turn that sees it: the mailbox never goes idle
// over a message. Producers pause, so that it goes idle often.
func TestNoLostWakeUp(t *testing.T) {
	const producers, each = 6, 5_000
	h := host.New(host.Config{})
	defer h.Close()
	var seen atomic.Int64
	arrived := make(chan struct{}, 1)
	got := int64(0)
	a := h.Spawn("a", &script{
		receive: func(actor.Context, any) { got++ },
		turn: func(actor.Context) bool {
			seen.Store(got)
			select {
			case arrived <- struct{}{}:
			default:
			}
			return false
		},
	})
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				h.Send(a, i)
				if (i+p)%7 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	for seen.Load() < producers*each {
		<-arrived // a lost wake-up hangs here
	}
	require.EqualValues(t, producers*each, seen.Load())
}

func TestAfter(t *testing.T) {
	bubble(t, func(t *testing.T, h *host.Host) {
		var l log
		a := h.Spawn("a", &script{
			start: func(c actor.Context) {
				c.After(30*time.Millisecond, "third")
				c.After(time.Millisecond, "second")
				c.After(0, "first")
				c.After(time.Hour, "never")
			},
			receive: func(c actor.Context, msg any) {
				l.add("%v %v", c.Now(), msg)
				if msg == "third" {
					c.After(time.Second, "fourth")
				}
			},
		})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"0s first", "1ms second", "30ms third", "1.03s fourth"}, l.take())
		require.Equal(t, time.Minute, h.Now())
		h.Stop(a)
		time.Sleep(2 * time.Hour)
		require.Empty(t, l.take())
		require.Zero(t, h.Dropped(), "timers are stopped with their actor, so their messages are not lost")
	})
}

func TestBlock(t *testing.T) {
	bubble(t, func(t *testing.T, h *host.Host) {
		var l log
		broken := errors.New("broken")
		h.Spawn("a", &script{
			start: func(c actor.Context) {
				c.Block(func() any { time.Sleep(time.Second); return "slow" })
				c.Block(func() any { return "fast" })
				c.Block(func() any { panic(broken) })
				c.Block(func() any { runtime.Goexit(); return nil })
			},
			receive: func(c actor.Context, msg any) {
				switch m := msg.(type) {
				case actor.Panicked:
					l.add("%v panicked: %v", c.Now(), m.Value)
					if m.Value == broken && len(m.Stack) == 0 {
						l.add("no stack")
					}
				default:
					l.add("%v %v", c.Now(), msg)
				}
			},
		})
		time.Sleep(time.Minute)
		got := l.take()
		require.ElementsMatch(t, []string{
			"0s fast", "0s panicked: broken", "0s panicked: runtime.Goexit was called", "1s slow",
		}, got)
		require.Equal(t, "1s slow", got[3])
	})
}

func TestCloseWaitsForBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Config{})
		returned := false
		h.Spawn("a", &script{start: func(c actor.Context) {
			c.Block(func() any { time.Sleep(900 * time.Millisecond); returned = true; return "late" })
			c.After(24*time.Hour, "never")
		}})
		synctest.Wait()
		require.Empty(t, h.Close())
		require.True(t, returned)
		require.Equal(t, 900*time.Millisecond, h.Now(), "Close waits for the function but not for the timer")
		require.EqualValues(t, 1, h.Dropped(), "the result came too late")
		require.Empty(t, h.Close()) // again does no harm
	})
}

// boom makes an actor that ends in the given way when it is told.
func boom() *script {
	stop := false
	turn := func(c actor.Context) bool {
		if stop {
			c.Stop(c.Self())
		}
		return false
	}
	return &script{turn: turn, receive: func(c actor.Context, msg any) {
		switch msg {
		case "stop in turn":
			stop = true
		case "stop":
			c.Stop(c.Self())
		case "panic":
			panic("so it ends")
		case "error":
			panic(errors.ErrUnsupported)
		case "exit":
			runtime.Goexit()
		}
	}}
}

func TestWatch(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(h *host.Host, ref actor.Ref)
		err  string
	}{
		{"stop from outside", func(h *host.Host, ref actor.Ref) { h.Stop(ref) }, ""},
		{"stop from inside", func(h *host.Host, ref actor.Ref) { h.Send(ref, "stop") }, ""},
		{"stop from a turn", func(h *host.Host, ref actor.Ref) { h.Send(ref, "stop in turn") }, ""},
		{"kill", func(h *host.Host, ref actor.Ref) { h.Kill(ref) }, ""},
		{"panic", func(h *host.Host, ref actor.Ref) { h.Send(ref, "panic") }, "panic: so it ends"},
		{"panic with an error", func(h *host.Host, ref actor.Ref) { h.Send(ref, "error") }, "unsupported operation"},
		{"goexit", func(h *host.Host, ref actor.Ref) { h.Send(ref, "exit") }, "runtime.Goexit was called"},
		{"kill and then panic", func(h *host.Host, ref actor.Ref) { h.Kill(ref); h.Send(ref, "panic") }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *host.Host) {
				var got []actor.Terminated
				ref := h.Spawn("watched", boom())
				w := h.Spawn("watcher", &script{
					start: func(c actor.Context) { c.Watch(ref); c.Watch(ref) },
					receive: func(c actor.Context, msg any) {
						if end, ok := msg.(actor.Terminated); ok {
							got = append(got, end)
						} else {
							c.Watch(ref)
						}
					},
				})
				synctest.Wait()
				tt.end(h, ref)
				synctest.Wait()
				require.Len(t, got, 1, "one message for two calls of Watch")
				h.Send(w, "watch again") // one that has ended
				synctest.Wait()
				require.Len(t, got, 2)
				for _, end := range got {
					require.Equal(t, ref, end.Ref)
					if tt.err == "" {
						require.NoError(t, end.Err)
					} else {
						require.ErrorContains(t, end.Err, tt.err)
					}
				}
				if tt.err != "" && tt.name != "goexit" {
					require.ErrorContains(t, got[0].Err, "host_test.go", "the stack shows where")
				}
				if tt.name == "panic with an error" {
					require.ErrorIs(t, got[0].Err, errors.ErrUnsupported)
				}
			})
		})
	}
}

// A panic in any of the four calls ends the actor, and Close does not hang.
func TestPanicAnywhere(t *testing.T) {
	oops := func(actor.Context) { panic("oops") }
	for _, tt := range []struct {
		name string
		b    *script
	}{
		{"start", &script{start: oops}},
		{"receive", &script{receive: func(actor.Context, any) { panic("oops") }}},
		{"turn", &script{turn: func(actor.Context) bool { panic("oops") }}},
		{"stopped", &script{stopped: oops}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *host.Host) {
				var l log
				if tt.b.stopped == nil {
					tt.b.stopped = func(actor.Context) { l.add("stopped") }
				}
				h.Spawn("parent", &script{
					start:   func(c actor.Context) { c.Watch(c.Spawn("child", tt.b)) },
					receive: func(_ actor.Context, msg any) { l.add("%.11s", msg.(actor.Terminated).Err.Error()) },
				})
				a := h.Spawn("alone", tt.b) // nobody watches
				synctest.Wait()
				h.Send(a, "message")
				synctest.Wait()
				h.Stop(a)
				l.take()
				bad := h.Spawn("bad", tt.b)
				h.Spawn("watcher", &script{
					start:   func(c actor.Context) { c.Watch(bad) },
					receive: func(_ actor.Context, msg any) { l.add("%.11s", msg.(actor.Terminated).Err.Error()) },
				})
				synctest.Wait()
				h.Send(bad, "message")
				synctest.Wait()
				h.Stop(bad)
				require.Equal(t, []string{"panic: oops"}, l.take(), "no call of Stopped after a panic")
			})
		})
	}
}

// A parent ends after its children, in whichever way it ends.
func TestFamily(t *testing.T) {
	family := func(l *log) *script {
		p := boom()
		p.start = func(c actor.Context) {
			c.Spawn("child", &script{
				start: func(c actor.Context) {
					c.Spawn("grandchild", &script{stopped: func(c actor.Context) { l.add("%v stopped", c.Self()) }})
				},
				stopped: func(c actor.Context) { l.add("%v stopped", c.Self()) },
			})
		}
		p.stopped = func(c actor.Context) {
			l.add("%v stopped", c.Self())
			late := c.Spawn("late", &script{start: func(actor.Context) { l.add("nobody would stop it") }})
			c.Send(late, "swallowed")
			c.After(time.Hour, "never") // Close would wait for it
		}
		return p
	}
	for _, tt := range []struct {
		name string
		end  func(h *host.Host, ref actor.Ref)
		want []string
	}{
		{"stop", func(h *host.Host, ref actor.Ref) { h.Stop(ref) }, []string{
			"parent/child/grandchild stopped", "parent/child stopped", "parent stopped",
		}},
		{"close", func(h *host.Host, _ actor.Ref) { h.Close() }, []string{
			"parent/child/grandchild stopped", "parent/child stopped", "parent stopped",
		}},
		{"panic", func(h *host.Host, ref actor.Ref) { h.Send(ref, "panic") }, []string{
			"parent/child/grandchild stopped", "parent/child stopped",
		}},
		{"kill", func(h *host.Host, ref actor.Ref) { h.Kill(ref) }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *host.Host) {
				var l log
				ref := h.Spawn("parent", family(&l))
				synctest.Wait()
				tt.end(h, ref)
				require.Equal(t, tt.want, l.take())
				h.Close()
				require.Zero(t, h.Now())
			})
		})
	}
}

// Stop overtakes what is in the mailbox, which is lost and counted, also while
// the actor waits for a child that takes its time.
func TestStopDropsMailbox(t *testing.T) {
	bubble(t, func(t *testing.T, h *host.Host) {
		var l log
		a := h.Spawn("a", &script{
			start: func(c actor.Context) {
				c.Spawn("slow", &script{stopped: func(actor.Context) { time.Sleep(time.Second) }})
			},
			receive: func(_ actor.Context, msg any) { l.add("receive %v", msg); time.Sleep(time.Second) },
			turn:    func(actor.Context) bool { l.add("turn"); return false },
			stopped: func(c actor.Context) { l.add("%v stopped", c.Now()) },
		})
		require.Equal(t, []string{"turn"}, l.take())
		h.Send(a, 1)
		synctest.Wait()
		h.Send(a, 2)
		h.Send(a, 3)
		time.Sleep(1500 * time.Millisecond) // a has begun with 2, and 3 is next
		h.Send(a, 4)
		h.Stop(a)
		time.Sleep(time.Second) // a waits for its child
		h.Send(a, 5)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"receive 1", "receive 2", "3s stopped"}, l.take())
		require.EqualValues(t, 3, h.Dropped())
	})
}

func TestSpawnAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T, h *host.Host) {
		h.Close()
		a := h.Spawn("late", &script{start: func(actor.Context) { t.Error("started") }})
		h.Send(a, 1)
		h.Stop(a)
		require.EqualValues(t, 1, h.Dropped())
	})
}

// The generators depend on the seed and on who spawned whom, and on nothing else.
func TestSeed(t *testing.T) {
	draw := func(seed uint64) (drawn [3]uint64) {
		h := host.New(host.Config{Seed: seed})
		var wg sync.WaitGroup
		wg.Add(3)
		b := func(i int) *script {
			return &script{start: func(c actor.Context) { drawn[i] = c.Rand().Uint64(); wg.Done() }}
		}
		h.Spawn("a", b(0))
		h.Spawn("b", &script{start: func(c actor.Context) {
			c.Spawn("c", b(1))
			b(2).start(c)
		}})
		wg.Wait()
		h.Close()
		return drawn
	}
	one := draw(1)
	require.Equal(t, one, draw(1))
	require.NotEqual(t, one, draw(2))
	require.NotEqual(t, draw(0), draw(0), "no seed is another seed each time")
	require.NotEqual(t, one[0], one[1])
	require.NotEqual(t, one[1], one[2])
}

func TestForeignRef(t *testing.T) {
	h := host.New(host.Config{})
	defer h.Close()
	require.PanicsWithValue(t, "host: <nil> is not a Ref that this package has made", func() { h.Send(nil, 1) })
}

// Actors come, talk and go while the host closes: Close returns, and nothing of
// them is left (goleak).
func TestCloseUnderLoad(t *testing.T) {
	for range 8 {
		h := host.New(host.Config{})
		var family func(depth int) *script
		family = func(depth int) *script {
			var child actor.Ref
			return &script{
				start: func(c actor.Context) {
					if depth > 0 {
						child = c.Spawn("child", family(depth-1))
						c.Watch(child)
					}
					c.After(time.Duration(c.Rand().IntN(1000))*time.Microsecond, "tick")
				},
				receive: func(c actor.Context, msg any) {
					switch msg.(type) {
					case actor.Terminated:
						child = c.Spawn("child", family(depth-1))
						c.Watch(child)
					case string:
						c.After(100*time.Microsecond, "tick")
						c.Block(func() any { return 1 })
						if child != nil {
							c.Send(child, 2)
							if c.Rand().IntN(10) == 0 {
								c.Stop(child)
							}
						}
					}
				},
			}
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 20 {
					h.Send(h.Spawn("root", family(3)), "tick")
				}
			})
		}
		runtime.Gosched()
		h.Close()
		wg.Wait()
		h.Close()
	}
}
