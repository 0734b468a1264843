package gossip

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/egretstream/egret/cluster"
)

// sockets returns a TCP and a UDP socket with the same port.
func sockets(t *testing.T) (net.Listener, net.PacketConn) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		p, err := net.ListenPacket("udp", l.Addr().String())
		if err == nil {
			return l, p
		}
		require.NoError(t, l.Close()) // somebody has the port for UDP
	}
	t.Fatal("no port is free for both")
	return nil, nil
}

// Over real sockets: two nodes find each other, one leaves, and nothing is left of them.
func TestLoopback(t *testing.T) {
	defer goleak.VerifyNone(t)
	views := make(chan string, 1000)
	var all []*Gossip
	first := ""
	for i := range 2 {
		l, p := sockets(t)
		c := Config{Cluster: "aa", Pace: cluster.Quick, Key: make([]byte, 32), Listener: l, Packets: p,
			Self: cluster.Member{Home: cluster.Home{Node: cluster.NodeID(i + 1), Boot: 1}, Addr: l.Addr().String()},
			Dial: func(ctx context.Context, addr string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", addr)
			}}
		if first == "" {
			first = l.Addr().String()
			c.Changed = func(all []cluster.Member) {
				s := ""
				for _, m := range all {
					s += fmt.Sprint(m.Node, m.Alive, m.Left, " ")
				}
				views <- s
			}
		} else {
			c.Join, c.MustJoin = []string{first}, true
		}
		g, err := Start(c)
		require.NoError(t, err)
		all = append(all, g)
	}
	wait := func(want string) {
		for s := range views {
			if s == want {
				return
			}
		}
	}
	wait("0000000000000001 true false 0000000000000002 true false ")
	require.NoError(t, all[1].Leave(0))
	wait("0000000000000001 true false 0000000000000002 false true ")
	for _, g := range all {
		require.NoError(t, g.Shutdown())
	}
}
