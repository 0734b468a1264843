package egret_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
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

// exactCounts is the state of the bolts in these tests: counts by key, with what a store
// has to know of batches. It outlives its tasks.
type exactCounts struct {
	mu     sync.Mutex
	fences map[int]tuple.Fence // by task
	rows   map[string]exactRow
	joins  int
	writes int
}

type exactRow struct {
	task      int
	tx        tuple.TxID
	now, prev int
}

func newExactCounts() *exactCounts {
	return &exactCounts{fences: map[int]tuple.Fence{}, rows: map[string]exactRow{}}
}

func (c *exactCounts) written() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

func (c *exactCounts) get() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]int{}
	for k, r := range c.rows {
		if r.now > 0 {
			all[k] = r.now
		}
	}
	return all
}

// A counting is a bolt.Stateful over exactCounts. broken, if not nil, is called at each
// named place.
type counting struct {
	counts *exactCounts
	task   int
	fence  tuple.Fence
	mu     sync.Mutex // of batches: Commit is called beside Execute
	at     tuple.TxID
	tx     map[tuple.TxID]map[string]int
	broken func(place string) error
}

func (b *counting) Prepare(_ context.Context, t *bolt.Task) error {
	b.task, b.tx = t.Index, map[tuple.TxID]map[string]int{}
	return b.hit("prepare")
}

func (b *counting) hit(place string) error {
	if b.broken == nil {
		return nil
	}
	return b.broken(place)
}

func (b *counting) Round() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.tx)
}

func (b *counting) Batch(tx tuple.TxID) { b.at = tx }

func (b *counting) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tx[b.at] == nil {
		b.tx[b.at] = map[string]int{}
	}
	b.tx[b.at][in.String("word")]++
	return b.hit("execute")
}

func (b *counting) Complete(tx tuple.TxID, out *bolt.Collector) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.tx, tx)
	return nil
}

var errFenced = errors.New("fenced")

func (b *counting) Join(_ context.Context, j *bolt.Join) error {
	if err := b.hit("join"); err != nil {
		return err
	}
	c := b.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	if j.Fence.Less(c.fences[b.task]) {
		return errFenced
	}
	c.joins++
	c.fences[b.task], b.fence = j.Fence, j.Fence
	for k, r := range c.rows {
		if r.task == b.task && r.tx > j.Committed {
			c.rows[k] = exactRow{b.task, j.Committed, r.prev, 0}
		}
	}
	return b.hit("joined")
}

func (b *counting) Commit(_ context.Context, id tuple.BatchID) (w bolt.Written, err error) {
	if err := b.hit("write"); err != nil {
		return w, err
	}
	b.mu.Lock()
	batch := maps.Clone(b.tx[id.Tx])
	b.mu.Unlock()
	c := b.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fences[b.task] != b.fence {
		return w, errFenced
	}
	c.writes++
	for k, n := range batch {
		r := c.rows[k]
		if r.tx >= id.Tx {
			return w, fmt.Errorf("batch %v writes over batch %d", id, r.tx)
		}
		c.rows[k] = exactRow{b.task, id.Tx, r.now + n, r.now}
		w.Keys++
	}
	return w, b.hit("written")
}

// A passing is a bolt.Batched that passes words on, each so many times, and once a batch
// says how many it had.
type passing struct {
	broken func(place string) error
	times  int
}

func (b *passing) Round()           {}
func (b *passing) Batch(tuple.TxID) {}
func (b *passing) Execute(in tuple.Tuple, out *bolt.Collector) error {
	for range b.times {
		out.Emit(in.String("word"))
	}
	if b.broken != nil {
		return b.broken("pass")
	}
	return nil
}
func (b *passing) Complete(tuple.TxID, *bolt.Collector) error {
	if b.broken != nil {
		return b.broken("complete")
	}
	return nil
}

// words are n messages of each split: w0, w1, ..., w96, w0, ...
func words(splits, n int) spout.Source {
	return spout.GenerateSplits(splits, int64(n), func(_ int, i int64, out *spout.Out) { out.Emit(fmt.Sprint("w", i%97)) })
}

func exactTopology(source spout.Source, counts *exactCounts, broken func(place string) error) *topology.Topology {
	return topology.New("exact", func(b *topology.Builder) {
		b.Guarantee(topology.ExactlyOnce)
		words := b.Spout("words", source).Emits("word").Parallel(2)
		passed := b.Bolt("pass", func() bolt.Bolt { return &passing{broken: broken, times: 2} }, words.Shuffle()).Emits("word").Parallel(3)
		b.Bolt("count", func() bolt.Bolt { return &counting{counts: counts, broken: broken} }, passed.By("word")).Parallel(2).Stateful()
	})
}

