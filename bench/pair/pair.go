// Package pair runs a topology in two processes of one machine, which is what the
// command bench measures brokers with: the first has the spouts, the second all bolts.
// It is not for use outside Egret.
//
//	spouts' half                                  bolts' half
//	supervisor -- link -- connection of loopback -- link -- supervisor
//	       \      /                                    \      /
//	        agent                                       agent
//
// Ports, links, supervisors and tasks are those of a node. There is no membership, no
// log and no second try: the plan is fixed, and whatever breaks ends the run.
package pair

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/actor/host"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/broker/wire"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A Config says what a half is to run.
type Config struct {
	Peer     string // address of the half with the bolts; "": this is that one
	Secret   string // of both; "": no TLS
	Plan     *topology.Plan
	Settings *task.Settings  // its Share is set here
	Metrics  []*metrics.Task // by TaskID, of all tasks
	Drain    time.Duration   // the most that finishing what is open may take
}

const (
	spouts, bolts cluster.NodeID = 1, 2 // the first one dials

	run       = 1
	maxParcel = 8 << 20
)

// A Half is the part of a run that this process has. Its methods may be called from any
// goroutine. Close must be called.
type Half struct {
	config Config
	port   *wire.Port
	host   *host.Host
	agent  actor.Ref
	link   actor.Ref
	dialer *wire.Dialer // of the spouts' half

	mu     sync.Mutex
	closed bool
	conn   *wire.Conn // of the bolts' half

	once   sync.Once
	err    error         // written before ended is closed
	ended  chan struct{} // closed when its input has ended and all is done, or something is broken
	over   chan struct{} // closed when no task is left
	undo   func() bool   // of the wait for ctx
	accept sync.WaitGroup
}

// Start starts a half. When ctx ends the spouts read no more, and what is open is
// finished.
func Start(ctx context.Context, c Config) (*Half, error) {
	h := &Half{config: c, ended: make(chan struct{}), over: make(chan struct{})}
	self, peer := spouts, bolts
	if c.Peer == "" {
		self, peer = bolts, spouts
	}
	var secret wire.Secret
	var err error
	if c.Secret != "" {
		if secret, err = wire.NewSecret(c.Secret); err != nil {
			return nil, err
		}
	}
	if h.port, err = wire.Listen(wire.Config{Addr: "127.0.0.1:0", Node: self, Secret: secret}); err != nil {
		return nil, err
	}
	set := *c.Settings
	set.Share = &task.Share{Run: run, First: c.Plan.Epoch, MaxParcel: maxParcel}
	for id := range c.Plan.Tasks {
		reads := c.Plan.Node(tuple.TaskID(id)).Reads()
		set.Share.Here = append(set.Share.Here, reads == (self == spouts))
		set.Share.Epoch = append(set.Share.Epoch, c.Plan.Epoch)
		set.Share.Retired = append(set.Share.Retired, false)
	}
	h.host = host.New(host.Config{Logger: set.Logger})
	begun := make(chan actor.Ref, 1)
	h.agent = h.host.Spawn("agent", &agent{
		half: h, set: &set, begun: begun,
		config: broker.LinkConfig{Self: cluster.Home{Node: self, Boot: 1}, Peer: cluster.Home{Node: peer, Boot: 1}},
	})
	h.link = <-begun
	if self == spouts {
		h.dialer = wire.StartDialer(wire.DialerConfig{
			Dial:      func(ctx context.Context) (net.Conn, error) { return h.port.Dial(ctx, wire.Broker, c.Peer) },
			Connected: func(c net.Conn) { h.use(c).Wait() },
			Refused:   func(err error) { h.end(err) },
		})
	} else {
		h.accept.Go(h.accepts)
	}
	h.undo = context.AfterFunc(ctx, func() { h.host.Send(h.agent, drain{}) })
	return h, nil
}

// Addr is where a half waits for the other.
func (h *Half) Addr() string { return h.port.Addr() }

// Wait returns when the input of all tasks that are here has ended and all is done, or
// with what is broken. The other half may still need this one until it, too, has ended.
func (h *Half) Wait() error {
	<-h.ended
	return h.err
}

// Counts are those of the link. After Close there are none.
func (h *Half) Counts() node.Counts {
	came := make(chan node.Counts, 1)
	h.host.Send(h.agent, count{func(c node.Counts) { came <- c }})
	select {
	case c := <-came:
		return c
	case <-h.over:
		return node.Counts{}
	}
}

// Close ends the half and waits for everything that it has.
func (h *Half) Close() error {
	h.undo()
	h.end(nil)
	h.host.Send(h.agent, task.Stop{})
	<-h.over
	if h.dialer != nil {
		h.dialer.Stop()
		h.dialer.Wait()
	}
	h.mu.Lock()
	h.closed = true
	conn := h.conn
	h.mu.Unlock()
	if conn != nil {
		conn.Close()
		conn.Wait()
	}
	err := h.port.Close()
	h.accept.Wait()
	if left := h.host.Close(); len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("%s has not come back", left[0].Name))
	}
	return err
}

// end says how the half has ended; the first word counts.
func (h *Half) end(err error) {
	h.once.Do(func() {
		h.err = err
		close(h.ended)
	})
}

// use gives the link a connection.
func (h *Half) use(c net.Conn) *wire.Conn {
	var conn *wire.Conn
	ready := make(chan struct{}) // closed when conn is set and the link has it
	send := func(msg any) { h.host.Send(h.link, msg) }
	conn = wire.NewConn(c, wire.ConnConfig{
		Arrived: func(frames [][]byte) { <-ready; send(node.Arrived{Conn: conn, Frames: frames}) },
		Wrote:   func(bytes int) { <-ready; send(node.Wrote{Conn: conn, Bytes: bytes}) },
		Broken:  func(err error) { <-ready; send(node.Broken{Conn: conn, Err: err}) },
		Most:    broker.MaxFrame,
	})
	send(node.Connected{Conn: conn})
	close(ready)
	return conn
}

// accepts takes the one connection that the other half makes.
func (h *Half) accepts() {
	c, err := h.port.Listener(wire.Broker).Accept()
	if err != nil {
		return // closed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		_ = c.Close()
		return
	}
	h.conn = h.use(c)
}
