package wire

import (
	"context"
	"net"
	"time"
)

// stall is how long a connection may take nothing that is sent before it is broken.
const stall = 30 * time.Second

// keepAlive finds out that the machine at the other end is gone while nothing is sent.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3}

func listenTCP(addr *net.TCPAddr) (*net.TCPListener, error) {
	config := net.ListenConfig{KeepAliveConfig: keepAlive, Control: limitStall}
	config.SetMultipathTCP(false) // it knows neither of the two
	l, err := config.Listen(context.Background(), "tcp", addr.String())
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	config := net.Dialer{KeepAliveConfig: keepAlive, Control: limitStall}
	config.SetMultipathTCP(false)
	return config.DialContext(ctx, "tcp", addr)
}
