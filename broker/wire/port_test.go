package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/cluster"
)

// A log is a logger's output, to be read at any time.
type log struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// listen opens a port on loopback that is closed with the test.
func listen(t testing.TB, node cluster.NodeID, s, previous Secret) (*Port, *log) {
	t.Helper()
	l := &log{}
	p, err := Listen(Config{Addr: "127.0.0.1:0", Node: node, Secret: s, Previous: previous, Logger: slog.New(slog.NewTextHandler(l, nil))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p, l
}

// bare returns a port without sockets, for bubbles.
func bare(t *testing.T, s Secret) *Port {
	p := &Port{identity: newIdentity(s, Secret{}, 1), logger: slog.New(slog.DiscardHandler), told: map[string]bool{}, done: make(chan struct{})}
	for s := range services {
		p.services[s] = newListener(&net.TCPAddr{})
	}
	return p
}

func TestServices(t *testing.T) {
	for _, text := range []string{"", newText} {
		t.Run("secret="+text, func(t *testing.T) {
			a, _ := listen(t, 0xa, secret(t, text), Secret{})
			b, _ := listen(t, 0xb, secret(t, text), Secret{})
			for s := range services {
				c, err := a.Dial(t.Context(), s, b.Addr())
				require.NoError(t, err)
				d, err := b.Listener(s).Accept()
				require.NoError(t, err)
				for _, pair := range [][2]net.Conn{{c, d}, {d, c}} {
					_, err = io.WriteString(pair[0], "hello "+s.String())
					require.NoError(t, err)
					got := make([]byte, len("hello "+s.String()))
					_, err = io.ReadFull(pair[1], got)
					require.NoError(t, err)
					require.Equal(t, "hello "+s.String(), string(got))
				}
				if text != "" {
					require.EqualValues(t, 0xb, Peer(c))
					require.EqualValues(t, 0xa, Peer(d))
				}
				require.NoError(t, c.Close())
				require.NoError(t, d.Close())
			}
			c, err := NewClient(secret(t, text), Secret{}).Dial(t.Context(), b.Addr())
			require.NoError(t, err)
			d, err := b.Listener(Control).Accept()
			require.NoError(t, err)
			require.Zero(t, Peer(d))
			c.Close()
			d.Close()
		})
	}
}

// HTTP is spoken over the control service as over any other connection.
func TestHTTP(t *testing.T) {
	for _, text := range []string{"", newText} {
		p, _ := listen(t, 1, secret(t, text), Secret{})
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })}
		var served sync.WaitGroup
		served.Go(func() { server.Serve(p.Listener(Control)) })
		client := NewClient(secret(t, text), Secret{})
		transport := &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return client.Dial(ctx, addr) }}
		answer, err := (&http.Client{Transport: transport}).Get("http://" + p.Addr() + "/members")
		require.NoError(t, err)
		b, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, "/members", string(b))
		answer.Body.Close()
		transport.CloseIdleConnections()
		require.NoError(t, server.Close())
		served.Wait()
	}
}

func TestPackets(t *testing.T) {
	a, _ := listen(t, 1, Secret{}, Secret{})
	b, _ := listen(t, 2, Secret{}, Secret{})
	to, err := net.ResolveUDPAddr("udp", b.Addr())
	require.NoError(t, err)
	_, err = a.Packets().WriteTo([]byte("hello"), to)
	require.NoError(t, err)
	got := make([]byte, 100)
	n, from, err := b.Packets().ReadFrom(got)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got[:n]))
	require.Equal(t, a.Addr(), from.String())
}

