package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
)

// A network makes the connections of links: of two nodes one dials and the other is
// dialled. Who is dialled looks, while there is no connection, whether the other
// process is still there, for it is as eager to know.
//
// Owner of all its goroutines; close waits for them.
type network struct {
	p        *Process
	listener net.Listener

	mu     sync.Mutex
	ways   map[cluster.NodeID]*way
	closed bool
	strays map[*wire.Conn]*time.Timer // accepted, and not said yet who they are; then they are closed
	wait   sync.WaitGroup
}

// A way is how another node is reached.
type way struct {
	to     cluster.Home
	addr   string
	link   actor.Ref
	dialer *wire.Dialer       // of who dials
	conn   *wire.Conn         // of who is dialled; nil: there is none
	stop   context.CancelFunc // of looking whether it is there
}

func newNetwork(p *Process) *network {
	n := &network{p: p, listener: p.port.Listener(wire.Broker), ways: map[cluster.NodeID]*way{}, strays: map[*wire.Conn]*time.Timer{}}
	n.wait.Go(n.accept)
	return n
}

// Keep is called by the agent.
func (n *network) Keep(to cluster.Home, addr string, link actor.Ref) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	n.end(n.ways[to.Node])
	w := &way{to: to, addr: addr, link: link}
	n.ways[to.Node] = w
	if node.Dials(n.p.self.Node, to.Node) {
		w.dialer = wire.StartDialer(wire.DialerConfig{
			Dial:      func(ctx context.Context) (net.Conn, error) { return n.p.port.Dial(ctx, wire.Broker, addr) },
			Connected: func(c net.Conn) { n.use(c, link) },
			Refused: func(err error) {
				n.p.host.Send(link, node.Broken{Err: err, Refused: errors.Is(err, wire.ErrNobody)})
			},
		})
		return
	}
	n.watch(w)
}

// Drop is called by the agent.
func (n *network) Drop(to cluster.Home) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w := n.ways[to.Node]; w != nil && w.to == to {
		n.end(w)
		delete(n.ways, to.Node)
	}
}

// end ends what a way has, without waiting for it.
func (n *network) end(w *way) {
	if w == nil {
		return
	}
	if w.dialer != nil {
		w.dialer.Stop()
		n.wait.Go(w.dialer.Wait)
	}
	if w.stop != nil {
		w.stop()
	}
	if w.conn != nil {
		w.conn.Close()
	}
}

// use gives a connection that was dialled to its link, and returns when it is over.
func (n *network) use(c net.Conn, link actor.Ref) {
	var conn *wire.Conn
	ready := make(chan struct{})
	conn = wire.NewConn(c, wire.ConnConfig{
		Arrived: func(frames [][]byte) { <-ready; n.p.host.Send(link, node.Arrived{Conn: conn, Frames: frames}) },
		Wrote:   func(bytes int) { <-ready; n.p.host.Send(link, node.Wrote{Conn: conn, Bytes: bytes}) },
		Broken:  func(err error) { <-ready; n.p.host.Send(link, node.Broken{Conn: conn, Err: err}) },
		Most:    broker.MaxFrame,
	})
	n.p.host.Send(link, node.Connected{Conn: conn})
	close(ready)
	conn.Wait()
}

// accept takes connections of nodes that dial.
func (n *network) accept() {
	for {
		c, err := n.listener.Accept()
		if err != nil {
			return // closed
		}
		n.accepted(c)
	}
}

// accepted waits for the first frame of a connection, which says who it is.
func (n *network) accepted(c net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		_ = c.Close()
		return
	}
	var conn *wire.Conn
	var link actor.Ref // once it is known; owned by the reading goroutine, and then by Broken, which is last
	var ready = make(chan struct{})
	known := make(chan struct{})
	conn = wire.NewConn(c, wire.ConnConfig{
		Arrived: func(frames [][]byte) {
			<-ready
			if link == nil {
				ref, err := n.greeted(conn, frames[0], wire.Peer(c))
				if err != nil {
					n.p.log.Debug("a connection of a broker is refused: "+err.Error(), "from", c.RemoteAddr().String())
					conn.Close()
					return
				}
				link = ref
				n.p.host.Send(link, node.Connected{Conn: conn})
				close(known)
			}
			n.p.host.Send(link, node.Arrived{Conn: conn, Frames: frames})
		},
		Wrote: func(bytes int) {
			<-known // nothing is written before
			n.p.host.Send(link, node.Wrote{Conn: conn, Bytes: bytes})
		},
		Broken: func(err error) {
			<-ready
			if link != nil {
				n.p.host.Send(link, node.Broken{Conn: conn, Err: err})
			}
			n.over(conn)
		},
		Most: broker.MaxFrame,
	})
	n.strays[conn] = time.AfterFunc(helloWithin, conn.Close)
	close(ready)
	n.wait.Go(conn.Wait)
}

// known takes a connection off those that have not said who they are. Caller must hold mu.
func (n *network) known(conn *wire.Conn) {
	if late := n.strays[conn]; late != nil {
		late.Stop()
		delete(n.strays, conn)
	}
}

// helloWithin is how long a connection may take to say who it is.
const helloWithin = 5 * time.Second

// greeted finds the link that a connection is for, by its first frame.
func (n *network) greeted(conn *wire.Conn, frame []byte, peer cluster.NodeID) (actor.Ref, error) {
	f, err := broker.ParseFrame(frame)
	if err != nil {
		return nil, err
	}
	if f.Kind != broker.Hello {
		return nil, fmt.Errorf("its first frame is of kind %v and no hello", f.Kind)
	}
	g, err := broker.ParseGreeting(f.Payload)
	if err != nil {
		return nil, err
	}
	if peer != 0 && peer != g.From.Node {
		return nil, fmt.Errorf("node %v says that it is node %v", peer, g.From.Node)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known(conn)
	w := n.ways[g.From.Node]
	if w == nil || w.dialer != nil {
		return nil, fmt.Errorf("node %v is not known here", g.From.Node)
	}
	if w.conn != nil {
		w.conn.Close()
	}
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
	w.conn = conn
	return w.link, nil
}

// over looks after a node whose connection has ended.
func (n *network) over(conn *wire.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known(conn)
	for _, w := range n.ways {
		if w.conn == conn {
			w.conn = nil
			if !n.closed {
				n.watch(w)
			}
		}
	}
}

// watch looks again and again whether a process that should dial is still there.
func (n *network) watch(w *way) {
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	n.wait.Go(func() {
		defer cancel()
		for pause := watchFirst; ; pause = min(2*pause, watchMost) {
			c, err := n.p.port.Dial(ctx, wire.Broker, w.addr)
			switch {
			case ctx.Err() != nil:
			case err == nil:
				_ = c.Close() // it says nothing, so it is no connection of a link
			case errors.Is(err, wire.ErrNobody):
				n.p.host.Send(w.link, node.Broken{Err: err, Refused: true})
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	})
}

const (
	watchFirst = 100 * time.Millisecond
	watchMost  = 2 * time.Second
)

func (n *network) close() {
	n.mu.Lock()
	n.closed = true
	for id, w := range n.ways {
		n.end(w)
		delete(n.ways, id)
	}
	for conn := range n.strays {
		conn.Close()
	}
	n.mu.Unlock()
	_ = n.listener.Close()
	n.wait.Wait()
}
