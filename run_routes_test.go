package egret_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A census notes which task got what.
type census struct {
	mu  sync.Mutex
	got map[int][]string // by task
}

func (c *census) factory() bolt.Factory {
	c.got = map[int][]string{}
	return factory(func() *made {
		index := 0
		return &made{
			prepare: func(_ context.Context, task *bolt.Task) error { index = task.Index; return nil },
			execute: func(in tuple.Tuple, _ *bolt.Collector) error {
				row := ""
				for i := range in.Len() {
					row += in.At(i).String() + ","
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				c.got[index] = append(c.got[index], row)
				return nil
			},
		}
	})
}

// sizes returns how many tuples each of n tasks got.
func (c *census) sizes(n int) (all []int) {
	for i := range n {
		all = append(all, len(c.got[i]))
	}
	return all
}

// Each grouping gives tuples to the tasks it says, from a spout and from a bolt.
func TestGroupings(t *testing.T) {
	const n, tasks = 20_000, 4
	one := func(t *testing.T, c *census) { // each tuple once
		seen := map[string]int{}
		for _, rows := range c.got {
			for _, r := range rows {
				seen[r]++
			}
		}
		require.Len(t, seen, n)
		for r, k := range seen {
			require.Equal(t, 1, k, r)
		}
	}
	for _, tt := range []struct {
		name  string
		group func(*topology.Component) topology.Subscription
		check func(t *testing.T, c *census)
	}{
		{"shuffle", (*topology.Component).Shuffle, func(t *testing.T, c *census) {
			one(t, c)
			require.Len(t, c.got, tasks, "every task gets some")
		}},
		{"local or shuffle", (*topology.Component).LocalOrShuffle, one},
		{"global", (*topology.Component).Global, func(t *testing.T, c *census) {
			one(t, c)
			require.Equal(t, []int{n, 0, 0, 0}, c.sizes(tasks))
		}},
		{"all", (*topology.Component).All, func(t *testing.T, c *census) {
			require.Equal(t, []int{n, n, n, n}, c.sizes(tasks))
		}},
		{"field", func(c *topology.Component) topology.Subscription { return c.By("key") }, func(t *testing.T, c *census) {
			one(t, c)
			at := map[string]int{}
			for task, rows := range c.got {
				for _, r := range rows {
					var key, i int
					fmt.Sscanf(r, "%d,%d,", &key, &i)
					k := strconv.Itoa(key)
					if before, ok := at[k]; ok {
						require.Equal(t, before, task, "key %s", k)
					}
					at[k] = task
				}
			}
			require.Len(t, at, 100)
			for i, k := range c.sizes(tasks) {
				require.Positive(t, k, "task %d", i)
			}
		}},
		{"fields", func(c *topology.Component) topology.Subscription { return c.By("half", "key") }, func(t *testing.T, c *census) {
			one(t, c)
			at, split := map[string]int{}, map[int]map[int]bool{}
			for task, rows := range c.got {
				for _, r := range rows {
					var key, i, half int
					fmt.Sscanf(r, "%d,%d,%d,", &key, &i, &half)
					k := fmt.Sprint(key, half)
					if before, ok := at[k]; ok {
						require.Equal(t, before, task, "key %s", k)
					}
					at[k] = task
					if split[key] == nil {
						split[key] = map[int]bool{}
					}
					split[key][task] = true
				}
			}
			require.Len(t, at, 200)
			apart := 0
			for _, tasks := range split {
				if len(tasks) > 1 {
					apart++
				}
			}
			require.Greater(t, apart, 30, "the second field counts too")
		}},
	} {
		for _, by := range []string{"spout", "bolt"} {
			t.Run(tt.name+" from a "+by, func(t *testing.T) {
				var c census
				top := topology.New("groups", func(b *topology.Builder) {
					from := b.Spout("in", spout.Generate(n, func(i int64, out *spout.Out) {
						out.Emit(i%100, i, i/(n/2))
					})).Emits("key", "i", "half")
					if by == "bolt" {
						from = b.Bolt("mid", bolt.Filter(func(tuple.Tuple) bool { return true }), from.Shuffle()).Emits("key", "i", "half").Parallel(2)
					}
					b.Bolt("out", c.factory(), tt.group(from)).Parallel(tasks)
				})
				for _, encode := range []bool{false, true} {
					clear(c.got)
					s, err := run(t, top, egret.Config{AlwaysEncode: encode, ParcelSize: 16})
					require.NoError(t, err)
					tt.check(t, &c)
					copies := int64(1)
					if tt.name == "all" {
						copies = tasks
					}
					var emitted, transferred int64
					for _, x := range s.Tasks {
						if x.Component == map[string]string{"spout": "in", "bolt": "mid"}[by] {
							emitted += x.Streams[0].Emitted
							transferred += x.Streams[0].Transferred
						}
					}
					require.EqualValues(t, n, emitted)
					require.EqualValues(t, n*copies, transferred)
				}
			})
		}
	}
}

// Several streams, one bolt fed by several components and twice by the same one,
// a diamond, bolts that emit nothing, streams that nobody reads: all of it is
// counted, and counted right.
func TestShapes(t *testing.T) {
	for _, c := range []egret.Config{{}, {ParcelSize: 1}, {ParcelSize: 3, TreeSize: 5}, {MaxPending: 10}, {AlwaysEncode: true}} {
		var left, right, joined, none census
		top := topology.New("shapes", func(b *topology.Builder) {
			in := b.Spout("in", spout.Generate(1000, func(i int64, out *spout.Out) {
				switch i % 4 {
				case 0:
					out.EmitTo("even", i)
				case 1:
					out.EmitTo("odd", i, "x")
				case 2:
					out.EmitTo("unread", i)
				case 3:
					out.EmitTo("even", i)
					out.EmitTo("odd", i, "y")
				}
			})).EmitsTo("even", "n").EmitsTo("odd", "n", "s").EmitsTo("unread", "n")
			pass := func(to string) bolt.Factory {
				return factory(func() *made {
					var late bolt.Output
					return &made{
						prepare: func(_ context.Context, task *bolt.Task) error { late = task.Output(to); return nil },
						execute: func(in tuple.Tuple, out *bolt.Collector) error {
							out.To(late).Emit(in.Int64("n"))
							out.Emit("first")
							return nil
						},
					}
				})
			}
			l := b.Bolt("l", pass("late"), in.Stream("even").Shuffle()).Emits("s").EmitsTo("late", "n").Parallel(2)
			r := b.Bolt("r", pass("late"), in.Stream("odd").By("s"), in.Stream("even").Shuffle()).Emits("s").EmitsTo("late", "n").Parallel(2)
			b.Bolt("left", left.factory(), l.Shuffle())
			b.Bolt("right", right.factory(), r.Shuffle()).Parallel(2)
			b.Bolt("joined", joined.factory(), l.Stream("late").By("n"), r.Stream("late").By("n"), in.Stream("even").All(), in.Stream("even").Global()).Parallel(2)
			b.Bolt("none", none.factory(), in.Stream("odd").Shuffle())
		})
		s, err := run(t, top, c)
		require.NoError(t, err)
		require.EqualValues(t, 1250, s.Input)
		require.EqualValues(t, 1250, s.Acked)
		sum := func(c *census) (n int) {
			for _, rows := range c.got {
				n += len(rows)
			}
			return n
		}
		require.Equal(t, 500, sum(&left))
		require.Equal(t, 1000, sum(&right))
		require.Equal(t, 500+1000+2*500+500, sum(&joined))
		require.Equal(t, 500, sum(&none))
		in := stat(t, s, "in/0")
		require.Equal(t, []egret.StreamStat{
			{Stream: "even", Emitted: 500, Transferred: 500 * 5},
			{Stream: "odd", Emitted: 500, Transferred: 500 * 2},
			{Stream: "unread", Emitted: 250, Transferred: 0},
		}, in.Streams)
		var fed [4]int64
		for i := range 2 {
			x := stat(t, s, fmt.Sprintf("joined/%d", i))
			require.Equal(t, []string{"l.late", "r.late", "in.even", "in.even"}, []string{x.Inputs[0].From, x.Inputs[1].From, x.Inputs[2].From, x.Inputs[3].From})
			for k, in := range x.Inputs {
				fed[k] += in.Executed
				require.Equal(t, in.Executed, in.Acked)
			}
		}
		require.Equal(t, [4]int64{500, 1000, 1000, 500}, fed)
	}
}

// The counters of a run with every kind of trouble are exact.
func TestCountersAreExact(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tries := newTally()
		var died bool
		top := topology.New("exact", func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice(texts(1000)...)).Emits("n")
			mid := b.Bolt("mid", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
				n := in.String("n")
				out.Emit(n)
				out.Emit(n + "'")
				switch i, _ := strconv.Atoi(n); {
				case i%100 == 7 && tries.add(n) <= 2: // 10 messages fail twice
					return errBad
				case i%500 == 9: // 2 are rejected
					return bolt.Reject(errBad)
				}
				return nil
			}), in.Shuffle()).Emits("n")
			b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				if in.String("n") == "999'" && !died {
					died = true
					panic("boom")
				}
				return nil
			}), mid.Shuffle())
		})
		s, err := run(t, top, egret.Config{TreeSize: 10, ParcelSize: 20})
		require.ErrorIs(t, err, egret.ErrDead)
		in, mid, out := stat(t, s, "in/0"), stat(t, s, "mid/0"), stat(t, s, "out/0")
		require.EqualValues(t, 1000, in.Messages)
		require.EqualValues(t, 998, in.Acked)
		require.EqualValues(t, 2, in.Dead)
		require.EqualValues(t, 20+2+1, in.Failed)
		require.EqualValues(t, 20+1, in.ReplayedFailed)
		require.Equal(t, in.Lost, in.ReplayedLost)
		require.Equal(t, 1000+21+in.Lost, in.Attempts)
		require.Equal(t, []egret.StreamStat{{Stream: "default", Emitted: in.Attempts, Transferred: in.Attempts}}, in.Streams)
		require.Equal(t, []egret.InputStat{{From: "in.default", Executed: in.Attempts, Acked: in.Attempts - 22, Failed: 22}}, mid.Inputs)
		require.EqualValues(t, 2*in.Attempts, mid.Streams[0].Emitted)
		require.LessOrEqual(t, mid.Streams[0].Transferred, mid.Streams[0].Emitted)
		require.Equal(t, out.Inputs[0].Executed, out.Inputs[0].Acked+out.Inputs[0].Failed)
		require.EqualValues(t, 1, out.Inputs[0].Failed)
		require.EqualValues(t, 1, out.Restarts)
		require.EqualValues(t, 1, s.Restarts)
		require.Equal(t, s.Replayed, in.ReplayedFailed+in.ReplayedLost)
		require.Equal(t, s.Acked, s.Latency.Count)
		require.Equal(t, mid.Execute.Count, mid.Inputs[0].Executed)
		require.Contains(t, s.String(), "exact: 1,000 messages in 150ms (6,666/s), 2 dead, 0 open; 23 failed, ")
	})
}

