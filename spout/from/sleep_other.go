//go:build !linux

package from

import "time"

// sleep is not to be had here; a timer does.
func sleep(time.Duration) bool { return false }
