package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
)

const (
	mostConns     = 256 // connections of a listener
	mostStrangers = 128 // of them, of who has not been let in yet
)

// A crowd is the listener's connections, of which there is a bound: each has a file
// descriptor, and the run needs some too. When there are too many the oldest one is closed
// of those who have not shown that they may do anything, else of those who ask for nothing
// just now, else the new one. So who holds on to connections without a token keeps nobody
// out who has one, nor an answer that goes on.
type crowd struct {
	net.Listener

	mu  sync.Mutex
	all []*conn // oldest first
}

// A conn is one of a crowd.
type conn struct {
	net.Conn
	of *crowd
	// Owner of both: of, by its mu.
	known bool // somebody was let in by it
	idle  bool
}

// Accept is that of net.Listener.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		inner, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		k := &conn{Conn: inner, of: c}
		out := c.enter(k)
		if out != nil {
			_ = out.Close()
		}
		if out != k {
			return k, nil
		}
	}
}

// enter adds a connection, and returns the one that has to leave for it, or nil.
func (c *crowd) enter(k *conn) (out *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := func(is func(*conn) bool) *conn {
		if i := slices.IndexFunc(c.all, is); i >= 0 {
			return c.all[i]
		}
		return nil
	}
	strangers := 0
	for _, o := range c.all {
		if !o.known {
			strangers++
		}
	}
	if strangers >= mostStrangers || len(c.all) >= mostConns {
		out = first(func(o *conn) bool { return !o.known })
		if out == nil {
			out = first(func(o *conn) bool { return o.idle })
		}
		if out == nil {
			return k
		}
	}
	c.all = append(c.all, k)
	c.remove(out)
	return out
}

// remove forgets a connection. Caller must hold mu.
func (c *crowd) remove(k *conn) {
	c.all = slices.DeleteFunc(c.all, func(o *conn) bool { return o == k })
}

// Close is that of net.Conn.
func (k *conn) Close() error {
	k.of.mu.Lock()
	k.of.remove(k)
	k.of.mu.Unlock()
	return k.Conn.Close()
}

// connOf returns the connection of the crowd below one of the server, or nil.
func connOf(c net.Conn) *conn {
	if t, is := c.(*tls.Conn); is {
		c = t.NetConn()
	}
	k, _ := c.(*conn)
	return k
}

// state is told by the server of each change.
func (c *crowd) state(inner net.Conn, s http.ConnState) {
	if k := connOf(inner); k != nil {
		c.mu.Lock()
		k.idle = s == http.StateIdle
		c.mu.Unlock()
	}
}

type connKey struct{}

// withConn remembers in the context of its requests which connection it is.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connOf(c))
}

// letIn says that who asks may do something: so its connection is no stranger's.
func letIn(r *http.Request) {
	if k, _ := r.Context().Value(connKey{}).(*conn); k != nil {
		k.of.mu.Lock()
		k.known = true
		k.of.mu.Unlock()
	}
}
