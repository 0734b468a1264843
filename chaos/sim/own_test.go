package sim_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/chaos/sim"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// numbered is a topology of one bolt behind n numbers, with something to do for it.
func numbered(n int64, do func(run *sim.Run, in tuple.Tuple, out *bolt.Collector) error) func(*sim.Run) *topology.Topology {
	return func(run *sim.Run) *topology.Topology {
		return topology.New("numbered", func(b *topology.Builder) {
			numbers := b.Spout("numbers", spout.Generate(n, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
			work := b.Bolt("work", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error { return do(run, in, out) }), numbers.Shuffle()).Emits("n").Parallel(2)
			b.Bolt("sink", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), work.Global())
		})
	}
}

// first returns the first failure of some seeds.
func first(t *testing.T, seeds int, o sim.Options) *sim.Failure {
	t.Helper()
	s := sim.Seeds(t.Context(), 1, seeds, o, nil)
	require.NotEmpty(t, s.Failures)
	return s.Failures[0]
}

func TestOwnTopologyIsHarmed(t *testing.T) {
	s := sim.Seeds(t.Context(), 1, 60, sim.Options{Topology: numbered(200, func(run *sim.Run, in tuple.Tuple, out *bolt.Collector) error {
		run.Spend(time.Millisecond)
		out.Emit(in.Int64("n"))
		return nil
	})}, nil)
	require.NoError(t, s.Err())
	require.Equal(t, 60, s.Seeds)
	require.GreaterOrEqual(t, s.Moods["peaceful"], 15)
	for _, what := range []string{"kill", "crash", "lose limit", "reorder report"} {
		require.NotZero(t, s.Faults[what], what)
	}
	require.NotZero(t, s.Checks)
}

// More than a window of tuples may go to a task.
func TestOwnManyTuples(t *testing.T) {
	_, err := sim.Seed(1, sim.Options{Peaceful: true, Once: true, Topology: numbered(9000, func(_ *sim.Run, in tuple.Tuple, out *bolt.Collector) error {
		out.Emit(in.Int64("n"))
		return nil
	})})
	require.NoError(t, err)
}

// A bolt that acks what it has not done yet loses it when it dies.
func TestOwnCheckFindsALoss(t *testing.T) {
	f := first(t, 40, sim.Options{Topology: func(run *sim.Run) *topology.Topology {
		seen := map[int64]bool{}
		run.Check(func(o *sim.Outcome) error {
			if len(seen) != 200 {
				return errors.New("something is lost")
			}
			return nil
		})
		return topology.New("hasty", func(b *topology.Builder) {
			numbers := b.Spout("numbers", spout.Generate(200, func(i int64, out *spout.Out) { out.Emit(i) })).Emits("n")
			b.Bolt("hasty", func() bolt.Bolt { return &hasty{seen: seen} }, numbers.Shuffle())
		})
	}})
	require.Equal(t, chaos.Own, f.Invariant)
	require.Contains(t, f.Error(), "something is lost")
	require.Contains(t, f.Error(), "sim.Seed(")
}

// A hasty bolt acks at once and writes ten at a time.
type hasty struct {
	seen map[int64]bool
	some []int64
}

func (h *hasty) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	if h.some = append(h.some, in.Int64("n")); len(h.some) == 10 {
		h.write()
	}
	return nil
}

func (h *hasty) Finish(*bolt.Collector) error {
	h.write()
	return nil
}

func (h *hasty) write() {
	for _, n := range h.some {
		h.seen[n] = true
	}
	h.some = nil
}

func TestOwnCodeThatDiffersIsNamed(t *testing.T) {
	f := first(t, 1, sim.Options{Topology: numbered(50, func(_ *sim.Run, in tuple.Tuple, out *bolt.Collector) error {
		if in.Int64("n") == 20 {
			out.Emit(time.Now().UnixNano())
		}
		return nil
	})})
	require.Equal(t, chaos.Repeatable, f.Invariant)
	require.Regexp(t, `event \d+, work/[01]#\d+, `, f.What)
	require.Contains(t, f.What, "clock")
}

