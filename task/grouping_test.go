package task

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// In the steady state the rarer groupings allocate nothing either.
func TestRarerGroupingsAllocateNothing(t *testing.T) {
	for name, group := range map[string]func(*topology.Component) topology.Subscription{
		"partial key": partialByWord, "custom": customByWord, "direct": (*topology.Component).Direct,
	} {
		b, _, plan := startBolt(t, topology.AtLeastOnce, nil, group)
		var acc account
		b.out.anchor = &anchor{tree: tuple.TreeID{Incarnation: tuple.NewIncarnation(plan.Epoch, 1), Seq: 1}, acc: &acc, key: 1}
		emit := func() {
			for range 1000 {
				if name == "direct" {
					b.collector.EmitDirect(1, "whale")
				} else {
					b.collector.Emit("whale")
				}
			}
		}
		emit()
		require.Zero(t, testing.AllocsPerRun(10, emit), name)
	}
}
