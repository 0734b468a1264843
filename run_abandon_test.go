package egret_test

import (
	"context"
	"fmt"
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

// A call of a source that ignores its context is left behind one second after it
// has ended, and the run ends well without it. What it returns after all is
// dropped and its reader closed.
func TestDrainGoesOnWithoutACall(t *testing.T) {
	for _, what := range []string{"splits", "open", "next"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				free := make(chan struct{})
				d, log, got := newDiary(), &logbook{}, newTally()
				source := &numbers{splits: 2, n: 10, chunk: 1}
				switch what {
				case "splits":
					source.split = func(context.Context) error { <-free; d.at("splits"); return nil }
				case "open":
					source.open = func(_ context.Context, split string, _ int) error {
						if split == "1" {
							<-free
							d.at("open")
						}
						return nil
					}
				case "next":
					source.next = func(_ context.Context, split string, at int) error {
						if split == "1" && at == 5 {
							<-free
							d.at("next")
						}
						return nil
					}
				}
				source.closed = func(split string) { d.at("close %s", split) }
				c, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				defer cancel()
				finished := false
				top := topology.New("ignores", func(b *topology.Builder) {
					in := b.Spout("lines", source).Emits("n")
					b.Bolt("out", factory(func() *made {
						return &made{
							execute: func(in tuple.Tuple, _ *bolt.Collector) error { got.add(in.String("n")); return nil },
							finish:  func(*bolt.Collector) error { finished = true; return nil },
						}
					}), in.Shuffle())
				})
				s, err := egret.Run(c, top, egret.Config{Logger: log.logger()})
				require.NoError(t, err)
				settled(t, s, err)
				require.True(t, finished)
				require.Equal(t, 5*time.Second, s.Elapsed, "a second in the task, and one at the end")
				require.EqualValues(t, 1, stat(t, s, "lines/0").AbandonedCalls)
				where := " of split 1"
				name := map[string]string{"splits": "Splits", "open": "Open", "next": "Next"}[what]
				if what == "splits" {
					where = ""
				}
				require.Len(t, log.with("the source of lines ignores its context: "+name+where+" is left behind"), 1)
				left := log.with("a call that task lines/0 has made did not come back; its goroutine is left behind")
				require.Len(t, left, 1)
				require.Contains(t, left[0], "run_abandon_test.go:")
				want := map[string]int{"splits": 0, "open": 10, "next": 15}[what]
				require.Equal(t, want, got.sum())

				before := d.entries()
				time.Sleep(time.Minute)
				close(free)
				synctest.Wait()
				after := d.entries()[len(before):]
				switch what {
				case "splits":
					require.Equal(t, []string{"1m5s splits"}, after)
				case "open":
					require.Equal(t, []string{"1m5s open", "1m5s close 1"}, after)
				case "next":
					require.Equal(t, []string{"1m5s next", "1m5s close 1"}, after)
				}
			})
		})
	}
}

// A call that comes back within the second is one like others.
func TestACallMayTakeASecond(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log, got := &logbook{}, newTally()
		source := &numbers{n: 10, chunk: 1, next: func(c context.Context, _ string, at int) error {
			if at == 5 {
				<-c.Done()
				time.Sleep(999 * time.Millisecond)
			}
			return nil
		}}
		c, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		s, err := egret.Run(c, straight(source, func(in tuple.Tuple, _ *bolt.Collector) error { got.add(in.String("n")); return nil }), egret.Config{Logger: log.logger()})
		require.NoError(t, err)
		require.Equal(t, 3999*time.Millisecond, s.Elapsed)
		require.Zero(t, stat(t, s, "in/0").AbandonedCalls)
		require.Empty(t, log.with(""))
		require.Equal(t, 5, got.sum())
	})
}

