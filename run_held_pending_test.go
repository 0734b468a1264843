package egret_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A join that waits for what MaxPending keeps out gets it: the spout lets in more,
// and says who holds what (R10). Without the two sides ever meeting it would wait
// for ever.
func TestHeldDoublesPending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &logbook{}
		s, err := run(t, topology.New("batch", func(b *topology.Builder) {
			in := b.Spout("in", &numbers{n: 100}).Emits("n")
			b.Bolt("batch", func() bolt.Bolt {
				var held []*bolt.Held
				return &made{execute: func(in tuple.Tuple, out *bolt.Collector) error {
					if held = append(held, out.Retain(in)); len(held) == 50 {
						for _, h := range held {
							h.Ack()
						}
						held = nil
					}
					return nil
				}}
			}, in.Shuffle())
		}), egret.Config{Logger: log.logger(), MaxPending: 10})
		require.NoError(t, err)
		require.EqualValues(t, 100, s.Acked)
		require.Zero(t, s.Replayed)
		require.Equal(t, []string{
			"WARN 10 messages are open and batch holds them all: MaxPending of in/0 is now 20; set it to that if it is always so topology=batch component=in task=0",
			"WARN 20 messages are open and batch holds them all: MaxPending of in/0 is now 40; set it to that if it is always so topology=batch component=in task=0",
			"WARN 40 messages are open and batch holds them all: MaxPending of in/0 is now 80; set it to that if it is always so topology=batch component=in task=0",
		}, log.with("MaxPending"))
	})
}

// A tick between makes no difference to that.
func TestHeldDoublesPendingBetweenTicks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ticks := 0
		s, err := run(t, topology.New("batch", func(b *topology.Builder) {
			in := b.Spout("in", &numbers{n: 64}).Emits("n")
			b.Bolt("batch", func() bolt.Bolt {
				var held []*bolt.Held
				return &made{execute: func(in tuple.Tuple, out *bolt.Collector) error {
					if held = append(held, out.Retain(in)); len(held) == 64 {
						for _, h := range held {
							h.Ack()
						}
					}
					return nil
				}, tick: func(*bolt.Collector) error { ticks++; return nil }}
			}, in.Shuffle()).Every(50 * time.Millisecond)
		}), egret.Config{MaxPending: 1, MessageTimeout: 10 * time.Minute})
		require.NoError(t, err)
		require.EqualValues(t, 64, s.Acked)
		require.Less(t, ticks, 100, "some 3 s of virtual time")
	})
}

// Calls of Async that take long hold nothing that waits for others, so MaxPending
// stays what it is.
func TestAsyncKeepsToMaxPending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log, open := &logbook{}, int64(0)
		r, err := egret.Start(t.Context(), calls(2000, bolt.Async(4, func(ctx context.Context, in tuple.Tuple, _ func(...any)) error {
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
			}
			return ctx.Err()
		}), func(tuple.Tuple, *bolt.Collector) error { return nil }), egret.Config{MaxPending: 8, TreeSize: 1, Logger: log.logger()})
		require.NoError(t, err)
		for range 60 {
			time.Sleep(time.Second)
			open = max(open, r.Stats().Open)
		}
		r.Stop()
		_, err = r.Wait()
		require.ErrorIs(t, err, egret.ErrDrain)
		require.LessOrEqual(t, open, int64(8))
		require.Empty(t, log.with("MaxPending"))
	})
}

// The bound on kept bytes is not doubled: a topology that holds more than it may
// waits for its timeouts.
func TestHeldKeepsToBytes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &logbook{}
		s, err := run(t, topology.New("batch", func(b *topology.Builder) {
			in := b.Spout("in", &numbers{n: 40, chunk: 1}).Emits("n")
			b.Bolt("batch", func() bolt.Bolt {
				var held []*bolt.Held
				return &made{execute: func(in tuple.Tuple, out *bolt.Collector) error {
					held = append(held, out.Retain(in))
					return nil
				}, tick: func(*bolt.Collector) error {
					require.LessOrEqual(t, len(held), 13)
					for _, h := range held {
						h.Ack()
					}
					held = nil
					return nil
				}}
			}, in.Shuffle()).Every(10 * time.Second).Holds(time.Minute)
		}), egret.Config{Logger: log.logger(), MaxPending: 5, MaxPendingBytes: 12 * 18})
		require.NoError(t, err)
		require.EqualValues(t, 40, s.Acked)
		require.Len(t, log.with("MaxPending of in/0 is now 20"), 1)
		require.Len(t, log.with("batch holds them all, and MaxPendingBytes is reached"), 1)
		require.Empty(t, log.with("MaxPending of in/0 is now 40"))
		require.Zero(t, s.Replayed)
	})
}
