package bench

import "time"

// A clock tells nanoseconds since it was made. They begin with 1, so that 0 can
// stand for no time. It may be used by many goroutines at the same time.
type clock struct {
	start  time.Time
	kernel int64 // a clock that all processes of the machine have, when this one was made
	ahead  int64 // of start, when this one was made; not 0 if it shows what another process's does
}

func newClock() *clock { return &clock{start: time.Now(), kernel: kernelNow()} }

// sharedClock returns a clock that shows what one of another process of this machine
// does, of which the kernel's time is given.
func sharedClock(kernel int64) *clock {
	return &clock{start: time.Now(), kernel: kernel, ahead: kernelNow() - kernel}
}

func (c *clock) now() int64 { return int64(time.Since(c.start)) + c.ahead + 1 }
