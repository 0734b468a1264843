package bench

import "time"

// A clock tells nanoseconds since it was made. They begin with 1, so that 0 can
// stand for no time. It may be used by many goroutines at the same time.
type clock struct {
	start  time.Time
	kernel int64 // the kernel's monotonic clock at start, where sleep uses it
}

func newClock() *clock { return &clock{start: time.Now(), kernel: kernelNow()} }

func (c *clock) now() int64 { return int64(time.Since(c.start)) + 1 }
