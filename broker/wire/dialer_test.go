package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Pauses double from 10 ms to 2 s, each by chance between half of that and all of it.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		no := errors.New("no")
		d := StartDialer(DialerConfig{
			Dial:      func(context.Context) (net.Conn, error) { at = append(at, time.Now()); return nil, no },
			Connected: func(net.Conn) { panic("there is no connection") },
			Refused:   func(err error) { require.Equal(t, no, err) },
		})
		time.Sleep(time.Minute)
		d.Stop()
		d.Wait()
		want, chance := firstPause, false
		for i := 1; i < len(at); i++ {
			pause := at[i].Sub(at[i-1])
			require.True(t, pause >= want/2 && pause < want, "pause %d: %v of %v", i, pause, want)
			chance = chance || pause != at[1].Sub(at[0])
			want = min(2*want, mostPause)
		}
		require.Greater(t, len(at), 30)
		require.True(t, chance)
	})
}

// A connection that lasts makes the next pause short; one that is dropped at once does
// not, and neither is dialled twice at a time.
func TestRedial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, times := 0, 0
		var over time.Time
		var pauses []time.Duration
		d := StartDialer(DialerConfig{
			Dial: func(context.Context) (net.Conn, error) {
				require.Zero(t, open)
				if !over.IsZero() {
					pauses = append(pauses, time.Since(over))
				}
				c, _ := net.Pipe()
				return c, nil
			},
			Connected: func(c net.Conn) {
				open++
				times++
				if times == 10 {
					time.Sleep(time.Hour)
				}
				open--
				over = time.Now()
			},
			Refused: func(error) { panic("it is not") },
		})
		time.Sleep(2 * time.Hour)
		d.Stop()
		d.Wait()
		require.Greater(t, pauses[8], time.Second, "it was dropped nine times")
		require.Less(t, pauses[9], 10*time.Millisecond)
		require.Less(t, times, 10_000)
	})
}

// Stop ends whatever the dialer is at, and closes the connection.
func TestDialerStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		d := StartDialer(DialerConfig{Dial: hangs, Refused: func(error) { panic("it was stopped") }})
		synctest.Wait()
		d.Stop()
		d.Stop()
		d.Wait()

		a, b := net.Pipe()
		var seen error
		d = StartDialer(DialerConfig{
			Dial:      func(context.Context) (net.Conn, error) { return a, nil },
			Connected: func(c net.Conn) { _, seen = c.Read(make([]byte, 1)) },
		})
		synctest.Wait()
		d.Stop()
		d.Wait()
		require.ErrorIs(t, seen, io.ErrClosedPipe)
		b.Close()

		no := func(ctx context.Context) (net.Conn, error) { return nil, ErrNobody }
		refused := 0
		d = StartDialer(DialerConfig{Dial: no, Refused: func(error) { refused++ }})
		time.Sleep(10 * time.Second) // in a pause
		d.Stop()
		d.Wait()
		require.Positive(t, refused)
	})
}

// The whole: a dialer keeps a Conn to a port, over real sockets, and says that nobody
// listens when the port is gone.
func TestDialerOverPort(t *testing.T) {
	s := secret(t, newText)
	a, _ := listen(t, 1, s, Secret{})
	b, err := Listen(Config{Addr: "127.0.0.1:0", Node: 2, Secret: s})
	require.NoError(t, err)
	var got record
	config := got.config(1 << 20)
	gone := make(chan struct{})
	var once bool
	d := StartDialer(DialerConfig{
		Dial: func(ctx context.Context) (net.Conn, error) { return a.Dial(ctx, Broker, b.Addr()) },
		Connected: func(raw net.Conn) {
			require.EqualValues(t, 2, Peer(raw))
			c := NewConn(raw, config)
			c.Write([][]byte{frame(10, 1)})
			c.Wait()
		},
		Refused: func(err error) {
			if errors.Is(err, ErrNobody) && !once {
				once = true
				close(gone)
			}
		},
	})
	for range 3 { // drop it, and it comes again
		raw, err := b.Listener(Broker).Accept()
		require.NoError(t, err)
		require.EqualValues(t, 1, Peer(raw))
		var there record
		c := NewConn(raw, there.config(1<<20))
		there.until(func() bool { return len(there.frames) == 1 })
		c.Close()
		c.Wait()
	}
	require.NoError(t, b.Close())
	<-gone
	d.Stop()
	d.Wait()
}