func expected(splits, n, times int) map[string]int {
	all := map[string]int{}
	for range splits {
		for k := range n {
			all[fmt.Sprint("w", k%97)] += times
		}
	}
	return all
}

func TestExactlyOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		counts := newExactCounts()
		_, err := egret.Run(context.Background(), exactTopology(words(3, 5000), counts, nil), quiet(egret.Config{BatchSize: 300}))
		require.NoError(t, err)
		require.Equal(t, expected(3, 5000, 2), counts.get())
		require.Equal(t, 2, counts.joins, "one round")
		require.Greater(t, counts.writes, 10)
	})
}

// Whatever breaks, and wherever: each word counts once.
func TestExactlyOnceBroken(t *testing.T) {
	for _, place := range []string{"pass", "complete", "execute", "join", "joined", "write", "written"} {
		for _, how := range []string{"error", "panic"} {
			t.Run(place+"/"+how, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var mu sync.Mutex
					hits := 0
					broken := func(at string) error {
						mu.Lock()
						defer mu.Unlock()
						if at != place {
							return nil
						}
						hits++
						every := map[string]int{"pass": 7001, "execute": 9001}[place]
						if every == 0 {
							every = 23
						}
						if hits%every != 1 {
							return nil
						}
						if how == "panic" {
							panic("broken on purpose")
						}
						return errors.New("broken on purpose")
					}
					counts := newExactCounts()
					_, err := egret.Run(context.Background(), exactTopology(words(3, 5000), counts, broken), quiet(egret.Config{BatchSize: 300}))
					require.NoError(t, err)
					require.Equal(t, expected(3, 5000, 2), counts.get())
					if place != "join" || how != "error" { // which is tried again
						require.Greater(t, counts.joins, 2, "rounds")
					}
				})
			})
		}
	}
}

// An echo is a counting that passes words on as they come, slowly.
type echo struct{ counting }

func (b *echo) Execute(in tuple.Tuple, out *bolt.Collector) error {
	time.Sleep(100 * time.Microsecond) // a parcel takes several turns
	out.Emit(in.String("word"))
	return b.counting.Execute(in, out)
}

func (b *echo) Commit(ctx context.Context, id tuple.BatchID) (bolt.Written, error) {
	time.Sleep(time.Millisecond)
	return b.counting.Commit(ctx, id)
}

// A batch that is committed while a parcel of the next one is half executed: the rest of
// that one is still of the next batch.
func TestExactlyOnceBetweenTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		first, second := newExactCounts(), newExactCounts()
		top := topology.New("exact", func(b *topology.Builder) {
			b.Guarantee(topology.ExactlyOnce)
			said := b.Spout("words", words(1, 3000)).Emits("word")
			echoed := b.Bolt("echo", func() bolt.Bolt { return &echo{counting{counts: first}} }, said.Shuffle()).Emits("word").Stateful()
			b.Bolt("count", func() bolt.Bolt { return &counting{counts: second} }, echoed.By("word")).Stateful()
		})
		s, err := egret.Run(context.Background(), top, quiet(egret.Config{BatchSize: 256}))
		require.NoError(t, err)
		require.Equal(t, expected(1, 3000, 1), first.get())
		require.Equal(t, expected(1, 3000, 1), second.get())
		require.Zero(t, s.Batches.Rounds)
	})
}

// A settling is a counting that wants to know what is committed.
type settling struct {
	counting
	settle func(committed tuple.TxID) error
}

func (b *settling) Settle(_ context.Context, committed tuple.TxID) error { return b.settle(committed) }

// Before a run ends its states hear what is committed; that they cannot show it is told.
func TestExactlyOnceSettled(t *testing.T) {
	for _, broken := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			counts, log := newExactCounts(), &logbook{}
			var last tuple.TxID
			top := topology.New("exact", func(b *topology.Builder) {
				b.Guarantee(topology.ExactlyOnce)
				b.Bolt("count", func() bolt.Bolt {
					return &settling{counting{counts: counts}, func(committed tuple.TxID) error {
						require.Greater(t, committed, last, "in order, and once")
						if last = committed; broken {
							return errors.New("no view")
						}
						return nil
					}}
				}, b.Spout("words", words(1, 3000)).Emits("word").By("word")).Stateful()
			})
			s, err := egret.Run(context.Background(), top, egret.Config{BatchSize: 256, Logger: log.logger()})
			require.NoError(t, err)
			require.EqualValues(t, s.Batches.Last, last)
			require.Equal(t, broken, len(log.with("no view")) > 0)
		})
	}
}

