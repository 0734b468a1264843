package egret

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
)

// In a cluster a message is found on the node whose task has it, whichever is asked.
func TestOpenInCluster(t *testing.T) {
	release := make(chan struct{})
	var stuck atomic.Bool
	tops := []*topology.Topology{topology.New("stuck", func(b *topology.Builder) {
		in := b.Spout("in", spout.Slice(0, 1, 2, 3, 4, 5, 6, 7, 8)).Emits("n")
		pass := b.Bolt("pass", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			out.Emit(in.Int64("n"))
			return nil
		}), in.Shuffle()).Emits("n").Parallel(3)
		b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			if in.Int64("n") == 7 {
				stuck.Store(true)
				<-release
			}
			return nil
		}), pass.By("n")).Parallel(3)
	})}
	a := startNode(t, tops, "--data", t.TempDir(), "--name", "a")
	b := startNode(t, tops, "--name", "b", "--join", a.addr)
	c := startNode(t, tops, "--name", "c", "--join", a.addr)
	defer close(release)
	s := &shell{t, tops, b.addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum && len(x.Nodes) == 3 })
	s.is("submit stuck --max-pending 8")
	var d view.Detail
	soon(t, func() bool {
		d = apiOf(t, c).detail("stuck")
		return stuck.Load() && d.Silent == 0 && len(d.TasksNow) == 7
	})
	at := map[string]string{}
	for _, x := range d.TasksNow {
		at[x.Task] = x.Node
	}
	for _, n := range []*testNode{a, b, c} {
		var trees []view.Tree
		_, refused := apiOf(t, n).do("GET", "/api/v1/topologies/stuck/open", nil, &trees)
		require.Empty(t, refused)
		i := slices.IndexFunc(trees, func(m view.Tree) bool { return m.Message == `{n: 7}` }) // others may wait for its task to report
		require.GreaterOrEqual(t, i, 0, "%+v", trees)
		m := trees[i]
		require.Equal(t, at["in/0"], m.Node)
		require.Len(t, m.Places, 1, "%+v", m)
		p := m.Places[0]
		require.True(t, p.Hand && !p.Maybe, "%+v", p)
		require.Equal(t, "Execute", p.During)
		require.Positive(t, p.Inside)
		require.True(t, strings.HasPrefix(p.Task, "out/"))
		require.Equal(t, at[p.Task], p.Node)
	}
	var none []view.Tree
	status, refused := apiOf(t, b).do("GET", "/api/v1/topologies/other/open", nil, &none)
	require.Equal(t, 404, status)
	require.Contains(t, refused, "unknown")
}

// Dead letters of a cluster are where the tasks were that gave the messages up, and are seen
// and settled by any node.
func TestLettersOfCluster(t *testing.T) {
	var good atomic.Bool
	more := make(chan struct{})
	tops := []*topology.Topology{topology.New("letters", func(b *topology.Builder) {
		in := b.Spout("in", waitingSource(more)).Emits("n").Parallel(3)
		b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			if !good.Load() {
				return bolt.Reject(errors.New("not now"))
			}
			return nil
		}), in.Shuffle())
	})}
	a := startNode(t, tops, "--data", t.TempDir(), "--name", "a")
	b := startNode(t, tops, "--data", t.TempDir(), "--name", "b", "--join", a.addr)
	c := startNode(t, tops, "--data", t.TempDir(), "--name", "c", "--join", a.addr)
	defer close(more)
	s := &shell{t, tops, b.addr}
	soon(t, func() bool { x := s.status(""); return x.Quorum && len(x.Nodes) == 3 })
	s.is("submit letters")
	list := func(n *testNode) (all []view.Letter) {
		_, refused := apiOf(t, n).do("GET", "/api/v1/topologies/letters/letters", nil, &all)
		require.Empty(t, refused)
		return all
	}
	settle := func(n *testNode, do string, ids ...string) (e view.Effect, refused string) {
		_, refused = apiOf(t, n).do("POST", "/api/v1/topologies/letters/letters", map[string]any{"do": do, "ids": ids}, &e)
		return e, refused
	}
	var all []view.Letter
	soon(t, func() bool { all = list(a); return len(all) == 3 })
	nodes := map[string]bool{}
	for _, l := range all {
		nodes[l.Node] = true
		require.Regexp(t, `^[0-9a-f]{16}/\d+-1$`, l.ID)
		require.Equal(t, "bolt out: not now", l.Error)
	}
	require.Len(t, nodes, 3)
	require.Equal(t, all, list(c))

	e, refused := settle(c, "drop", all[0].ID)
	require.Empty(t, refused)
	require.Equal(t, "1 dead letter dropped", e.Text)
	require.Len(t, list(a), 2)
	_, refused = settle(c, "drop", all[0].ID)
	require.Contains(t, refused, "refused: there is no dead letter ")
	_, refused = settle(c, "drop", "1-1")
	require.Contains(t, refused, `invalid: "1-1" is not the id of a dead letter in a cluster`)
	_, refused = settle(c, "drop", "00000000000000ff/1-1")
	require.Contains(t, refused, "refused: the node of dead letter 00000000000000ff/1-1 is not there")

	good.Store(true)
	e, refused = settle(b, "replay", all[1].ID, all[2].ID)
	require.Empty(t, refused)
	for _, l := range all[1:] {
		require.Contains(t, e.Text, fmt.Sprintf("%s: 1 dead letter will be replayed", l.Node))
	}
	soon(t, func() bool { return len(list(a)) == 0 })
	soon(t, func() bool { return apiOf(t, a).detail("letters").Counts.Acked == 2 })
}

// waitingSource has three splits of one message each, which end when more is closed.
type waitingSource <-chan struct{}

func (waitingSource) Splits(context.Context) ([]spout.Split, error) {
	return []spout.Split{"a", "b", "c"}, nil
}

func (s waitingSource) Open(_ context.Context, split spout.Split, position string) (spout.Reader, error) {
	return &waitingReader{s, string(split), position}, nil
}

type waitingReader struct {
	more            <-chan struct{}
	split, position string
}

func (r *waitingReader) Next(ctx context.Context, out *spout.Out) error {
	if r.position == "" {
		out.Emit(r.split)
		r.position = "read"
		return nil
	}
	select {
	case <-r.more:
		return io.EOF
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *waitingReader) Position() string { return r.position }
func (r *waitingReader) Close() error     { return nil }