// Stop, and the end of the run, wait a second at most for what a source does.
func TestEndGoesOnWithoutACall(t *testing.T) {
	for _, what := range []string{"next", "commit", "close"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				free := make(chan struct{})
				log := &logbook{}
				source := &numbers{n: 10, chunk: 1}
				hang := func(in string) {
					if what == in {
						<-free
					}
				}
				source.next = func(_ context.Context, _ string, at int) error {
					if at == 5 {
						hang("next")
					}
					return nil
				}
				source.commit = func(context.Context, string, int) error { hang("commit"); return nil }
				source.closed = func(string) { hang("close") }
				r, err := egret.Start(context.Background(), straight(committing{source}, func(tuple.Tuple, *bolt.Collector) error { return nil }), egret.Config{Logger: log.logger()})
				require.NoError(t, err)
				if what != "close" {
					time.Sleep(time.Second)
					r.Stop()
				}
				s, err := r.Wait()
				if what == "close" {
					require.NoError(t, err)
					require.Equal(t, time.Second, s.Elapsed)
				} else {
					require.ErrorIs(t, err, egret.ErrDrain)
					require.Equal(t, 2*time.Second, s.Elapsed)
				}
				require.Len(t, log.with("a call that task in/0 has made did not come back"), 1)
				close(free)
			})
		})
	}
}

// A task that hangs holds up neither a stop nor a drain: both name it.
func TestStuckEndsInTime(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration // StuckAfter
		do    func(r *egret.Running)
		err   string
		at    time.Duration
	}{
		{"stop when it is known to be stuck", 10 * time.Second, func(r *egret.Running) { time.Sleep(15 * time.Second); r.Stop() },
			"not drained: stopped with 20 messages open; task out/0 did not come back from Execute", 17 * time.Second},
		{"stop before", 10 * time.Second, func(r *egret.Running) { time.Sleep(3 * time.Second); r.Stop() },
			"not drained: stopped with 20 messages open; task out/0 did not come back from Execute", 11 * time.Second},
		{"stop soon", time.Second / 2, func(r *egret.Running) { time.Sleep(10 * time.Second); r.Stop() },
			"not drained: stopped with 20 messages open; task out/0 did not come back from Execute", 12 * time.Second},
		{"drain", 10 * time.Second, func(r *egret.Running) { time.Sleep(2 * time.Second); r.Drain() },
			"not drained: 20 messages open after 20s; task out/0 did not come back from Execute", 24 * time.Second},
		{"drain and stop", 10 * time.Second, func(r *egret.Running) { r.Drain(); time.Sleep(time.Second); r.Stop() },
			"not drained: stopped with 20 messages open; task out/0 did not come back from Execute", 11 * time.Second},
		{"stop that waits for ever", -1, func(r *egret.Running) { r.Stop() },
			"not drained: stopped with 20 messages open", time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				free := make(chan struct{})
				log, d := &logbook{}, newDiary()
				top := topology.New("stuck", func(b *topology.Builder) {
					in := b.Spout("in", spout.Slice(texts(20)...)).Emits("n")
					out := b.Bolt("out", factory(func() *made {
						return &made{
							execute: func(tuple.Tuple, *bolt.Collector) error { <-free; return nil },
							finish:  func(*bolt.Collector) error { d.at("finish"); return nil },
							close:   func() error { d.at("close out"); return nil },
						}
					}), in.Shuffle()).Emits("n")
					b.Bolt("end", factory(func() *made {
						return &made{close: func() error { d.at("close end"); return nil }}
					}), out.Shuffle())
				})
				r, err := egret.Start(context.Background(), top, egret.Config{Logger: log.logger(), StuckAfter: tt.after, StopTimeout: 20 * time.Second})
				require.NoError(t, err)
				if tt.after < 0 {
					time.AfterFunc(time.Hour, func() { close(free) })
				}
				synctest.Wait()
				tt.do(r)
				s, err := r.Wait()
				require.EqualError(t, err, "topology stuck: "+tt.err)
				require.ErrorIs(t, err, egret.ErrDrain)
				require.LessOrEqual(t, s.Elapsed, tt.at+500*time.Millisecond)
				require.GreaterOrEqual(t, s.Elapsed, tt.at)
				settled(t, s, err)
				if tt.after > 0 {
					require.Len(t, log.with("task out/0 did not come back; its goroutine is left behind"), 1)
					require.NotEmpty(t, log.with("task stuck: out/0 does not come back from Execute"))
					require.Len(t, d.entries(), 1)
					require.Equal(t, "close end", rest(d.entries()[0]))
					time.Sleep(time.Minute)
					close(free)
					synctest.Wait()
					require.Len(t, d.entries(), 2)
				}
				require.Contains(t, fmt.Sprint(d.entries()), "close out")
				require.NotContains(t, fmt.Sprint(d.entries()), "finish")
			})
		})
	}
}

