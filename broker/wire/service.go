package wire

import (
	"net"
	"sync"
)

// A Service is one of the things that share a port.
type Service uint8

// The services of a node.
const (
	Gossip    Service = iota // streams of memberlist; its datagrams are Packets
	Consensus                // raft
	Broker                   // parcels, and what tasks and nodes say
	Control                  // commands; open to those who are no node
	services
)

var serviceNames = [services]string{"gossip", "consensus", "broker", "control"}

func (s Service) String() string { return serviceNames[s] }

// protocol is the name of the service in ALPN.
func (s Service) protocol() string { return "egret-" + s.String() + "/1" }

// What begins a connection without TLS, and what answers. No such byte begins TLS,
// HTTP or text.
const (
	firstService byte = 0xe1 // gossip; the other services follow
	welcome      byte = 0xf1 // what follows belongs to the service
	needsSecret  byte = 0xf2 // TLS is wanted here
	tlsHandshake byte = 0x16 // the first byte of TLS
)

// noSecret answers TLS where there is none. Its first five bytes are what the other
// side takes for the header of a record, and looks at.
const noSecret = "egret: this node has no secret\n"

func (s Service) first() byte { return firstService + byte(s) }

// serviceOf returns the service that a first byte stands for.
func serviceOf(first byte) (s Service, ok bool) {
	s = Service(first - firstService)
	return s, s < services
}

// waiting is how many connections of a service may wait to be accepted. More are
// closed.
const waiting = 64

// A listener hands out the connections of one service.
type listener struct {
	addr  net.Addr
	queue chan net.Conn
	done  chan struct{} // closed with it

	mu     sync.Mutex
	closed bool // then nothing is put into the queue
}

func newListener(addr net.Addr) *listener {
	return &listener{addr: addr, queue: make(chan net.Conn, waiting), done: make(chan struct{})}
}

// deliver queues a connection, or reports that it can not.
func (l *listener) deliver(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	select {
	case l.queue <- c:
		return true
	default:
		return false
	}
}

// Accept returns the next connection of the service, or net.ErrClosed.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and closes connections that nobody has accepted.
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	close(l.done)
	for {
		select {
		case c := <-l.queue:
			c.Close()
		default:
			return nil
		}
	}
}

func (l *listener) Addr() net.Addr { return l.addr }
