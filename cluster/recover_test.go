package cluster

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A recovered state has all that it had, and epochs that nobody has heard of.
func TestRecover(t *testing.T) {
	s := State{Cluster: "a", Epoch: 7, Applied: 9, Nodes: []Node{{ID: 1}}}
	require.NoError(t, s.Recover("b"))
	require.Equal(t, State{Cluster: "b", Epoch: 7 + lostEpochs, Applied: 9, Nodes: []Node{{ID: 1}}}, s)
	s.Epoch = math.MaxUint32 - lostEpochs + 1
	before := s
	require.ErrorIs(t, s.Recover("c"), ErrFull)
	require.Equal(t, before, s)
}