// A Close that hangs at the end of a run that went well fails it.
func TestStuckInCloseAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		free := make(chan struct{})
		closes := 0
		top := topology.New("closes", func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice(texts(20)...)).Emits("n")
			b.Bolt("out", factory(func() *made {
				return &made{close: func() error { closes++; <-free; return nil }}
			}), in.Shuffle())
		})
		s, err := run(t, top, egret.Config{})
		require.EqualError(t, err, "topology closes: task out/0 did not come back from Close")
		require.Equal(t, 11*time.Second, s.Elapsed)
		close(free)
		synctest.Wait()
		require.Equal(t, 1, closes)
	})
}

// A life that hangs in Close after a panic is replaced like another one.
func TestStuckInCloseOfALife(t *testing.T) {
	bubble(t, func(t *testing.T) {
		free := make(chan struct{})
		var lives atomic.Int64
		d, log := newDiary(), &logbook{}
		top := topology.New("closes", func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice(texts(20)...)).Emits("n")
			b.Bolt("out", factory(func() *made {
				mine := lives.Add(1)
				return &made{
					execute: func(in tuple.Tuple, _ *bolt.Collector) error {
						if in.String("n") == "3" && mine == 1 {
							panic("boom")
						}
						return nil
					},
					close: func() error {
						d.add("%d", mine)
						if mine == 1 {
							<-free
						}
						return nil
					},
				}
			}), in.Shuffle())
		})
		time.AfterFunc(10500*time.Millisecond, func() { close(free) })
		s, err := run(t, top, egret.Config{OnStuck: egret.Replace, Logger: log.logger()})
		require.NoError(t, err)
		require.Equal(t, 10500*time.Millisecond, s.Elapsed)
		require.Equal(t, []string{"1", "2"}, d.entries())
		require.EqualValues(t, 1, s.Restarts)
		require.Len(t, log.with("task died: out/0: panic in Execute: boom"), 1)
	})
}

// Prepare that always hangs ends the run, as one that always panics.
func TestStuckInPrepareEndsTheRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		free := make(chan struct{})
		var lives atomic.Int64
		var closed atomic.Int64
		top := topology.New("prepares", func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice(texts(20)...)).Emits("n")
			b.Bolt("out", factory(func() *made {
				mine := lives.Add(1)
				return &made{
					prepare: func(context.Context, *bolt.Task) error {
						<-free
						if mine%2 == 0 {
							return errBad
						}
						return nil
					},
					close: func() error { closed.Add(1); return nil },
				}
			}), in.Shuffle())
		})
		s, err := run(t, top, egret.Config{OnStuck: egret.Replace})
		require.EqualError(t, err, "topology prepares: task out/0 has died 6 times in a row, the last time of: out/0: Prepare did not come back for 12.1s")
		require.EqualValues(t, 6, lives.Load())
		require.EqualValues(t, 6, stat(t, s, "out/0").Stuck)
		close(free)
		synctest.Wait()
		require.EqualValues(t, 3, closed.Load(), "each life whose Prepare has succeeded, if late")
	})
}

// A prompt Next hangs on its task's turn. A new life reads on from the committed
// position, and what the old one had is read again.
func TestStuckInNext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		free := make(chan struct{})
		log, d, got := &logbook{}, newDiary(), newTally()
		var hung atomic.Bool
		source := &numbers{n: 1000, chunk: 100, prompt: true}
		source.next = func(c context.Context, _ string, at int) error {
			if at == 500 && hung.CompareAndSwap(false, true) {
				<-free
				d.at("back %v", c.Err())
			}
			return nil
		}
		source.closed = func(string) { d.at("closed") }
		time.AfterFunc(12500*time.Millisecond+1, func() { close(free) })
		s, err := run(t, straight(source, func(in tuple.Tuple, _ *bolt.Collector) error { got.add(in.String("n")); return nil }), egret.Config{OnStuck: egret.Replace, Logger: log.logger()})
		require.NoError(t, err)
		require.Len(t, got.get(), 1000)
		require.EqualValues(t, 1, s.Restarts)
		require.Equal(t, s.Input, s.Acked+s.Abandoned)
		require.Equal(t, 1, d.count("12.500000001s back context canceled"))
		require.Len(t, log.with("task stuck: in/0 does not come back from Next"), 1)
		require.Len(t, d.entries(), 3, "two readers are closed: %q", d.entries())
	})
}