// At most once nothing is tracked: what fails is dropped and nothing else, the end
// of input travels all the same, and a panic does not hang the run.
func TestAtMostOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, c := range []egret.Config{{}, {ParcelSize: 1}, {ParcelSize: 1024}, {AlwaysEncode: true}} {
			boom := ""
			finished, executed := newTally(), newTally()
			var got map[string]int64
			top := topology.New("once", func(b *topology.Builder) {
				b.Guarantee(topology.AtMostOnce)
				in := b.Spout("in", spout.Slice(texts(3000)...)).Emits("n")
				mid := b.Bolt("mid", factory(func() *made {
					return &made{
						execute: func(in tuple.Tuple, out *bolt.Collector) error {
							n := in.String("n")
							executed.add(n)
							switch n {
							case "100":
								return errBad
							case "200":
								return bolt.Reject(errBad)
							case "300":
								out.Emit(1, 2)
							case boom:
								panic("boom")
							}
							out.Emit(n)
							return nil
						},
						finish: func(out *bolt.Collector) error {
							finished.add("mid")
							for i := range 700 {
								out.Emit(fmt.Sprint("end", i))
							}
							return nil
						},
					}
				}), in.Shuffle()).Emits("word").Parallel(2)
				sums := b.Bolt("count", func() bolt.Bolt { return counts{} }, mid.By("word")).Emits("word", "count").Parallel(2)
				b.Bolt("gather", func() bolt.Bolt { return gather{got} }, sums.Global())
			})
			got = map[string]int64{}
			s, err := run(t, top, c)
			require.NoError(t, err)
			require.Len(t, got, 3000-3+700)
			require.EqualValues(t, 1, got["7"])
			require.EqualValues(t, 2, got["end7"])
			require.Equal(t, 2, finished.sum())
			require.Zero(t, s.Acked+s.Failed+s.Attempts)
			require.EqualValues(t, 3000, s.Input)
			var failed int64
			for _, x := range s.Tasks {
				for _, in := range x.Inputs {
					failed += in.Failed
				}
			}
			require.EqualValues(t, 3, failed)
			require.Contains(t, s.String(), "not tracked")

			boom, got = "1500", map[string]int64{}
			finished, executed = newTally(), newTally()
			s, err = run(t, top, c)
			require.NoError(t, err)
			require.EqualValues(t, 1, s.Restarts)
			require.Equal(t, 2, finished.sum())
			require.Zero(t, got["1500"])
			for n, k := range executed.get() {
				require.Equal(t, 1, k, n)
			}
			require.LessOrEqual(t, len(got), 3000-4+700)
		}
	})
}

