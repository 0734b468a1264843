package process

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A tally counts what was executed, on all nodes of a test.
type tally struct {
	mu   sync.Mutex
	seen map[int64]int
	n    atomic.Int64
}

// topology passes so many numbers on, or numbers for ever if that is 0.
func (c *tally) topology(messages int64) *topology.Topology {
	c.seen = map[int64]int{}
	return topology.New("numbers", func(b *topology.Builder) {
		n := b.Spout("numbers", spout.Generate(messages, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
		pass := b.Bolt("pass", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			out.Emit(in.Int64("n"))
			return nil
		}), n.Shuffle()).Emits("n").Parallel(3)
		b.Bolt("sink", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			c.mu.Lock()
			c.seen[in.Int64("n")]++
			c.mu.Unlock()
			c.n.Add(1)
			return nil
		}), pass.By("n")).Parallel(2)
	})
}

func program(tops ...*topology.Topology) node.Program {
	return node.Program{Topologies: tops, Settings: func(cluster.Run, *cluster.Spec) (*task.Settings, error) {
		return &task.Settings{
			ParcelSize: 256, Linger: time.Millisecond, MaxPending: 65536, PendingBytes: 64 << 20, QueuedBytes: 64 << 20, TreeSize: 256,
			MessageTimeout: 30 * time.Second, MaxReplays: 8, Logger: slog.New(slog.DiscardHandler), StuckAfter: 10 * time.Second, Event: func(task.Event) {},
		}, nil
	}}
}

