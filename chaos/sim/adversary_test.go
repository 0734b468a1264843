package sim

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// planned plays a plan on the stage, which must keep its promises.
func planned(t *testing.T, seed uint64, edit func(*scene), plan string) *stage {
	s := newStage(t, seed, func(s *scene) { edit(s); s.plan = planOf(plan) })
	require.NoError(t, s.scene.check(), plan)
	s.play()
	if s.rec.bad != nil {
		t.Errorf("%s: %v", plan, s.rec.bad)
	}
	return s
}

// Each fault is done to whom and when it says, and is counted.
func TestFaultsAreDone(t *testing.T) {
	queue := func(s *scene) { s.parts[0].queue, s.parts[0].splits = &queuePlan{most: 5}, []int{300} }
	three := func(s *scene) { s.parts[1].parallel = 3 }
	stuck := func(s *scene) { s.set.StuckAfter, s.set.Replace = 100*ms, true }
	for _, tt := range []struct {
		plan string
		edit func(*scene)
		want map[string]int
	}{
		{"", nothing, map[string]int{}},
		{"at 50ms kill b1a/0", nothing, map[string]int{"kill": 1}},
		{"at 50ms kill b1a/0 again 3", nothing, map[string]int{"kill": 4}},
		{"at 50ms crash */*", nothing, map[string]int{"crash": 3}},
		{"at 50ms crash b1a/*", three, map[string]int{"crash": 3}},
		{"at 50ms crash b1a", three, map[string]int{"crash": 1}},
		{"at 50ms crash *", three, map[string]int{"crash": 1}},
		{"every 50ms from 20ms to 200ms kill b2a/0", nothing, map[string]int{"kill": 4}},
		{"at message 20 kill s0; at event 100 kill b1a; at end 1 kill b2a", nothing, map[string]int{"kill": 3}},
		{"at 29s kill s0", nothing, map[string]int{}},
		{"at 50ms stall b1a/0 for 100ms", nothing, map[string]int{"stall": 1}},
		{"at 50ms hold b1a/0 -> b2a/0 for 100ms", nothing, map[string]int{"hold": 1}},
		{"at 50ms hold */* -> */* for 10ms", nothing, map[string]int{"hold": 6}},
		{"from 10ms to 60ms slow b1a/* by 3", three, map[string]int{"slow": 3}},
		{"at 50ms jump s0/0 by 10s", nothing, map[string]int{"jump": 1}},
		{"at 50ms jump */* by 10s", nothing, map[string]int{"jump": 3}},
		{"at 50ms panic b1a on 5", nothing, map[string]int{"panic": 1}},
		{"at 50ms panic b1a in finish; at 0s panic b2a in prepare", nothing, map[string]int{"panic": 2}},
		{"at 1ms break s0 in next; at 0s break s0 in open; at 50ms break s0", nothing, map[string]int{"break": 3}},
		{"at 1ms break s0 in ack; at 0s panic s0 in next; at 50ms panic s0 in ack", queue, map[string]int{"break": 1, "panic": 2}},
		{"from 1ms to 60ms pause s0", nothing, map[string]int{"pause": 1}},
		{"at 50ms hang b1a on 1 for 60ms", stuck, map[string]int{"hang": 1}},
		{"at 50ms drain", nothing, map[string]int{"drain": 1}},
		{"at 50ms drain within 1ms", nothing, map[string]int{"drain": 1}},
		{"at 50ms stop; at 60ms kill b1a", nothing, map[string]int{"stop": 1}},
	} {
		s := planned(t, 3, tt.edit, tt.plan)
		require.Equal(t, tt.want, s.report().Faults, tt.plan)
	}
}

