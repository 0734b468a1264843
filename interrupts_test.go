package egret

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Two SIGTERM at once are one interrupt; whoever presses a key twice means two.
func TestInterruptsAreCounted(t *testing.T) {
	const term, pause = syscall.SIGTERM, -1
	for _, tt := range []struct {
		name string
		come []syscall.Signal
		want int
	}{
		{"timeout", []syscall.Signal{term, term}, 1},
		{"twice", []syscall.Signal{term, pause, term}, 2},
		{"timeout twice", []syscall.Signal{term, term, pause, term, term}, 2},
		{"keys", []syscall.Signal{syscall.SIGINT, syscall.SIGINT, syscall.SIGINT}, 3},
		{"both", []syscall.Signal{term, syscall.SIGINT, term}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals, quit := make(chan os.Signal), make(chan struct{})
				ended := make(chan struct{})
				var got []int
				go func() {
					defer close(ended)
					count(signals, quit, func(n int) { got = append(got, n) })
				}()
				for _, s := range tt.come {
					if s == pause {
						time.Sleep(atOnce)
						continue
					}
					signals <- s
				}
				close(quit)
				<-ended
				require.Equal(t, []int{1, 2, 3}[:tt.want], got)
			})
		})
	}
}
