//go:build !linux

package bench

import "time"

func kernelNow() int64 { return 0 }

// sleep returns at the given time or later, by as much as the runtime's timers
// are late.
func (c *clock) sleep(until int64) { time.Sleep(time.Duration(until - c.now())) }