// What may be done to a class of messages may be done to all of them, until it is healed,
// whatever else is late.
func TestFaultsToTheFull(t *testing.T) {
	for _, k := range chaos.Kinds() {
		for _, c := range chaos.Classes() {
			f := chaos.Fault{Kind: k, Class: c, Rate: 1_000_000}
			if !onLinks(k) || checkClass(f, nil, true) != nil {
				continue
			}
			if k == chaos.Delay || k == chaos.Reorder {
				f.Most = 50 * ms
			}
			for seed := range uint64(6) {
				edit, kill := nothing, "; at 300ms kill b1a/0"
				switch seed % 3 {
				case 1:
					edit = func(s *scene) { s.parts[1].act, s.parts[1].hold, s.parts[2].parallel = holding, 20, 2 }
				case 2: // an end is not behind all that is open, and must not overtake it
					edit, kill = func(s *scene) { s.guarantee, s.parts[2].parallel = topology.AtMostOnce, 2 }, ""
				}
				s := newStage(t, seed, edit) // which has a store or not
				if c == chaos.Save && !s.scene.stores() {
					continue
				}
				planned(t, seed, edit, f.String()+"; delay parcel 10ms..60ms 50%"+kill)
			}
		}
	}
}

// Rates are those of what they are of.
func TestFaultRates(t *testing.T) {
	count := func(plan, key string, edit func(*scene)) (n int) {
		for seed := range uint64(3) {
			n += planned(t, seed, edit, plan).report().Faults[key]
		}
		return n
	}
	for _, kind := range []string{"refuse b1a", "reject b1a", "poison b1a", "panic b1a", "redeliver s0", "break s0", "lose limit", "reorder report 0..10ms", "delay parcel 0..10ms", "repeat ask"} {
		key := strings.Fields(kind)[0]
		edit := nothing
		switch {
		case key == "poison":
			edit = func(s *scene) { s.set.MaxReplays = 1 }
		case strings.Contains(kind, "ask"):
			edit = func(s *scene) { s.parts[2].spend, s.set.MaxPending = 30*ms, 1000 }
		}
		if key == "lose" || key == "reorder" || key == "delay" || key == "repeat" {
			key += " " + strings.Fields(kind)[1]
		}
		few, many := count(kind+" 2%", key, edit), count(kind+" 20%", key, edit)
		require.Greater(t, many, 2*few, kind)
		require.NotZero(t, many, kind)
	}
}

// A plan without one of its faults does the others to the same tuples, and a lower rate
// hits some of those that a higher one hits.
func TestRatesAreNested(t *testing.T) {
	hit := func(plan string) map[uint64]bool {
		s := newStage(t, 1, func(s *scene) { s.plan = planOf(plan) })
		s.play()
		all := map[uint64]bool{}
		s.adv.over = false
		for x := range uint64(1000) {
			if s.adv.hits(chaos.Refuse, s.adv.tasks[b1a], x) != nil {
				all[x] = true
			}
		}
		return all
	}
	many := hit("refuse b1a 20%; reject b1a 50%")
	require.Equal(t, many, hit("refuse b1a/* 20%"))
	require.InDelta(t, 200, len(many), 60)
	few := hit("refuse b1a 5%")
	require.InDelta(t, 50, len(few), 30)
	for x := range few {
		require.True(t, many[x])
	}
	require.Empty(t, hit("refuse b2a 100%"))
}

// After healAfter nothing is left of what has no end of its own, and a slow task is
// as quick as before.
func TestHealing(t *testing.T) {
	last := map[string]time.Duration{}
	s := newStage(t, 1, func(s *scene) {
		s.plan = planOf("every 1s kill b1a/0; slow b2a/0 by 3; lose limit 10%; refuse b1a 10%; from 20s to 40s lose ask 10%")
		s.parts[0].wait, s.parts[0].perCall, s.set.StuckAfter = 600*ms, 1, 0
	})
	s.with(func(_, _ string, msg any) Verdict {
		for what, n := range s.adv.done {
			if last[what] == 0 || n > s.acts {
				last[what] = s.w.Now()
			}
		}
		return Verdict{}
	})
	s.play()
	require.Nil(t, s.rec.bad)
	require.Greater(t, s.took, healAfter+10*time.Second, "the run goes on")
	require.LessOrEqual(t, s.adv.done["kill"], 30)
	require.GreaterOrEqual(t, s.adv.done["kill"], 29)
	require.Equal(t, 1.0, s.adv.slow[s.adv.tasks[b2a]])
}

