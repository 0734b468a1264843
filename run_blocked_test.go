package egret_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A call of a source that may not wait is told of when it does, with its own stack
// and not that of a Next that waits beside it; again after twice as long; and when it
// has come back the run goes on.
func TestBlockedIsReported(t *testing.T) {
	for _, what := range []string{"Splits", "Open of split 1", "Commit of split 1", "Close of split 1", "Open"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				log := &logbook{}
				hang := func(in, split string) {
					if what == in+" of split "+split || what == in && split != "0" {
						hangsHere(33 * time.Second)
					}
				}
				source := &numbers{splits: 4, n: 10}
				source.split = func(context.Context) error { hang("Splits", ""); return nil }
				source.open = func(_ context.Context, split string, _ int) error { hang("Open", split); return nil }
				source.next = func(_ context.Context, split string, at int) error {
					if split != "1" && at == 5 {
						time.Sleep(40 * time.Second)
					}
					return nil
				}
				source.commit = func(_ context.Context, split string, _ int) error { hang("Commit", split); return nil }
				source.closed = func(split string) { hang("Close", split) }
				top := straight(committing{source}, func(tuple.Tuple, *bolt.Collector) error { return nil })
				if what == "Open" {
					q := &broker{n: 100, chunk: 10}
					q.open = func(context.Context, *spout.Task) error { hang("Open", ""); return nil }
					top = queueing(q.queue, 1, nothing)
				}
				s, err := run(t, top, egret.Config{StuckAfter: 8 * time.Second, Logger: log.logger()})
				require.NoError(t, err)
				told := log.with("task stuck")
				require.Len(t, told, 3, "%q", told)
				for i, d := range []string{"8s", "16s", "32s"} {
					require.Contains(t, told[i], "task stuck: in/0 does not come back from "+what+" ")
					require.Contains(t, told[i], "for="+d)
					require.Contains(t, told[i], "egret_test.hangsHere")
					require.NotContains(t, told[i], "egret/task.")
					require.Equal(t, 1, strings.Count(told[i], "run_blocked_test.go:")-strings.Count(told[i], "TestBlockedIsReported"), told[i])
				}
				require.Len(t, log.with("task in/0: "+what+" came back after 33s"), 1)
				require.EqualValues(t, 1, stat(t, s, "in/0").Stuck)
				require.Zero(t, stat(t, s, "in/0").AbandonedCalls)
			})
		})
	}
}

func hangsHere(d time.Duration) { time.Sleep(d) }

// A Commit that hangs and is all that the run waits for is left behind when it is
// known to be stuck. Its position, and those that came later, are not lost.
func TestEndGoesOnWithoutACommit(t *testing.T) {
	for _, tt := range []struct {
		name  string
		drain bool
		err   string
		at    time.Duration
		stop  time.Duration // StopTimeout
		state bool
	}{
		{"the end", false, "", 9 * time.Second, 30 * time.Second, true},
		{"the end without a store", false, "", 9 * time.Second, 30 * time.Second, false},
		{"a drain", true, "", 9 * time.Second, 30 * time.Second, true},
		{"a short drain", true, "not drained: 0 messages open after 3s; task in/0 was in Commit of split 0 for 5s", 6 * time.Second, 3 * time.Second, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := ""
			if tt.state {
				dir = t.TempDir()
			}
			bubble(t, func(t *testing.T) {
				free := make(chan struct{})
				log, got := &logbook{}, newTally()
				source := &numbers{n: 100, chunk: 10}
				source.next = func(c context.Context, _ string, at int) error {
					if at == 50 {
						if tt.drain {
							<-c.Done()
							return c.Err()
						}
						time.Sleep(2 * time.Second) // so that there are positions behind the one that hangs
					}
					return nil
				}
				var commits atomic.Int64
				source.commit = func(context.Context, string, int) error { commits.Add(1); <-free; return nil }
				c := egret.Config{StuckAfter: 8 * time.Second, StopTimeout: tt.stop, StateDir: dir, Logger: log.logger()}
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if tt.drain {
					time.AfterFunc(2*time.Second, cancel)
				}
				top := func() *topology.Topology {
					return straight(committing{source}, func(in tuple.Tuple, _ *bolt.Collector) error { got.add(in.String("n")); return nil })
				}
				s, err := egret.Run(ctx, top(), c)
				settled(t, s, err)
				require.Equal(t, tt.at, s.Elapsed.Truncate(500*time.Millisecond))
				require.EqualValues(t, 1, commits.Load(), "never two at a time")
				if tt.err == "" {
					require.NoError(t, err)
					require.EqualValues(t, 1, stat(t, s, "in/0").AbandonedCalls)
					require.Len(t, log.with("the source of in does not come back: Commit of split 0 is left behind"), 1)
					require.Len(t, log.with("task stuck: in/0 does not come back from Commit of split 0"), 1)
				} else {
					require.EqualError(t, err, "topology straight: "+tt.err)
				}
				close(free)
				if !tt.state {
					return
				}
				source.commit = func(context.Context, string, int) error { return nil }
				source.next = nil
				_, err = egret.Run(context.Background(), top(), c)
				require.NoError(t, err)
				require.Len(t, got.get(), 100)
				if tt.err == "" {
					require.Equal(t, 100, got.sum(), "what was done is not read again")
				}
			})
		})
	}
}

// Who was in a call on its turn when the deadline came is named, also if it comes
// back in time.
func TestDrainNamesWhoHoldsItUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		top := topology.New("slow", func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice(texts(1)...)).Emits("n")
			b.Bolt("out", factory(func() *made {
				var ctx context.Context
				return &made{
					prepare: func(c context.Context, _ *bolt.Task) error { ctx = c; return nil },
					finish:  func(*bolt.Collector) error { <-ctx.Done(); return ctx.Err() },
				}
			}), in.Shuffle())
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := egret.Run(ctx, top, quiet(egret.Config{StuckAfter: 4 * time.Second, StopTimeout: 3 * time.Second}))
		require.EqualError(t, err, "topology slow: not drained: 0 messages open after 3s; task out/0 was in Finish for 4s")
	})
}

// A stop that finds everything done has stopped nothing.
func TestStopAtTheVeryEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		top := topology.New("ending", func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice(texts(10)...)).Emits("n")
			b.Bolt("out", factory(func() *made {
				return &made{finish: func(*bolt.Collector) error { time.Sleep(2 * time.Second); return nil }}
			}), in.Shuffle())
		})
		r, err := egret.Start(context.Background(), top, quiet(egret.Config{}))
		require.NoError(t, err)
		time.Sleep(time.Second)
		r.Stop() // it is in its Finish, and nothing is open
		s, err := r.Wait()
		require.NoError(t, err)
		settled(t, s, err)
		require.EqualValues(t, 10, s.Acked)
		require.Equal(t, 2*time.Second, s.Elapsed)
	})
}
