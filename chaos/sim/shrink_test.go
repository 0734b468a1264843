package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// planted plays a plan on the stage, in an engine in which a kill of b1a/0 behind the
// tenth message does harm.
func planted(p chaos.Plan) (*Violation, int) {
	r := newStage(nil, 7, func(s *scene) { s.plan = p }).run
	r.prologue = func() {
		dies := r.adv.tell.dies
		r.adv.tell.dies = func(id tuple.TaskID, crash bool) {
			dies(id, crash)
			if r.plan.TaskName(id) == "b1a/0" && r.adv.counts[chaos.Messages].n > 10 && !crash {
				r.rec.violate("planted", "b1a/0 is killed")
			}
		}
	}
	r.play()
	return r.rec.bad, r.w.Events()
}

func TestShrink(t *testing.T) {
	all := newStage(t, 7, nothing).scene.targets()
	for _, text := range []string{
		"lose limit 12.3%; at 1.234ms stall s0/0 for 2ms; at 51.873ms kill b1a/0 again 3; refuse b1a/* 3%; at message 30 crash b1a; at 4s stop",
		"at 51.873ms kill */*; delay parcel 0..4ms 20%",
		"at message 2 kill b1a/0; every 52ms kill b1a/0; every 10ms stall * for 1ms",
	} {
		plan := planOf(text)
		bad, _ := planted(plan)
		require.NotNil(t, bad, text)
		small, why := shrink(plan, bad, all, planted)
		require.Equal(t, "at 50ms kill b1a/0", small.String(), text)
		require.EqualValues(t, "planted", why.Invariant)
		again, _ := planted(small)
		require.Equal(t, why, again, "what is said is what the smaller plan does")
	}
}

func TestShrinkToNothing(t *testing.T) {
	plan := planOf("lose limit 1%")
	small, _ := shrink(plan, &Violation{Invariant: "x"}, nil, func(chaos.Plan) (*Violation, int) { return &Violation{Invariant: "x"}, 1 })
	require.Empty(t, small)
	require.NotNil(t, small, "an empty plan is a plan")
}

// Whatever makes a run fail, the plan that is left makes it fail, no fault of it can be
// missed, and that costs no more than it may.
func TestShrinkAnything(t *testing.T) {
	seeds := []*scene{draw(1, &Options{}), draw(2, &Options{}), draw(3, &Options{}), draw(5, &Options{}), draw(9, &Options{}), draw(12, &Options{})}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(seeds).Draw(t, "scene")
		if len(s.plan) == 0 {
			return
		}
		needs := map[chaos.Kind]bool{}
		for range rapid.IntRange(1, 3).Draw(t, "needs") {
			needs[rapid.SampledFrom(s.plan).Draw(t, "need").Kind] = true
		}
		runs := 0
		play := func(p chaos.Plan) (*Violation, int) {
			runs++
			has := map[chaos.Kind]bool{}
			for _, f := range p {
				has[f.Kind] = true
			}
			for k := range needs {
				if !has[k] {
					return nil, 1
				}
			}
			return &Violation{Invariant: "x"}, 1
		}
		small, _ := shrink(s.plan, &Violation{Invariant: "x"}, s.targets(), play)
		if len(small) != len(needs) {
			t.Fatalf("%v is left, and %v is needed", small, needs)
		}
		if runs > mostRuns {
			t.Fatalf("%d runs", runs)
		}
		again, err := chaos.Parse(small.String())
		if err != nil || again.String() != small.String() || checkPlan(small, s.targets(), true) != nil {
			t.Fatalf("%v: %v %v", small, err, checkPlan(small, s.targets(), true))
		}
	})
}

// With another invariant broken it is another failure.
func TestShrinkKeepsTheInvariant(t *testing.T) {
	plan := planOf("at 1s kill a/0; at 2s kill a/0")
	small, bad := shrink(plan, &Violation{Invariant: "x"}, nil, func(p chaos.Plan) (*Violation, int) {
		if len(p) == 2 {
			return &Violation{Invariant: "x"}, 1
		}
		return &Violation{Invariant: "y"}, 1
	})
	require.Equal(t, plan, small)
	require.EqualValues(t, "x", bad.Invariant)
}

// The plans of topologies of users shrink as well, and For is no part of them.
func TestShrinkOwn(t *testing.T) {
	plan := planOf("lose limit 5%; at 1.234ms kill sink/0; at 5ms stall * for 1ms")
	o := Options{Plan: &plan, For: 40 * time.Second, Topology: func(r *Run) *topology.Topology {
		r.Check(func(out *Outcome) error {
			for _, m := range out.Tasks {
				if m.Restarts.Load() > 0 {
					return errors.New(m.Name + " has died")
				}
			}
			if len(out.Plan) > 4 {
				return errors.New("too many faults")
			}
			return nil
		})
		return topology.New("own", func(b *topology.Builder) {
			lines := b.Spout("lines", spout.Slice("a", "b", "c", "d")).Emits("line")
			b.Bolt("sink", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), lines.Shuffle())
		})
	}}
	_, err := Seed(1, o)
	var f *Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, "at 1ms kill sink/0", f.Plan.String())
	require.Equal(t, 3, f.Drawn)
	require.ErrorContains(t, err, `with a Log to see its events and the Plan "at 1ms kill sink/0" (1 of its 3 faults)`)
}

// A scene that fails without any fault is repeated without any.
func TestShrunkToNoPlanIsOne(t *testing.T) {
	o := Options{Plan: new(chaos.Plan), Topology: func(run *Run) *topology.Topology {
		run.Check(func(*Outcome) error { return errors.New("wrong") })
		return topology.New("t", func(b *topology.Builder) { b.Spout("s", spout.Slice("x")).Emits("x") })
	}}
	_, err := Seed(1, o)
	var f *Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, " --plan ''", f.Flag())
}
