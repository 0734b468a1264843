package wire

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Hosts with a wrong secret are remembered, but not without end.
func TestToldIsBounded(t *testing.T) {
	p := bare(t, Secret{})
	for i := range 2 * mostTold {
		require.Equal(t, i < mostTold, p.tell(fmt.Sprint(i)))
		require.False(t, p.tell(fmt.Sprint(i)))
	}
	require.Len(t, p.told, mostTold)
}

// Strangers who send garbage lose their connection, and nobody else anything.
func TestGarbage(t *testing.T) {
	for _, text := range []string{"", newText} {
		t.Run("secret="+text, func(t *testing.T) {
			s := secret(t, text)
			p, log := listen(t, 1, s, Secret{})
			honest, _ := listen(t, 2, s, Secret{})
			for _, garbage := range []string{"GET / HTTP/1.1\r\n\r\n", "\x00", "\xff\xff\xff\xff", "\xe0", "\xe5", "SSH-2.0-OpenSSH\r\n",
				"\x16\x03\x01\x00\x00", "\x16\x03\x01\xff\xff" + strings.Repeat("x", 1<<17), "\x16\x03\x01\x00\x04\x01\x00\x00\x00"} {
				c, err := net.Dial("tcp", p.Addr())
				require.NoError(t, err)
				io.WriteString(c, garbage)
				c.(*net.TCPConn).CloseWrite()
				answer, _ := io.ReadAll(c)
				require.NotContains(t, string(answer), string(welcome))
				c.Close()
				c, err = honest.Dial(t.Context(), Gossip, p.Addr())
				require.NoError(t, err)
				c.Close()
			}
			require.NoError(t, p.Close())
			if text != "" {
				require.Empty(t, log.String(), "scanners do not fill the log")
			}
		})
	}
}

// Who says nothing, or not enough, is dropped after 5 s.
func TestSlowStrangers(t *testing.T) {
	for _, text := range []string{"", newText} {
		synctest.Test(t, func(t *testing.T) {
			p := bare(t, secret(t, text))
			little := []string{"", "\x16", "\x16\x03\x01\x02\x00\x01"}
			if text == "" {
				little = little[:1] // a byte is enough
			}
			for _, said := range little {
				began := time.Now()
				c, there := net.Pipe()
				require.True(t, p.enter(there))
				p.running.Go(func() { p.greet(there) })
				go io.WriteString(c, said)
				io.Copy(io.Discard, c)
				require.Equal(t, greetingTime, time.Since(began))
				require.Empty(t, p.greeting)
				c.Close()
			}
			if text == "" {
				return
			}
			// A byte now and then does not help.
			began := time.Now()
			c, there := net.Pipe()
			require.True(t, p.enter(there))
			p.running.Go(func() { p.greet(there) })
			p.running.Go(func() {
				for _, b := range []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("x", 100)) {
					if _, err := c.Write([]byte{b}); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			})
			io.Copy(io.Discard, c)
			require.Equal(t, greetingTime, time.Since(began))
			c.Close()
			p.running.Wait()
		})
	}
}

// Who was welcomed may take his time.
func TestDeadlineIsOver(t *testing.T) {
	for _, text := range []string{"", newText} {
		synctest.Test(t, func(t *testing.T) {
			p := bare(t, secret(t, text))
			here, there := net.Pipe()
			require.True(t, p.enter(there))
			p.running.Go(func() { p.greet(there) })
			c, err := newIdentity(secret(t, text), Secret{}, 2).introduce(here, Broker)
			require.NoError(t, err)
			d, err := p.services[Broker].Accept()
			require.NoError(t, err)
			time.Sleep(time.Hour)
			go c.Write([]byte{1})
			_, err = d.Read(make([]byte, 1))
			require.NoError(t, err)
			go d.Write([]byte{1})
			_, err = c.Read(make([]byte, 1))
			require.NoError(t, err)
			here.Close()
			there.Close()
			p.running.Wait()
		})
	}
}

// However many say nothing, there is room for who does: the oldest of them goes.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := bare(t, secret(t, newText))
		var flood []net.Conn
		for range 3 * mostGreeting {
			c, there := net.Pipe()
			flood = append(flood, c)
			require.True(t, p.enter(there))
			p.running.Go(func() { p.greet(there) })
			require.LessOrEqual(t, len(p.greeting), mostGreeting)
		}
		synctest.Wait()
		require.Len(t, p.greeting, mostGreeting)
		c, there := net.Pipe()
		require.True(t, p.enter(there))
		p.running.Go(func() { p.greet(there) })
		began := time.Now()
		_, err := newIdentity(secret(t, newText), Secret{}, 2).introduce(c, Broker)
		require.NoError(t, err)
		require.Zero(t, time.Since(began))
		accepted, err := p.services[Broker].Accept()
		require.NoError(t, err)
		under(accepted).Close()
		for _, c := range flood {
			c.Close()
		}
		c.Close()
		p.running.Wait()
		require.Empty(t, p.greeting)
	})
}

// A half connection can be closed for writing.
type half struct {
	script
	closed bool
}

func (h *half) CloseWrite() error { h.closed = true; return nil }

// An answer is lost if there is something unread when the connection is closed.
func TestHangUp(t *testing.T) {
	c := &half{script: script{in: bytes.NewReader([]byte("\x16\x03\x01" + strings.Repeat("x", 2000)))}}
	_, _, err := (*identity)(nil).admit(c)
	require.ErrorIs(t, err, ErrSecret)
	require.Equal(t, noSecret, c.wrote.String())
	require.True(t, c.closed)
	require.Zero(t, c.in.Len())
}

// Whatever a connection begins with, there is no panic, nothing is let in that has not
// shown a certificate, and without a secret only what names a service.
func FuzzGreeting(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0xe1})
	f.Add([]byte{0xe5, 1})
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("\x16\x03\x01\x00\x04\x01\x00\x00\x00"))
	hello := &script{}
	newIdentity(secret(f, newText), Secret{}, 2).introduce(hello, Broker)
	f.Add(hello.wrote.Bytes())
	id := newIdentity(secret(f, newText), Secret{}, 1)
	f.Fuzz(func(t *testing.T, b []byte) {
		raw := &script{in: bytes.NewReader(b)}
		_, _, err := id.admit(raw)
		require.Error(t, err)

		raw = &script{in: bytes.NewReader(b)}
		c, s, err := (*identity)(nil).admit(raw)
		if len(b) > 0 && b[0] >= 0xe1 && b[0] <= 0xe4 {
			require.NoError(t, err)
			require.Equal(t, Service(b[0]-0xe1), s)
			require.Equal(t, []byte{welcome}, raw.wrote.Bytes())
			rest, err := io.ReadAll(c)
			require.NoError(t, err)
			require.Equal(t, b[1:], rest, "the service gets all that follows")
			return
		}
		require.Error(t, err)
	})
}

// A script is a connection to somebody who says what he has to say and hangs up.
type script struct {
	net.Conn
	in    *bytes.Reader
	wrote bytes.Buffer
}

func (s *script) Read(b []byte) (int, error) {
	if s.in == nil {
		return 0, io.EOF
	}
	return s.in.Read(b)
}

func (s *script) Write(b []byte) (int, error)      { return s.wrote.Write(b) }
func (s *script) Close() error                     { return nil }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