// Who dies by itself too often, or errs at one place too often, ends the run, and that is
// no fault of the engine. Who is killed has done nothing wrong, and lives again as often.
func TestRunsThatArePutToDeath(t *testing.T) {
	for plan, want := range map[string]string{
		"every 1ms break s0":                              "simulated: broken",
		strings.Repeat("at 0s panic b1a in prepare; ", 6): "task b1a/0 has died 6 times in a row",
	} {
		s := planned(t, 2, nothing, plan)
		require.ErrorContains(t, s.err, want, plan)
	}
	s := planned(t, 2, nothing, "every 1ms to 100ms kill b1a/0 again 30")
	require.NoError(t, s.err)
	require.Greater(t, s.adv.done["kill"], 100)
}

// A machine that was suspended: for no actor has the time passed. Whoever is in a call
// then has not been in it for so long, and no message has timed out.
func TestSuspendedMachine(t *testing.T) {
	hung := 0
	for seed := range uint64(20) {
		s := planned(t, seed, func(s *scene) {
			s.set.StuckAfter, s.set.Replace = 200*ms, true
			s.parts[1].spend, s.parts[2].spend = ms, ms
		}, "hang b1a 10% for 100ms; hang b2a 10% for 100ms; every 1.1s jump */* by 5s")
		hung += s.rec.hung
		require.Zero(t, len(s.rec.deaths), "nobody is replaced")
		for _, m := range s.rec.all {
			require.Zero(t, m.timedOut)
		}
		for _, m := range s.rec.ms {
			require.Zero(t, m.Stuck.Load(), "nobody is said to be stuck")
		}
	}
	require.Greater(t, hung, 100)
}

// Nor are calls that wait elsewhere, such as Commit, said to be stuck.
func TestSuspendedCalls(t *testing.T) {
	for seed := range uint64(30) {
		at := time.Duration(seed+1) * 13 * ms
		s := planned(t, seed, func(s *scene) { s.set.StuckAfter, s.wait = 400*ms, 100*ms }, "at "+at.String()+" jump */* by 5s")
		for _, m := range s.rec.ms {
			require.Zero(t, m.Stuck.Load(), "nobody is said to be stuck")
		}
	}
}

// A jump of one clock, the ledger's or another one's, times out nothing either.
func TestClockJump(t *testing.T) {
	for seed := range uint64(30) {
		by := time.Duration(seed+1) * 100 * ms // with a timeout of 1s
		for _, who := range []string{"s0/0", "b1a/0", "b2a/0", "*/*"} {
			s := planned(t, seed, func(s *scene) { s.parts[2].spend, s.set.MaxPending = 20*ms, 1000 }, "at 700ms jump "+who+" by "+by.String())
			require.Zero(t, s.rec.trees.still, "nothing else explains a timeout")
		}
	}
}

