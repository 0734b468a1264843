package egret_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// waitsFor is whom each task waits for, of those that do.
func waitsFor(t *testing.T, r *egret.Running) map[string]string {
	t.Helper()
	synctest.Wait()
	s, err := egret.SourceOf(r).Sample(t.Context())
	require.NoError(t, err)
	all := map[string]string{}
	for _, x := range s.Runs[0].Tasks {
		if x.WaitsFor != "" {
			all[x.Task] = x.WaitsFor
		}
	}
	return all
}

// gated is a topology whose task slow/1 executes nothing before the gate is open.
func gated(gate chan struct{}, in func(*topology.Component) topology.Subscription) *topology.Topology {
	return topology.New("gated", func(b *topology.Builder) {
		spout := b.Spout("in", &numbers{n: 100_000}).Emits("n")
		pass := b.Bolt("pass", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			out.Emit(in.String("n"))
			return nil
		}), spout.Shuffle()).Emits("n")
		b.Bolt("slow", factory(func() *made {
			m, index := &made{}, 0
			m.prepare = func(_ context.Context, task *bolt.Task) error { index = task.Index; return nil }
			m.execute = func(tuple.Tuple, *bolt.Collector) error {
				if index == 1 {
					<-gate
				}
				return nil
			}
			return m
		}), in(pass)).Parallel(2)
	})
}

// Who waits for room says for which task, for as long as it does.
func TestWaitsFor(t *testing.T) {
	byKey := func(c *topology.Component) topology.Subscription { return c.By("n") }
	for _, tt := range []struct {
		name   string
		config egret.Config
		in     func(*topology.Component) topology.Subscription
		want   map[string]string
	}{
		{"by key", egret.Config{}, byKey, map[string]string{"in/0": "pass/0", "pass/0": "slow/1"}},
		{"untracked", egret.Config{Guarantee: new(topology.AtMostOnce)}, byKey, map[string]string{"in/0": "pass/0", "pass/0": "slow/1"}},
		{"all", egret.Config{}, (*topology.Component).All, map[string]string{"in/0": "pass/0", "pass/0": "slow/1"}},
		{"a shuffle goes where there is room", egret.Config{}, (*topology.Component).Shuffle, map[string]string{}},
		{"it waits for acks, not for room", egret.Config{MaxPending: 20}, byKey, map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				gate := make(chan struct{})
				r, err := egret.Start(t.Context(), gated(gate, tt.in), quiet(tt.config))
				require.NoError(t, err)
				time.Sleep(5 * time.Second)
				require.Equal(t, tt.want, waitsFor(t, r))
				time.Sleep(5 * time.Second)
				require.Equal(t, tt.want, waitsFor(t, r))
				close(gate)
				time.Sleep(5 * time.Second)
				require.Empty(t, waitsFor(t, r))
				_, err = r.Wait()
				require.NoError(t, err)
				require.Empty(t, waitsFor(t, r))
			})
		})
	}
}

// A shuffle that finds no room names one of those without; a run that has ended, none.
func TestNobodyWaitsAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		top := topology.New("shut", func(b *topology.Builder) {
			in := b.Spout("in", &numbers{n: 100_000}).Emits("n")
			b.Bolt("slow", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { time.Sleep(time.Second); return nil }), in.Shuffle()).Parallel(3)
		})
		r, err := egret.Start(t.Context(), top, quiet(egret.Config{}))
		require.NoError(t, err)
		time.Sleep(5500 * time.Millisecond)
		require.Contains(t, []string{"slow/0", "slow/1", "slow/2"}, waitsFor(t, r)["in/0"])
		r.Stop()
		_, err = r.Wait()
		require.Error(t, err)
		require.Empty(t, waitsFor(t, r))
	})
}

// Who has room again does not wait, from before it is in its next call.
func TestWhoIsInACallDoesNotWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate, hold := make(chan struct{}), make(chan struct{})
		open := false
		top := topology.New("called", func(b *topology.Builder) {
			in := b.Spout("in", &numbers{n: 100_000}).Emits("n")
			pass := b.Bolt("pass", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
				if open {
					<-hold
				}
				out.Emit(in.String("n"))
				return nil
			}), in.Shuffle()).Emits("n")
			b.Bolt("slow", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { <-gate; return nil }), pass.Shuffle())
		})
		r, err := egret.Start(t.Context(), top, quiet(egret.Config{}))
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Equal(t, "slow/0", waitsFor(t, r)["pass/0"])
		open = true
		close(gate)
		time.Sleep(time.Second)
		require.NotContains(t, waitsFor(t, r), "pass/0")
		close(hold)
		_, err = r.Wait()
		require.NoError(t, err)
	})
}
