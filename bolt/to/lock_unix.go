//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package to

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// posix: a file that is open can be locked and renamed, and a directory synced.
const posix = true

// lock takes f for this process until f is closed, however that ends. It reports
// false if somebody else has it.
func lock(f *os.File) (bool, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	var locked error
	if err := conn.Control(func(fd uintptr) { locked = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) }); err != nil {
		return false, err
	}
	if errors.Is(locked, unix.EWOULDBLOCK) {
		return false, nil
	}
	return locked == nil, locked
}
