package egret_test

import (
	"context"
	"fmt"
	"strconv"
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

// Each message has one answer, whatever happens to it, with any tree size, number
// of tasks, bound of what is open, and guarantee.
func TestQueueAnswersOnce(t *testing.T) {
	var configs []egret.Config
	for _, size := range []int{1, 256} {
		for _, pending := range []int{3, 0} {
			configs = append(configs, egret.Config{TreeSize: size, MaxPending: pending})
		}
	}
	for _, c := range configs {
		for _, tasks := range []int{1, 3} {
			t.Run(fmt.Sprintf("tree=%d pending=%d tasks=%d", c.TreeSize, c.MaxPending, tasks), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					q := &broker{n: 2000}
					q.emit = func(out *spout.QueueOut, id string, i int) {
						if i%2 == 1 {
							out.EmitTo(id, "odd", id)
						} else {
							out.Emit(id, id)
						}
					}
					panics := newTally()
					top := queueing(q.queue, tasks, func(in tuple.Tuple, out *bolt.Collector) error {
						i, err := strconv.Atoi(in.String("n"))
						require.NoError(t, err)
						require.Equal(t, i%2 == 1, in.Stream() == "odd")
						switch {
						case i%100 == 7:
							return bolt.Reject(errBad)
						case i%10 == 3:
							return errBad
						case i%500 == 9 && panics.add("") < 4:
							panic("on " + in.String("n"))
						}
						return nil
					})
					s, err := run(t, top, c)
					require.NoError(t, err, "nothing is dead: the queue knows what was rejected")
					q.settled(t)
					require.Len(t, q.emitted, 2000)
					rejected, failed, lost := q.with(spout.ErrRejected), q.with(spout.ErrFailed), q.with(spout.ErrLost)
					require.LessOrEqual(t, len(rejected), 20)
					require.Greater(t, len(rejected), 0)
					require.Contains(t, q.why(rejected[0]), errBad.Error())
					for _, id := range rejected {
						require.True(t, strings.HasSuffix(id, "07") || id == "7", id)
					}
					for _, id := range failed {
						require.True(t, strings.HasSuffix(id, "3") || strings.HasSuffix(id, "09") || id == "9", id)
					}
					require.Equal(t, int64(len(q.with(nil))), s.Acked)
					require.Equal(t, int64(len(rejected)+len(failed)+len(lost)), s.HandedBack)
					require.Equal(t, s.Messages, s.Acked+s.HandedBack)
					require.Equal(t, int64(2000), s.Input)
					require.Zero(t, s.Replayed)
					require.Positive(t, s.Restarts)
				})
			})
		}
	}
}

// What a message died of is said: the one that was in hand has failed, the
// others were lost.
func TestQueueIsToldWhy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := &broker{n: 40}
		top := queueing(q.queue, 1, func(in tuple.Tuple, _ *bolt.Collector) error {
			switch in.String("n") {
			case "5":
				return errBad
			case "6":
				return bolt.Reject(errBad)
			case "20":
				panic("boom")
			}
			return nil
		})
		s, err := run(t, top, egret.Config{Parallel: map[string]int{"out": 1}, TreeSize: 4})
		require.NoError(t, err)
		q.settled(t)
		require.Equal(t, "failed: bolt out: "+errBad.Error(), q.why("5"))
		require.Equal(t, "rejected: bolt out: "+errBad.Error(), q.why("6"))
		require.Equal(t, "failed: bolt out: panic in Execute: boom", q.why("20"))
		require.Equal(t, spout.ErrLost.Error(), q.why("39"))
		require.Equal(t, "acked", q.why("0"))
		require.Equal(t, s.Failed, int64(3))
	})
}

// A bolt that is silent for too long loses its messages to a timeout.
func TestQueueIsToldOfATimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := &broker{n: 1}
		top := queueing(q.queue, 1, func(in tuple.Tuple, _ *bolt.Collector) error {
			time.Sleep(10 * time.Second)
			return nil
		})
		_, err := run(t, top, egret.Config{MessageTimeout: time.Second})
		require.NoError(t, err)
		q.settled(t)
		require.Equal(t, "timed out: no progress for 1s", q.why("0"))
	})
}

