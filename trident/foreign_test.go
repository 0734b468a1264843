package trident_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/state/pebble"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// endless counts messages that do not end, in a state of days.
func endless(back state.Backend) *topology.Topology {
	return trident.New("fl", func(b *trident.Builder) {
		numbers := trident.From[int64](b, "in", from.Paced(spout.Generate(0, func(n int64, out *spout.Out) { out.Emit(n) }), 200))
		days := trident.GroupBy(numbers, func(n int64) int64 { return n % 7 })
		trident.PersistentAggregate(days, trident.StateOf[int64, int64]("days", back, trident.Opaque), trident.Count[int64]()).Parallel(2)
	})
}

// A record that is not that of the states ends the run at once, whichever of the two has
// seen more attempts: nothing would ever change it. What is said names the state and its
// place, once, and what to do.
func TestForeignState(t *testing.T) {
	for _, tt := range []struct {
		name   string
		back   func(dir string) state.Backend
		place  func(dir string) string
		remove string
	}{
		{"memory", func(string) state.Backend { return memory.New() }, func(string) string { return "state fl/days in memory" }, "give the topology another memory.New()"},
		{"pebble", func(dir string) state.Backend { return pebble.Dir(dir) }, func(dir string) string { return "state fl/days in " + dir + "/fl/days" }, "delete that directory"},
	} {
		for _, epochs := range []struct{ state, record int }{{1, 1}, {4, 1}, {2, 1}, {1, 3}} {
			t.Run(tt.name, func(t *testing.T) {
				dir := t.TempDir()
				run := func(back state.Backend, record string) (took time.Duration, err error) {
					synctest.Test(t, func(t *testing.T) {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						began := time.Now()
						_, err = egret.Run(ctx, endless(back), egret.Config{StateDir: record, BatchSize: 100, MaxReplays: egret.NoReplays})
						took = time.Since(began)
					})
					return took, err
				}
				back := tt.back(dir + "/states")
				for range epochs.state {
					_, err := run(back, dir+"/one")
					require.NoError(t, err)
				}
				other := tt.back(dir + "/others")
				for range epochs.record - 1 {
					_, err := run(other, dir+"/two")
					require.NoError(t, err)
				}
				took, err := run(back, dir+"/two")
				require.ErrorContains(t, err, "the state does not fit the record")
				require.ErrorContains(t, err, tt.place(dir+"/states"))
				require.Equal(t, 1, strings.Count(err.Error(), "days in "), "%v", err)
				require.ErrorContains(t, err, tt.remove)
				require.ErrorContains(t, err, "start with the --state directory that the state was written with")
				require.Less(t, took, time.Second)
			})
		}
	}
}
