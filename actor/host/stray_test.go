package host_test

import (
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/actor/host"
)

// hang waits for release in the way of user code that does not come back.
func hang(release chan struct{}) { <-release }

// A parent with a child that hangs on a message, another one that does not, and
// a log of what they hear.
func hanging(h *host.Host, l *log, release chan struct{}) (parent, bad, good actor.Ref) {
	parent = h.Spawn("parent", &script{
		start: func(c actor.Context) {
			bad = c.Spawn("bad", &script{
				start: func(c actor.Context) { c.After(24*time.Hour, "never") },
				receive: func(c actor.Context, _ any) {
					hang(release)
					c.After(time.Hour, "not any more")
					c.Spawn("late", &script{start: func(actor.Context) { l.add("nobody would stop it") }})
					l.add("%v back", c.Now())
				},
				stopped: func(c actor.Context) {
					l.add("%v stopped", c.Now())
					c.Block(func() any { l.add("%v block", h.Now()); return nil })
				},
			})
			good = c.Spawn("good", &script{receive: func(_ actor.Context, msg any) { l.add("good %v", msg) }})
			c.Watch(bad)
		},
		receive: func(c actor.Context, msg any) {
			switch msg := msg.(type) {
			case actor.Terminated:
				l.add("%v terminated %v", c.Now(), msg.Err)
			case actor.Stack:
				l.add("stack of %v: %s", msg.Ref, msg.Text)
			case string:
				if msg == "abandon" {
					c.Abandon(bad)
					c.Abandon(bad) // again changes nothing
				} else {
					c.Inspect(bad)
				}
			}
		},
		stopped: func(actor.Context) { l.add("parent stopped") },
	})
	synctest.Wait()
	h.Send(bad, "hang")
	synctest.Wait()
	return parent, bad, good
}

// An abandoned actor holds nobody up: its parent and the host end, and Close says
// where it is. When it comes back it is stopped, long after.
func TestAbandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Config{})
		var l log
		release := make(chan struct{})
		parent, bad, good := hanging(h, &l, release)
		h.Send(parent, "abandon")
		synctest.Wait()
		h.Send(good, "lives")
		h.Send(bad, "lost")
		require.Equal(t, []string{"good lives"}, l.take())
		left := h.Close()
		require.Equal(t, time.Second, h.Now(), "Close waits for a second")
		require.Len(t, left, 1)
		require.Equal(t, "parent/bad", left[0].Name)
		require.False(t, left[0].Call)
		require.True(t, strings.HasPrefix(left[0].Stack, "github.com/egretstream/egret/actor/host_test.hang\n\t"), left[0].Stack)
		require.Contains(t, left[0].Stack, "stray_test.go:")
		require.NotContains(t, left[0].Stack, "egret/actor/host.")
		require.Equal(t, []string{"parent stopped"}, l.take())

		time.Sleep(time.Minute)
		close(release)
		require.Equal(t, []string{"1m1s back", "1m1s stopped", "1m1s block"}, l.take())
		require.Empty(t, h.Close())
		require.Equal(t, 61*time.Second, h.Now())
	})
}

// If it comes back in time, it ends as any other, once.
func TestAbandonedComesBack(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    time.Duration
		want []string
	}{
		{"while the parent lives", 5 * time.Second, []string{"5s back", "5s stopped", "5s block", "5s terminated <nil>", "parent stopped"}},
		{"while Close waits", 10500 * time.Millisecond, []string{"parent stopped", "10.5s back", "10.5s stopped", "10.5s block"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := host.New(host.Config{})
				var l log
				release := make(chan struct{})
				parent, _, _ := hanging(h, &l, release)
				time.AfterFunc(tt.d, func() { close(release) })
				h.Send(parent, "abandon")
				time.Sleep(10 * time.Second)
				require.Empty(t, h.Close())
				require.Equal(t, max(10*time.Second, tt.d), h.Now())
				require.ElementsMatch(t, tt.want, l.take())
			})
		})
	}
}

func TestOnlyAParentAbandons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Config{})
		a := h.Spawn("a", &script{})
		b := h.Spawn("b", &script{receive: func(c actor.Context, _ any) {
			require.Panics(t, func() { c.Abandon(a) })
		}})
		h.Send(b, 1)
		synctest.Wait()
		require.Empty(t, h.Close())
	})
}

// A function of Block that does not come back is left after a second.
func TestCloseLeavesBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Config{})
		release := make(chan struct{})
		h.Spawn("a", &script{start: func(c actor.Context) {
			c.Block(func() any { hang(release); return 1 })
			c.Block(func() any { return 2 })
		}})
		synctest.Wait()
		left := h.Close()
		require.Len(t, left, 1)
		require.Equal(t, time.Second, h.Now())
		require.Equal(t, "a", left[0].Name)
		require.True(t, left[0].Call)
		require.Contains(t, left[0].Stack, "host_test.hang")
		close(release)
		synctest.Wait()
		require.Empty(t, h.Close())
		require.EqualValues(t, 1, h.Dropped(), "its result comes to nobody")
	})
}

// Inspect finds the goroutine of an actor, and not those that its code has started.
func TestInspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Config{})
		var l log
		release := make(chan struct{})
		parent, _, _ := hanging(h, &l, release)
		h.Send(parent, "inspect")
		lines := strings.Split(strings.Join(l.take(), ""), "\n")
		require.Equal(t, "stack of parent/bad: github.com/egretstream/egret/actor/host_test.hang", lines[0])
		close(release)
		synctest.Wait()
		l.take()
		h.Send(parent, "inspect")
		require.Equal(t, []string{"stack of parent/bad: "}, l.take(), "one that is in no call")
		require.Empty(t, h.Close())
	})
}

