//go:build !unix

package egret

import (
	"runtime/metrics"
	"time"
)

// processTime returns about the CPU time that Go code of this process has used, as of the
// last collection of garbage.
func processTime() time.Duration {
	s := []metrics.Sample{{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}}
	metrics.Read(s)
	return time.Duration((s[0].Value.Float64() - s[1].Value.Float64()) * float64(time.Second))
}
