package process

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
)

// A state that could not be read back is not kept: what is kept is all that a node starts
// from.
func TestSnapshotIsReadBack(t *testing.T) {
	good := cluster.State{Cluster: "c", Nodes: []cluster.Node{{ID: 1, Boot: 1}}}
	m := &machine{state: good, post: func(cluster.State) {}}
	b, err := m.Snapshot()
	require.NoError(t, err)
	m.state = cluster.State{}
	require.NoError(t, m.Restore(1, b))
	require.Equal(t, good.Nodes, m.state.Nodes)
	m.state.Nodes = []cluster.Node{{ID: 1}}
	_, err = m.Snapshot()
	require.ErrorContains(t, err, "contradicts itself")
}
