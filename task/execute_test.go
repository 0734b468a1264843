package task

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A parcel without tuples, which nobody sends, is passed over: it neither keeps
// the turn from ending nor what comes behind it from being executed.
func TestEmptyParcel(t *testing.T) {
	executed := 0
	task, l, plan := startBolt(t, topology.AtMostOnce, func(tuple.Tuple, *bolt.Collector) error {
		executed++
		return nil
	}, byWord)
	life, schema := tuple.NewIncarnation(plan.Epoch, 1), plan.Components[0].Streams[0]
	parcel := func(lines ...any) *tuple.Parcel {
		p := &tuple.Parcel{From: 0, FromLife: life, To: 1, ToLife: life, Schema: schema}
		p.Begin([]tuple.Kind{tuple.KindString}, 1)
		var row tuple.Row
		for _, line := range lines {
			row.Set(schema, []any{line})
			p.Append(&row)
		}
		return p
	}
	task.Receive(l, parcel())
	task.Receive(l, parcel("a line"))
	task.Receive(l, parcel())
	for task.Turn(l) {
	}
	require.Equal(t, 1, executed)
	require.Zero(t, task.queued)
	require.Nil(t, task.hand)
}