// At most once a panic costs what its task had received and nothing that still
// waits with the sender.
func TestAtMostOnceKeepsWhatWaits(t *testing.T) {
	for _, size := range []int{1, 50} {
		bubble(t, func(t *testing.T) {
			got := newTally()
			boom := true
			top := straight(spout.Slice(texts(1000)...), func(in tuple.Tuple, _ *bolt.Collector) error {
				time.Sleep(10 * time.Millisecond)
				if n := in.String("n"); got.add(n) == 1 && n == "100" && boom {
					boom = false
					panic("boom")
				}
				return nil
			})
			s, err := run(t, top, egret.Config{Guarantee: new(topology.AtMostOnce), ParcelSize: size})
			require.NoError(t, err)
			require.EqualValues(t, 1, s.Restarts)
			require.GreaterOrEqual(t, len(got.get()), 1000-(64+size))
			require.Equal(t, got.sum(), len(got.get()))
		})
	}
}

// A topology that is wrong and a config that is are told before anything starts.
func TestNothingStartsWrong(t *testing.T) {
	started := false
	top := topology.New("wrong", func(b *topology.Builder) {
		in := b.Spout("in", &numbers{split: func(context.Context) error { started = true; return nil }}).Emits("n")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.By("m"))
	})
	s, err := egret.Run(context.Background(), top, egret.Config{})
	require.Nil(t, s)
	require.ErrorIs(t, err, topology.ErrField)
	_, is := errors.AsType[*topology.BuildError](err)
	require.True(t, is)
	_, err = egret.Run(context.Background(), top, egret.Config{
		ParcelSize: 1025, MaxPending: -1, MaxPendingBytes: -1, TreeSize: -1, MaxReplays: -3,
		MessageTimeout: -1, Linger: -1, StopTimeout: -time.Second, MaxBatches: 65,
	})
	require.EqualError(t, err, `config: MaxPending is -1, but must be at least 1
config: MaxPendingBytes is -1, but must be at least 1
config: TreeSize is -1, but must be at least 1
config: MaxReplays is -3, but must be at least -2
config: MaxBatches is 65, but must be at most 64
config: ParcelSize is 1025, but must be at most 1024
config: MessageTimeout is -1ns, but must not be negative
config: Linger is -1ns, but must not be negative
config: StopTimeout is -1s, but must not be negative`)
	_, err = egret.Run(context.Background(), straight(&numbers{}, nil), egret.Config{Parallel: map[string]int{"nobody": 3}})
	require.Error(t, err)
	_, err = egret.Run(context.Background(), straight(&numbers{}, nil), egret.Config{Params: map[string][]string{"nothing": {"3"}}})
	require.Error(t, err)
	require.False(t, started)
}

