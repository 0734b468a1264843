package consensus

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/egretstream/egret/cluster"
)

// Over real sockets, with files: three nodes, and nothing is left of them.
func TestLoopback(t *testing.T) {
	defer goleak.VerifyNone(t)
	type running struct {
		id   *Identity
		log  *Log
		addr string
	}
	leads := make(chan cluster.NodeID, 1000)
	applied := make(chan string, 1000)
	var all []running
	for i := range 3 {
		id, err := Identify(t.TempDir())
		require.NoError(t, err)
		if i == 0 {
			require.NoError(t, id.Found())
		} else {
			require.NoError(t, id.Adopt(all[0].id.Cluster()))
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		log, err := Open(Config{Identity: id, Addr: l.Addr().String(), Listener: l, Machine: heard(applied), Pace: cluster.Quick,
			Dial: func(ctx context.Context, addr string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", addr)
			},
			Leader: func(node cluster.NodeID, me bool, _ uint64) {
				if me {
					leads <- node
				}
			}})
		require.NoError(t, err)
		all = append(all, running{id, log, l.Addr().String()})
	}
	// The machine may be so busy that the lead changes at any time; so whoever leads is asked.
	ask := func(f func(l *Log, done func(error))) {
		t.Helper()
		for node := range leads {
			for _, r := range all {
				if r.id.Home().Node != node {
					continue
				}
				c := make(chan error, 1)
				f(r.log, func(err error) { c <- err })
				err := <-c
				if !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrClosed) {
					leads <- node // it may lead still
				}
				if err == nil {
					return
				}
			}
		}
	}
	for _, r := range all[1:] {
		ask(func(l *Log, done func(error)) { l.AddVoter(r.id.Home().Node, r.addr, done) })
	}
	ask(func(l *Log, done func(error)) { l.Propose([]byte("x"), func(_ any, err error) { done(err) }) })
	for range 3 {
		require.Equal(t, "x", <-applied)
	}
	require.NoError(t, all[0].log.Close())
	ask(func(l *Log, done func(error)) { l.Propose([]byte("y"), func(_ any, err error) { done(err) }) })
	for got := range applied {
		if got == "y" {
			break
		}
		require.Equal(t, "x", got, "asked twice, since nobody knew")
	}
	for i, r := range all {
		if i > 0 {
			require.NoError(t, r.log.Close())
		}
		require.NoError(t, r.id.Close())
	}
}

// heard is a Machine that tells of each entry and keeps nothing.
type heard chan string

func (h heard) Apply(_ uint64, entry []byte) any { h <- string(entry); return nil }

func (h heard) Snapshot() ([]byte, error) { return nil, nil }

func (h heard) Restore(uint64, []byte) error { return nil }
