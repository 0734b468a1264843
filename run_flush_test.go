package egret_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// When all has been read and waits for what is held, the bolts are asked to let go
// of it, in the order of the topology, and again when that has led to replays; also
// when the run is drained.
func TestFlush(t *testing.T) {
	for _, drain := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			got, flushes := newTally(), newDiary()
			source := &numbers{n: 47}
			if drain {
				source.n, source.chunk = 1<<30, 47
				source.next = func(ctx context.Context, _ string, at int) error {
					if at == 47 {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				}
			}
			gather := func(name string) bolt.Factory {
				return func() bolt.Bolt { return &flushing{tens: tens{}, name: name, d: flushes} }
			}
			r, err := egret.Start(t.Context(), topology.New("flush", func(b *topology.Builder) {
				in := b.Spout("in", source).Emits("n")
				one := b.Bolt("one", gather("one"), in.Shuffle()).Emits("n").Holds(time.Hour)
				two := b.Bolt("two", gather("two"), one.Shuffle()).Emits("all").Holds(time.Hour)
				b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
					for n := range strings.FieldsSeq(in.String("all")) {
						if got.add(n) == 1 && n == "46" {
							return errors.New("once")
						}
					}
					return nil
				}), two.Shuffle())
			}), quiet(egret.Config{}))
			require.NoError(t, err)
			if drain {
				time.Sleep(time.Second)
				r.Drain()
			}
			s, err := r.Wait()
			require.NoError(t, err)
			require.EqualValues(t, 47, s.Acked)
			require.Len(t, got.get(), 47)
			require.Zero(t, s.TimedOut)
			// The first time one holds 7 and two what 5 times ten have come to; then all is
			// replayed but one by one, in fours of ten and once more 7.
			require.Equal(t, []string{"one 7", "two 5"}, flushes.entries()[:2])
			require.Len(t, flushes.entries(), 4)
			require.Less(t, s.Elapsed, 3*time.Second)
		})
	}
}

// A join whose pairs fail behind it, or whose sides fail before it, finds them again
// when they are replayed after the end of all input: it is not flushed while a side
// is on its way.
func TestFlushWaitsForReplays(t *testing.T) {
	for _, where := range []string{"behind", "before", "behind, by a panic", "before, by a panic"} {
		for _, n := range []int{12, 1000} {
			t.Run(fmt.Sprintf("%s, %d", where, n), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					tries, got := newTally(), newTally()
					trouble := func(at, id string) error {
						k, err := strconv.Atoi(id)
						require.NoError(t, err)
						if k%10 != 2 || !strings.HasPrefix(where, at) || tries.add(at+id) > 1 {
							return nil
						}
						if strings.HasSuffix(where, "panic") {
							if k%100 == 2 {
								panic("once")
							}
							return nil
						}
						return errors.New("once")
					}
					s, err := run(t, topology.New("join", func(b *topology.Builder) {
						orders := b.Spout("orders", &numbers{n: n}).Emits("id")
						payments := b.Spout("raw", &numbers{n: n}).Emits("id")
						paid := b.Bolt("payments", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
							if err := trouble("before", in.String("id")); err != nil {
								return err
							}
							out.Emit(in.String("id"))
							return nil
						}), payments.Shuffle()).Emits("id").Parallel(2)
						matched := b.Bolt("match", newMatch, orders.By("id"), paid.By("id")).Emits("id", "state").Parallel(2).Holds(time.Hour)
						b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
							if err := trouble("behind", in.String("id")); err != nil {
								return err
							}
							got.add(in.String("state"))
							if in.String("state") == "paid" {
								got.add(in.String("id"))
							}
							return nil
						}), matched.Shuffle())
					}), egret.Config{})
					require.NoError(t, err)
					require.EqualValues(t, 2*n, s.Acked)
					require.Zero(t, got.get()["not paid"])
					require.Len(t, got.get(), n+1)
				})
			})
		}
	}
}

// Without tracking nothing waits for what is held: it is flushed before Finish.
func TestFlushUntracked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got, d := newTally(), newDiary()
		_, err := run(t, topology.New("flush", func(b *topology.Builder) {
			in := b.Spout("in", &numbers{n: 47}).Emits("n")
			one := b.Bolt("one", func() bolt.Bolt { return &flushing{name: "one", d: d} }, in.Shuffle()).Emits("all")
			b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				for n := range strings.FieldsSeq(in.String("all")) {
					got.add(n)
				}
				return nil
			}), one.Shuffle())
		}), egret.Config{Guarantee: new(topology.AtMostOnce)})
		require.NoError(t, err)
		require.Equal(t, []string{"one 7"}, d.entries())
		require.Len(t, got.get(), 47)
		require.Equal(t, 47, got.sum())
	})
}

// flushing is tens without a tick.
type flushing struct {
	tens
	name string
	d    *diary
}

func (*flushing) Tick(*bolt.Collector) error { return errors.New("it has no interval") }

func (p *flushing) Flush(out *bolt.Collector) error {
	p.d.add("%s %d", p.name, len(p.held))
	p.flush(out)
	return nil
}