// Runs that are stopped anywhere go on where the record is, and each word counts once.
func TestExactlyOnceInSeveralRuns(t *testing.T) {
	for _, how := range []string{"stop", "drain"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				counts, dir := newExactCounts(), t.TempDir()
				for runs := 1; ; runs++ {
					require.Less(t, runs, 100)
					ready := make(chan *egret.Running, 1)
					var mu sync.Mutex
					hits := 0
					top := exactTopology(words(3, 5000), counts, func(at string) error {
						mu.Lock()
						defer mu.Unlock()
						if hits++; hits == 3000+700*runs { // anywhere: in Execute, Commit, ...
							r := <-ready
							if how == "stop" {
								r.Stop()
							} else {
								r.Drain()
							}
						}
						return nil
					})
					r, err := egret.Start(context.Background(), top, quiet(egret.Config{BatchSize: 300, StateDir: dir}))
					require.NoError(t, err)
					ready <- r
					s, err := r.Wait()
					if err == nil && s.Batches.Committed == 0 {
						require.Greater(t, runs, 3)
						break
					}
					if how == "drain" {
						require.NoError(t, err)
					}
				}
				require.Equal(t, expected(3, 5000, 2), counts.get())
			})
		})
	}
}

// A batch that fails again and again stops the topology with its error; one that says
// that nothing helps does so at once.
func TestExactlyOncePoisoned(t *testing.T) {
	for _, reject := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			counts := newExactCounts()
			tries := 0
			_, err := egret.Run(context.Background(), exactTopology(words(1, 5000), counts, func(at string) error {
				if at != "execute" || len(counts.get()) == 0 {
					return nil
				}
				if tries++; reject {
					return bolt.Reject(errors.New("no such word"))
				}
				return errors.New("no such word")
			}), quiet(egret.Config{BatchSize: 300, MaxReplays: 3, Parallel: map[string]int{"count": 1}}))
			require.ErrorContains(t, err, "no such word")
			require.ErrorContains(t, err, "count/0")
			if reject {
				require.NotContains(t, err.Error(), "tries")
			} else {
				require.ErrorContains(t, err, "4 tries")
			}
			sum := 0
			for _, n := range counts.get() {
				sum += n
			}
			require.Positive(t, sum)
			require.Zero(t, sum%2, "whole batches")
		})
	}
}

// A store that is away is waited for, however long it takes, and it is said.
func TestExactlyOnceStoreAway(t *testing.T) {
	for _, places := range [][]string{{"write", "join"}, {"write", "prepare"}, {"write", "join", "prepare"}, {"write"}} {
		for _, away := range []time.Duration{time.Second, 40 * time.Second, time.Hour} {
			t.Run(fmt.Sprint(places, away), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					counts, began, log := newExactCounts(), time.Now(), &logbook{}
					_, err := egret.Run(context.Background(), exactTopology(words(1, 5000), counts, func(at string) error {
						if slices.Contains(places, at) && counts.written() > 3 && time.Since(began) < away {
							return errors.New("no database")
						}
						return nil
					}), egret.Config{BatchSize: 300, Logger: log.logger()})
					require.NoError(t, err)
					require.GreaterOrEqual(t, time.Since(began), away)
					require.Less(t, time.Since(began), away+time.Minute)
					told := len(log.with("no database"))
					require.NotZero(t, told)
					require.Less(t, told, 100+int(away/time.Second), "it is not tried all the time")
					require.Equal(t, expected(1, 5000, 2), counts.get())
				})
			})
		}
	}
}

// One that has never been there ends the run soon.
func TestExactlyOnceStoreNeverThere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, err := run(t, exactTopology(words(1, 50), newExactCounts(), func(at string) error {
			if at == "prepare" {
				return errors.New("no database")
			}
			return nil
		}), egret.Config{})
		require.ErrorContains(t, err, "died 6 times in a row, the last time of: ")
		require.ErrorContains(t, err, "Prepare: no database")
	})
}

// countNumbers is a topology that counts what comes of numbers, so slowly that its spout has
// to wait while it emits.
func countNumbers(source spout.Source, counts *exactCounts) *topology.Topology {
	return topology.New("exact", func(b *topology.Builder) {
		b.Guarantee(topology.ExactlyOnce)
		b.Bolt("count", func() bolt.Bolt { return &slowCounting{counting{counts: counts}} }, b.Spout("in", source).Emits("word", "mixed").By("word")).Stateful()
	})
}

// manyKinds are numbers with values of several kinds beside them, so that what one call of Next
// has brought is emitted in several steps.
type manyKinds struct{ *numbers }

type manyKindsReader struct{ *numberReader }

func (s manyKinds) Open(ctx context.Context, split spout.Split, position string) (spout.Reader, error) {
	r, err := s.numbers.Open(ctx, split, position)
	return manyKindsReader{r.(*numberReader)}, err
}

