package wire

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// limitStall has the system break a connection if what was sent is not acknowledged:
// keep-alive is silent then, and a deadline sees only what still waits to be written.
// A kernel that does not know the option does without.
func limitStall(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(stall.Milliseconds()))
	})
}