// Each way in which secrets can differ has a sentence, on both sides, and the side that
// listens says it once for each host.
func TestWrongSecret(t *testing.T) {
	for _, tt := range []struct {
		name, here, there string
		err, log          string
	}{
		{"another", newText, oldText, "not the same secret: the node has another one: give all nodes and commands the same", "it has another one than this node"},
		{"only there", "", oldText, "not the same secret: the node has one, and there is none here: set EGRET_SECRET, or name the file", "it has none, and this node has one"},
		{"only here", newText, "", "not the same secret: the node has none, and there is one here", "it has one, and this node has none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			here, _ := listen(t, 1, secret(t, tt.here), Secret{})
			there, log := listen(t, 2, secret(t, tt.there), Secret{})
			for s := range services {
				_, err := here.Dial(t.Context(), s, there.Addr())
				require.ErrorIs(t, err, ErrSecret)
				require.ErrorContains(t, err, fmt.Sprintf("connect to %s (%v): %s", there.Addr(), s, tt.err))
			}
			_, err := NewClient(secret(t, tt.here), Secret{}).Dial(t.Context(), there.Addr())
			require.ErrorIs(t, err, ErrSecret)
			// The right one is still served.
			right, _ := listen(t, 3, secret(t, tt.there), Secret{})
			c, err := right.Dial(t.Context(), Broker, there.Addr())
			require.NoError(t, err)
			c.Close()
			require.NoError(t, there.Close())
			require.Equal(t, 1, strings.Count(log.String(), "level="), log.String())
			require.Contains(t, log.String(), "connections of a host are refused: not the same secret: "+tt.log)
			require.Contains(t, log.String(), "from=127.0.0.1")
			require.NotContains(t, log.String(), newText)
			require.NotContains(t, log.String(), oldText)
		})
	}
}

// A service that accepts nothing holds a few connections and closes more; the others
// do not notice.
func TestServiceThatDoesNotAccept(t *testing.T) {
	a, _ := listen(t, 1, Secret{}, Secret{})
	b, _ := listen(t, 2, Secret{}, Secret{})
	var all []net.Conn
	for range waiting + 1 {
		c, err := a.Dial(t.Context(), Consensus, b.Addr())
		require.NoError(t, err)
		all = append(all, c)
	}
	// One of them has lost its place, whichever came last.
	ended := make(chan int)
	for i, c := range all {
		go func() {
			io.Copy(io.Discard, c)
			ended <- i
		}()
	}
	<-ended
	c, err := a.Dial(t.Context(), Broker, b.Addr())
	require.NoError(t, err)
	c.Close()
	// A service that is closed gives up what waits, and what still comes.
	require.NoError(t, b.Listener(Consensus).Close())
	require.NoError(t, b.Listener(Consensus).Close())
	for range waiting {
		<-ended
	}
	_, err = b.Listener(Consensus).Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	c, err = a.Dial(t.Context(), Consensus, b.Addr())
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	for _, c := range append(all, c) {
		c.Close()
	}
}

func TestPortClose(t *testing.T) {
	p, _ := listen(t, 1, secret(t, newText), Secret{})
	silent, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	defer silent.Close()
	accepted := make(chan error)
	go func() {
		_, err := p.Listener(Gossip).Accept()
		accepted <- err
	}()
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	require.ErrorIs(t, <-accepted, net.ErrClosed)
	_, err = silent.Read(make([]byte, 1))
	require.Error(t, err)
	_, _, err = p.Packets().ReadFrom(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	_, there := net.Pipe()
	require.False(t, p.enter(there))
	_, err = there.Write([]byte{1})
	require.ErrorIs(t, err, io.ErrClosedPipe)
	// The port is free again, for both.
	again, err := Listen(Config{Addr: p.Addr(), Node: 1})
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

// Close does not wait for those who have not said what they want.
func TestCloseWhileGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := Listen(Config{Addr: "127.0.0.1:0", Node: 1})
		require.NoError(t, err)
		c, there := net.Pipe()
		require.True(t, p.enter(there))
		p.running.Go(func() { p.greet(there) })
		began := time.Now()
		require.NoError(t, p.Close())
		require.Zero(t, time.Since(began))
		c.Close()
	})
}

