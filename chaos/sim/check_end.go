package sim

import (
	"fmt"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// atEnd checks what must hold when a run has come to its end and everything has
// stopped.
func (rec *record) atEnd(err error) {
	rec.check(chaos.Ending)
	cut := rec.cut(err)
	rec.deathsAtEnd()
	if cut {
		rec.halfWay()
		return
	}
	if err != nil {
		rec.violate(chaos.Ending, "the run has ended with: %v", err)
		return
	}
	rec.twin(chaos.Ending)
	rec.spoutsAtEnd()
	if rec.scene.guarantee == topology.AtMostOnce {
		rec.atMostOnce()
	} else {
		rec.atLeastOnce()
	}
	rec.queuesAtEnd()
	rec.laws(true)
	rec.finishes()
	rec.closes()
	rec.treesAtEnd()
	rec.positionsAtEnd()
	rec.hangsAtEnd()
	rec.drainedAtEnd()
	rec.progressAtEnd()
	rec.arrivals()
	rec.creditAtEnd()
	rec.twinsAtEnd()
	if rec.store != nil {
		rec.store.atEnd()
	}
}

// halfWay checks what must hold when a run was ended with messages open: the
// next one reads them again, for what was committed was done, which is checked where
// it is committed; a queue has all its messages back.
func (rec *record) halfWay() {
	rec.halved = true
	for _, m := range rec.all {
		if m.delivery != nil {
			rec.queueRoot(m)
		}
	}
	rec.queuesAtEnd()
	rec.laws(false)
	rec.closes()
	rec.drainedAtEnd()
}

// expected calls f for every message that should have come through, those not
// read included.
func (rec *record) expected(f func(*root)) {
	for i := range rec.splits {
		for _, b := range rec.splits[i] {
			if rec.drained {
				break
			}
			for n := range b.messages {
				rec.read(b, n)
			}
		}
	}
	for _, m := range rec.all {
		f(m)
	}
}

// harmed reports whether an incarnation ended before its time.
func (rec *record) harmed(p *proc) bool {
	return p != nil && (p.silent != never || p.left != never || rec.harm[p])
}

func (rec *record) atLeastOnce() {
	now := rec.w.Now()
	quiet := rec.quiet()
	// Failures that were reported count, so each refusal of a tuple does, but for
	// those of lives that were killed and messages that were read again. The report
	// of a panic may come after the next attempt has begun.
	slack := 0
	switch {
	case rec.kills+rec.broken+rec.forgot > 0 || rec.trees.still > 0:
		slack = 1 << 30
	case rec.panics > 0:
		slack = 3
	}
	rec.expected(func(m *root) {
		if m.delivery != nil {
			rec.queueRoot(m)
			return
		}
		if rec.harmed(m.owner) {
			return // a bolt's own message dies with it
		}
		if rec.left(m) {
			return
		}
		rec.twin(chaos.Acks)
		e, dead := m.missing(now), happened(m.dead, now)
		if e != nil && !dead {
			rec.violate(chaos.Acks, "the run has ended, but %s is neither done nor dead: %s is missing", m.name, rec.where(e))
		}
		rec.lettersOf(m)
		if !m.acked && !dead {
			rec.violate(chaos.Acks, "the run has ended, and %s was never acked", m.name)
		}
		for _, e := range m.all {
			rec.check(chaos.Executions)
			rec.twin(chaos.Executions)
			again := max(1, m.reads) + m.replays
			switch most := m.verdicts + m.reads + m.replays*(1+len(rec.deaths)); {
			case e.tries > most:
				rec.violate(chaos.Executions, "%s: %s, but there were %d attempts at most", m.name, rec.where(e), most)
			case quiet && e.tries > max(1, m.reads)+m.head().kinFails:
				rec.violate(chaos.Executions, "%s: %s, but nothing was lost and it failed %d times", m.name, rec.where(e), m.fails)
			case rec.scene.set.MaxReplays >= 0 && e.fails > again*(rec.scene.set.MaxReplays+1)+slack+m.lost: // a lost attempt's tuples may come yet
				rec.violate(chaos.Executions, "%s: %s, but MaxReplays is %d", m.name, rec.where(e), rec.scene.set.MaxReplays)
			}
		}
		if quiet && m.rejects > (max(1, m.reads)+m.replays)*(len(m.all)+m.strays) {
			rec.violate(chaos.Executions, "%s is rejected %d times", m.name, m.rejects)
		}
	})
}

func (rec *record) atMostOnce() {
	quiet := rec.kills+rec.panics+rec.broken == 0
	rec.expected(func(m *root) {
		if m.delivery != nil {
			rec.queueRoot(m)
			return
		}
		begun := !rec.drained || m.split == nil
		for _, e := range m.all {
			begun = begun || e.tries > 0
		}
		for _, e := range m.all {
			rec.check(chaos.Executions)
			if begun && quiet && rec.scene.harmless() {
				rec.twin(chaos.Executions)
			}
			switch {
			case e.tries > 1 && m.reads == 1:
				rec.violate(chaos.Executions, "%s: %s, and it was read once", m.name, rec.where(e))
			case e.tries == 0 && begun && quiet && rec.scene.harmless():
				rec.violate(chaos.Executions, "%s: %s, and nothing has died", m.name, rec.where(e))
			}
		}
	})
}

// laws checks the engine's own books. With atRest nothing may be open.
func (rec *record) laws(atRest bool) {
	for id, m := range rec.ms {
		rec.check(chaos.Laws)
		if rec.scene.guarantee == topology.AtLeastOnce {
			b := rec.queues[rec.plan.Tasks[id].Component]
			queue := b != nil && b.hasAll(m.Name)
			if open := m.Open(); open != 0 && (atRest || queue) || open < 0 {
				rec.violate(chaos.Laws, "%s: %d messages are open at the end", m.Name, open)
			}
			if a, n := m.Attempts.Load(), m.Acked.Load()+m.Failed.Load()+m.Lost.Load()+m.TimedOut.Load(); a != n+m.Trying.Load() || m.Trying.Load() != 0 && (atRest || queue) {
				rec.violate(chaos.Laws, "%s: %d attempts, but %d have ended and %d are under way", m.Name, a, n, m.Trying.Load())
			}
		}
		// Drained behind the death of a queue's task, a run waits no more for what that
		// had sent: the next one gets it again.
		if n := m.Queued.Load(); n != 0 && atRest && !(rec.kills > 0 && (rec.drained || rec.scene.guarantee == topology.AtMostOnce)) {
			rec.violate(chaos.Laws, "%s: %d tuples are queued at the end", m.Name, n)
		}
		for i := range m.Inputs {
			in := &m.Inputs[i]
			settled := in.Acked.Load() + in.Failed.Load()
			if rec.scene.retains() && (rec.kills+rec.panics+rec.forgot > 0 || len(m.Inputs) > 1) && settled <= in.Executed.Load() {
				continue // the rest was held, by the dead or for ever
			}
			if in.Executed.Load() != settled+m.Held.Load() {
				rec.violate(chaos.Laws, "%s: executed %d tuples, acked %d and failed %d", rec.plan.TaskName(tuple.TaskID(id)), in.Executed.Load(), in.Acked.Load(), in.Failed.Load())
			}
		}
	}
}

// finishes checks that every bolt was finished.
func (rec *record) finishes() {
	last := map[string]*simBolt{}
	for _, b := range rec.bolts {
		if b.prepared {
			last[b.name()] = b
		}
	}
	for i := range rec.scene.parts {
		p := &rec.scene.parts[i]
		for k := 0; k < p.parallel && !p.spout(); k++ {
			rec.twin(chaos.Finishes)
			name := fmt.Sprintf("%s/%d", p.name, k)
			if b := last[name]; b == nil || b.finished != 1 {
				rec.violate(chaos.Finishes, "the last incarnation of %s was not finished", name)
			}
		}
	}
}

// closes checks Close of every bolt and every reader.
func (rec *record) closes() {
	for _, b := range rec.bolts {
		want := 1
		if !b.prepared || b.proc.silent != never {
			want = 0
		}
		rec.check(chaos.Closes)
		if want > 0 {
			rec.twin(chaos.Closes)
		}
		if b.closed > 1 || b.closed < want {
			rec.violate(chaos.Closes, "%s, incarnation %d, was closed %d times, and should be %d", b.name(), b.number, b.closed, want)
		}
	}
	if rec.kills == 0 && rec.readers != 0 {
		rec.violate(chaos.Closes, "%d readers were never closed", rec.readers)
	}
}
