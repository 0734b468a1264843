//go:build !linux

package bench

import "time"

// kernelNow is the time of day: nobody sleeps by it, and two processes that were
// started together agree on it well enough.
func kernelNow() int64 { return time.Now().UnixNano() }

// sleep returns at the given time or later, by as much as the runtime's timers
// are late.
func (c *clock) sleep(until int64) { time.Sleep(time.Duration(until - c.now())) }
