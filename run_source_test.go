package egret_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
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

// A committed position never passes a message that is not done: single messages
// are held back by failing until they are let go, one after the other.
func TestCommitsWhatIsDone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		done := map[int]bool{}
		last, commits := 0, 0
		held := map[int]time.Duration{0: 300 * time.Millisecond, 131: 500 * time.Millisecond, 700: time.Second, 999: 700 * time.Millisecond}
		began := time.Now()
		s := committing{&numbers{n: 1000, chunk: 10}}
		s.commit = func(c context.Context, _ string, at int) error {
			mu.Lock()
			defer mu.Unlock()
			require.NoError(t, c.Err())
			require.Greater(t, at, last, "positions go forward")
			for i := last; i < at; i++ {
				require.True(t, done[i], "position %d is committed, and %d is not done", at, i)
			}
			last, commits = at, commits+1
			return nil
		}
		top := straight(s, func(in tuple.Tuple, _ *bolt.Collector) error {
			i, err := strconv.Atoi(in.String("n"))
			require.NoError(t, err)
			if time.Since(began) < held[i] {
				return errBad
			}
			mu.Lock()
			defer mu.Unlock()
			done[i] = true
			return nil
		})
		_, err := run(t, top, egret.Config{MaxReplays: egret.ReplayForever})
		require.NoError(t, err)
		require.Equal(t, 1000, last, "the last one is committed at the end")
		require.Greater(t, commits, 2)
	})
}

// A dead message is passed, once it is dead.
func TestCommitPassesTheDead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDiary()
		s := committing{&numbers{n: 100, chunk: 10}}
		s.commit = func(_ context.Context, _ string, at int) error { d.at("%d", at); return nil }
		top := straight(s, func(in tuple.Tuple, _ *bolt.Collector) error {
			if in.String("n") == "55" {
				return errBad
			}
			return nil
		})
		_, err := run(t, top, egret.Config{MaxReplays: 3})
		require.ErrorIs(t, err, egret.ErrDead)
		all := d.entries()
		require.Equal(t, "350ms 100", all[len(all)-1])
		for _, e := range all[:len(all)-1] {
			var at int
			fmt.Sscanf(e, "0s %d", &at)
			require.LessOrEqual(t, at, 50, "%q", all)
			require.Positive(t, at)
		}
	})
}

// A Commit that takes its time is not overtaken by the next one, and the run does
// not end before the last has returned.
func TestCommitsInOrder(t *testing.T) {
	for _, stop := range []string{"end", "drain"} {
		t.Run(stop, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := newDiary()
				var mu sync.Mutex
				busy := false
				last := 0
				s := committing{&numbers{n: 200, chunk: 1, next: func(c context.Context, _ string, _ int) error {
					time.Sleep(10 * time.Millisecond)
					return nil
				}}}
				s.commit = func(c context.Context, _ string, at int) error {
					mu.Lock()
					if busy {
						d.at("commit %d while another one is under way", at)
					}
					busy = true
					mu.Unlock()
					select {
					case <-time.After(450 * time.Millisecond):
					case <-c.Done():
						d.at("commit %d was cut off", at)
					}
					mu.Lock()
					busy = false
					if at <= last {
						d.at("commit %d after %d", at, last)
					}
					last = at
					mu.Unlock()
					return nil
				}
				c, cancel := context.WithCancel(context.Background())
				defer cancel()
				want := 200
				if stop == "drain" {
					time.AfterFunc(1005*time.Millisecond, cancel)
					want = 100
				}
				top := straight(s, func(tuple.Tuple, *bolt.Collector) error { return nil })
				_, err := egret.Run(c, top, quiet(egret.Config{}))
				require.NoError(t, err)
				require.Empty(t, d.entries())
				require.InDelta(t, want, last, 1)
			})
		})
	}
}

