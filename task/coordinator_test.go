package task

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/metrics"
)

// What metrics call the causes of rounds is what the coordinator calls them, all of them.
func TestCausesHaveNames(t *testing.T) {
	for i, name := range metrics.RoundCauses {
		require.Equal(t, name, batch.Cause(i).String())
	}
	require.Panics(t, func() { _ = batch.Cause(len(metrics.RoundCauses)).String() }, "there is another one")
}
