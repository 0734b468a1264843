package wire

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

const (
	firstPause = 10 * time.Millisecond
	mostPause  = 2 * time.Second
)

// A DialerConfig is what a Dialer does. The functions are called from its goroutine,
// one after the other.
type DialerConfig struct {
	// Dial makes a connection: Port.Dial, for some service of some node.
	Dial func(context.Context) (net.Conn, error)
	// Connected uses a connection, and returns when that is over.
	Connected func(net.Conn)
	// Refused says that there was none, and why: ErrNobody says that the process that
	// listened is gone. It is not called for a Dialer that was stopped.
	Refused func(error)
}

// A Dialer keeps one connection: it dials, and dials again when the connection is over
// or there was none. Before it does so it pauses for 10 ms, then twice as long each
// time up to 2 s, half of it by chance. A connection that has lasted 2 s makes the next
// pause short again; so one that is accepted and dropped does not keep two nodes busy.
//
// It has one goroutine. Who starts one calls Stop at the end, and Wait.
type Dialer struct {
	stop context.CancelFunc
	all  sync.WaitGroup
}

// StartDialer begins to dial.
func StartDialer(config DialerConfig) *Dialer {
	ctx, cancel := context.WithCancel(context.Background())
	d := &Dialer{stop: cancel}
	d.all.Go(func() { keep(ctx, config) })
	return d
}

// Stop ends dialling and closes the connection, which Connected sees. It does not wait.
func (d *Dialer) Stop() { d.stop() }

// Wait returns when the last call of Connected or Refused has returned. It waits for
// Stop.
func (d *Dialer) Wait() { d.all.Wait() }

// keep keeps a connection until ctx is done.
func keep(ctx context.Context, config DialerConfig) {
	pause := firstPause
	for ctx.Err() == nil {
		c, err := config.Dial(ctx)
		switch {
		case err == nil:
			began := time.Now()
			use(ctx, c, config.Connected)
			if time.Since(began) >= mostPause {
				pause = firstPause
			}
		case ctx.Err() == nil:
			config.Refused(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, mostPause)
	}
}

// use has a connection used, and closes it at the end or when ctx is done.
func use(ctx context.Context, c net.Conn, connected func(net.Conn)) {
	var closing sync.WaitGroup
	closing.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer closing.Done()
		under(c).Close()
	})
	connected(c)
	if stop() {
		closing.Done()
	}
	closing.Wait()
	under(c).Close()
}
