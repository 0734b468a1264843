package wire

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
)

// Ports that systems give to nobody who asks for any, and that few ask for: Linux gives
// those from 32768 on, others those from 49152 on.
const (
	firstSpare = 20000
	spares     = 12000
)

var spare atomic.Int64

func init() { spare.Store(rand.Int64N(spares)) } // programs that begin together look in other places

// Spare returns an address of loopback that nobody has at the moment, neither for TCP nor for
// UDP, each time another one. A process that listens there, ends and comes back finds it free:
// no connection that somebody makes meanwhile has its port.
func Spare() (string, error) {
	var err error
	for range spares {
		addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: firstSpare + int(spare.Add(1)%spares)}
		tcp, udp, taken := listenBoth(addr)
		if taken != nil {
			err = taken
			continue
		}
		tcp.Close()
		udp.Close()
		return addr.String(), nil
	}
	return "", fmt.Errorf("no port from %d to %d of 127.0.0.1 is free for TCP and UDP: %w", firstSpare, firstSpare+spares-1, err)
}