func (r manyKindsReader) Next(ctx context.Context, out *spout.Out) error {
	for ; out.Len() < r.s.chunk; r.at++ {
		if r.at == r.s.n {
			return io.EOF
		}
		if err := r.s.next(ctx, r.split, r.at); err != nil {
			return err
		}
		out.Emit(strconv.Itoa(r.at), []any{nil, r.at}[r.at/50%2])
	}
	return nil
}

type slowCounting struct{ counting }

func (b *slowCounting) Execute(in tuple.Tuple, out *bolt.Collector) error {
	time.Sleep(time.Millisecond)
	return b.counting.Execute(in, out)
}

func once(n int) map[string]int {
	all := map[string]int{}
	for _, k := range texts(n) {
		all[k] = 1
	}
	return all
}

// A reader that is ahead of what is emitted fails: what it has read is not read again.
func TestExactlyOnceReaderFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		counts, failed := newExactCounts(), false
		source := &numbers{n: 4000, chunk: 500, next: func(_ context.Context, _ string, at int) error {
			if at >= 1990 && !failed {
				failed = true
				return errors.New("not now")
			}
			return nil
		}}
		_, err := egret.Run(context.Background(), countNumbers(manyKinds{source}, counts), quiet(egret.Config{BatchSize: 500}))
		require.NoError(t, err)
		require.True(t, failed)
		require.Equal(t, once(4000), counts.get())
	})
}

// A drain while a reader is ahead: the next run reads again what was not emitted.
func TestExactlyOnceDrainsReadAhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		counts, dir := newExactCounts(), t.TempDir()
		for runs := 1; ; runs++ {
			require.Less(t, runs, 30)
			ready := make(chan *egret.Running, 1)
			drained := false
			source := &numbers{n: 4000, chunk: 500, next: func(_ context.Context, _ string, at int) error {
				if at >= 700*runs && !drained {
					drained = true
					(<-ready).Drain()
				}
				return nil
			}}
			r, err := egret.Start(context.Background(), countNumbers(manyKinds{source}, counts), quiet(egret.Config{BatchSize: 500, StateDir: dir}))
			require.NoError(t, err)
			ready <- r
			_, err = r.Wait()
			require.NoError(t, err)
			if !drained {
				break
			}
		}
		require.Equal(t, once(4000), counts.get())
	})
}

// What cannot be exactly once is refused.
func TestExactlyOnceMisuse(t *testing.T) {
	build := func(define func(*topology.Builder)) error {
		_, err := egret.Run(context.Background(), topology.New("x", func(b *topology.Builder) {
			b.Guarantee(topology.ExactlyOnce)
			define(b)
		}), quiet(egret.Config{}))
		return err
	}
	plain := factory(func() *made { return &made{} })
	require.ErrorContains(t, build(func(b *topology.Builder) {
		b.Bolt("out", plain, b.Spout("in", words(1, 1)).Emits("word").Shuffle())
	}), "bolt out of an exactly-once topology is not a bolt.Batched")
	require.ErrorContains(t, build(func(b *topology.Builder) {
		b.Bolt("out", func() bolt.Bolt { return &passing{} }, b.Spout("in", words(1, 1)).Emits("word").Shuffle()).Stateful()
	}), "bolt out of an exactly-once topology is not a bolt.Stateful")
	require.ErrorContains(t, build(func(b *topology.Builder) {
		b.Bolt("coordinator", plain, b.Spout("in", words(1, 1)).Emits("word").Shuffle())
	}), "the name is that of the component which coordinates the batches")
	require.ErrorContains(t, build(func(b *topology.Builder) {
		b.Bolt("out", plain, b.Queue("in", func() spout.Queue { return nil }).Emits("word").Shuffle())
	}), "a queue cannot be read again")
}

// A split that the record could not give back ends the run, and is not read twice.
func TestExactlyOnceUnwritable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		counts := newExactCounts()
		_, err := egret.Run(context.Background(), exactTopology(renamed{words(1, 10)}, counts, nil), quiet(egret.Config{StateDir: t.TempDir()}))
		require.ErrorContains(t, err, `not UTF-8, "\xff": the record of batches cannot keep it`)
	})
}

// renamed is a source of one split with a name that is no text.
type renamed struct{ spout.Source }

func (renamed) Splits(context.Context) ([]spout.Split, error) { return []spout.Split{"\xff"}, nil }
func (r renamed) Open(ctx context.Context, _ spout.Split, position string) (spout.Reader, error) {
	all, err := r.Source.Splits(ctx)
	if err != nil {
		return nil, err
	}
	return r.Source.Open(ctx, all[0], position)
}
