package sim

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// How long a run may take, in made-up time and in events. What is slow in a run
// is pauses: before replays up to 10 s, before a life up to 10 s.
const (
	mostTime   = time.Hour
	mostEvents = 8_000_000
)

// A run is one run of a scene.
type run struct {
	scene *scene
	w     *World
	rec   *record
	plan  *topology.Plan
	adv   *adversary
	sup   actor.Ref
	done  bool
	took  time.Duration
	err   error
	own   *own // the topology is the user's; nil: it is the scene's
	// prologue, if not nil, is called before the first event.
	prologue func()
}

func newRun(s *scene, log io.Writer) *run {
	r := &run{scene: s}
	r.w = New(Config{Seed: s.seed, Links: s.net, Cost: s.cost, Block: s.wait, Log: log, Hangs: s.plans(chaos.Hang, nil), OnSend: r.onSend, OnTimer: r.onTimer})
	r.rec = newRecord(r.w, s)
	r.w.describe, r.w.content = describe, task.AppendContent
	if log != nil {
		_, _ = io.WriteString(log, s.String())
	}
	return r
}

func (r *run) play() {
	defer func() {
		bad, deaths := r.rec.bad, slices.Clone(r.rec.deaths)
		r.w.Release()
		r.rec.bad, r.rec.deaths = bad, deaths // what comes after the end is no fault, and mends nothing
	}()
	if r.own == nil {
		r.rec.store = drawStore(r.rec)
		plan, err := r.scene.topology(r.rec).Build(topology.Options{Epoch: 1})
		if err != nil {
			r.rec.violate(chaos.Ending, "%v", err)
		}
		r.plan = plan
	}
	plan := r.plan
	if plan == nil {
		return // it has mistakes
	}
	r.rec.plan, r.rec.edges = plan, newEdgeBook(plan)
	for id := range plan.Tasks {
		n := &plan.Components[plan.Tasks[id].Component]
		r.rec.ms = append(r.rec.ms, metrics.NewTask(plan.TaskName(tuple.TaskID(id)), len(n.Streams), len(n.Inputs)))
	}
	r.rec.jumps = make([]jump, len(plan.Tasks))
	r.adv = newAdversary(r.w, plan, r.scene.plan, r.rec.witness())
	r.rec.adv = r.adv
	set := r.scene.set
	set.Event, set.Verdict, set.Tree = r.rec.event, r.rec.verdict, r.rec.attempted
	if u := r.own; u != nil {
		set.Event, set.Verdict = u.event, func(v *task.Verdict) { u.verdict(r.rec, v) }
		set.Tree = func(tree tuple.TreeID, b *spout.Batch, first, n int) { u.attempted(r.rec, tree, b, first, n) }
	}
	if r.rec.store != nil {
		set.Store = r.rec.store
	}
	r.sup = r.w.Spawn("supervisor", task.NewSupervisor(plan, &set, r.rec.ms, func(err error) {
		r.done, r.err, r.adv.over, r.adv.ended = true, err, true, true
		if r.rec.store != nil {
			r.rec.store.over = r.w.Now()
		}
	}))
	r.adv.sup = r.sup
	r.heal()
	if r.prologue != nil {
		r.prologue()
	}
	if !r.wait(func() bool { return r.step() || r.done }) {
		return
	}
	r.took = r.w.Now()
	r.rec.took = r.took
	r.w.Stop(r.sup)
	if !r.wait(nil) {
		return
	}
	r.rec.check(chaos.Rest)
	if left := r.w.Left(); left != (Left{}) {
		r.rec.violate(chaos.Rest, "left when everything has stopped: %v", left)
	}
	for _, p := range r.w.procs[1:] {
		if p.state != ended {
			r.rec.violate(chaos.Rest, "%s has not ended", p.label)
		}
	}
	if r.own != nil {
		r.own.atEnd(r)
	} else {
		r.rec.atEnd(r.err)
	}
}

// wait runs the world and says whether all is well.
func (r *run) wait(until func() bool) bool {
	err := r.w.Run(until, Limit{Time: mostTime, Events: mostEvents})
	if err != nil {
		r.rec.violate(chaos.Rest, "%v%s", err, r.stuck())
	}
	return r.rec.bad == nil
}

// stuck says what has not come through, for people.
func (r *run) stuck() string {
	if r.own != nil {
		return r.own.stuck(r.rec.ms)
	}
	for _, m := range r.rec.all {
		if m.delivery != nil && len(m.delivery.at) > 0 {
			continue
		}
		if e := m.missing(r.w.Now()); e != nil && len(m.dead) == 0 && !r.rec.harmed(m.owner) {
			return fmt.Sprintf("; %s waits for %s", m.name, r.rec.where(e))
		}
	}
	return ""
}