// At most once, the answer is an ack as soon as the message is on its way.
func TestQueueAtMostOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := &broker{n: 3000}
		g := topology.AtMostOnce
		executed := newTally()
		top := queueing(q.queue, 2, func(in tuple.Tuple, _ *bolt.Collector) error {
			executed.add(in.String("n"))
			return errBad
		})
		s, err := run(t, top, egret.Config{Guarantee: &g})
		require.NoError(t, err)
		q.settled(t)
		require.Len(t, q.with(nil), 3000)
		require.Equal(t, 3000, executed.sum())
		require.Equal(t, int64(3000), s.Input)
		require.Zero(t, s.Open)
	})
}

// What a grouping has rejected was not sent on, so it is no ack, with tracking or
// without.
func TestQueueIsToldOfAGroupingsMistake(t *testing.T) {
	for _, g := range []topology.Guarantee{topology.AtLeastOnce, topology.AtMostOnce} {
		bubble(t, func(t *testing.T) {
			q := &broker{n: 300}
			executed := newTally()
			s, err := run(t, topology.New("mistakes", func(b *topology.Builder) {
				in := b.Queue("in", q.queue).Emits("n")
				b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
					executed.add(in.String("n"))
					return nil
				}), in.Custom("mistaken", func(topology.Sender) topology.Chooser {
					return func(in tuple.Tuple, to []int) []int {
						if strings.HasSuffix(in.String("n"), "7") {
							return append(to, 5)
						}
						return append(to, 0)
					}
				}))
			}), egret.Config{Guarantee: &g})
			require.NoError(t, err)
			q.settled(t)
			require.Len(t, q.with(nil), 270)
			require.Len(t, q.with(spout.ErrRejected), 30)
			require.EqualValues(t, 30, s.HandedBack)
			require.Len(t, executed.get(), 270)
		})
	}
}

// An id is only echoed: it may be empty, and the same for several messages.
func TestQueueIDs(t *testing.T) {
	for _, g := range []topology.Guarantee{topology.AtLeastOnce, topology.AtMostOnce} {
		t.Run(g.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				q := &broker{n: 300, id: func(i int) string { return strings.Repeat("x", i%3) }}
				_, err := run(t, queueing(q.queue, 1, nothing), egret.Config{Guarantee: &g})
				require.NoError(t, err)
				q.settled(t)
				require.Len(t, q.with(nil), 300)
			})
		})
	}
}

// A panic of the queue's own code ends the life. What was in hand is failed, also
// what the call that panicked had emitted, and the next life goes on.
func TestQueuePanics(t *testing.T) {
	for _, g := range []topology.Guarantee{topology.AtLeastOnce, topology.AtMostOnce} {
		for _, where := range []string{"Next", "Ack", "Fail", "Open"} {
			for _, size := range []int{1, 256} {
				t.Run(fmt.Sprintf("%v %s tree=%d", g, where, size), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						calls := newTally()
						boom := func(at string, which int) {
							if at == where && calls.add(at) == which {
								panic("broken queue")
							}
						}
						q := &broker{n: 1500}
						q.open = func(context.Context, *spout.Task) error { boom("Open", 1); return nil }
						q.next = func(context.Context, int) error { boom("Next", 700); return nil }
						q.ack = func(context.Context, string) error { boom("Ack", 30); return nil }
						q.fail = func(context.Context, string, error) error { boom("Fail", 3); return nil }
						book := &logbook{}
						top := queueing(q.queue, 1, func(in tuple.Tuple, _ *bolt.Collector) error {
							if strings.HasSuffix(in.String("n"), "1") {
								return errBad
							}
							return nil
						})
						s, err := run(t, top, egret.Config{Guarantee: &g, TreeSize: size, Logger: book.logger()})
						require.NoError(t, err)
						require.Zero(t, s.Open)
						q.mu.Lock()
						if where == "Open" {
							q.closed++ // what was not opened is not closed
						}
						q.at = 0
						q.mu.Unlock()
						q.settled(t)
						if where == "Fail" && g == topology.AtMostOnce {
							return // nothing fails
						}
						require.Equal(t, int64(1), s.Restarts)
						require.NotEmpty(t, book.with("panic in "+where+": broken queue"))
						if where == "Next" {
							require.Contains(t, q.with(spout.ErrUnfinished), "698")
						}
					})
				})
			}
		}
	}
}

// A queue that panics each time ends the run.
func TestQueuePanicsAlways(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := &broker{n: 10, next: func(context.Context, int) error { panic("broken queue") }}
		_, err := run(t, queueing(q.queue, 1, nothing), egret.Config{})
		require.ErrorContains(t, err, "in a row")
		q.settled(t)
	})
}