// What Stopped hangs in is shown, and not who waits for it; and whatever else
// carries the label is no part of it.
func TestInspectStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Config{})
		release := make(chan struct{})
		var l log
		var child actor.Ref
		parent := h.Spawn("parent", &script{
			start: func(c actor.Context) {
				child = c.Spawn("child", &script{
					start:   func(actor.Context) { go func() { <-release }() },
					stopped: func(actor.Context) { hang(release) },
				})
			},
			receive: func(c actor.Context, msg any) {
				switch msg := msg.(type) {
				case actor.Stack:
					l.add("%s", msg.Text)
				case int:
					c.Stop(child)
				default:
					c.Inspect(child)
				}
			},
		})
		h.Send(parent, 1)
		synctest.Wait()
		h.Send(parent, "inspect")
		got := l.take()
		require.Len(t, got, 1)
		require.Equal(t, 1, strings.Count(got[0], "host_test.hang\n"), got[0])
		require.NotContains(t, got[0], "WaitGroup")
		require.NotContains(t, got[0], "TestInspectStopped.func1.1.1")
		close(release)
		require.Empty(t, h.Close())
	})
}

// An actor that inspects itself sees what it has given to Block, and not the look.
func TestInspectItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Config{})
		release := make(chan struct{})
		var l log
		ref := h.Spawn("self", &script{receive: func(c actor.Context, msg any) {
			switch msg := msg.(type) {
			case actor.Stack:
				l.add("%s", msg.Text)
			case func():
				c.Block(func() any { msg(); return nil })
			case string:
				c.Inspect(c.Self())
			}
		}})
		h.Send(ref, "inspect")
		require.Equal(t, []string{""}, l.take())
		h.Send(ref, func() { hang(release) })
		synctest.Wait()
		h.Send(ref, "inspect")
		got := l.take()
		require.Len(t, got, 1)
		require.True(t, strings.HasPrefix(got[0], "github.com/egretstream/egret/actor/host_test.hang\n"), got[0])
		require.NotContains(t, got[0], "pprof")
		close(release)
		require.Empty(t, h.Close())
	})
}

// The labels are there for whoever takes a profile.
func TestLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Config{})
		release := make(chan struct{})
		h.Spawn(`count/"2`, &script{start: func(actor.Context) { hang(release) }})
		synctest.Wait()
		var b strings.Builder
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&b, 1))
		require.Contains(t, b.String(), `"egret_task":"count/\"2"`)
		close(release)
		require.Empty(t, h.Close())
	})
}

// Who keeps the Ref of an actor that has ended keeps nothing else of it alive: not its
// behaviour, nor what that was sent or had set timers for.
func TestDeadBehavior(t *testing.T) {
	for name, end := range map[string]func(c actor.Context, h *host.Host, ref actor.Ref){
		"killed":    func(_ actor.Context, h *host.Host, ref actor.Ref) { h.Kill(ref) },
		"stopped":   func(c actor.Context, _ *host.Host, ref actor.Ref) { c.Stop(ref) },
		"panicked":  func(c actor.Context, _ *host.Host, ref actor.Ref) { c.Send(ref, "panic") },
		"abandoned": func(c actor.Context, _ *host.Host, ref actor.Ref) { c.Send(ref, "hang"); c.Send(ref, "lost") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *host.Host) {
				release := make(chan struct{})
				var refs []actor.Ref
				var living []weak.Pointer[script]
				parent := h.Spawn("parent", &script{receive: func(c actor.Context, msg any) {
					if _, ended := msg.(actor.Terminated); ended {
						return
					}
					if msg == "abandon" {
						c.Abandon(refs[len(refs)-1])
						return
					}
					child := heavy(release)
					living = append(living, weak.Make(child))
					ref := c.Spawn("child", child)
					refs = append(refs, ref)
					c.Watch(ref)
					c.Send(ref, "hello")
				}})
				for range 10 {
					h.Send(parent, "spawn")
					synctest.Wait()
					asker := h.Spawn("end", &script{receive: func(c actor.Context, _ any) { end(c, h, refs[len(refs)-1]) }})
					h.Send(asker, "end")
					synctest.Wait()
					if name == "abandoned" {
						h.Send(parent, "abandon")
						synctest.Wait()
					}
				}
				runtime.GC()
				if name == "abandoned" {
					require.Equal(t, 10, alive(living), "they have not come back")
				}
				close(release)
				synctest.Wait()
				require.Zero(t, alive(living))
				runtime.KeepAlive(refs)
			})
		})
	}
}

// heavy returns a behaviour that others have something of.
func heavy(release chan struct{}) *script {
	s := new(script)
	s.start = func(c actor.Context) {
		c.After(time.Hour, s)
		c.Poster()(s)
		c.Block(func() any { return s })
		c.Spawn("grandchild", new(script))
	}
	s.receive = func(c actor.Context, msg any) {
		switch msg {
		case "panic":
			panic(s)
		case "hang":
			hang(release)
			c.After(time.Hour, s)
		}
	}
	return s
}

func alive(of []weak.Pointer[script]) (n int) {
	runtime.GC()
	for _, w := range of {
		if w.Value() != nil {
			n++
		}
	}
	return n
}
