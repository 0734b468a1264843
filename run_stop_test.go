package egret_test

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
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// endless counts up for ever, a message each millisecond.
func endless() *numbers {
	return &numbers{n: 1 << 60, chunk: 10, next: func(context.Context, string, int) error {
		time.Sleep(time.Millisecond)
		return nil
	}}
}

// When the context ends, sources stop, what is open is finished, Finish is called
// once per task, and the run has gone well.
func TestDrain(t *testing.T) {
	for _, g := range []topology.Guarantee{topology.AtLeastOnce, topology.AtMostOnce} {
		t.Run(g.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c, cancel := context.WithTimeout(context.Background(), 1234500*time.Microsecond)
				defer cancel()
				finished, tries := newTally(), newTally()
				var got, sums int64
				top := topology.New("drain", func(b *topology.Builder) {
					b.Guarantee(g)
					in := b.Spout("in", endless()).Emits("n")
					mid := b.Bolt("mid", factory(func() *made {
						m := &made{}
						mine := int64(0)
						m.execute = func(in tuple.Tuple, out *bolt.Collector) error {
							if n := in.String("n"); n == "1200" && tries.add(n) < 6 {
								return errBad // it is in its back-off when the run is stopped
							}
							mine++
							return nil
						}
						m.finish = func(out *bolt.Collector) error {
							finished.add("mid")
							out.Emit(mine)
							return nil
						}
						return m
					}), in.Shuffle()).Emits("n").Parallel(3)
					b.Bolt("sum", factory(func() *made {
						return &made{
							execute: func(in tuple.Tuple, _ *bolt.Collector) error { got += in.Int64("n"); sums++; return nil },
							finish:  func(*bolt.Collector) error { finished.add("sum"); return nil },
						}
					}), mid.Global())
				})
				s, err := egret.Run(c, top, quiet(egret.Config{}))
				require.NoError(t, err)
				settled(t, s, err)
				require.Equal(t, map[string]int{"mid": 3, "sum": 1}, finished.get())
				require.EqualValues(t, 3, sums)
				require.InDelta(t, 1230, s.Input, 10)
				if g == topology.AtMostOnce {
					require.Equal(t, s.Input-1, got)
					return
				}
				require.Equal(t, s.Input, got)
				require.Equal(t, s.Input+3, s.Acked)
				require.Equal(t, 1200*time.Millisecond+1550*time.Millisecond, s.Elapsed.Truncate(50*time.Millisecond))
			})
		})
	}
}

// A run can be stopped in good order whatever its source is doing.
func TestDrainWhileTheSourceWaits(t *testing.T) {
	wait := func(c context.Context) error { <-c.Done(); return c.Err() }
	for _, tt := range []struct {
		name string
		s    func(d *diary) *numbers
		open int
	}{
		{"splits", func(_ *diary) *numbers {
			return &numbers{n: 10, split: wait}
		}, 0},
		{"open", func(_ *diary) *numbers {
			return &numbers{n: 10, open: func(c context.Context, _ string, _ int) error { return wait(c) }}
		}, 0},
		{"next", func(_ *diary) *numbers {
			return &numbers{n: 10, next: func(c context.Context, _ string, at int) error { return wait(c) }}
		}, 1},
		{"next without an error", func(_ *diary) *numbers {
			return &numbers{n: 1000, chunk: 1, next: func(c context.Context, _ string, at int) error {
				if at > 5 {
					<-c.Done()
				}
				return nil
			}}
		}, 1},
		{"pause of a split", func(_ *diary) *numbers {
			tries := newTally()
			return &numbers{n: 10, next: func(context.Context, string, int) error {
				return fmt.Errorf("bad %d", tries.add("")) // never the same
			}}
		}, 11}, // each 50 ms
		{"pause of the task", func(_ *diary) *numbers {
			tries := newTally()
			return &numbers{n: 10, split: func(context.Context) error {
				if tries.add("") < 6 {
					panic("boom")
				}
				return nil
			}}
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := newDiary()
				c, cancel := context.WithTimeout(context.Background(), 510*time.Millisecond)
				defer cancel()
				source := tt.s(d)
				var mu sync.Mutex
				opened, closed := 0, 0
				if before := source.open; before == nil {
					source.open = func(context.Context, string, int) error {
						mu.Lock()
						defer mu.Unlock()
						opened++
						return nil
					}
				}
				source.closed = func(string) {
					mu.Lock()
					defer mu.Unlock()
					closed++
				}
				finished := 0
				top := topology.New("wait", func(b *topology.Builder) {
					in := b.Spout("in", source).Emits("n")
					b.Bolt("out", factory(func() *made {
						return &made{finish: func(*bolt.Collector) error { finished++; return nil }}
					}), in.Shuffle())
				})
				s, err := egret.Run(c, top, quiet(egret.Config{}))
				require.NoError(t, err)
				settled(t, s, err)
				require.Equal(t, 1, finished)
				require.Equal(t, tt.open, opened)
				require.Equal(t, opened, closed)
				if tt.name == "pause of the task" {
					require.Equal(t, 750*time.Millisecond, s.Elapsed, "it is in a pause until then")
				} else {
					require.Equal(t, 510*time.Millisecond, s.Elapsed)
				}
			})
		})
	}
}

