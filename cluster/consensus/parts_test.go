package consensus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
)

// A network is one in memory, for bubbles: addresses are names.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	pipes     map[*pipe]bool
	cut       func(from, to string) bool // nil: nothing
}

func newNetwork() *network {
	return &network{listeners: map[string]*listener{}, pipes: map[*pipe]bool{}}
}

type listener struct {
	net  *network
	addr string
	come chan net.Conn
	end  chan struct{}
	once sync.Once
}

func (n *network) listen(addr string) *listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &listener{n, addr, make(chan net.Conn), make(chan struct{}), sync.Once{}}
	n.listeners[addr] = l
	return l
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.come:
		return c, nil
	case <-l.end:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		defer l.net.mu.Unlock()
		if l.net.listeners[l.addr] == l {
			delete(l.net.listeners, l.addr)
		}
		close(l.end)
	})
	return nil
}

func (l *listener) Addr() net.Addr { return netAddr(l.addr) }

// A pipe knows whom it connects.
type pipe struct {
	net.Conn
	net      *network
	from, to string
}

func (p *pipe) Close() error {
	p.net.mu.Lock()
	delete(p.net.pipes, p)
	p.net.mu.Unlock()
	return p.Conn.Close()
}

func (n *network) dial(from string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, to string) (net.Conn, error) {
		n.mu.Lock()
		l := n.listeners[to]
		cut := n.cut != nil && n.cut(from, to)
		n.mu.Unlock()
		if cut {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if l == nil {
			return nil, syscall.ECONNREFUSED
		}
		a, b := net.Pipe()
		select {
		case l.come <- b:
		case <-l.end:
			return nil, syscall.ECONNREFUSED
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		p := &pipe{a, n, from, to}
		n.mu.Lock()
		n.pipes[p] = true
		n.mu.Unlock()
		return p, nil
	}
}

// part cuts the network where f says so, nil heals it.
func (n *network) part(f func(from, to string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = f
	for p := range n.pipes {
		if f != nil && f(p.from, p.to) {
			p.Conn.Close()
		}
	}
}

// around is the partition that leaves one node alone.
func around(addr string) func(from, to string) bool {
	return func(from, to string) bool { return (from == addr) != (to == addr) }
}

// A tape is a Machine that keeps all entries as text.
type tape struct {
	mu       sync.Mutex
	index    uint64
	entries  []string
	restored int           // snapshots
	gate     chan struct{} // Apply waits for it; nil: it does not
}

func (m *tape) Apply(index uint64, entry []byte) any {
	if m.gate != nil {
		<-m.gate
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if index <= m.index {
		panic(fmt.Sprintf("entry %d after %d", index, m.index))
	}
	m.index = index
	m.entries = append(m.entries, string(entry))
	return len(m.entries)
}

func (m *tape) Snapshot() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return []byte(strings.Join(m.entries, "\n")), nil
}

func (m *tape) Restore(index uint64, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index, m.entries = index, strings.Split(string(data), "\n")
	m.restored++
	return nil
}

func (m *tape) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.entries)
}

// A node is one with its log, in a directory that outlives it.
type node struct {
	t    *testing.T
	net  *network
	addr string
	dir  string
	id   *Identity
	log  *Log
	tape *tape

	mu   sync.Mutex
	lead []string // what it was told: node, me, term
	who  cluster.NodeID
	me   bool
}

// start starts a node; founder makes a new one found a cluster.
func (n *network) start(t *testing.T, addr, dir string, founder bool, where func(cluster.NodeID) string) *node {
	t.Helper()
	d := &node{t: t, net: n, addr: addr, dir: dir, tape: &tape{}}
	var err error
	d.id, err = Identify(dir)
	require.NoError(t, err)
	if founder && d.id.Cluster() == "" {
		require.NoError(t, d.id.Found())
	}
	d.log, err = Open(Config{Identity: d.id, Addr: addr, Listener: n.listen(addr), Dial: n.dial(addr), Where: where, Machine: d.tape,
		Leader: func(who cluster.NodeID, me bool, term uint64) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.who, d.me = who, me
			if me != (who == d.id.Home().Node) {
				t.Errorf("%v leads, and that is me: %v", who, me)
			}
			d.lead = append(d.lead, fmt.Sprint(who, me, term))
		}})
	require.NoError(t, err)
	t.Cleanup(func() { // when a test fails
		d.log.Close()
		d.id.Close()
	})
	return d
}

func (d *node) stop() {
	d.t.Helper()
	require.NoError(d.t, d.log.Close())
	require.NoError(d.t, d.id.Close())
}

func (d *node) node() cluster.NodeID { return d.id.Home().Node }

func (d *node) leads() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.me
}

// do waits for one request, in the bubble.
func (d *node) do(f func(done func(error))) error {
	c := make(chan error, 1)
	f(func(err error) { c <- err })
	return <-c
}

func (d *node) propose(text string) error {
	return d.do(func(done func(error)) { d.log.Propose([]byte(text), func(_ any, err error) { done(err) }) })
}

// leader waits until just one of the nodes leads and the others know it.
func leader(t *testing.T, nodes ...*node) *node {
	t.Helper()
	for range 100 {
		var led []*node
		for _, d := range nodes {
			if d.leads() {
				led = append(led, d)
			}
		}
		if len(led) == 1 && !slices.ContainsFunc(nodes, func(d *node) bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.who != led[0].node()
		}) {
			return led[0]
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("nobody leads, or two")
	return nil
}

// cluster starts n nodes with directories, which all vote.
func (n *network) cluster(t *testing.T, size int) (all []*node) {
	t.Helper()
	for i := range size {
		d := n.start(t, fmt.Sprintf("n%d:1", i), t.TempDir(), i == 0, nil)
		all = append(all, d)
		if i == 0 {
			leader(t, d)
			continue
		}
		require.NoError(t, d.id.Adopt(all[0].id.Cluster()))
		require.NoError(t, all[0].do(func(done func(error)) { all[0].log.AddNonvoter(d.node(), d.addr, done) }))
		require.NoError(t, all[0].do(func(done func(error)) { all[0].log.AddVoter(d.node(), d.addr, done) }))
	}
	require.Equal(t, all[0], leader(t, all...))
	return all
}

// same waits until all have these entries.
func same(t *testing.T, want []string, nodes ...*node) {
	t.Helper()
	for range 100 {
		if !slices.ContainsFunc(nodes, func(d *node) bool { return len(d.tape.all()) < len(want) }) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, d := range nodes {
		require.Equal(t, want, d.tape.all(), d.addr)
	}
}

func bubble(t *testing.T, f func(t *testing.T, n *network)) {
	synctest.Test(t, func(t *testing.T) {
		f(t, newNetwork())
		time.Sleep(time.Minute) // timers of raft that nobody stops
	})
}

func isAny(err error, all ...error) bool {
	return slices.ContainsFunc(all, func(e error) bool { return errors.Is(err, e) })
}