// An error of Next or Open reopens the split where everything before is done,
// after a pause that doubles while it comes at the same place.
func TestReopens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDiary()
		got := newTally()
		fails := map[int]int{30: 3, 31: 1, 60: 4}
		s := &numbers{n: 100, chunk: 10}
		s.open = func(_ context.Context, _ string, at int) error { d.at("open %d", at); return nil }
		s.next = func(_ context.Context, _ string, at int) error {
			if fails[at] > 0 {
				fails[at]--
				return fmt.Errorf("no %d", at)
			}
			return nil
		}
		s.closed = func(string) { d.at("close") }
		log := &logbook{}
		st, err := run(t, straight(s, func(in tuple.Tuple, _ *bolt.Collector) error {
			got.add(in.String("n"))
			return nil
		}), egret.Config{Logger: log.logger()})
		require.NoError(t, err)
		require.Len(t, got.get(), 100)
		require.Equal(t, []string{
			"0s open 0", "0s close",
			"50ms open 30", "50ms close", "150ms open 30", "150ms close",
			"350ms open 30", "350ms close", // that was at 31
			"400ms open 31", "400ms close", // at 60
			"450ms open 60", "450ms close", "550ms open 60", "550ms close", "750ms open 60", "750ms close",
			"1.15s open 60", "1.15s close",
		}, d.entries())
		require.Len(t, log.with("source failed"), 8)
		require.Contains(t, log.with("source failed")[0], "no 30")
		require.Contains(t, log.with("source failed")[0], "component=in task=0")
		require.EqualValues(t, 100, st.Messages, "none is read twice when all before it was done")
		require.Zero(t, st.Restarts)
	})
}

// What is still open when the reader fails is waited for, so nothing is read twice.
func TestReopensBehindWhatIsOpen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDiary()
		tries := newTally()
		failed := false
		s := &numbers{n: 40, chunk: 10}
		s.open = func(_ context.Context, _ string, at int) error { d.at("open %d", at); return nil }
		s.next = func(_ context.Context, _ string, at int) error {
			if at == 30 && !failed {
				failed = true
				return errBad
			}
			return nil
		}
		st, err := run(t, straight(s, func(in tuple.Tuple, _ *bolt.Collector) error {
			if n := in.String("n"); tries.add(n) < 4 && n == "7" {
				return errBad
			}
			return nil
		}), egret.Config{})
		require.NoError(t, err)
		require.Equal(t, []string{"0s open 0", "350ms open 30"}, d.entries())
		require.EqualValues(t, 40, st.Messages)
	})
}

// The same error at the same position five times ends the run with it; a fatal
// one at once.
func TestSourceGivesUp(t *testing.T) {
	gone := errors.New("gone")
	for _, tt := range []struct {
		name  string
		s     func(d *diary) *numbers
		want  string
		tries int
		took  time.Duration
	}{
		{"next", func(d *diary) *numbers {
			return &numbers{n: 50, chunk: 10, next: func(_ context.Context, _ string, at int) error {
				if at == 25 {
					d.add("try")
					return gone
				}
				return nil
			}}
		}, `topology straight: spout in, split 0: gone (5 times at position "25")`, 5, 750 * time.Millisecond},
		{"open", func(d *diary) *numbers {
			return &numbers{n: 50, open: func(context.Context, string, int) error { d.add("try"); return gone }}
		}, `topology straight: spout in, split 0: gone (5 times at position "")`, 5, 750 * time.Millisecond},
		{"splits", func(d *diary) *numbers {
			return &numbers{n: 50, split: func(context.Context) error { d.add("try"); return gone }}
		}, `topology straight: spout in: gone`, 1, 0},
		{"fatal next", func(d *diary) *numbers {
			return &numbers{n: 50, next: func(_ context.Context, _ string, at int) error {
				if at == 25 {
					d.add("try")
					return spout.Fatal(gone)
				}
				return nil
			}}
		}, `topology straight: spout in, split 0: gone`, 1, 0},
		{"fatal open", func(d *diary) *numbers {
			return &numbers{n: 50, open: func(context.Context, string, int) error { d.add("try"); return spout.Fatal(gone) }}
		}, `topology straight: spout in, split 0: gone`, 1, 0},
		{"fatal splits", func(d *diary) *numbers {
			return &numbers{n: 50, split: func(context.Context) error { d.add("try"); return spout.Fatal(gone) }}
		}, `topology straight: spout in: gone`, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := newDiary()
				s, err := run(t, straight(tt.s(d), func(tuple.Tuple, *bolt.Collector) error { return nil }), egret.Config{})
				require.EqualError(t, err, tt.want)
				require.ErrorIs(t, err, gone)
				require.Equal(t, tt.tries, d.count("try"))
				require.Equal(t, tt.took, s.Elapsed)
			})
		})
	}
}