func TestDialErrors(t *testing.T) {
	p, _ := listen(t, 1, Secret{}, Secret{})
	gone, err := Listen(Config{Addr: "127.0.0.1:0", Node: 2})
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	_, err = p.Dial(t.Context(), Broker, gone.Addr())
	require.ErrorIs(t, err, ErrNobody)
	require.ErrorContains(t, err, "connect to "+gone.Addr()+" (broker): nobody listens there: is the node running")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the run is over"))
	_, err = p.Dial(ctx, Broker, p.Addr())
	require.ErrorContains(t, err, "the run is over")

	// Others who listen.
	for _, tt := range []struct{ name, answer, plain, secret string }{
		{"closes", "", "closed before there was an answer", "closed before there was an answer"},
		{"HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n", "not a node of Egret", "not a node of Egret"},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		var served sync.WaitGroup
		served.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Read(make([]byte, 1<<16))
				io.WriteString(c, tt.answer)
				c.Close()
			}
		})
		_, err = NewClient(Secret{}, Secret{}).Dial(t.Context(), l.Addr().String())
		require.ErrorContains(t, err, tt.plain)
		_, err = NewClient(secret(t, newText), Secret{}).Dial(t.Context(), l.Addr().String())
		require.ErrorContains(t, err, tt.secret)
		l.Close()
		served.Wait()
	}

	// One who does not answer: the caller gives up.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for _, s := range []Secret{{}, secret(t, newText)} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var served sync.WaitGroup
		served.Go(func() {
			c, err := l.Accept()
			if err == nil {
				c.Read(make([]byte, 1))
				cancel(errors.New("it takes too long"))
				io.Copy(io.Discard, c)
				c.Close()
			}
		})
		_, err = NewClient(s, Secret{}).Dial(ctx, l.Addr().String())
		require.ErrorContains(t, err, "it takes too long")
		served.Wait()
	}
	for err, want := range map[error]string{
		context.DeadlineExceeded:                               "no answer: is this the address of a node",
		&net.OpError{Op: "remote error", Err: alertNoProtocol}: "another version of Egret",
		errors.New("no luck"):                                  "connect to b:1 (control): no luck",
	} {
		require.ErrorContains(t, explain(t.Context(), Control, "b:1", err), want)
	}
}

func TestListenRefuses(t *testing.T) {
	s := secret(t, newText)
	taken, _ := listen(t, 1, s, Secret{})
	for _, tt := range []struct {
		name   string
		config Config
		want   string
	}{
		{"everywhere", Config{Addr: "0.0.0.0:0", Node: 1}, "listen on 0.0.0.0:0: other machines could connect, and there is no secret: give all nodes the same one (EGRET_SECRET, or a file), or listen on 127.0.0.1, or say --insecure"},
		{"no host", Config{Addr: ":0", Node: 1}, "other machines could connect"},
		{"everywhere by IPv6", Config{Addr: "[::]:0", Node: 1}, "other machines could connect"},
		{"no port", Config{Addr: "127.0.0.1", Node: 1}, "it wants host:port"},
		{"no node", Config{Addr: "127.0.0.1:0"}, "none is named"},
		{"only a previous secret", Config{Addr: "127.0.0.1:0", Node: 1, Previous: s}, "previous"},
		{"taken", Config{Addr: taken.Addr(), Node: 2}, "address already in use"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Listen(tt.config)
			require.ErrorContains(t, err, tt.want)
		})
	}
	for _, config := range []Config{
		{Addr: "0.0.0.0:0", Node: 1, Insecure: true}, {Addr: ":0", Node: 1, Secret: s}, {Addr: "localhost:0", Node: 1},
	} {
		p, err := Listen(config)
		require.NoError(t, err)
		require.NoError(t, p.Close())
	}
}

// When another program has the port for UDP, another port is looked for, unless one was
// asked for.
func TestPortOfBoth(t *testing.T) {
	addr, err := Spare()
	require.NoError(t, err)
	udp, err := net.ListenPacket("udp4", addr)
	require.NoError(t, err)
	defer udp.Close()
	_, err = Listen(Config{Addr: addr, Node: 1})
	require.ErrorContains(t, err, "address already in use")
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err, "the TCP socket was given back")
	l.Close()
}

// Two spare addresses are not the same, and can be had.
func TestSpare(t *testing.T) {
	one, err := Spare()
	require.NoError(t, err)
	two, err := Spare()
	require.NoError(t, err)
	require.NotEqual(t, one, two)
	for _, addr := range []string{one, two} {
		p, err := Listen(Config{Addr: addr, Node: 1})
		require.NoError(t, err)
		require.Equal(t, addr, p.Addr())
		require.NoError(t, p.Close())
	}
}