// If it hangs there for ever, each time, the run ends.
func TestStuckInNextEndsTheRun(t *testing.T) {
	for _, onStuck := range []egret.StuckAction{egret.Report, egret.Replace} {
		t.Run(onStuck.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				free := make(chan struct{})
				source := &numbers{n: 10, prompt: true, next: func(context.Context, string, int) error { <-free; return nil }}
				c, cancel := context.WithTimeout(context.Background(), 100*time.Second)
				defer cancel()
				s, err := egret.Run(c, straight(source, func(tuple.Tuple, *bolt.Collector) error { return nil }), quiet(egret.Config{OnStuck: onStuck}))
				if onStuck == egret.Report {
					require.EqualError(t, err, "topology straight: not drained: 0 messages open after 30s; task in/0 did not come back from Next")
				} else {
					require.EqualError(t, err, "topology straight: task in/0 has died 6 times in a row, the last time of: in/0: Next did not come back for 10s")
				}
				settled(t, s, err)
				close(free)
				synctest.Wait()
			})
		})
	}
}

// A queue whose Ack hangs gets a new life, and each message that it has brought gets
// its one answer: those of the old life when that comes back.
func TestStuckInAck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		free := make(chan struct{})
		log := &logbook{}
		q := &broker{n: 100, chunk: 10}
		q.next = func(context.Context, int) error { time.Sleep(500 * time.Millisecond); return nil }
		q.ack = func(ctx context.Context, id string) error {
			if id == "30" {
				<-free
			}
			return nil
		}
		time.AfterFunc(40*time.Second, func() { close(free) })
		s, err := run(t, queueing(q.queue, 1, nothing), egret.Config{OnStuck: egret.Replace, Logger: log.logger()})
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Restarts)
		require.Len(t, log.with("task stuck: in/0 does not come back from Ack"), 1)
		require.Len(t, log.with("task in/0 came back from Ack after"), 1)
		require.Equal(t, 2, q.lives)
		q.settled(t)
		require.Contains(t, q.with(nil), "30")
		require.NotEmpty(t, q.with(spout.ErrUnfinished), "what the old one had")
		require.EqualValues(t, 1, stat(t, s, "in/0").Stuck)
		require.Positive(t, s.Abandoned)
	})
}

// A queue that ignores its context holds up no drain. What it brings after all it
// gets back.
func TestDrainGoesOnWithoutAQueue(t *testing.T) {
	for _, what := range []string{"open", "next"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				free := make(chan struct{})
				log := &logbook{}
				q := &broker{n: 100, chunk: 10}
				if what == "open" {
					q.open = func(context.Context, *spout.Task) error { <-free; return nil }
				} else {
					q.next = func(_ context.Context, i int) error {
						if i == 25 {
							<-free
						}
						return nil
					}
				}
				c, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				defer cancel()
				s, err := egret.Run(c, queueing(q.queue, 1, nothing), egret.Config{Logger: log.logger()})
				require.NoError(t, err)
				settled(t, s, err)
				require.Equal(t, 5*time.Second, s.Elapsed)
				require.EqualValues(t, 1, stat(t, s, "in/0").AbandonedCalls)
				name := map[string]string{"open": "Open", "next": "Next"}[what]
				require.Len(t, log.with("the queue of in ignores its context: "+name+" is left behind"), 1)
				close(free)
				synctest.Wait()
				q.settled(t)
				require.Len(t, q.with(nil), map[string]int{"open": 0, "next": 20}[what])
				require.Len(t, q.with(spout.ErrUnfinished), map[string]int{"open": 0, "next": 10}[what])
			})
		})
	}
}

// One that comes back between that and the end of its task is the task's all the same.
func TestAQueueComesBackLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		free := make(chan struct{})
		q := &broker{n: 100, chunk: 10}
		q.next = func(_ context.Context, i int) error {
			if i == 25 {
				<-free
			}
			return nil
		}
		time.AfterFunc(7*time.Second, func() { close(free) })
		c, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		top := queueing(q.queue, 1, func(in tuple.Tuple, _ *bolt.Collector) error {
			if in.String("n") == "19" {
				time.Sleep(9 * time.Second)
			}
			return nil
		})
		s, err := egret.Run(c, top, quiet(egret.Config{}))
		require.NoError(t, err)
		settled(t, s, err)
		require.Equal(t, 9*time.Second, s.Elapsed)
		q.settled(t)
		require.Len(t, q.with(nil), 20)
		require.Len(t, q.with(spout.ErrUnfinished), 10)
	})
}