// A panic in a source ends the spout task's incarnation; the next reads on from
// what was done. One that never ends ends the run.
func TestSourcePanics(t *testing.T) {
	for _, prompt := range []bool{false, true} {
		for _, during := range []string{"Splits", "Open", "Next", "Position", "misuse", "Goexit"} {
			for _, times := range []int{2, 1000} {
				if during == "Goexit" && prompt {
					continue // that would be the end of the actor's goroutine, which the host's tests have
				}
				t.Run(fmt.Sprint(during, prompt, times), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						var mu sync.Mutex
						left := times
						boom := func(at int, d string) {
							mu.Lock()
							defer mu.Unlock()
							if d == during && (at == 450 || at < 0) && left > 0 {
								left--
								panic("boom")
							}
						}
						s := &numbers{n: 1000, chunk: 50, prompt: prompt}
						s.split = func(context.Context) error { boom(-1, "Splits"); return nil }
						s.open = func(context.Context, string, int) error { boom(-1, "Open"); return nil }
						s.place = func(at int) string { boom(at, "Position"); return strconv.Itoa(at) }
						s.next = func(_ context.Context, _ string, at int) error {
							boom(at, "Next")
							mu.Lock()
							defer mu.Unlock()
							if at != 450 || left == 0 {
								return nil
							}
							switch during {
							case "misuse":
								left--
								spout.NewOut(nil).Emit(1)
							case "Goexit":
								left--
								goexit()
							}
							return nil
						}
						got := newTally()
						log := &logbook{}
						st, err := run(t, straight(s, func(in tuple.Tuple, _ *bolt.Collector) error {
							got.add(in.String("n"))
							return nil
						}), egret.Config{Logger: log.logger()})
						if during == "misuse" { // which no other life would mend
							require.ErrorContains(t, err, "in/0: Next: the spout declares no stream")
							require.Zero(t, st.Restarts)
							return
						}
						died := log.with("task died: in/0: panic in ")
						require.NotEmpty(t, died, "%q", log.lines)
						switch during {
						case "Goexit":
							require.Contains(t, died[0], "panic in a call of the source: runtime.Goexit was called")
						default:
							require.Contains(t, died[0], "panic in "+during+": boom")
							require.Contains(t, died[0], "run_source_test.go")
						}
						if times > 2 {
							require.ErrorContains(t, err, "task in/0 has died 6 times in a row")
							return
						}
						require.NoError(t, err)
						require.EqualValues(t, 2, st.Restarts)
						require.Len(t, got.get(), 1000)
						require.LessOrEqual(t, int64(got.sum()), st.Messages)
						require.GreaterOrEqual(t, st.Messages, int64(1000))
						if during == "Splits" || during == "Open" {
							require.Zero(t, st.Abandoned)
						}
					})
				})
			}
		}
	}
}

