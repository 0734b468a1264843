package bench

import "golang.org/x/sys/unix"

// kernelNow is the clock that package time has its monotonic one of; it is the same in
// all processes.
func kernelNow() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return t.Nano()
}

// sleep blocks the thread until the given time, or returns early: a signal of
// the runtime ends it.
func (c *clock) sleep(until int64) {
	t := unix.NsecToTimespec(c.kernel + until - 1)
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &t, nil) // the caller looks at the clock
}