// A misuse of out is the queue's and ends the run.
func TestQueueMisuse(t *testing.T) {
	for what, emit := range map[string]func(out *spout.QueueOut, id string, i int){
		"got 2 values":             func(out *spout.QueueOut, id string, i int) { out.Emit(id, 1, 2) },
		"spout has no stream even": func(out *spout.QueueOut, id string, i int) { out.EmitTo(id, "even", 1) },
		"return when out.Full()": func(out *spout.QueueOut, id string, i int) {
			for range 1 << 17 {
				out.Emit(id, "x")
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				q := &broker{n: 10, emit: emit}
				_, err := run(t, queueing(q.queue, 1, nothing), egret.Config{})
				require.ErrorContains(t, err, what)
				require.Empty(t, q.mistakes)
				require.Equal(t, 1, q.closed)
			})
		})
	}
}

// A drain hands back what is not begun, and finishes what is.
func TestQueueDrains(t *testing.T) {
	for _, wait := range []bool{false, true} { // in Next, or for room
		t.Run(fmt.Sprint("waiting ", wait), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				q := &broker{n: 5000, chunk: 200}
				q.next = func(ctx context.Context, i int) error {
					if wait && i >= 1000 {
						<-ctx.Done()
						if i < 1010 {
							return nil // what comes after all
						}
						return ctx.Err()
					}
					return nil
				}
				top := queueing(q.queue, 1, func(tuple.Tuple, *bolt.Collector) error {
					if !wait {
						time.Sleep(10 * time.Millisecond)
					}
					return nil
				})
				ctx, cancel := context.WithTimeout(context.Background(), 2003*time.Millisecond)
				defer cancel()
				s, err := egret.Run(ctx, top, quiet(egret.Config{MaxPending: 3000}))
				require.NoError(t, err)
				settled(t, s, err)
				q.settled(t)
				back := q.with(spout.ErrUnfinished)
				require.NotEmpty(t, back)
				require.Equal(t, int64(len(back)), s.HandedBack)
				require.Equal(t, int64(len(q.emitted)-len(back)), s.Acked)
				if wait {
					require.Len(t, back, 10)
				}
				require.Equal(t, "unfinished: the message was not begun", q.why(back[0]))
			})
		})
	}
}

// A stop hands back everything that is open, and waits for nothing.
func TestQueueStops(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("Next comes late ", late), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				q := &broker{n: 1000, chunk: 50}
				q.next = func(ctx context.Context, i int) error {
					if i < 100 {
						return nil
					}
					<-ctx.Done()
					if !late {
						return ctx.Err()
					}
					if i%50 == 0 {
						time.Sleep(900 * time.Millisecond) // when the task is gone
					}
					return nil
				}
				top := queueing(q.queue, 1, func(tuple.Tuple, *bolt.Collector) error {
					time.Sleep(time.Second)
					return nil
				})
				r, err := egret.Start(context.Background(), top, quiet(egret.Config{TreeSize: 5}))
				require.NoError(t, err)
				time.AfterFunc(10500*time.Millisecond, r.Stop)
				s, err := r.Wait()
				require.ErrorIs(t, err, egret.ErrDrain)
				settled(t, s, err)
				require.Zero(t, s.Open, "all were handed back")
				require.Zero(t, s.Trying)
				q.settled(t)
				require.NotEmpty(t, q.with(nil))
				require.Equal(t, "unfinished: the task has ended with the message open", q.why("99"))
				if late {
					require.Contains(t, q.with(spout.ErrUnfinished), "149")
				}
			})
		})
	}
}

// No more messages are asked for than MaxPending leaves room for.
func TestQueueIsAskedForNoMoreThanFits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := &broker{n: 100}
		most := 0
		q.next = func(context.Context, int) error {
			q.mu.Lock()
			defer q.mu.Unlock()
			most = max(most, len(q.emitted)+1-len(q.answers))
			return nil
		}
		top := queueing(q.queue, 1, func(tuple.Tuple, *bolt.Collector) error {
			time.Sleep(10 * time.Millisecond)
			return nil
		})
		_, err := run(t, top, egret.Config{MaxPending: 3})
		require.NoError(t, err)
		q.settled(t)
		require.Equal(t, 3, most)
	})
}

