package egret_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A keeper retains every tuple until it is flushed, and hangs at one in six.
type keeper struct {
	held []*bolt.Held
	got  *tally
}

func (k *keeper) Execute(in tuple.Tuple, out *bolt.Collector) error {
	if n, err := strconv.Atoi(in.String("n")); err == nil && n%6 == 5 {
		<-out.Context().Done()
		return nil
	}
	k.held = append(k.held, out.Retain(in))
	return nil
}

func (k *keeper) Flush(*bolt.Collector) error {
	for _, h := range k.held {
		k.got.add(h.String("n"))
		h.Ack()
	}
	k.held = nil
	return nil
}

// A task whose lives get nothing done pauses for longer before each. The care that
// finds who hangs begins when the pause is over: or there would be several suspects
// each time, and none would ever be dead.
func TestCareBeginsBehindThePause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := newTally()
		top := topology.New("hangs", func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice(texts(60)...)).Emits("n")
			b.Bolt("keeps", func() bolt.Bolt { return &keeper{got: got} }, in.Shuffle())
		})
		c := egret.Config{OnStuck: egret.Replace, StuckAfter: 40 * time.Millisecond, MaxReplays: -1, MessageTimeout: time.Hour}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s, err := egret.Run(ctx, top, quiet(c))
		require.ErrorIs(t, err, egret.ErrDead)
		require.Equal(t, []int64{50, 10}, []int64{s.Acked, s.Dead})
		require.Len(t, got.get(), 50)
		require.LessOrEqual(t, s.Restarts, int64(20), "two hangs for each")
	})
}