// Several tasks share the splits, each is read once, and a task without one ends.
func TestSplitsAreShared(t *testing.T) {
	for _, tt := range []struct{ splits, tasks int }{{1, 3}, {5, 2}, {100, 2}, {9, 9}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var mu sync.Mutex
				opened, at, most := map[string]int{}, 0, 0
				s := &numbers{splits: tt.splits, n: 300}
				s.open = func(_ context.Context, split string, _ int) error {
					mu.Lock()
					defer mu.Unlock()
					opened[split]++
					at++
					most = max(most, at)
					return nil
				}
				s.closed = func(string) {
					mu.Lock()
					defer mu.Unlock()
					at--
				}
				got := 0
				top := topology.New("shared", func(b *topology.Builder) {
					in := b.Spout("in", s).Emits("n").Parallel(tt.tasks)
					b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { got++; return nil }), in.Global())
				})
				st, err := run(t, top, egret.Config{})
				require.NoError(t, err)
				require.Len(t, opened, tt.splits)
				for split, n := range opened {
					require.Equal(t, 1, n, split)
				}
				require.Equal(t, tt.splits*300, got)
				require.Zero(t, at, "all are closed")
				require.LessOrEqual(t, most, 16*tt.tasks, "not too many at a time")
				var messages int64
				for i := range tt.tasks {
					m := stat(t, st, fmt.Sprintf("in/%d", i)).Messages
					require.EqualValues(t, 300*len(numbersOf(tt.splits, tt.tasks, i)), m)
					messages += m
				}
				require.EqualValues(t, tt.splits*300, messages)
			})
		})
	}
}

func numbersOf(splits, tasks, task int) (mine []int) {
	for i := task; i < splits; i += tasks {
		mine = append(mine, i)
	}
	return mine
}

// A split whose reader waits does not hold up the others, and a reader that has
// nothing yet is asked again.
func TestWaitingSplit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		began := time.Now()
		s := &numbers{splits: 3, n: 100, chunk: 10}
		s.next = func(c context.Context, split string, at int) error {
			if split == "1" && at == 50 {
				select {
				case <-time.After(time.Minute):
				case <-c.Done():
				}
			}
			return nil
		}
		others := 0
		top := straight(s, func(in tuple.Tuple, _ *bolt.Collector) error {
			if time.Since(began) < time.Second {
				others++
			}
			return nil
		})
		st, err := run(t, top, egret.Config{})
		require.NoError(t, err)
		require.Equal(t, time.Minute, st.Elapsed)
		require.Equal(t, 250, others)
	})
}

// A limit of ten open messages, of which the first and every seventh fail: what
// waits for its replay counts as open and never fills the limit for good. All is
// committed in the end, and nothing before a committed position is read again, by
// a life that follows a panic either. (Storm's Kafka spout needed a special rule
// for this: STORM-2549.)
func TestCommitsPastFailures(t *testing.T) {
	for _, tt := range []struct {
		name    string
		fails   int // each so often
		replays int
		prompt  bool
	}{
		{"they fail three times", 3, 8, false},
		{"they fail three times, prompt", 3, 8, true},
		{"they are dead at last", 1 << 30, 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const n = 700
				tries, reads := newTally(), newTally()
				var committed atomic.Int64
				source := committing{&numbers{n: n, chunk: 4, prompt: tt.prompt}}
				source.commit = func(_ context.Context, _ string, at int) error {
					require.GreaterOrEqual(t, int64(at), committed.Swap(int64(at)))
					return nil
				}
				source.open = func(_ context.Context, _ string, at int) error {
					require.GreaterOrEqual(t, int64(at), committed.Load())
					return nil
				}
				source.next = func(_ context.Context, _ string, at int) error {
					require.GreaterOrEqual(t, int64(at), committed.Load(), "read again")
					if reads.add(strconv.Itoa(at)) == 1 && at == 355 {
						panic("the reader dies in the middle")
					}
					return nil
				}
				s, err := run(t, straight(source, func(in tuple.Tuple, _ *bolt.Collector) error {
					text := in.String("n")
					k, err := strconv.Atoi(text)
					require.NoError(t, err)
					if k%7 == 0 && tries.add(text) <= tt.fails {
						return errors.New("one of seven")
					}
					return nil
				}), egret.Config{MaxPending: 10, MaxReplays: tt.replays})
				if tt.fails <= tt.replays {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, egret.ErrDead)
					require.GreaterOrEqual(t, s.Dead, int64(n/7), "those that a life has not committed die again in the next")
				}
				require.EqualValues(t, n, committed.Load())
				require.Len(t, reads.get(), n)
			})
		})
	}
}
