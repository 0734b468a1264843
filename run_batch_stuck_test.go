package egret_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
)

// A Commit or Join that hangs is replaced where that is wanted, and what it does when it
// comes back is refused.
func TestExactlyOnceStuck(t *testing.T) {
	for place, behind := range map[string]string{"write": "joined", "join": "written"} {
		t.Run(place, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				counts, log, release := newExactCounts(), &logbook{}, make(chan struct{})
				var hung atomic.Bool
				back := sync.OnceFunc(func() { close(release) })
				defer back()
				s, err := egret.Run(context.Background(), exactTopology(words(1, 2000), counts, func(at string) error {
					if at == place && (place == "join" || counts.written() > 3) && hung.CompareAndSwap(false, true) {
						<-release
					}
					if hung.Load() && at == behind {
						back() // beside the next life
					}
					return nil
				}), egret.Config{BatchSize: 200, OnStuck: egret.Replace, Logger: log.logger()})
				require.NoError(t, err)
				require.Equal(t, expected(1, 2000, 2), counts.get())
				require.EqualValues(t, 1, s.Restarts)
				told := log.with("task stuck")
				require.Len(t, told, 1)
				require.Contains(t, told[0], "replaced=true")
				require.Len(t, log.with("did not come back for"), 1)
			})
		})
	}
}

// One that hangs in each life ends the run; without Replace it is waited for.
func TestExactlyOnceStuckForEver(t *testing.T) {
	for _, action := range []egret.StuckAction{egret.Replace, egret.Report} {
		t.Run(action.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				log, release := &logbook{}, make(chan struct{})
				back := time.AfterFunc(10*time.Minute, func() { close(release) })
				defer func() {
					if back.Stop() {
						close(release)
					}
				}()
				s, err := egret.Run(context.Background(), exactTopology(words(1, 100), newExactCounts(), func(at string) error {
					if at == "write" {
						<-release
					}
					return nil
				}), egret.Config{OnStuck: action, Logger: log.logger()})
				if action == egret.Report {
					require.NoError(t, err)
					require.Zero(t, s.Restarts)
					require.Contains(t, log.with("task stuck")[0], "replaced=false")
					return
				}
				require.ErrorContains(t, err, "died 6 times in a row")
				require.ErrorContains(t, err, "Commit did not come back for")
			})
		})
	}
}