// step is called after each event. It returns true if the run is to end because
// something is wrong.
func (r *run) step() bool {
	r.adv.event()
	r.heal()
	r.end()
	if r.own == nil {
		r.rec.moves()
	}
	for i := range r.plan.Components {
		n := &r.plan.Components[i]
		if !n.Reads() {
			break // spouts come first
		}
		for k := range n.Parallel {
			m := r.rec.ms[int(n.First)+k]
			most := m.MaxPending.Load() + int64(r.scene.set.TreeSize)
			if n.Dead {
				most += m.MaxPending.Load() // their letters
			}
			if open := m.Open(); open > most || open < 0 {
				r.rec.violate(chaos.Pending, "%s has %d messages open, and MaxPending is %d", m.Name, open, m.MaxPending.Load())
			}
			if kept := m.Kept.Load(); r.own == nil && kept > r.rec.mostKept(i) {
				r.rec.violate(chaos.Pending, "%s keeps %d bytes for replay, and may keep %d: MaxPendingBytes is %d", m.Name, kept, r.rec.mostKept(i), r.scene.set.PendingBytes)
			}
			if m.MaxPending.Load() > int64(r.scene.set.MaxPending) && !r.scene.holds() {
				r.rec.violate(chaos.Pending, "MaxPending of %s is %d, and nobody holds anything", m.Name, m.MaxPending.Load())
			}
		}
	}
	return r.rec.bad != nil
}

// heal begins the phase in which nothing goes wrong any more, when the faults are
// over.
func (r *run) heal() {
	if !r.rec.healed() && r.adv.healed() {
		r.rec.heal()
	}
}

// onSend is asked about each message, which it books as it is sent.
func (r *run) onSend(from, to actor.Ref, msg any) Verdict {
	if from == nil {
		return Verdict{}
	}
	report, _ := msg.(*acker.Report)
	var entries []acker.Entry
	if report != nil && !r.rec.healed() {
		entries = slices.Clone(report.Entries)
	}
	v := r.adv.rule(from, to, msg)
	switch m := msg.(type) {
	case *tuple.Parcel:
		r.rec.parcel(m, r.w.find(to))
		r.rec.outs.parcel(m, r.w.find(from))
	case *task.End:
		r.rec.outs.mayEnd(m.From)
	case *task.Limit:
		r.rec.limit(m)
	case *acker.Report:
		r.rec.hear(m, entries, v.Drop)
		r.rec.suspected(m)
	}
	return v
}

func (r *run) onTimer(of actor.Ref, msg any) time.Duration { return r.adv.timer(of, msg) }

func (r *run) report() Report {
	out := Report{
		Seed: r.scene.seed, Mood: r.scene.mood(), Hash: r.w.Hash(), Events: r.w.Events(), Time: r.took,
		Messages: len(r.rec.all), Faults: map[string]int{},
	}
	out.Checks, out.Twins = r.rec.counted()
	if r.plan != nil {
		out.Features = r.rec.featuresAtEnd()
	}
	for _, m := range r.rec.all {
		for _, e := range m.all {
			out.Executions += e.tries
		}
	}
	if r.adv != nil {
		out.Faults = r.adv.done
	}
	for _, d := range r.rec.deaths {
		if d.mended > 0 {
			out.Recovery = append(out.Recovery, d.mended-d.at)
		}
	}
	return out
}

// describe says for the written log what is in a message.
func describe(msg any) string {
	switch m := msg.(type) {
	case *tuple.Parcel:
		s := fmt.Sprintf("%d.%v->%d.%v %d tuples", m.From, m.FromLife, m.To, m.ToLife, m.Len())
		for _, slot := range m.Slots {
			s += fmt.Sprintf(" %v/%x*%d", slot.Tree, uint64(slot.Edge)>>48, slot.Count)
		}
		return s
	case *acker.Report:
		s := fmt.Sprintf("%d.%v->%d.%v", m.From, m.FromLife, m.To, m.ToLife)
		if len(m.View) > 0 {
			s += fmt.Sprintf(" view %v", m.View)
		}
		for _, e := range m.Entries {
			s += fmt.Sprintf(" %d:%x/%b", e.Seq, uint64(e.Xor)>>48, e.Mask)
		}
		for _, f := range m.Fails {
			s += fmt.Sprintf(" %v %d/%d", f.Class, f.Seq, f.Index)
		}
		if len(m.Lost)+len(m.Queued) > 0 {
			s += fmt.Sprintf(" lost %v queued %v", m.Lost, m.Queued)
		}
		if len(m.Held) > 0 {
			s += fmt.Sprintf(" held %v", m.Held)
		}
		return s
	case *task.Limit:
		return fmt.Sprintf("%d.%v->%d.%v up to %d", m.From, m.FromLife, m.To, m.ToLife, m.Total)
	case *task.Peers:
		s := ""
		for _, p := range m.Peers {
			s += fmt.Sprintf(" %d.%v", p.Task, p.Life)
		}
		return s
	}
	return ""
}