func TestOwnForgottenTupleTimesOut(t *testing.T) {
	f := first(t, 20, sim.Options{Peaceful: true, Topology: numbered(50, func(_ *sim.Run, in tuple.Tuple, out *bolt.Collector) error {
		if in.Int64("n") == 20 {
			out.Retain(in)
		}
		return nil
	})})
	require.Equal(t, chaos.Timeouts, f.Invariant)
	require.Contains(t, f.What, "has a bolt retained a tuple and forgotten it?")
}

func TestOwnDeadLettersAreToldAndEndless(t *testing.T) {
	bad := errors.New("bad number")
	dead, ended := 0, 0
	r, err := sim.Seed(3, sim.Options{
		Peaceful: true, Once: true, For: 2 * time.Second,
		Topology: func(run *sim.Run) *topology.Topology {
			run.Check(func(o *sim.Outcome) error {
				for _, d := range o.Dead {
					dead++
					require.Equal(t, "numbers", d.Component)
					require.Contains(t, d.Err, bad.Error())
				}
				if o.Ended {
					ended++
				}
				require.Equal(t, uint64(3), run.Seed())
				return nil
			})
			return topology.New("endless", func(b *topology.Builder) {
				numbers := b.Spout("numbers", spout.Repeat(spout.Slice[int64](1, 2, 3), 0)).Emits("n")
				b.Bolt("work", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
					run.Spend(100 * time.Millisecond)
					if in.Int64("n") == 3 {
						return bolt.Reject(bad)
					}
					return nil
				}), numbers.Shuffle())
			})
		},
	})
	require.NoError(t, err)
	require.NotZero(t, dead)
	require.Equal(t, 1, ended)
	require.GreaterOrEqual(t, r.Time, 2*time.Second)
}

func TestOwnMistakes(t *testing.T) {
	f := first(t, 1, sim.Options{Topology: func(*sim.Run) *topology.Topology {
		return topology.New("lonely", func(b *topology.Builder) {
			b.Bolt("work", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }))
		})
	}})
	require.Equal(t, chaos.Own, f.Invariant)
	require.Contains(t, f.What, "work")

	f = first(t, 1, sim.Options{Peaceful: true, Topology: func(*sim.Run) *topology.Topology {
		return topology.New("broken", func(b *topology.Builder) {
			b.Spout("numbers", spout.Generate(1, func(int64, *spout.Out) { panic("no number") })).Emits("n")
		})
	}})
	require.Equal(t, chaos.Ending, f.Invariant)
	require.True(t, strings.Contains(f.What, "no number"), f.What)
}

func TestOwnPlan(t *testing.T) {
	o := sim.Options{Topology: numbered(100, func(run *sim.Run, in tuple.Tuple, out *bolt.Collector) error {
		run.Spend(time.Millisecond)
		out.Emit(in.Int64("n"))
		return nil
	})}
	plan := func(text string) sim.Options {
		p, err := chaos.Parse(text)
		require.NoError(t, err)
		o.Plan = &p
		return o
	}
	r, err := sim.Seed(1, plan("at 10ms kill work/1; at 20ms kill numbers; lose ask 1%"))
	require.NoError(t, err)
	require.Equal(t, 2, r.Faults["kill"])
	require.Equal(t, "deadly", r.Mood)

	for text, want := range map[string]string{
		"at 10ms kill wrok":   "wrok",
		"at 10ms kill work/2": "work",
		"refuse work 1%":      "code of your own fails when it likes",
		"lose parcel 1%":      "parcels between living tasks are never lost",
	} {
		o := plan(text)
		require.ErrorContains(t, o.Check(1), want)
		_, err := sim.Seed(1, o)
		require.ErrorContains(t, err, want)
	}
}
