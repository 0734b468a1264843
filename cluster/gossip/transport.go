package gossip

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// A transport is memberlist's way to the others: datagrams for most of it, connections for
// whole states, and for a probe whose datagram was not answered. It is given the sockets,
// since they are shared with what else is said between nodes.
type transport struct {
	packets  net.PacketConn
	listener net.Listener
	dial     func(ctx context.Context, addr string) (net.Conn, error)
	self     netip.AddrPort
	seal     *seal                          // of datagrams; nil: none
	strange  func(from net.Addr, err error) // told of what cannot be decrypted

	ctx     context.Context // of dials; over when it is shut down
	cancel  context.CancelFunc
	arrived chan *memberlist.Packet
	called  chan net.Conn
	loops   sync.WaitGroup

	mu   sync.Mutex
	open map[*conn]struct{}
}

func newTransport(c *Config, self netip.AddrPort, seal *seal, strange func(net.Addr, error)) *transport {
	t := &transport{packets: c.Packets, listener: c.Listener, dial: c.Dial, self: self, seal: seal, strange: strange,
		arrived: make(chan *memberlist.Packet), called: make(chan net.Conn), open: map[*conn]struct{}{}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.loops.Go(t.read)
	t.loops.Go(t.accept)
	return t
}

// FinalAdvertiseAddr returns the address of this node; what memberlist was set up with
// does not matter.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.self.Addr().AsSlice(), int(t.self.Port()), nil
}

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return time.Time{}, err
	}
	if t.seal != nil {
		b = t.seal.close(b, addr)
	}
	_, err = t.packets.WriteTo(b, net.UDPAddrFromAddrPort(to))
	return time.Now(), err
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.arrived }

func (t *transport) StreamCh() <-chan net.Conn { return t.called }

func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	c, err := t.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return t.keep(c)
}

// Shutdown closes everything, and waits.
func (t *transport) Shutdown() error {
	t.cancel()
	err := errors.Join(t.packets.Close(), t.listener.Close())
	t.loops.Wait()
	t.mu.Lock()
	open := make([]*conn, 0, len(t.open))
	for c := range t.open {
		open = append(open, c)
	}
	t.mu.Unlock()
	for _, c := range open {
		_ = c.Conn.Close() // memberlist's goroutines end, and close it once more
	}
	return err
}

// read hands datagrams to memberlist.
func (t *transport) read() {
	buf := make([]byte, 64<<10)
	for failed := 0; ; {
		n, from, err := t.packets.ReadFrom(buf)
		now := time.Now()
		if err != nil {
			if failed++; !t.pause(failed) {
				return
			}
			continue
		}
		failed = 0
		var b []byte
		if t.seal != nil {
			if b, err = t.seal.open(buf[:n], from.String()); err != nil {
				t.strange(from, err)
			}
		} else {
			b = append(b, buf[:n]...)
		}
		if len(b) == 0 {
			continue
		}
		select {
		case t.arrived <- &memberlist.Packet{Buf: b, From: from, Timestamp: now}:
		case <-t.ctx.Done():
			return
		}
	}
}

// accept hands connections to memberlist.
func (t *transport) accept() {
	for failed := 0; ; {
		c, err := t.listener.Accept()
		if err != nil {
			if failed++; !t.pause(failed) {
				return
			}
			continue
		}
		failed = 0
		kept, err := t.keep(c)
		if err != nil {
			return
		}
		select {
		case t.called <- kept:
		case <-t.ctx.Done():
			_ = kept.Close()
			return
		}
	}
}

// pause waits after a failure of a socket, a little longer each time. It is false when all
// is over.
func (t *transport) pause(failed int) bool {
	wait := time.NewTimer(min(time.Duration(failed)*5*time.Millisecond, time.Second))
	defer wait.Stop()
	select {
	case <-t.ctx.Done():
		return false
	case <-wait.C:
		return true
	}
}

// A conn is a connection that the transport knows, to close it in the end.
type conn struct {
	net.Conn
	transport *transport
}

func (t *transport) keep(c net.Conn) (net.Conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	k := &conn{c, t}
	t.open[k] = struct{}{}
	return k, nil
}

func (c *conn) Close() error {
	c.transport.mu.Lock()
	delete(c.transport.open, c)
	c.transport.mu.Unlock()
	return c.Conn.Close()
}
