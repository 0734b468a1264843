package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A node that goes has no task any more when it says so, and has some again when it
// comes back.
func TestDepart(t *testing.T) {
	gate := make(chan struct{})
	top := topology.New("endless", func(b *topology.Builder) {
		n := b.Spout("in", spout.Func(func(ctx context.Context, out *spout.Out) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Millisecond):
			}
			out.Emit(1)
			return nil
		})).Emits("n")
		b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { <-gate; return nil }), n.Shuffle()).Parallel(4)
	})
	open := sync.OnceFunc(func() { close(gate) })
	dir := t.TempDir()
	a := start(t, Config{Data: t.TempDir(), Program: program(top)})
	t.Cleanup(open)
	require.NoError(t, a.Depart(t.Context()), "nobody could take its tasks")
	begin := func() *Process {
		p, err := Start(t.Context(), Config{Listen: "127.0.0.1:0", Data: dir, Join: []string{a.Addr()}, Program: program(top)})
		require.NoError(t, err)
		return p
	}
	b := begin()
	until(t, a, "both are there", func(v *node.View) bool { return len(v.Nodes) == 2 && len(v.Members) == 2 && v.Leader != 0 })
	answer := a.Ask(t.Context(), &node.Request{Op: node.OpSubmit, Topology: "endless", Spec: &cluster.Spec{Topology: "endless"}})
	require.Nil(t, answer.Error)
	until(t, b, "it has tasks", func(v *node.View) bool { return own(v) > 0 && v.Leader != 0 })

	// What is open is waited for.
	late, cancel := context.WithTimeoutCause(t.Context(), 500*time.Millisecond, errors.New("too late"))
	defer cancel()
	require.ErrorContains(t, b.Depart(late), "tasks are still here: too late")
	open()
	select {
	case <-b.LeaveAsked():
		require.Fail(t, "nobody has asked")
	default:
	}
	for range 2 {
		require.Nil(t, b.Ask(t.Context(), &node.Request{Op: node.OpLeave}).Error)
	}
	<-b.LeaveAsked()
	require.NoError(t, b.Depart(t.Context()))
	v, err := b.view(t.Context())
	require.NoError(t, err)
	require.Zero(t, own(v), "it still has tasks")
	require.FileExists(t, filepath.Join(dir, leavingFile))
	require.NoError(t, b.Close())
	until(t, a, "it has left", func(v *node.View) bool {
		for _, m := range v.Members {
			if m.Node == b.Home().Node && !m.Left {
				return false
			}
		}
		return true
	})

	b = begin()
	defer func() { require.NoError(t, b.Close()) }()
	until(t, b, "it drains no more", func(v *node.View) bool {
		for _, m := range v.Members {
			if m.Home == b.Home() && m.Alive && !m.Draining {
				_, err := os.Stat(filepath.Join(dir, leavingFile))
				return os.IsNotExist(err)
			}
		}
		return false
	})
}

// A topology without a word about it is no topology.
func TestSubmitNothing(t *testing.T) {
	a := start(t, Config{Program: program()})
	answer := a.Ask(t.Context(), &node.Request{Op: node.OpSubmit, Topology: "top"})
	require.ErrorIs(t, answer.Error, cluster.ErrInvalid)
}

// Nodes that all go do not wait for each other to take their tasks.
func TestAllDepart(t *testing.T) {
	var c tally
	top := c.topology(1 << 20)
	a := start(t, Config{Data: t.TempDir(), Program: program(top)})
	b := start(t, Config{Data: t.TempDir(), Join: []string{a.Addr()}, Program: program(top)})
	until(t, a, "both are there", func(v *node.View) bool { return len(v.Nodes) == 2 && len(v.Members) == 2 && v.Leader != 0 })
	require.Nil(t, a.Ask(t.Context(), &node.Request{Op: node.OpSubmit, Topology: "numbers", Spec: &cluster.Spec{Topology: "numbers"}}).Error)
	until(t, b, "it has tasks", func(v *node.View) bool { return own(v) > 0 })
	ended := make(chan error, 2)
	for _, p := range []*Process{a, b} {
		go func() { ended <- p.Depart(t.Context()) }()
	}
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)
}

// The only node with a vote hands it on before it goes.
func TestFounderLeaves(t *testing.T) {
	var c tally
	top := c.topology(10)
	a, err := Start(t.Context(), Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Program: program(top)})
	require.NoError(t, err)
	b := start(t, Config{Data: t.TempDir(), Join: []string{a.Addr()}, Program: program(top)})
	until(t, a, "both are there", func(v *node.View) bool {
		return len(v.Nodes) == 2 && len(v.Members) == 2 && v.Leader != 0 && len(a.keeper.Servers()) == 2
	})
	require.NoError(t, a.Depart(t.Context()))
	require.NoError(t, a.Close())
	until(t, b, "it leads alone", func(v *node.View) bool { return v.Leader == b.self.Node })
	answer := b.Ask(t.Context(), &node.Request{Op: node.OpSubmit, Topology: "numbers", Spec: &cluster.Spec{Topology: "numbers"}})
	require.Nil(t, answer.Error)
	until(t, b, "it is done", func(v *node.View) bool { return len(v.Submissions) == 1 && v.Submissions[0].Status == cluster.Done })
}

// One that was drained by command stays: who leaves beside it does not go with its tasks.
func TestDepartBesideDrained(t *testing.T) {
	var c tally
	top := c.topology(1 << 20)
	a := start(t, Config{Data: t.TempDir(), Program: program(top)})
	b := start(t, Config{Data: t.TempDir(), Join: []string{a.Addr()}, Program: program(top)})
	until(t, a, "both are there", func(v *node.View) bool { return len(v.Nodes) == 2 && len(v.Members) == 2 && v.Leader != 0 })
	drain := func(on bool) {
		require.Nil(t, a.Ask(t.Context(), &node.Request{Op: node.OpDrain, Node: b.Home().Node, On: on}).Error)
	}
	drain(true)
	until(t, a, "it drains", func(v *node.View) bool { return v.Nodes[0].Draining || v.Nodes[1].Draining })
	require.Nil(t, a.Ask(t.Context(), &node.Request{Op: node.OpSubmit, Topology: "numbers", Spec: &cluster.Spec{Topology: "numbers"}}).Error)
	until(t, a, "it has all tasks", func(v *node.View) bool { return own(v) == 6 })
	late, cancel := context.WithTimeoutCause(t.Context(), 500*time.Millisecond, errors.New("too late"))
	defer cancel()
	require.ErrorContains(t, a.Depart(late), "6 tasks are still here: too late")
	drain(false)
	require.NoError(t, a.Depart(t.Context()))
	v, err := a.view(t.Context())
	require.NoError(t, err)
	require.Zero(t, own(v))
}
