package egret_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// A recut gives n words in each split, as words does, and each reader more of them in a
// call than those before.
type recut struct {
	splits, n int
	opened    atomic.Int64
}

func (s *recut) Splits(context.Context) (all []spout.Split, err error) {
	for k := range s.splits {
		all = append(all, spout.Split(strconv.Itoa(k)))
	}
	return all, nil
}

func (s *recut) Open(_ context.Context, _ spout.Split, position string) (spout.Reader, error) {
	at := 0
	if position != "" {
		var err error
		if at, err = strconv.Atoi(position); err != nil {
			return nil, err
		}
	}
	return &recutReader{s, at, 3 + int(s.opened.Add(1))*4%19}, nil
}

type recutReader struct {
	*recut
	at, each int
}

func (r *recutReader) Next(ctx context.Context, out *spout.Out) error {
	time.Sleep(time.Millisecond)
	for range r.each {
		if r.at == r.n {
			return io.EOF
		}
		out.Emit(fmt.Sprint("w", r.at%97))
		r.at++
	}
	return ctx.Err()
}

func (r *recutReader) Position() string { return strconv.Itoa(r.at) }

// A completing is a counting that may break when it has written.
type completing struct{ counting }

func (b *completing) Complete(tx tuple.TxID, out *bolt.Collector) error {
	if err := b.counting.Complete(tx, out); err != nil {
		return err
	}
	return b.hit("complete")
}

// What a batch of a transactional spout has is fixed before it is written. When it comes
// again each task gives what it had of its own splits, and what it has read beyond that
// is in the next batch, once: wherever the reader cuts.
func TestFixedRanges(t *testing.T) {
	for _, tasks := range []int{1, 2, 3} {
		bubble(t, func(t *testing.T) {
			var mu sync.Mutex
			hits := 0
			broken := func(at string) error {
				mu.Lock()
				defer mu.Unlock()
				if at != "complete" {
					return nil
				}
				if hits++; hits%7 == 3 {
					return errors.New("broken on purpose")
				}
				return nil
			}
			counts := newExactCounts()
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			_, err := egret.Run(ctx, topology.New("fixed", func(b *topology.Builder) {
				b.Guarantee(topology.ExactlyOnce)
				in := b.Spout("words", &recut{splits: 3, n: 400}).Emits("word").Parallel(tasks).Batches(topology.Transactional)
				b.Bolt("count", func() bolt.Bolt { return &completing{counting{counts: counts, broken: broken}} }, in.By("word")).Parallel(2).Stateful()
			}), quiet(egret.Config{BatchSize: 10, StopTimeout: time.Second}))
			require.NoError(t, err)
			require.Greater(t, counts.joins, 4, "rounds")
			require.Equal(t, expected(3, 400, 1), counts.get())
		})
	}
}

// A run that drains while a batch with fixed ranges comes again leaves it for the next
// one, and does not say that its source is to blame.
func TestDrainWithFixedRanges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		counts, dir := newExactCounts(), t.TempDir()
		var r *egret.Running
		ready := make(chan struct{})
		var mu sync.Mutex
		runs, hits := 0, 0
		broken := func(at string) error {
			mu.Lock()
			defer mu.Unlock()
			if at != "written" || runs > 4 {
				return nil
			}
			if hits++; hits == 5 { // some is written, and not committed
				<-ready
				r.Drain()
				return errors.New("broken on purpose")
			}
			return nil
		}
		for committed := int64(-1); committed != 0; {
			mu.Lock()
			if runs, hits = runs+1, 0; runs == 1 {
				defer func() { require.Greater(t, runs, 5) }()
			}
			ready = make(chan struct{})
			mu.Unlock()
			var err error
			r, err = egret.Start(context.Background(), topology.New("fixed", func(b *topology.Builder) {
				b.Guarantee(topology.ExactlyOnce)
				in := b.Spout("words", &recut{splits: 3, n: 400}).Emits("word").Parallel(2).Batches(topology.Transactional)
				b.Bolt("count", func() bolt.Bolt { return &counting{counts: counts, broken: broken} }, in.By("word")).Parallel(2).Stateful()
			}), quiet(egret.Config{BatchSize: 10, StateDir: dir, MaxReplays: egret.NoReplays}))
			require.NoError(t, err)
			close(ready)
			s, err := r.Wait()
			require.NoError(t, err)
			committed = s.Batches.Committed
		}
		require.Equal(t, expected(3, 400, 1), counts.get())
	})
}
