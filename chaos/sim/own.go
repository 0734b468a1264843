package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A Run is one simulated run of a topology of yours: see Options.Topology. All code of
// the topology runs in one goroutine, one call after the other, so it may share what it
// likes with the checks.
//
// What a task does in the rest of a call in which it is killed has no effect on the
// topology, but it does on what it shares with the checks.
type Run struct {
	seed   uint64
	w      *World
	checks []func(*Outcome) error
}

// Seed is the seed of the run: what a run draws for itself it draws from this.
func (r *Run) Seed() uint64 { return r.seed }

// Check has a function called when the run has come to its end and all of its actors
// have stopped. Its error fails the seed. Checks are called in the order in which they
// were given, until one errs.
func (r *Run) Check(f func(*Outcome) error) { r.checks = append(r.checks, f) }

// Now is the made-up time since the run began, by the clock of the task whose code asks.
func (r *Run) Now() time.Duration { return r.w.Now() }

// Spend makes d pass for the task whose code is running, as a call to something slow
// would.
func (r *Run) Spend(d time.Duration) { r.w.Spend(d) }

// An Outcome is what came of a run.
type Outcome struct {
	Plan   chaos.Plan     // what was to be done to it
	Faults map[string]int // what was done
	Ended  bool           // it was ended before its input had: by a drain or stop of the plan, or after Options.For
	// Tasks are the counters of all tasks, in the order of the topology; their names are
	// like count/2.
	Tasks []*metrics.Task
	Dead  []*DeadLetter // of messages that were given up
}

// A DeadLetter is a message that was given up.
type DeadLetter = task.DeadLetter

// Once reports whether each message was read once and tried once, so that every tuple
// was executed exactly once. It was not if a message was replayed, or a task died that
// reads: the next one reads again what is not known to be done.
func (o *Outcome) Once() bool {
	for _, t := range o.Tasks {
		if t.Attempts.Load() > t.Messages.Load() || t.Messages.Load() > 0 && t.Restarts.Load() > 0 {
			return false
		}
	}
	return true
}

// An own is a topology of the user's in a run.
type own struct {
	*Run
	topology *topology.Topology
	dead     []*DeadLetter
}

// newOwn builds the topology of a seed's run and draws what is done to it.
func newOwn(seed uint64, o *Options, log io.Writer) *run {
	u := &own{Run: &Run{seed: seed}}
	u.topology = o.Topology(u.Run)
	plan, err := u.topology.Build(topology.Options{Params: o.Params, Epoch: 1})
	s := drawOwn(seed, o, plan)
	r := newRun(s, log)
	r.own, r.plan, u.w = u, plan, r.w
	if err != nil {
		r.rec.violate(chaos.Own, "%v", err)
	}
	return r
}

// drawOwn draws the scene of a topology that is there: settings, a network and faults.
func drawOwn(seed uint64, o *Options, plan *topology.Plan) *scene {
	s := &scene{seed: seed, own: true}
	s.drawSettings(rand.New(rand.NewPCG(seed, 0x6f776e)))
	s.set.MaxReplays, s.set.PendingBytes = 8, 64<<20 // it may hold what it likes
	if plan == nil {
		return s
	}
	s.guarantee = plan.Guarantee
	for i := range plan.Components {
		n := &plan.Components[i]
		// Nobody knows what it does: it may hold what it likes.
		p := part{name: n.Name, parallel: n.Parallel, act: holding}
		for _, in := range n.Inputs {
			p.inputs = append(p.inputs, edge{from: in.From})
		}
		s.parts = append(s.parts, p)
	}
	p := &planner{s: s, r: rand.New(rand.NewPCG(seed, 0x706c616e)), span: 1000}
	switch {
	case o.Plan != nil:
		s.plan = slices.Clone(*o.Plan)
	case !o.Peaceful && !chance(p.r, 32):
		if chance(p.r, 70) {
			p.messages()
		}
		if len(p.plan) == 0 || chance(p.r, 85) {
			p.actors()
		}
		s.plan = p.plan
	}
	if o.For > 0 {
		s.plan = append(s.plan, chaos.Fault{Kind: chaos.Drain, When: chaos.At(o.For)})
	}
	return s
}

// checkOwn says why the plan of a run cannot be done to its topology. Its code fails by
// itself, if it is to fail.
func (r *run) checkOwn() error {
	if r.plan == nil {
		return nil // which will be said
	}
	for _, f := range r.scene.plan {
		switch f.Kind {
		case chaos.Refuse, chaos.Reject, chaos.Panic, chaos.Poison, chaos.Hang, chaos.Forget, chaos.Misroute, chaos.Pause, chaos.Break, chaos.Redeliver:
			return fmt.Errorf("%q: code of your own fails when it likes, not when a plan says so", f)
		}
	}
	return checkPlan(r.scene.plan, targetsOf(r.plan), false)
}

// event keeps what people are told.
func (u *own) event(e task.Event) {
	if d, is := e.(*task.DeadLetter); is {
		u.dead = append(u.dead, d)
	}
}

// attempted books that messages are emitted.
func (u *own) attempted(rec *record, tree tuple.TreeID, b *spout.Batch, first, n int) {
	if rec.moment(rec.w.running).at != never {
		rec.trees.open[tree] = &openTree{by: rec.w.running, batch: b, first: first, n: n, at: rec.w.Now(), ahead: rec.jumps[tree.Task].sum}
	}
}

// verdict checks what the engine thinks of a tree.
func (u *own) verdict(rec *record, v *task.Verdict) {
	defer rec.edges.forget(v.Tree)
	name := rec.plan.TaskName(v.Tree.Task)
	switch t := rec.ended(v); v.Outcome {
	case acker.Lost:
		rec.check(chaos.Losses)
		if !rec.edges.mayBeLost(v.Tree) {
			rec.violate(chaos.Losses, "messages of %s are lost, but no tuple of their tree %v can have gone to a life that is over", name, v.Tree)
		}
	case acker.TimedOut:
		rec.check(chaos.Timeouts)
		if !t.forgot && !t.unsaid && rec.w.Now() >= rec.trees.still {
			rec.violate(chaos.Timeouts, "messages of %s have timed out, but nothing of them was dropped and nobody was late: has a bolt retained a tuple and forgotten it?", name)
		}
	}
}

// atEnd checks the end of a run, and asks the user's checks.
func (u *own) atEnd(r *run) {
	rec := r.rec
	cut := rec.cut(r.err)
	if r.err != nil && !cut {
		rec.violate(chaos.Ending, "the run has ended with: %v", r.err)
		return
	}
	if !cut {
		rec.withoutEnd()
	}
	rec.laws(!cut)
	out := &Outcome{Plan: r.scene.plan, Faults: r.adv.done, Ended: !rec.whole(), Tasks: rec.ms, Dead: u.dead}
	for _, check := range u.checks {
		rec.check(chaos.Own)
		if err := check(out); err != nil {
			rec.violate(chaos.Own, "%v", err)
			return
		}
	}
}

// stuck says which spouts have open messages.
func (u *own) stuck(ms []*metrics.Task) (text string) {
	for _, m := range ms {
		if n := m.Open(); n > 0 {
			text += fmt.Sprintf("; %s has %d messages open", m.Name, n)
		}
		if n := m.Held.Load(); n > 0 {
			text += fmt.Sprintf("; %s holds %d tuples", m.Name, n)
		}
	}
	return text
}