// With a tree size of 1 no ack waits for a neighbour.
func TestQueueAcksWithoutNeighbours(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDiary()
		q := &broker{n: 4}
		q.ack = func(_ context.Context, id string) error { d.at("ack %s", id); return nil }
		top := queueing(q.queue, 1, func(in tuple.Tuple, _ *bolt.Collector) error {
			time.Sleep(time.Second)
			return nil
		})
		_, err := run(t, top, egret.Config{TreeSize: 1, Parallel: map[string]int{"out": 1}})
		require.NoError(t, err)
		require.Equal(t, []string{"1s ack 0", "2s ack 1", "3s ack 2", "4s ack 3"}, d.entries())
	})
}

// An error of Next, or of Open, is tried again after a pause that grows; the same
// one five times in a row ends the run, when what is open is finished.
func TestQueueErrors(t *testing.T) {
	t.Run("passes", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			d := newDiary()
			q := &broker{n: 10}
			failures := newTally()
			q.open = func(_ context.Context, task *spout.Task) error {
				d.at("open %s/%d of %d", task.Component, task.Index, task.Parallel)
				if failures.add("open") <= 3 {
					return errBad
				}
				return nil
			}
			q.next = func(_ context.Context, i int) error {
				if i == 5 && failures.add("next") <= 4 {
					d.at("next")
					return errBad
				}
				return nil
			}
			s, err := run(t, queueing(q.queue, 1, nothing), egret.Config{})
			require.NoError(t, err)
			require.Equal(t, int64(10), s.Acked)
			q.settled(t)
			require.Equal(t, 1, q.lives)
			require.Equal(t, []string{
				"0s open in/0 of 1", "50ms open in/0 of 1", "150ms open in/0 of 1", "350ms open in/0 of 1",
				"350ms next", "400ms next", "500ms next", "700ms next",
			}, d.entries())
		})
	})
	t.Run("lasts", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			q := &broker{n: 10, next: func(_ context.Context, i int) error {
				if i == 5 {
					return errBad
				}
				return nil
			}}
			s, err := run(t, queueing(q.queue, 1, nothing), egret.Config{})
			require.ErrorIs(t, err, errBad)
			require.ErrorContains(t, err, "queue in: "+errBad.Error()+" (5 times in a row)")
			require.Equal(t, int64(5), s.Acked)
			q.settled(t)
		})
	})
	t.Run("fatal", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			q := &broker{n: 10, next: func(_ context.Context, i int) error {
				if i == 5 {
					return spout.Fatal(errBad)
				}
				return nil
			}}
			s, err := run(t, queueing(q.queue, 1, func(tuple.Tuple, *bolt.Collector) error { time.Sleep(time.Second); return nil }), egret.Config{})
			require.ErrorIs(t, err, errBad)
			require.Equal(t, int64(5), s.Acked, "what was read before is finished")
			q.settled(t)
		})
	})
	t.Run("no queue", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			_, err := run(t, queueing(func() spout.Queue { return nil }, 1, nothing), egret.Config{})
			require.EqualError(t, err, "topology queueing: queue in: the factory has returned no queue")
		})
	})
	t.Run("answers", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			book := &logbook{}
			q := &broker{n: 100, ack: func(context.Context, string) error { return errBad }}
			s, err := run(t, queueing(q.queue, 1, nothing), egret.Config{Logger: book.logger()})
			require.NoError(t, err)
			require.Equal(t, int64(100), s.Acked)
			q.settled(t)
			require.Len(t, book.with("queue was not answered: Ack \"0\": "+errBad.Error()), 1, "not once for each")
		})
	})
}

// A queue and a spout feed the same bolt, and the run ends when both have.
func TestQueueBesideASpout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := &broker{n: 500}
		seen := newTally()
		top := topology.New("both", func(b *topology.Builder) {
			x := b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				seen.add(in.Component())
				return nil
			}), b.Queue("in", q.queue).Emits("n").Shuffle(), b.Spout("numbers", &numbers{n: 700}).Emits("n").Shuffle())
			_ = x
		})
		s, err := run(t, top, egret.Config{AlwaysEncode: true})
		require.NoError(t, err)
		q.settled(t)
		require.Equal(t, map[string]int{"in": 500, "numbers": 700}, seen.get())
		require.Equal(t, int64(1200), s.Input)
	})
}
