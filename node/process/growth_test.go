package process

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/node"
)

// Nodes that come and go leave nothing behind at those who stay.
func TestJoinsAndLeaves(t *testing.T) {
	times, first := 12, 4
	if os.Getenv("EGRET_LONG") != "" {
		times, first = 200, 20
	}
	var c tally
	top := c.topology(10)
	a := start(t, Config{Data: t.TempDir(), Program: program(top)})
	b := start(t, Config{Join: []string{a.Addr()}, Program: program(top)})
	until(t, a, "both are there", func(v *node.View) bool { return alive(v) == 2 && v.Leader != 0 })
	most := resources{}
	for i := range times {
		p, err := Start(t.Context(), Config{Listen: "127.0.0.1:0", Join: []string{b.Addr()}, Program: program(top)})
		require.NoError(t, err)
		until(t, b, "it is there", func(v *node.View) bool { return alive(v) == 3 })
		require.NoError(t, p.Leave(time.Minute))
		require.NoError(t, p.Close())
		until(t, a, "it has gone", func(v *node.View) bool { return alive(v) == 2 })
		until(t, b, "it has gone", func(v *node.View) bool { return alive(v) == 2 })
		// What comes and goes by itself is at its most in the first rounds.
		if now := count(); i < first {
			most = resources{max(most.goroutines, now.goroutines), max(most.files, now.files)}
		}
	}
	settled(t, most)
}

// slack is less than one for each round.
const slack = 5

type resources struct{ goroutines, files int }

func count() resources {
	files, _ := os.ReadDir("/proc/self/fd") // none on systems without it
	return resources{runtime.NumGoroutine(), len(files)}
}

// settled waits until there are not more resources than at some time before.
func settled(t *testing.T, before resources) {
	var now resources
	for range 500 {
		if now = count(); now.goroutines <= before.goroutines+slack && now.files <= before.files+slack {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	require.Failf(t, "it grows", "%v, and before %v\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
}

func alive(v *node.View) (n int) {
	for _, m := range v.Members {
		if m.Alive {
			n++
		}
	}
	return n
}
