package wire

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/egretstream/egret/cluster"
)

const (
	greetingTime = 5 * time.Second // to say what is wanted and who one is
	mostGreeting = 256             // connections that have not yet; one more closes the oldest
	mostTold     = 1024            // hosts whose wrong secret is logged
	portTries    = 64              // to find a port that is free for TCP and UDP
	packetBuffer = 2 << 20         // bytes of datagrams that wait to be read
)

// A Config sets up a Port.
type Config struct {
	Addr     string         // host:port to listen on; port 0 picks one
	Node     cluster.NodeID // this node
	Secret   Secret         // zero: no TLS, and only for loopback unless Insecure
	Previous Secret         // also believed, while a cluster changes its secret
	Insecure bool           // listen beyond loopback without a secret
	Logger   *slog.Logger   // nil: nothing is logged
}

// A Port is everything that a node listens on: TCP and UDP on one number. Its methods
// may be called from any goroutine.
type Port struct {
	identity *identity // nil: without a secret
	logger   *slog.Logger
	tcp      *net.TCPListener
	udp      *net.UDPConn
	services [services]*listener
	running  sync.WaitGroup
	done     chan struct{} // closed with it

	mu       sync.Mutex
	closed   bool
	greeting []net.Conn      // the oldest first; whoever takes one out of it closes it or goes on with it
	told     map[string]bool // hosts whose wrong secret was logged
}

// ErrOpen reports that a port would be open to other machines without a secret.
var ErrOpen = errors.New("other machines could connect, and there is no secret")

// Listen opens a port. It refuses with ErrOpen to listen beyond loopback without a secret,
// unless it is told to.
func Listen(config Config) (*Port, error) {
	addr, err := net.ResolveTCPAddr("tcp", config.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w (it wants host:port)", config.Addr, err)
	}
	if config.Node == 0 {
		return nil, errors.New("listen: a port belongs to a node, and none is named")
	}
	if config.Secret.IsZero() && !config.Previous.IsZero() {
		return nil, errors.New("listen: there is a previous secret but none that it is the previous one of")
	}
	if config.Secret.IsZero() && !config.Insecure && !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("listen on %s: %w: give all nodes the same one"+
			" (%s, or a file), or listen on 127.0.0.1, or say --insecure if nobody else can reach the network", config.Addr, ErrOpen, SecretVariable)
	}
	logger := config.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	p := &Port{
		identity: newIdentity(config.Secret, config.Previous, config.Node),
		logger:   logger,
		done:     make(chan struct{}),
		told:     map[string]bool{},
	}
	if p.tcp, p.udp, err = listenBoth(addr); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", config.Addr, err)
	}
	p.udp.SetReadBuffer(packetBuffer) // the system may give less
	for s := range services {
		p.services[s] = newListener(p.tcp.Addr())
	}
	p.running.Go(p.serve)
	return p, nil
}

// listenBoth listens on the same port for TCP and UDP.
func listenBoth(addr *net.TCPAddr) (tcp *net.TCPListener, udp *net.UDPConn, err error) {
	for range portTries {
		if tcp, err = listenTCP(addr); err != nil {
			return nil, nil, err
		}
		to := tcp.Addr().(*net.TCPAddr)
		network := "udp"
		if to.IP.To4() != nil {
			network = "udp4"
		}
		udp, err = net.ListenUDP(network, &net.UDPAddr{IP: to.IP, Port: to.Port, Zone: to.Zone})
		if err == nil {
			return tcp, udp, nil
		}
		tcp.Close()
		if addr.Port != 0 {
			break
		}
	}
	return nil, nil, err
}

// Addr returns host:port of what it listens on.
func (p *Port) Addr() string { return p.tcp.Addr().String() }

// Listener returns what accepts connections of a service. Connections come from the
// beginning, and a few wait. Closing it leaves the other services alone.
func (p *Port) Listener(s Service) net.Listener { return p.services[s] }

// Packets returns the UDP socket, which is closed with the port. What comes in may be
// from anybody.
func (p *Port) Packets() net.PacketConn { return p.udp }

// Close ends listening and waits for its goroutines. Connections that were accepted or
// dialled belong to whoever has them, and go on.
func (p *Port) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		p.running.Wait()
		return nil
	}
	p.closed = true
	close(p.done)
	for _, c := range p.greeting {
		c.Close()
	}
	p.greeting = nil
	p.mu.Unlock()
	err := p.udp.Close()
	if errors.Is(err, net.ErrClosed) { // by who has Packets
		err = nil
	}
	err = errors.Join(p.tcp.Close(), err)
	for _, l := range p.services {
		l.Close()
	}
	p.running.Wait()
	return err
}

// serve accepts until the port is closed.
func (p *Port) serve() {
	var pause time.Duration
	var said time.Time
	for {
		c, err := p.tcp.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // most likely there are no file descriptors left
			if time.Since(said) >= time.Minute {
				said = time.Now()
				p.logger.Error("cannot accept connections of other nodes; trying again: " + err.Error())
			}
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-p.done:
				return
			}
			continue
		}
		pause = 0
		if p.enter(c) {
			p.running.Go(func() { p.greet(c) })
		}
	}
}

// enter notes a connection that has not said yet what it wants. The oldest makes room
// if there are too many: who is honest is done in milliseconds, so it is one who is
// not. It closes c and reports false if the port is closed.
func (p *Port) enter(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return false
	}
	if len(p.greeting) == mostGreeting {
		p.greeting[0].Close()
		p.greeting = slices.Delete(p.greeting, 0, 1)
	}
	p.greeting = append(p.greeting, c)
	return true
}

// leave takes a connection out again, and reports whether it was still there.
func (p *Port) leave(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.greeting, c)
	if i < 0 {
		return false
	}
	p.greeting = slices.Delete(p.greeting, i, i+1)
	return true
}

// greet finds out what a connection wants, and gives it to that service.
func (p *Port) greet(raw net.Conn) {
	raw.SetDeadline(time.Now().Add(greetingTime))
	c, s, err := p.identity.admit(raw)
	if err != nil {
		p.refused(raw, err)
	}
	if !p.leave(raw) || err != nil {
		raw.Close()
		return
	}
	raw.SetDeadline(time.Time{})
	if !p.services[s].deliver(c) {
		p.logger.Debug("a connection was closed: nobody takes it", "service", s.String(), "from", host(raw))
		c.Close()
	}
}

// refused logs why a connection was not admitted: once for each host if it is one of
// ours, who has another secret, and else only for who looks for it.
func (p *Port) refused(c net.Conn, err error) {
	from := host(c)
	if errors.Is(err, ErrSecret) && p.tell(from) {
		p.logger.Warn("connections of a host are refused: "+err.Error()+" (this is said once)", "from", from)
		return
	}
	p.logger.Debug("a connection was refused: "+err.Error(), "from", from)
}

// tell reports whether a host's wrong secret is news.
func (p *Port) tell(host string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told[host] || len(p.told) == mostTold {
		return false
	}
	p.told[host] = true
	return true
}

func host(c net.Conn) string {
	addr := c.RemoteAddr().String()
	if h, _, err := net.SplitHostPort(addr); err == nil {
		return h
	}
	return addr
}