// Values of all kinds come through as they are, large and strange ones too, with
// and without the codec; and a panic on one is described in a bounded space.
func TestValues(t *testing.T) {
	large := strings.Repeat("\xff<\x00>", 5<<20/4)
	rows := [][]any{
		{nil}, {true}, {int64(math.MinInt64)}, {uint64(math.MaxUint64)}, {math.Inf(-1)}, {""}, {"\xff\xfe\x00"},
		{large}, {[]byte(large)}, {[]byte{}}, {time.Unix(1, 2).UTC()}, {-time.Hour}, {"last"},
	}
	for _, c := range []egret.Config{{}, {AlwaysEncode: true}, {ParcelSize: 1}} {
		log := &logbook{}
		c.Logger = log.logger()
		var got []tuple.Value
		boom := true
		top := topology.New("values", func(b *topology.Builder) {
			in := b.Spout("in", spout.Rows(rows...)).Emits("v")
			mid := b.Bolt("mid", bolt.Filter(func(tuple.Tuple) bool { return true }), in.Shuffle()).Emits("v")
			b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				v := in.Value("v")
				if v.Kind() == tuple.KindString && len(v.String()) > 1000 && boom {
					boom = false
					panic("too much")
				}
				got = append(got, v)
				return nil
			}), mid.Shuffle())
		})
		s, err := run(t, top, c)
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Restarts)
		seen := map[string]bool{}
		for _, v := range got {
			text := v.String()
			if v.Kind() == tuple.KindBytes {
				text = string(v.Bytes())
			}
			seen[v.Kind().String()+" "+text] = true
		}
		require.Len(t, seen, len(rows))
		require.True(t, seen["string "+large])
		require.True(t, seen["string \xff\xfe\x00"])
		require.True(t, seen["[]byte "+large])
		died := log.with("task died")
		require.Len(t, died, 1)
		require.Less(t, len(died[0]), 10_000)
		require.Contains(t, died[0], `tuple {v: "\xff<\x00>`)
	}
}
