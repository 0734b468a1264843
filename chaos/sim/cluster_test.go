package sim

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

type simNode struct {
	c     *simCluster
	home  cluster.Home
	agent actor.Ref
	state cluster.State
	keeps map[cluster.NodeID]actor.Ref
	conns map[cluster.NodeID]*simConn
}

type simCluster struct {
	t       *testing.T
	w       *World
	nodes   []*simNode
	log     [][]byte
	refused []error
	told    []string
}

type simConn struct {
	from, to *simNode
	other    *simConn
	link     actor.Ref
	closed   bool
}

func (c *simConn) Write(pieces [][]byte) {
	var all []byte
	for _, p := range pieces {
		all = append(all, p...)
	}
	w := c.from.c.w
	w.At(w.Now()+100*time.Microsecond, "write", func() {
		if c.closed {
			return
		}
		w.Send(c.link, node.Wrote{Conn: c, Bytes: len(all)})
		var frames [][]byte
		for len(all) > 0 {
			n := int(binary.LittleEndian.Uint32(all)) + 4
			frames = append(frames, all[:n:n])
			all = all[n:]
		}
		if len(frames) > 0 {
			w.Send(c.other.link, node.Arrived{Conn: c.other, Frames: frames})
		}
	})
}

func (c *simConn) Close() {
	if c.closed {
		return
	}
	for _, x := range []*simConn{c, c.other} {
		x.closed = true
		x := x
		w := c.from.c.w
		w.At(w.Now()+50*time.Microsecond, "close", func() { w.Send(x.link, node.Broken{Conn: x, Err: fmt.Errorf("closed")}) })
	}
}

func (n *simNode) Keep(to cluster.Home, addr string, link actor.Ref) {
	n.keeps[to.Node] = link
	n.c.join()
}
func (n *simNode) Drop(to cluster.Home) { delete(n.keeps, to.Node) }

func (c *simCluster) join() {
	for i, a := range c.nodes {
		for _, b := range c.nodes[i+1:] {
			if x := a.conns[b.home.Node]; x != nil && !x.closed || a.keeps[b.home.Node] == nil || b.keeps[a.home.Node] == nil {
				continue
			}
			x := &simConn{from: a, to: b, link: a.keeps[b.home.Node]}
			y := &simConn{from: b, to: a, link: b.keeps[a.home.Node], other: x}
			x.other = y
			a.conns[b.home.Node], b.conns[a.home.Node] = x, y
			c.w.At(c.w.Now(), "connect", func() {
				c.w.Send(x.link, node.Connected{Conn: x})
				c.w.Send(y.link, node.Connected{Conn: y})
			})
		}
	}
}

func (n *simNode) Propose(id uint64, entry []byte) {
	c := n.c
	c.w.At(c.w.Now()+time.Millisecond, "propose", func() {
		c.log = append(c.log, entry)
		index := uint64(len(c.log))
		for _, m := range c.nodes {
			m := m
			c.w.At(c.w.Now()+time.Millisecond, "apply", func() {
				r := m.state.Apply(index, entry)
				if r.Err != nil {
					c.refused = append(c.refused, r.Err)
				}
				c.w.Send(m.agent, node.Logged{State: m.state})
				if m == n {
					c.w.Send(n.agent, node.Proposed{ID: id, Result: r})
				}
			})
		}
	})
}

func newSimCluster(t *testing.T, n int, tops ...*topology.Topology) *simCluster {
	c := &simCluster{t: t}
	c.w = New(Config{Seed: 1})
	set := newStage(t, 1, nothing).scene.set
	var members []cluster.Member
	for i := range n {
		s := &simNode{c: c, home: cluster.Home{Node: cluster.NodeID(i + 1), Boot: 1}, keeps: map[cluster.NodeID]actor.Ref{}, conns: map[cluster.NodeID]*simConn{}}
		m := cluster.Member{Home: s.home, Name: fmt.Sprintf("n%d", i+1), Addr: fmt.Sprintf("n%d:1", i+1), Alive: true, Keeps: true}
		members = append(members, m)
		s.agent = c.w.Spawn(m.Name, node.NewAgent(node.Config{
			Self: m, Cluster: "c", Log: s, Network: s,
			Program: node.Program{Topologies: tops, Settings: func(cluster.Run, *cluster.Spec) (*task.Settings, error) {
				x := set
				x.Event, x.Tap, x.Store = func(e task.Event) {
					if d, is := e.(*task.Died); is {
						t.Error(d.Err)
					}
				}, nil, nil
				x.MaxPending = 24
				return &x, nil
			}},
			Tell: func(text string, args ...any) { c.told = append(c.told, fmt.Sprint(text, args)) },
		}))
		c.nodes = append(c.nodes, s)
	}
	for i, s := range c.nodes {
		c.w.Send(s.agent, node.Members{All: members})
		c.w.Send(s.agent, node.Leads{Node: 1, Me: i == 0, Term: 1})
	}
	return c
}

func (c *simCluster) ask(n int, r *node.Request) (a *node.Answer) {
	c.w.Send(c.nodes[n].agent, node.Ask{Request: r, Reply: func(x *node.Answer) { a = x }})
	require.NoError(c.t, c.w.Run(func() bool { return a != nil }, Limit{Time: time.Minute}))
	return a
}

func TestClusterRuns(t *testing.T) {
	const messages = 2000
	values := make([]int64, messages)
	for i := range values {
		values[i] = int64(i)
	}
	executed := map[int64]int{}
	top := topology.New("halves", func(b *topology.Builder) {
		n := b.Spout("numbers", spout.Slice(values...)).Emits("n").Parallel(2)
		twice := b.Bolt("pass", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			out.Emit(in.Int64("n"))
			return nil
		}), n.Shuffle()).Emits("n").Parallel(3)
		b.Bolt("sink", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			executed[in.Int64("n")]++
			return nil
		}), twice.By("n")).Parallel(2)
	})
	c := newSimCluster(t, 3, top)
	require.NoError(t, c.w.Run(func() bool { return c.nodes[0].state.Cluster != "" }, Limit{Time: time.Minute}))
	plan, err := top.Build(topology.Options{})
	require.NoError(t, err)
	spec := node.SpecOf(plan, nil, nil, "")
	a := c.ask(1, &node.Request{Op: node.OpSubmit, Topology: "halves", Spec: spec})
	require.Nil(t, a.Error)
	require.NoError(t, c.w.Run(func() bool { return len(executed) > 100 }, Limit{Time: time.Minute}))
	a = c.ask(2, &node.Request{Op: node.OpRebalance, Topology: "halves", Parallel: map[string]int{"pass": 5}})
	require.Nil(t, a.Error)
	require.NoError(t, c.w.Run(func() bool { s := c.nodes[0].state.Submission("halves"); return s != nil && s.Status == cluster.Done }, Limit{Time: 10 * time.Minute}))
	require.Len(t, executed, messages)
	for _, n := range executed {
		require.Equal(t, 1, n)
	}
}
