package process

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
)

// One that is stopped and submitted again goes on where it was: nothing is left out, and since
// all was finished nothing is executed twice.
func TestStopAndGoOn(t *testing.T) {
	var c tally
	top := c.topology(0)
	a := start(t, Config{Data: t.TempDir(), Program: program(top)})
	b := start(t, Config{Data: t.TempDir(), Join: []string{a.Addr()}, Program: program(top)})
	until(t, a, "both are there", func(v *node.View) bool { return len(v.Nodes) == 2 && len(v.Members) == 2 && v.Leader != 0 })
	status := func(s cluster.Status) *node.Answer {
		return b.Ask(t.Context(), &node.Request{Op: node.OpSetStatus, Topology: "numbers", Status: s})
	}
	submit := func() {
		require.Nil(t, a.Ask(t.Context(), &node.Request{Op: node.OpSubmit, Topology: "numbers", Spec: &cluster.Spec{Topology: "numbers"}}).Error)
	}
	was := 0
	for range 3 {
		submit()
		until(t, b, "it does something", func(*node.View) bool { return int(c.n.Load()) > was+10_000 })
		require.Nil(t, status(cluster.Stopping).Error)
		require.ErrorIs(t, status(cluster.Active).Error, cluster.ErrEnded)
		until(t, b, "it is stopped", func(v *node.View) bool { return v.Submissions[0].Status == cluster.Stopped })
		c.mu.Lock()
		was = len(c.seen)
		for i := range was {
			require.Equal(t, 1, c.seen[int64(i)], "number %d of %d", i, was)
		}
		c.mu.Unlock()
	}
	require.Nil(t, status(cluster.Ending).Error)
	until(t, b, "it is forgotten", func(v *node.View) bool { return len(v.Submissions) == 0 })
	submit()
	until(t, b, "it begins anew", func(*node.View) bool { c.mu.Lock(); defer c.mu.Unlock(); return c.seen[0] == 2 })
	require.Nil(t, status(cluster.Ending).Error)
	until(t, a, "it has ended", func(v *node.View) bool {
		return !slices.ContainsFunc(v.Submissions, func(s *cluster.Submission) bool { return s.Status.Runs() })
	})
}
