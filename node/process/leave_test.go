package process

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	top := c.topology(0)
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

// Nor do they where nothing runs: none has its place given to others, who go as well.
func TestAllDepartIdle(t *testing.T) {
	all := []*Process{start(t, Config{Data: t.TempDir()})}
	for range 2 {
		all = append(all, start(t, Config{Data: t.TempDir(), Join: []string{all[0].Addr()}}))
	}
	for _, p := range all {
		until(t, p, "all are there", func(v *node.View) bool { return len(v.Nodes) == 3 && len(v.Members) == 3 && v.Leader != 0 })
	}
	for _, p := range all {
		p.gossip.Depart()
	}
	for _, p := range all {
		until(t, p, "all are known to leave", func(v *node.View) bool {
			return !slices.ContainsFunc(v.Members, func(m node.MemberView) bool { return m.Home != p.Home() && !m.Departs })
		})
	}
	ended := make(chan error, len(all))
	for _, p := range all {
		go func() { ended <- p.Depart(t.Context()) }()
	}
	for range all {
		require.NoError(t, <-ended)
	}
	for _, p := range all {
		v, err := p.view(t.Context())
		require.NoError(t, err)
		require.Equal(t, all[0].self.Node, v.Leader)
		for _, m := range v.Members {
			require.True(t, m.Alive && !m.Left, "one has waited for the others to know that it goes")
		}
		require.Len(t, p.keeper.Servers(), 3)
	}
}

// Who is to lead next is one that stays, best one that votes and has not been drained.
func TestHeir(t *testing.T) {
	const self, dead, departs, drained, mute, voter = 1, 2, 3, 4, 5, 6
	member := func(n cluster.NodeID) node.MemberView {
		m := node.MemberView{Member: cluster.Member{Home: cluster.Home{Node: n, Boot: 1}, Alive: n != dead, Keeps: true, Departs: n == departs}}
		m.Draining = n == drained
		return m
	}
	voters := []cluster.NodeID{self, dead, departs, drained, voter}
	for _, tt := range []struct {
		others []cluster.NodeID
		want   cluster.NodeID
	}{
		{nil, 0},
		{[]cluster.NodeID{dead, departs}, 0},
		{[]cluster.NodeID{dead, departs, drained}, drained},
		{[]cluster.NodeID{drained, mute}, mute},
		{[]cluster.NodeID{dead, departs, drained, mute, voter}, voter},
	} {
		all := []node.MemberView{member(self)}
		for _, n := range tt.others {
			all = append(all, member(n))
		}
		got := heir(all, self, voters)
		require.Equal(t, tt.want == 0, got == nil, tt.others)
		if got != nil {
			require.Equal(t, tt.want, got.Node, tt.others)
		}
	}
	keeps := member(voter)
	keeps.Keeps = false
	require.Nil(t, heir([]node.MemberView{keeps}, self, voters), "it cannot keep the log")
}

// A node that leaves does not make one lead that leaves as well.
func TestHandOverBesideOneThatLeaves(t *testing.T) {
	a := start(t, Config{Data: t.TempDir()})
	b := start(t, Config{Data: t.TempDir(), Join: []string{a.Addr()}})
	until(t, a, "both are there", func(v *node.View) bool { return len(v.Members) == 2 && v.Leader == a.self.Node })
	b.gossip.Depart()
	until(t, a, "it is known to leave", func(v *node.View) bool {
		return slices.ContainsFunc(v.Members, func(m node.MemberView) bool { return m.Node == b.self.Node && m.Departs })
	})
	a.handOver(t.Context())
	v, err := a.view(t.Context())
	require.NoError(t, err)
	require.Equal(t, a.self.Node, v.Leader)
	require.Equal(t, []cluster.NodeID{a.self.Node}, a.voters(), "nor is it given a vote")
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

// A node that leaves warns of the quorum if it is lost by that, and not if a voter that is gone
// loses its vote first.
func TestLeaveAndQuorum(t *testing.T) {
	for _, tt := range []struct {
		name  string
		votes bool // the other two may vote
	}{{"the dead one is demoted", true}, {"no other keeps data", false}} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			var said strings.Builder
			log := slog.New(slog.NewTextHandler(writer(func(b []byte) { mu.Lock(); said.Write(b); mu.Unlock() }), &slog.HandlerOptions{Level: slog.LevelWarn}))
			data := func() string {
				if !tt.votes {
					return ""
				}
				return t.TempDir()
			}
			first := start(t, Config{Data: t.TempDir(), Pace: cluster.Quick, Logger: log})
			leaves := first
			if tt.votes {
				leaves = start(t, Config{Data: t.TempDir(), Pace: cluster.Quick, Join: []string{first.Addr()}, Logger: log})
			}
			dies, err := Start(t.Context(), Config{Listen: "127.0.0.1:0", Data: data(), Pace: cluster.Quick, Join: []string{first.Addr()}})
			require.NoError(t, err)
			if !tt.votes {
				t.Cleanup(func() { require.NoError(t, dies.Close()) })
			}
			want := 1
			if tt.votes {
				want = 3
				until(t, first, "all are there", func(v *node.View) bool { return len(v.Members) == 3 && len(first.keeper.Servers()) == 3 })
				for _, p := range []*Process{leaves, dies} {
					done := make(chan error, 1)
					first.keeper.AddVoter(p.self.Node, p.Addr(), func(err error) { done <- err })
					require.NoError(t, <-done)
				}
			}
			until(t, leaves, "they vote", func(v *node.View) bool {
				return len(v.Voters) == want && len(v.Members) > 1 && len(v.Nodes) == len(v.Members)
			})
			if tt.votes {
				require.NoError(t, dies.Close())
				until(t, leaves, "one is dead", func(v *node.View) bool {
					return slices.ContainsFunc(v.Members, func(m node.MemberView) bool { return m.Node == dies.self.Node && !m.Alive })
				})
			}
			require.NoError(t, leaves.Depart(t.Context()))
			mu.Lock()
			defer mu.Unlock()
			if tt.votes {
				require.NotContains(t, said.String(), "there is no quorum")
				require.Equal(t, []cluster.NodeID{first.self.Node}, first.voters())
			} else {
				require.Contains(t, said.String(), "when this node has gone there is no quorum: 0 of 1 voters are left")
			}
		})
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// One that was drained by command stays: who leaves beside it does not go with its tasks.
func TestDepartBesideDrained(t *testing.T) {
	var c tally
	top := c.topology(0)
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
