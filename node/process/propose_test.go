package process

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/cluster/consensus"
	"github.com/egretstream/egret/node"
)

// Only what may be over in a moment is called a want of a quorum.
func TestRefusal(t *testing.T) {
	require.NoError(t, refusal(nil))
	for _, tt := range []struct {
		err  error
		why  cluster.Reason
		text string
	}{
		{consensus.ErrNotLeader, node.ErrNoQuorum, "nothing was done"},
		{consensus.ErrClosed, node.ErrNoQuorum, "nothing was done"},
		{consensus.ErrBusy, node.ErrBusy, "nothing was done"},
		{fmt.Errorf("%w within 5s", consensus.ErrUnsure), node.ErrUnsure, "it is not known whether this was agreed on within 5s: look with egret status"},
		{fmt.Errorf("%w; this one has 2 bytes", consensus.ErrTooLarge), node.ErrParameter, "may not have more than 1 MiB; this one has 2 bytes"},
		{errors.New("no space left on device"), node.ErrFailed, "no space left on device"},
	} {
		err := refusal(fmt.Errorf("entry: %w", tt.err))
		require.ErrorIs(t, err, tt.why)
		require.ErrorContains(t, err, tt.text)
	}
}

// What the log cannot take is refused for what it is.
func TestSubmitTooMuch(t *testing.T) {
	var c tally
	a := start(t, Config{Data: t.TempDir(), Program: program(c.topology(10))})
	until(t, a, "it leads", func(v *node.View) bool { return v.Leader != 0 && len(v.Nodes) == 1 })
	answer := a.Ask(t.Context(), &node.Request{Op: node.OpSubmit, Topology: "numbers", Spec: &cluster.Spec{Topology: "numbers", Flags: map[string]string{"x": strings.Repeat("x", consensus.MaxEntry)}}})
	require.ErrorIs(t, answer.Error, node.ErrParameter)
	require.ErrorContains(t, answer.Error, "an entry of the log may not have more than 1 MiB")
}