// The adversary harms any topology, and tells what it does; nobody has to listen.
func TestAdversaryAlone(t *testing.T) {
	for seed := range uint64(10) {
		var got []string
		w := New(Config{Seed: seed})
		executed := map[string]int{}
		top := topology.New("own", func(b *topology.Builder) {
			lines := b.Spout("lines", spout.Slice("a", "b", "c", "d")).Emits("line")
			b.Bolt("sink", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				executed[in.String("line")]++
				return nil
			}), lines.Shuffle()).Parallel(2)
		})
		plan, err := top.Build(topology.Options{Epoch: 1})
		require.NoError(t, err)
		harms := planOf("at 0s kill sink/*; at message 12 crash lines/0; lose limit 50%; delay parcel 0..10ms; at event 60 kill sink/1; at 1ms jump * by 3s")
		require.NoError(t, checkPlan(harms, targetsOf(plan), false))
		a := newAdversary(w, plan, harms, witness{dies: func(id tuple.TaskID, crash bool) { got = append(got, plan.TaskName(id)) }})
		if seed == 0 {
			a.tell = witness{}
		}
		w.onSend, w.timer = a.rule, a.timer
		var ms []*metrics.Task
		for id := range plan.Tasks {
			n := plan.Node(tuple.TaskID(id))
			ms = append(ms, metrics.NewTask(plan.TaskName(tuple.TaskID(id)), len(n.Streams), len(n.Inputs)))
		}
		set := newStage(t, seed, nothing).scene.set
		set.Event = func(task.Event) {}
		done, end := false, errors.New("not ended")
		a.sup = w.Spawn("supervisor", task.NewSupervisor(plan, &set, ms, func(err error) { done, end, a.over = true, err, true }))
		require.NoError(t, w.Run(func() bool { a.event(); return done }, Limit{Time: time.Hour}))
		require.NoError(t, end)
		require.Len(t, executed, 4)
		require.Positive(t, a.done["kill"])
		if seed > 0 {
			require.Equal(t, a.done["kill"]+a.done["crash"], len(got))
		}
	}
}

// A late timer is late, and in a world whose clocks jump the timers of the one that
// jumps come sooner.
func TestTimersAndJumps(t *testing.T) {
	c := calm
	c.OnTimer = func(_ actor.Ref, msg any) time.Duration {
		if msg == "late" {
			return time.Second
		}
		return 0
	}
	w := New(c)
	type heard struct {
		what string
		at   time.Duration // by the world
		by   time.Duration // by the actor's clock
	}
	var got []heard
	spawn := func(name string) actor.Ref {
		return w.Spawn(name, &toy{
			start: func(ctx actor.Context) {
				ctx.After(2*time.Second, "late")
				ctx.After(10*time.Second, "far")
				if name == "jumps" {
					ctx.Spawn("child", &toy{start: func(ctx actor.Context) { ctx.After(20*time.Second, "child") }, receive: func(ctx actor.Context, msg any) {
						got = append(got, heard{"child", w.Now().Round(ms), ctx.Now().Round(ms)})
					}})
				}
			},
			receive: func(ctx actor.Context, msg any) {
				got = append(got, heard{name + " " + msg.(string), w.Now().Round(ms), ctx.Now().Round(ms)})
			},
		})
	}
	spawn("stays")
	ref := spawn("jumps")
	w.At(time.Second, "jump", func() { w.Jump(ref, 5*time.Second) })
	require.NoError(t, w.Run(nil, Limit{}))
	require.Equal(t, []heard{
		{"jumps late", time.Second, 6 * time.Second},
		{"stays late", 3 * time.Second, 3 * time.Second},
		{"jumps far", 5 * time.Second, 10 * time.Second},
		{"stays far", 10 * time.Second, 10 * time.Second},
		{"child", 20 * time.Second, 20 * time.Second},
	}, got)
	require.Equal(t, Left{}, w.Left())
}

// A copy that keeps the order comes just behind the message, whatever else is said.
func TestCopiesInOrder(t *testing.T) {
	for seed := range uint64(20) {
		c := Config{Seed: seed}
		c.OnSend = func(_, _ actor.Ref, msg any) Verdict {
			if msg.(said).n%3 == 0 {
				return Verdict{Copies: 1, Behind: true, Delay: time.Duration(msg.(said).n) * 100 * us}
			}
			return Verdict{}
		}
		w := New(c)
		var got, want []any
		sink := w.Spawn("sink", recorder(&got))
		n := 0
		w.Spawn("talker", &toy{turn: func(ctx actor.Context) bool {
			ctx.Send(sink, said{0, n})
			want = append(want, said{0, n})
			if n%3 == 0 {
				want = append(want, said{0, n})
			}
			n++
			return n < 100
		}})
		require.NoError(t, w.Run(nil, Limit{}))
		require.Equal(t, want, got)
		require.Equal(t, Left{}, w.Left())
	}
}
