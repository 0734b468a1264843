package pair

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A tally counts executions; its topology has messages without end if there are 0.
type tally struct {
	mu   sync.Mutex
	seen map[int64]int
	some chan struct{} // closed when there are many
}

func (c *tally) topology(messages int64) *topology.Topology {
	c.seen, c.some = map[int64]int{}, make(chan struct{})
	return topology.New("numbers", func(b *topology.Builder) {
		n := b.Spout("numbers", spout.Generate(messages, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
		pass := b.Bolt("pass", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			out.Emit(in.Int64("n"))
			return nil
		}), n.Shuffle()).Emits("n").Parallel(2)
		b.Bolt("sink", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.seen[in.Int64("n")]++; len(c.seen) == 10_000 {
				close(c.some)
			}
			return nil
		}), pass.By("n")).Parallel(2)
	})
}

func config(t *testing.T, top *topology.Topology) Config {
	plan, err := top.Build(topology.Options{Epoch: 1})
	require.NoError(t, err)
	c := Config{Plan: plan, Drain: 30 * time.Second, Settings: &task.Settings{
		ParcelSize: 256, Linger: time.Millisecond, MaxPending: 65536, PendingBytes: 64 << 20, QueuedBytes: 64 << 20, TreeSize: 256,
		MessageTimeout: 30 * time.Second, MaxReplays: 8, Logger: slog.New(slog.DiscardHandler), Event: func(task.Event) { /* nobody listens */ },
	}}
	for id := range plan.Tasks {
		n := plan.Node(tuple.TaskID(id))
		c.Metrics = append(c.Metrics, metrics.NewTask(plan.TaskName(tuple.TaskID(id)), len(n.Streams), len(n.Inputs)))
	}
	return c
}

// start starts both halves, as two processes would.
func start(t *testing.T, ctx context.Context, top *topology.Topology, secret string) (sending, taking *Half) {
	c := config(t, top)
	c.Secret = secret
	taking, err := Start(context.Background(), c)
	require.NoError(t, err)
	c = config(t, top)
	c.Peer, c.Secret = taking.Addr(), secret
	sending, err = Start(ctx, c)
	require.NoError(t, err)
	return sending, taking
}

func TestPair(t *testing.T) {
	for name, secret := range map[string]string{"plain": "", "TLS": "sixteen bytes at least"} {
		t.Run(name, func(t *testing.T) {
			const messages = 50_000
			var c tally
			sending, taking := start(t, t.Context(), c.topology(messages), secret)
			require.NoError(t, sending.Wait())
			require.NoError(t, taking.Wait())
			a, b := sending.Counts(), taking.Counts()
			require.Greater(t, a.BytesOut, uint64(messages), "all of them have travelled")
			require.Less(t, b.BytesOut, a.BytesOut)
			require.NoError(t, sending.Close())
			require.NoError(t, taking.Close())
			require.Len(t, c.seen, messages)
			for _, n := range c.seen {
				require.Equal(t, 1, n)
			}
			require.Zero(t, taking.Counts())
		})
	}
}

// What is open when ctx ends is finished.
func TestPairEndsInGoodOrder(t *testing.T) {
	var c tally
	ctx, cancel := context.WithCancel(t.Context())
	sending, taking := start(t, ctx, c.topology(0), "")
	<-c.some
	cancel()
	require.NoError(t, sending.Wait())
	require.NoError(t, taking.Wait())
	m := sending.config.Metrics[0]
	require.NoError(t, sending.Close())
	require.NoError(t, taking.Close())
	require.EqualValues(t, len(c.seen), m.Acked.Load())
	require.Zero(t, m.Open())
}

// A half whose other one goes says so.
func TestHalfAlone(t *testing.T) {
	var c tally
	sending, taking := start(t, t.Context(), c.topology(0), "")
	<-c.some
	require.NoError(t, taking.Close())
	require.ErrorContains(t, sending.Wait(), "the connection to the other process is broken")
	require.NoError(t, sending.Close())

	alone := config(t, c.topology(0))
	alone.Peer = taking.Addr()
	h, err := Start(t.Context(), alone)
	require.NoError(t, err)
	require.ErrorContains(t, h.Wait(), "nobody listens there")
	require.NoError(t, h.Close())

	alone.Secret = "short"
	_, err = Start(t.Context(), alone)
	require.ErrorContains(t, err, "at least 16")
}