// Over the deadline a run ends with ErrDrain, and Close is called all the same.
func TestDrainDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		d := newDiary()
		source := endless()
		source.closed = func(string) { d.at("reader") }
		top := topology.New("stuck", func(b *topology.Builder) {
			in := b.Spout("in", source).Emits("n")
			b.Bolt("out", factory(func() *made {
				return &made{
					execute: func(in tuple.Tuple, _ *bolt.Collector) error {
						if in.String("n") == "500" {
							return errBad
						}
						return nil
					},
					finish: func(*bolt.Collector) error { d.at("finish"); return nil },
					close:  func() error { d.at("close"); return nil },
				}
			}), in.Shuffle())
		})
		s, err := egret.Run(c, top, quiet(egret.Config{MaxReplays: egret.ReplayForever, StopTimeout: 5 * time.Second}))
		require.ErrorIs(t, err, egret.ErrDrain)
		require.EqualError(t, err, "topology stuck: not drained: 1 message open after 5s")
		require.Equal(t, 6*time.Second, s.Elapsed)
		require.EqualValues(t, 1, s.Open)
		settled(t, s, err)
		all := d.entries()
		require.Len(t, all, 2, "%q", all)
		require.Regexp(t, `^1(\.0\d*)?s reader$`, all[0], "readers are closed when nothing more is to be read")
		require.Equal(t, "6s close", all[1])
	})
}

// Stop ends a run at once. What runs is waited for, and everything is closed.
func TestStop(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(context.CancelFunc, *egret.Running)
	}{
		{"at once", func(_ context.CancelFunc, r *egret.Running) { r.Stop() }},
		{"after a drain", func(cancel context.CancelFunc, r *egret.Running) {
			cancel()
			time.Sleep(100 * time.Millisecond)
			r.Stop()
		}},
		{"twice", func(_ context.CancelFunc, r *egret.Running) { r.Stop(); r.Stop(); r.Drain() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c, cancel := context.WithCancel(context.Background())
				defer cancel()
				d := newDiary()
				// One split waits in Next, the other in Open, for as long as they may.
				source := &numbers{splits: 2, n: 1000, chunk: 1}
				source.open = func(_ context.Context, split string, _ int) error {
					if split == "1" {
						time.Sleep(1500 * time.Millisecond)
					}
					return nil
				}
				source.next = func(c context.Context, split string, at int) error {
					if at == 10 {
						<-c.Done()
						time.Sleep(900 * time.Millisecond)
						return c.Err()
					}
					return nil
				}
				source.closed = func(split string) { d.add("reader %s", split) }
				top := topology.New("stop", func(b *topology.Builder) {
					in := b.Spout("in", source).Emits("n")
					b.Bolt("out", factory(func() *made {
						return &made{
							execute: func(tuple.Tuple, *bolt.Collector) error { return errBad },
							finish:  func(*bolt.Collector) error { d.add("finish"); return nil },
							close:   func() error { d.add("bolt"); return nil },
						}
					}), in.Shuffle())
				})
				r, err := egret.Start(c, top, quiet(egret.Config{}))
				require.NoError(t, err)
				time.Sleep(time.Second)
				tt.do(cancel, r)
				s, err := r.Wait()
				require.ErrorIs(t, err, egret.ErrDrain)
				settled(t, s, err)
				require.ElementsMatch(t, []string{"reader 0", "reader 1", "bolt"}, d.entries())
				require.Equal(t, 1900*time.Millisecond, s.Elapsed.Truncate(100*time.Millisecond), "who is inside a call is waited for")
				again, err2 := r.Wait()
				require.Equal(t, s, again)
				require.Equal(t, err, err2)
				r.Stop()
				r.Drain()
			})
		})
	}
}

func TestContextHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, cancel := context.WithCancel(context.Background())
		cancel()
		s, err := egret.Run(c, straight(endless(), func(tuple.Tuple, *bolt.Collector) error { return nil }), quiet(egret.Config{}))
		require.NoError(t, err)
		settled(t, s, err)
		require.LessOrEqual(t, s.Input, int64(10))
	})
}

// The calls of a bolt come in their order, at their times, and each as often as
// it should.
func TestLifeOfABolt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDiary()
		source := &numbers{n: 3, chunk: 1, next: func(context.Context, string, int) error {
			time.Sleep(700 * time.Millisecond)
			return nil
		}}
		dies := true
		var during context.Context
		top := topology.New("life", func(b *topology.Builder) {
			in := b.Spout("in", source).Emits("n")
			b.Bolt("out", factory(func() *made {
				d.at("new")
				return &made{
					prepare: func(c context.Context, task *bolt.Task) error {
						d.at("prepare %s %s %d of %d", task.Topology, task.Component, task.Index, task.Parallel)
						during = c
						return c.Err()
					},
					execute: func(in tuple.Tuple, out *bolt.Collector) error {
						d.at("execute %s", in.String("n"))
						require.Equal(t, during, out.Context())
						if dies {
							dies = false
							panic("boom")
						}
						return nil
					},
					tick:   func(out *bolt.Collector) error { d.at("tick"); return out.Context().Err() },
					finish: func(out *bolt.Collector) error { d.at("finish"); return out.Context().Err() },
					close:  func() error { d.at("close %v", during.Err()); return errBad },
				}
			}), in.Shuffle()).Every(500 * time.Millisecond)
		})
		_, err := run(t, top, egret.Config{})
		require.NoError(t, err)
		require.Equal(t, []string{
			"0s new", "0s prepare life out 0 of 1",
			"500ms tick",
			"700ms execute 0", "700ms close context canceled",
			"700ms new", "700ms prepare life out 0 of 1",
			"750ms execute 0",
			"1.2s tick",
			"1.4s execute 1",
			"1.7s tick",
			"2.1s execute 2", "2.1s finish", "2.1s close context canceled",
		}, d.entries())
	})
}

// Components are closed in the order of the stream, and Finish has been called for
// all of them before.
func TestClosesInOrder(t *testing.T) {
	d := newDiary()
	top := topology.New("order", func(b *topology.Builder) {
		life := func(name string) bolt.Factory {
			return factory(func() *made {
				return &made{
					execute: func(in tuple.Tuple, out *bolt.Collector) error { out.Emit(in.String("n")); return nil },
					finish:  func(*bolt.Collector) error { d.add("finish %s", name); return nil },
					close:   func() error { d.add("close %s", name); return nil },
				}
			})
		}
		last := b.Component("b") // declared behind who listens to it
		b.Bolt("c", life("c"), last.Shuffle()).Emits("n")
		in := b.Spout("in", spout.Slice(texts(1000)...)).Emits("n")
		first := b.Bolt("a", life("a"), in.Shuffle()).Emits("n")
		b.Bolt("b", life("b"), first.Shuffle()).Emits("n")
	})
	_, err := run(t, top, egret.Config{})
	require.NoError(t, err)
	require.Equal(t, []string{"finish a", "finish b", "finish c", "close a", "close b", "close c"}, d.entries())
}

// A run can be looked at while it goes on, and many can go on at the same time.
func TestRunsBesideEachOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, cancel := context.WithCancel(context.Background())
		defer cancel()
		top := straight(endless(), func(tuple.Tuple, *bolt.Collector) error { return nil })
		var rs []*egret.Running
		for range 20 {
			r, err := egret.Start(c, top, quiet(egret.Config{}))
			require.NoError(t, err)
			rs = append(rs, r)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for _, r := range rs {
			require.EqualValues(t, 1000, r.Stats().Input)
			require.Equal(t, time.Second, r.Stats().Elapsed)
		}
		cancel()
		for _, r := range rs {
			s, err := r.Wait()
			require.NoError(t, err)
			settled(t, s, err)
		}
	})
}
