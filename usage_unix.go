//go:build unix

package egret

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTime returns the CPU time that this process has used.
func processTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
