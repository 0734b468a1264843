package sim

import (
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// What must have come about when a run has come to its end. Most of it holds only for
// runs in which what happens is known for sure.

// quiet reports whether nothing has gone wrong but what bolts have refused.
func (rec *record) quiet() bool {
	return rec.kills+rec.panics+rec.broken+rec.forgot+rec.hung == 0 && rec.trees.still == 0
}

// spoutsAtEnd checks that what there was to be read was read, and emitted: also where
// MaxPending was in the way.
func (rec *record) spoutsAtEnd() {
	if !rec.whole() {
		return
	}
	for i := range rec.splits {
		for _, b := range rec.splits[i] {
			rec.twin(chaos.Sources)
			if len(b.roots) < b.messages {
				rec.violate(chaos.Sources, "the run has ended, and %d of %d messages of %v were read", len(b.roots), b.messages, b)
			}
			for _, m := range b.roots {
				if rec.scene.guarantee != topology.AtLeastOnce {
					break
				}
				rec.twin(chaos.Pending)
				if m.attempts == 0 {
					rec.violate(chaos.Pending, "the run has ended, and %s was read and never emitted", m.name)
				}
			}
		}
	}
}

// positionsAtEnd checks that sources were told the end of each split. Who does not
// come back from Commit is not told again.
func (rec *record) positionsAtEnd() {
	if rec.store != nil && rec.store.alone || rec.drained || rec.hung > 0 || rec.deaf {
		return
	}
	for i := range rec.splits {
		for _, b := range rec.splits[i] {
			rec.twin(chaos.Positions)
			if b.commits != b.messages {
				rec.violate(chaos.Positions, "the run has ended, %v has %d messages and is committed at %d", b, b.messages, b.commits)
			}
		}
	}
}

// A hangBook is a call that has not come back for some time.
type hangBook struct {
	by   *proc
	from time.Duration
	most time.Duration
}

// hangsAtEnd checks that who hung for long was found and replaced.
func (rec *record) hangsAtEnd() {
	set := &rec.scene.set
	if !set.Replace || !rec.whole() {
		return
	}
	for _, h := range rec.hangsOf {
		if h.most < 2*set.StuckAfter || h.by.silent <= h.from+2*set.StuckAfter {
			continue
		}
		rec.twin(chaos.Hangs)
		if h.by.left > h.from+h.most+turnSlack && !rec.harm[h.by] {
			rec.violate(chaos.Hangs, "%s hung for %v from %v on and was not replaced; StuckAfter is %v", h.by.label, h.most, h.from, set.StuckAfter)
		}
	}
}

// drainedAtEnd checks that a drain has ended when it should.
func (rec *record) drainedAtEnd() {
	if !rec.drained {
		return
	}
	rec.twin(chaos.Drained)
	if most := rec.drainFor + time.Minute; rec.took-rec.drainedAt > most {
		rec.violate(chaos.Drained, "the drain has taken %v, and had %v", rec.took-rec.drainedAt, rec.drainFor)
	}
}

// deathsAtEnd checks that each task whose life was ended has another one.
func (rec *record) deathsAtEnd() {
	if !rec.whole() {
		return
	}
	last := map[string]*proc{}
	for _, p := range rec.w.procs[1:] {
		last[p.ref.(address).name] = p
	}
	for _, b := range rec.bolts {
		p := b.proc
		if !b.prepared || b.finished > 0 || p.silent == never && !rec.harm[p] {
			continue
		}
		rec.twin(chaos.Panics)
		if last[p.ref.(address).name] == p {
			rec.violate(chaos.Panics, "%s has died, and there is no life after it", p.label)
		}
	}
}

// twinsAtEnd checks what must have become of what was refused, retained and lost.
func (rec *record) twinsAtEnd() {
	quiet := rec.quiet() && !rec.drained && rec.scene.guarantee == topology.AtLeastOnce
	if quiet || rec.scene.guarantee == topology.AtMostOnce && rec.scene.harmless() && rec.whole() {
		rec.ordersAtEnd()
	}
	if quiet {
		rec.countsAtEnd()
	}
	for _, m := range rec.all {
		if rec.harmed(m.owner) || rec.drained {
			continue
		}
		if m.held > 0 && m.delivery == nil {
			rec.twin(chaos.Retained)
			if !m.acked && len(m.dead) == 0 && rec.scene.guarantee == topology.AtLeastOnce {
				rec.violate(chaos.Retained, "%s was retained and let go of, and is neither done nor dead", m.name)
			}
		}
		if m.fails == 0 || rec.harmed(m.reader) || m.reads != 1 || rec.scene.guarantee != topology.AtLeastOnce {
			continue
		}
		rec.twin(chaos.Failures)
		heard := m.failed + m.lost + m.timedOut + len(m.dead)
		if heard == 0 {
			rec.violate(chaos.Failures, "%d tuples of %s were refused, and it has never failed", m.fails, m.name)
		}
		if m.accidents > 0 {
			rec.twin(chaos.Zombies)
			if heard == 0 {
				rec.violate(chaos.Zombies, "a bolt has died of %s, and what it said of that was not heard", m.name)
			}
			// Some of them may have been killed before they came to that.
			if most := rec.scene.set.MaxReplays; most >= 0 && m.worst() > most+3 && len(m.dead) == 0 && m.replays == 0 && m.delivery == nil {
				rec.violate(chaos.Zombies, "bolts have died of a tuple of %s %d times, and it is not dead: MaxReplays is %d", m.name, m.worst(), most)
			}
		}
		if quiet && m.rejects > 0 && m.delivery == nil {
			rec.twin(chaos.DeadLetters)
			if len(m.dead) == 0 {
				rec.violate(chaos.DeadLetters, "%s was rejected, and is not dead", m.name)
			}
		}
	}
}

// countsAtEnd compares what the engine has counted with what there was.
func (rec *record) countsAtEnd() {
	tries := make([]int64, len(rec.scene.parts))
	for _, m := range rec.all {
		for _, e := range m.all {
			tries[e.part] += int64(e.tries)
		}
	}
	for c := range rec.plan.Components {
		p := rec.part(c)
		if p == nil || p.spout() {
			continue
		}
		executed := int64(0)
		for k := range p.parallel {
			m := rec.ms[rec.plan.Components[c].First+tuple.TaskID(k)]
			for i := range m.Inputs {
				executed += m.Inputs[i].Executed.Load()
			}
		}
		rec.twin(chaos.Laws)
		for i := range rec.scene.parts {
			if rec.scene.parts[i].name == p.name && executed != tries[i] {
				rec.violate(chaos.Laws, "%s counts %d executed tuples, and there were %d", p.name, executed, tries[i])
			}
		}
	}
}
