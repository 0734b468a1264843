package consensus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/egretstream/egret/cluster"
)

// Who dials says first whom it wants, who it is, and of which cluster. raft itself does
// not: a leader would take the answers of a node for those of another that had its address
// before, and count them twice; and servers of a cluster that was given up, see Recover,
// would be listened to by those that went on without them.
const (
	greeting      = "EGL2"
	greetingBytes = len(greeting) + 8 + 8 + 8
	patience      = 10 * time.Second // for a greeting
)

// address is what raft has for an address: where a node is, and which node. raft refuses
// two servers at one place, and there are two when a node has lost its directory and
// comes back as a new one.
func address(addr string, node cluster.NodeID) raft.ServerAddress {
	return raft.ServerAddress(addr + "/" + node.String())
}

func place(a raft.ServerAddress) (addr string, node cluster.NodeID, err error) {
	addr, id, _ := strings.Cut(string(a), "/")
	err = node.UnmarshalText([]byte(id))
	return addr, node, err
}

// A stream is raft's way to the other nodes. It knows all connections, so that none
// stays when it is closed; raft closes only those that it uses.
type stream struct {
	net.Listener
	id     *Identity
	self   cluster.NodeID
	addr   string
	dial   func(ctx context.Context, addr string) (net.Conn, error)
	logger *slog.Logger
	ctx    context.Context // of dials
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	open   map[*conn]struct{}
	served sync.WaitGroup // connections that others have made: one goroutine of raft has each, and closes it at its end
}

func newStream(c *Config, node cluster.NodeID, logger *slog.Logger) *stream {
	s := &stream{Listener: c.Listener, id: c.Identity, self: node, addr: c.Addr, dial: c.Dial, logger: logger, open: map[*conn]struct{}{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Addr is the address of this node as the log has it.
func (s *stream) Addr() net.Addr { return netAddr(address(s.addr, s.self)) }

type netAddr string

func (netAddr) Network() string  { return "tcp" }
func (a netAddr) String() string { return string(a) }

// Accept returns a connection that greets when it is read for the first time.
func (s *stream) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return s.keep(&conn{Conn: c, stream: s, incoming: true})
}

// Dial connects to a node, within the timeout.
func (s *stream) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	addr, node, err := place(to)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	c, err := s.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	b := binary.LittleEndian.AppendUint64([]byte(greeting), uint64(node))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.self))
	b = binary.LittleEndian.AppendUint64(b, s.cluster())
	_ = c.SetWriteDeadline(time.Now().Add(timeout))
	if _, err := c.Write(b); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	_ = c.SetWriteDeadline(time.Time{})
	return s.keep(&conn{Conn: c, stream: s})
}

// cluster stands for the id of the cluster, whatever its length.
func (s *stream) cluster() uint64 {
	sum := fnv.New64a()
	sum.Write([]byte(s.id.Cluster()))
	return sum.Sum64()
}

func (s *stream) keep(c *conn) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(net.ErrClosed, c.Conn.Close())
	}
	s.open[c] = struct{}{}
	if c.incoming {
		s.served.Add(1)
	}
	return c, nil
}

// Close closes the listener and all connections.
func (s *stream) Close() error {
	s.cancel()
	err := s.Listener.Close()
	s.mu.Lock()
	s.closed = true
	open := make([]*conn, 0, len(s.open))
	for c := range s.open {
		open = append(open, c)
	}
	s.mu.Unlock()
	for _, c := range open {
		_ = c.Conn.Close()
	}
	return err
}

// A conn is one connection. Owner: the goroutine of raft that uses it.
type conn struct {
	net.Conn
	stream   *stream
	incoming bool
	greeted  bool
}

func (c *conn) Read(b []byte) (int, error) {
	if c.incoming && !c.greeted {
		if err := c.greet(); err != nil {
			return 0, err
		}
		c.greeted = true
	}
	return c.Conn.Read(b)
}

func (c *conn) greet() error {
	_ = c.Conn.SetReadDeadline(time.Now().Add(patience))
	var b [greetingBytes]byte
	if _, err := io.ReadFull(c.Conn, b[:]); err != nil {
		return err
	}
	if string(b[:len(greeting)]) != greeting {
		return fmt.Errorf("%v does not speak the language of the log", c.Conn.RemoteAddr())
	}
	to := cluster.NodeID(binary.LittleEndian.Uint64(b[len(greeting):]))
	from := cluster.NodeID(binary.LittleEndian.Uint64(b[len(greeting)+8:]))
	var err error
	switch {
	case to != c.stream.self:
		err = fmt.Errorf("node %v looks for node %v where node %v is now", from, to, c.stream.self)
	case binary.LittleEndian.Uint64(b[len(greeting)+16:]) != c.stream.cluster():
		err = fmt.Errorf("node %v is of another cluster", from)
	}
	if err != nil {
		c.stream.logger.Debug("a connection is refused", "because", err)
		return err
	}
	return c.Conn.SetReadDeadline(time.Time{})
}

func (c *conn) Close() error {
	c.stream.mu.Lock()
	_, was := c.stream.open[c]
	delete(c.stream.open, c)
	c.stream.mu.Unlock()
	err := c.Conn.Close()
	if was && c.incoming {
		c.stream.served.Done()
	}
	return err
}
