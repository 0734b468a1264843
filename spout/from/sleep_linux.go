package from

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleep waits on the kernel's monotonic clock, to about 60 us. The end is an
// absolute time, so that signals, which the Go runtime sends to its threads, do
// not make it later.
func sleep(d time.Duration) bool {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return false
	}
	t = unix.NsecToTimespec(t.Nano() + int64(d))
	for {
		switch unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &t, nil) {
		case nil:
			return true
		case unix.EINTR:
		default:
			return false
		}
	}
}
