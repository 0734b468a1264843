package web

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func (c *crowd) count() (all, strangers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.all {
		if !k.known {
			strangers++
		}
	}
	return len(c.all), strangers
}

// patient is how long a test waits for what happens at once.
func patient(c net.Conn) { _ = c.SetReadDeadline(time.Now().Add(time.Minute)) }

// Who holds on to connections, with half a request or with a body that does not come, has so
// many and no more. Who has a token is let in meanwhile, and what he listens to goes on.
func TestIdleConnections(t *testing.T) {
	cert, key, pool := certificate(t)
	for _, tt := range []struct {
		name string
		door Door
	}{{"plain", Door{Address: "0", LookToken: lookToken}}, {"TLS", Door{Address: "0", Cert: cert, Key: key, LookToken: lookToken}}} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, &world{})
			tt.door.Log = quiet
			l, err := Listen(tt.door)
			require.NoError(t, err)
			l.Serve(s)
			defer func() { s.Close(); require.NoError(t, l.Close()) }()
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: clientTLS(pool)}}
			defer client.CloseIdleConnections()
			get := func(path string) *http.Response {
				r, err := http.NewRequestWithContext(t.Context(), "GET", l.URL+path, nil)
				require.NoError(t, err)
				r.Header.Set("Authorization", "Bearer "+lookToken)
				resp, err := client.Do(r)
				require.NoError(t, err)
				require.Equal(t, 200, resp.StatusCode)
				return resp
			}
			live := get("/api/v1/live")
			defer live.Body.Close()
			lines := bufio.NewScanner(live.Body)
			lines.Buffer(nil, 1<<20)

			var held []net.Conn
			for i := range 2 * mostConns {
				c, err := net.Dial("tcp", l.inner.Addr().String())
				require.NoError(t, err)
				defer c.Close()
				held = append(held, c)
				half := []string{"", "GET / HTTP/1.1\r\nHo", "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"}[i%3]
				_, _ = io.WriteString(c, half) // it may have been closed
			}
			patient(held[0])
			_, err = io.Copy(io.Discard, held[0])
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the oldest ones have gone")
			for range 3 { // there is room for who has a token, each time by a connection of its own
				client.CloseIdleConnections()
				get("/api/v1/overview").Body.Close()
				all, strangers := l.crowd.count()
				require.LessOrEqual(t, strangers, mostStrangers)
				require.LessOrEqual(t, all, mostConns)
			}
			for events := 0; events < 2; { // and who listens hears more
				require.True(t, lines.Scan(), lines.Err())
				if strings.HasPrefix(lines.Text(), "event: overview") {
					events++
				}
			}
		})
	}
}

// The one that leaves is the oldest stranger, else the oldest that asks for nothing, else
// the new one.
func TestCrowd(t *testing.T) {
	c := &crowd{}
	enter := func(known, idle bool) (k, out *conn) {
		k = &conn{of: c}
		out = c.enter(k)
		k.known, k.idle = known, idle
		return k, out
	}
	var first []*conn
	for range mostStrangers {
		k, out := enter(false, true)
		require.Nil(t, out)
		first = append(first, k)
	}
	k, out := enter(true, false)
	require.Equal(t, first[0], out)
	for _, o := range first[1:] {
		o.known = true
	}
	first[3].idle = false
	for range mostConns - mostStrangers {
		_, out = enter(true, false)
		require.Nil(t, out)
	}
	require.Len(t, c.all, mostConns)
	for i, o := range first {
		if i > 0 && i != 3 {
			_, out = enter(true, false)
			require.Equal(t, o, out, i)
		}
	}
	newest, out := enter(true, false)
	require.Equal(t, newest, out)
	require.Len(t, c.all, mostConns)
	require.False(t, slices.Contains(c.all, newest))
	require.True(t, slices.Contains(c.all, k))
}

// pipes is a listener in memory.
type pipes struct {
	made   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }
func (p *pipes) dial() net.Conn { a, b := net.Pipe(); p.made <- a; return b }

// Nobody holds a connection for long without getting on with a request: not by a head that
// does not end, nor by a body, whoever does not read it, nor by asking for nothing.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, &world{})
		p := &pipes{made: make(chan net.Conn), closed: make(chan struct{})}
		l := newListener(Door{LookToken: lookToken, Log: quiet}, p)
		l.Serve(s)
		defer func() { s.Close(); require.NoError(t, l.Close()) }()
		const body = "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
		for _, tt := range []struct {
			text string
			most time.Duration
		}{
			{"", headTime},
			{"GET / HTTP/1.1\r\nHost: loc", headTime},
			{"GET / HTTP/1.1\r\n" + body + "\r\n", bodyTime},
			{"GET / HTTP/1.1\r\n" + body + "\r\n{\"a\"", bodyTime},
			{"GET /api/v1/overview HTTP/1.1\r\n" + body + "\r\n", bodyTime},
			{"GET /api/v1/overview HTTP/1.1\r\n" + body + "Authorization: Bearer " + lookToken + "\r\n\r\n", bodyTime},
			{"POST /api/v1/login HTTP/1.1\r\n" + body + "\r\n{", bodyTime},
			{"POST /api/v1/actions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n{", bodyTime},
			{"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", idleTime},
		} {
			c := p.dial()
			began := time.Now()
			require.NoError(t, c.SetReadDeadline(began.Add(time.Hour)))
			go func() { _, _ = io.WriteString(c, tt.text) }()
			_, err := io.Copy(io.Discard, c)
			require.True(t, err == nil || errors.Is(err, io.ErrClosedPipe), fmt.Sprint(err))
			require.LessOrEqual(t, time.Since(began), tt.most+time.Second, tt.text)
			c.Close()
		}
		// But who listens may do so for as long as he likes.
		c := p.dial()
		go func() {
			_, _ = io.WriteString(c, "GET /api/v1/live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+lookToken+"\r\n\r\n")
		}()
		began, lines := time.Now(), bufio.NewReader(c)
		for time.Since(began) < 3*idleTime {
			_, err := lines.ReadString('\n')
			require.NoError(t, err)
		}
		c.Close()
	})
}

func clientTLS(pool *x509.CertPool) *tls.Config { return &tls.Config{RootCAs: pool} }
