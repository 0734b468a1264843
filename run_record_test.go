package egret

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/topology"
)

// Of a batch whose ranges are fixed no source can be left out: states may have written what
// it has given. One of which the batch has nothing can.
func TestFitFixedRanges(t *testing.T) {
	for messages, refused := range []bool{false, true} {
		records := disk.MemoryRecords()
		_, err := records.Begin(t.Context())
		require.NoError(t, err)
		ranges := map[string]batch.Ranges{"in": {"a": {To: "1", Messages: messages}}, "here": {"a": {To: "9", Messages: 9}}}
		require.NoError(t, records.Append(t.Context(), &batch.Entry{Epoch: 1, Fix: &batch.Fix{Tx: 1, Ranges: ranges}}))
		plan := &topology.Plan{Topology: "sums", Dropped: []string{"in"}, Components: []topology.Node{{Name: "here", Source: spout.Slice("x")}}}
		err = fit(records, plan, "DIR")
		if !refused {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, `topology sums: the record of batches in DIR, of which 0 is the last one, has messages of source "in" in batch 1, which states may have written, and the topology does not have it: give it the name that it had; let a run of the version that had it come to its end, and leave it out then; or start over, with --reset or another state directory, and with empty states`)
	}
}
