package egret

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bench"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// The two halves of a topology do together what one run does.
func TestBenchHalver(t *testing.T) {
	const messages = 10_000
	top := topology.New("halves", func(b *topology.Builder) {
		n := b.Spout("numbers", spout.Generate(messages, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
		b.Bolt("sink", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), n.By("n")).Parallel(2)
	})
	taking, err := benchHalver(t.Context(), top, topology.AtLeastOnce, bench.Side{})
	require.NoError(t, err)
	sending, err := benchHalver(t.Context(), top, topology.AtLeastOnce, bench.Side{Peer: taking.Addr})
	require.NoError(t, err)
	sent, err := sending.Wait()
	require.NoError(t, err)
	taken, err := taking.Wait()
	require.NoError(t, err)
	require.Positive(t, sending.Wire())
	require.NoError(t, sending.Close())
	require.NoError(t, taking.Close())
	require.EqualValues(t, messages, sent.Emitted)
	require.EqualValues(t, messages, sent.Acked)
	require.Zero(t, sent.Executed)
	require.EqualValues(t, messages, taken.Executed)
	require.EqualValues(t, messages, taken.ExecutedBy["sink"])

	broken := topology.New("broken", func(b *topology.Builder) { b.Check(errors.New("no topology")) })
	_, err = benchHalver(context.Background(), broken, topology.AtLeastOnce, bench.Side{})
	require.ErrorContains(t, err, "no topology")
}
