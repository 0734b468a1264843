//go:build unix

package from

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// openNow opens a pipe that nobody writes to without waiting for a writer.
const openNow = unix.O_NONBLOCK

// readable waits until f has something to read or has ended, at most for wait.
// A read of a terminal or of a pipe cannot be interrupted, hence the question
// before it.
func readable(f *os.File, wait time.Duration) (bool, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	var n int
	var polled error
	err = conn.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, polled = unix.Poll(fds, int(wait.Milliseconds()))
	})
	if err != nil {
		return false, err
	}
	if polled == unix.EINTR {
		return false, nil
	}
	return n > 0, polled
}
