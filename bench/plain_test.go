package bench

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestBaselinesCountRight(t *testing.T) {
	for name := range baselines {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlain(digestPasses)
				c, err := p.start(t.Context(), name).Wait()
				require.NoError(t, err)
				require.Equal(t, wantDigest(plainTasks), p.digest())
				sent := int64(plainTasks * digestPasses * lineCount)
				require.Equal(t, sent, c.Emitted)
				require.Equal(t, sent*(1+wordsPerLine), c.Executed)
				require.Equal(t, map[string]int64{"split": sent, "count": sent * wordsPerLine}, c.ExecutedBy)
			})
		})
	}
}

// An endless baseline stops when it is told and leaves no goroutine, or the
// bubble would not end.
func TestBaselinesStop(t *testing.T) {
	for name := range baselines {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				run := newPlain(0).start(ctx, name)
				for run.Stats().Executed < 100_000 {
					runtime.Gosched()
				}
				stop()
				c, err := run.Wait()
				require.NoError(t, err)
				require.Equal(t, c.Emitted*(1+wordsPerLine), c.Executed, "what was sent is counted")
			})
		})
	}
}