func start(t *testing.T, c Config) *Process {
	c.Listen = "127.0.0.1:0"
	if os.Getenv("LOG") != "" {
		c.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := Start(ctx, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// until asks a node for its view until it is as wanted.
func until(t *testing.T, p *Process, what string, good func(*node.View) bool) {
	for range 3000 {
		a := p.Ask(t.Context(), &node.Request{Op: node.OpState})
		require.Nil(t, a.Error)
		if good(a.State) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.Fail(t, "never: "+what)
}

func TestTwoNodes(t *testing.T) {
	var c tally
	top := c.topology(200_000)
	a := start(t, Config{Data: t.TempDir(), Program: program(top)})
	b := start(t, Config{Data: t.TempDir(), Join: []string{a.Addr()}, Program: program(top)})
	require.Equal(t, a.Cluster(), b.Cluster())
	until(t, b, "both are there", func(v *node.View) bool { return len(v.Members) == 2 && v.Leader != 0 && len(v.Submissions) == 0 })
	plan, err := top.Build(topology.Options{})
	require.NoError(t, err)
	answer := b.Ask(t.Context(), &node.Request{Op: node.OpSubmit, Topology: "numbers", Spec: node.SpecOf(plan, nil, nil, "")})
	require.Nil(t, answer.Error)
	until(t, b, "done", func(v *node.View) bool {
		return len(v.Submissions) == 1 && v.Submissions[0].Status == cluster.Done
	})
	require.Len(t, c.seen, 200_000)
	require.Equal(t, int64(200_000), c.n.Load())
	require.False(t, strings.Contains(a.Addr(), ":0"))
}

// The process of a node ends in the middle of a run, and the others have its tasks.
func TestNodeDies(t *testing.T) {
	const messages = 600_000
	var c tally
	top := c.topology(messages)
	a := start(t, Config{Data: t.TempDir(), Program: program(top)})
	b := start(t, Config{Data: t.TempDir(), Join: []string{a.Addr()}, Program: program(top)})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d, err := Start(ctx, Config{Listen: "127.0.0.1:0", Data: t.TempDir(), Join: []string{a.Addr()}, Program: program(top)})
	require.NoError(t, err)
	until(t, b, "all are there", func(v *node.View) bool { return len(v.Members) == 3 && v.Leader != 0 })
	plan, err := top.Build(topology.Options{})
	require.NoError(t, err)
	answer := b.Ask(t.Context(), &node.Request{Op: node.OpSubmit, Topology: "numbers", Spec: node.SpecOf(plan, nil, nil, "")})
	require.Nil(t, answer.Error)
	until(t, b, "placed", func(v *node.View) bool { return len(v.Submissions) == 1 && v.Submissions[0].Plan != nil })
	for c.n.Load() < messages/10 {
		time.Sleep(time.Millisecond)
	}
	before := c.n.Load()
	require.NoError(t, d.Close())
	until(t, b, "done", func(v *node.View) bool { return v.Submissions[0].Status == cluster.Done })
	require.Less(t, before, int64(messages))
	require.Len(t, c.seen, messages)
}

// All nodes end and are started again at other times, and the one that the others had
// joined is not among them.
func TestAllStartAgain(t *testing.T) {
	var c tally
	top := c.topology(10)
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	begin := func(i int, listen string, join ...string) *Process {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p, err := Start(ctx, Config{Listen: listen, Data: dirs[i], Join: join, Program: program(top)})
		require.NoError(t, err)
		return p
	}
	var addrs []string
	for range dirs {
		addr, err := wire.Spare()
		require.NoError(t, err)
		addrs = append(addrs, addr)
	}
	a := begin(0, addrs[0])
	b := begin(1, addrs[1], a.Addr())
	d := begin(2, addrs[2], a.Addr())
	id := a.Cluster()
	until(t, d, "all are there", func(v *node.View) bool { return len(v.Members) == 3 && v.Leader != 0 })
	until(t, b, "all are there", func(v *node.View) bool { return len(v.Members) == 3 && v.Leader != 0 })
	for _, p := range []*Process{d, b, a} {
		require.NoError(t, p.Close())
	}
	b, d = begin(1, addrs[1], a.Addr()), begin(2, addrs[2], a.Addr())
	defer func() {
		require.NoError(t, b.Close())
		require.NoError(t, d.Close())
	}()
	require.Equal(t, id, b.Cluster())
	until(t, b, "they have found each other", func(v *node.View) bool { return alive(v) == 2 })
	until(t, d, "they have found each other", func(v *node.View) bool { return alive(v) == 2 })
}

// Whatever is asked, the agent lives.
func TestBadRequests(t *testing.T) {
	var c tally
	a := start(t, Config{Data: t.TempDir(), Program: program(c.topology(10))})
	until(t, a, "it leads", func(v *node.View) bool { return v.Leader != 0 && len(v.Nodes) == 1 })
	for _, op := range []string{"", "what", node.OpSubmit, node.OpSetStatus, node.OpRebalance, node.OpDrain, node.OpForget, node.OpStats} {
		for _, name := range []string{"", "numbers", "else"} {
			answer := a.Ask(t.Context(), &node.Request{Op: op, Topology: name})
			require.NotNil(t, answer.Error, "%s of %q", op, name)
		}
	}
	answer := a.Ask(t.Context(), &node.Request{Op: node.OpSubmit, Topology: "numbers", Spec: &cluster.Spec{Topology: "numbers", Parallel: map[string]int{"pass": 4096, "sink": 4096, "numbers": 4096}}})
	require.ErrorIs(t, answer.Error, node.ErrParameter)
	require.NoError(t, a.Err())
	// And if it does not live, that is heard.
	a.host.Send(a.agent, "what no agent knows")
	<-a.Died()
	require.ErrorContains(t, a.Err(), "agent got a string")
}

// A name of a bolt's own metric means the same in all tasks of a run that a node has.
func TestTasksShareNames(t *testing.T) {
	var c tally
	a := start(t, Config{Data: t.TempDir(), Program: program(c.topology(0))})
	until(t, a, "it leads", func(v *node.View) bool { return v.Leader != 0 && len(v.Nodes) == 1 })
	require.Nil(t, a.Ask(t.Context(), &node.Request{Op: node.OpSubmit, Topology: "numbers", Spec: &cluster.Spec{Topology: "numbers"}}).Error)
	until(t, a, "it does something", func(*node.View) bool { return c.n.Load() > 0 })
	parts, err := a.Parts(t.Context())
	require.NoError(t, err)
	require.Len(t, parts, 1)
	require.Len(t, parts[0].Tasks, 6)
	names := parts[0].Tasks[0].Metrics.Own.Names
	require.NotNil(t, names)
	for _, x := range parts[0].Tasks {
		require.Same(t, names, x.Metrics.Own.Names)
	}
}
