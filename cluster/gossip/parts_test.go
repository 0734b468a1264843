package gossip

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
)

// A network is one in memory, for bubbles. It counts what is sent.
type network struct {
	mu    sync.Mutex
	hosts map[string]*host
	pipes map[*pipe]bool
	cut   func(from, to string) bool // nil: nothing

	datagrams, streamed atomic.Int64 // bytes
}

func newNetwork() *network { return &network{hosts: map[string]*host{}, pipes: map[*pipe]bool{}} }

// A host is one address: a net.PacketConn, and, as listener, a net.Listener.
type host struct {
	net  *network
	addr *net.UDPAddr
	in   chan datagram
	come chan net.Conn
	end  chan struct{}
	once sync.Once
}

type datagram struct {
	b    []byte
	from *host
}

func (n *network) host(addr string) *host {
	a, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		panic(err)
	}
	h := &host{net: n, addr: a, in: make(chan datagram, 256), come: make(chan net.Conn), end: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[addr] = h
	return h
}

func (n *network) find(from, to string) (h *host, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hosts[to], n.cut != nil && n.cut(from, to)
}

func (h *host) LocalAddr() net.Addr              { return h.addr }
func (h *host) SetDeadline(time.Time) error      { return nil }
func (h *host) SetReadDeadline(time.Time) error  { return nil }
func (h *host) SetWriteDeadline(time.Time) error { return nil }

func (h *host) Close() error {
	h.once.Do(func() {
		h.net.mu.Lock()
		defer h.net.mu.Unlock()
		if h.net.hosts[h.addr.String()] == h {
			delete(h.net.hosts, h.addr.String())
		}
		close(h.end)
	})
	return nil
}

func (h *host) WriteTo(b []byte, to net.Addr) (int, error) {
	if d, cut := h.net.find(h.addr.String(), to.String()); d != nil && !cut {
		select {
		case d.in <- datagram{slices.Clone(b), h}:
		default: // lost
		}
	}
	h.net.datagrams.Add(int64(len(b)))
	return len(b), nil
}

func (h *host) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case d := <-h.in:
		return copy(b, d.b), d.from.addr, nil
	case <-h.end:
		return 0, nil, net.ErrClosed
	}
}

type listener struct{ *host }

func (l listener) Addr() net.Addr { return l.addr }

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.come:
		return c, nil
	case <-l.end:
		return nil, net.ErrClosed
	}
}

// A pipe knows whom it connects, and counts what both write.
type pipe struct {
	net.Conn
	net      *network
	from, to string
}

func (p *pipe) Write(b []byte) (int, error) {
	p.net.streamed.Add(int64(len(b)))
	return p.Conn.Write(b)
}

func (p *pipe) Close() error {
	p.net.mu.Lock()
	delete(p.net.pipes, p)
	p.net.mu.Unlock()
	return p.Conn.Close()
}

func (n *network) dial(from string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, to string) (net.Conn, error) {
		h, cut := n.find(from, to)
		if cut {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if h == nil {
			return nil, syscall.ECONNREFUSED
		}
		one, two := net.Pipe()
		a, b := &pipe{one, n, from, to}, &pipe{two, n, from, to}
		select {
		case h.come <- b:
		case <-h.end:
			return nil, syscall.ECONNREFUSED
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		n.mu.Lock()
		n.pipes[a], n.pipes[b] = true, true
		n.mu.Unlock()
		return a, nil
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

// A node is one that gossips, and what its owner was told.
type node struct {
	t      *testing.T
	config Config
	g      *Gossip

	mu      sync.Mutex
	views   [][]cluster.Member
	adopted []string
	refused []string
}

func addr(i int) string { return fmt.Sprintf("10.0.%d.%d:7000", i/200, i%200+1) }

// config is that of node i, which is at addr(i).
func config(i int, change func(*Config)) Config {
	c := Config{Cluster: "aa", Self: cluster.Member{Home: cluster.Home{Node: cluster.NodeID(i + 1), Boot: 1}, Name: fmt.Sprintf("n%d", i),
		Addr: addr(i), Keeps: true, Weight: 1}}
	if i > 0 {
		c.Join = []string{addr(0)}
	}
	if change != nil {
		change(&c)
	}
	return c
}

func (n *network) start(t *testing.T, i int, change func(*Config)) *node {
	t.Helper()
	d := &node{t: t, config: config(i, change)}
	require.NoError(t, d.start(n))
	return d
}

func (d *node) start(n *network) (err error) {
	c := d.config
	h := n.host(c.Self.Addr)
	c.Packets, c.Listener, c.Dial = h, listener{h}, n.dial(c.Self.Addr)
	c.Changed = func(m []cluster.Member) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.views = append(d.views, m)
	}
	c.Adopted = func(id string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.adopted = append(d.adopted, id)
	}
	c.Refused = func(text string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.refused = append(d.refused, text)
	}
	d.g, err = Start(c)
	if err == nil {
		d.t.Cleanup(func() { _ = d.g.Shutdown() })
	}
	return err
}

func (d *node) stop() {
	d.t.Helper()
	require.NoError(d.t, d.g.Shutdown())
}

// view is the latest view as text: n0 n1 -n2 (gone) ~n3 (left).
func (d *node) view() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.views) == 0 {
		return ""
	}
	var all []string
	for _, m := range d.views[len(d.views)-1] {
		sign := ""
		if m.Left {
			sign = "~"
		} else if !m.Alive {
			sign = "-"
		}
		all = append(all, sign+m.Name)
	}
	return strings.Join(all, " ")
}

func (d *node) told() (refused, adopted []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.refused), slices.Clone(d.adopted)
}

// see waits until all have this view, for at most that long, and returns how long it was.
func see(t *testing.T, patience time.Duration, want string, nodes ...*node) time.Duration {
	t.Helper()
	began := time.Now()
	for slices.ContainsFunc(nodes, func(d *node) bool { return d.view() != want }) {
		if time.Since(began) > patience {
			for _, d := range nodes {
				require.Equal(t, want, d.view(), "%s after %v", d.config.Self.Name, patience)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began)
}

func bubble(t *testing.T, f func(t *testing.T, n *network)) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) // timers of memberlist that nobody stops
		f(t, newNetwork())
	})
}
