package sim

import (
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/tuple"
)

// An outBook counts what tasks emit and what leaves them, and so knows of some that
// they have no room: what is not sent does not fit into their open parcels, or has
// waited for too long to be in one. It knows nothing of a task that, or a receiver of
// which, has died.
type outBook struct {
	rec  *record
	made map[tuple.TaskID]int // tuples, one for each task that gets it
	left map[tuple.TaskID]int
	rest map[tuple.TaskID]time.Duration // since when there is something that has not left, and nothing does
}

func newOutBook(rec *record) *outBook {
	return &outBook{rec, map[tuple.TaskID]int{}, map[tuple.TaskID]int{}, map[tuple.TaskID]time.Duration{}}
}

// emitted books a tuple that a task of a part emits.
func (o *outBook) emitted(t tuple.TaskID, part, stream int, id uint64) {
	s := o.rec.scene
	if o.made[t] == o.left[t] {
		o.rest[t] = o.rec.w.Now()
	}
	for to := range s.parts {
		for _, e := range s.parts[to].inputs {
			if e.from == part && e.stream == stream {
				o.made[t] += len(s.tasks(e, to, id))
			}
		}
	}
}

// parcel books a parcel, and checks that no life sends it that has been replaced.
func (o *outBook) parcel(p *tuple.Parcel, from *proc) {
	now := o.rec.w.Now()
	o.left[p.From] += p.Len()
	o.rest[p.From] = now
	o.rec.check(chaos.Zombies)
	if from.left <= now {
		o.rec.violate(chaos.Zombies, "%s sends a parcel %v after it was replaced", from.label, now-from.left)
	}
}

// knows reports whether what a task of a part has made and not sent is in its parcels.
// open is how much of that can be in open ones.
func (o *outBook) knows(t tuple.TaskID, part int) (open int, yes bool) {
	s, lives := o.rec.scene, o.rec.edges.lives
	if lives[t].Restart() > 1 || s.plans(chaos.Misroute, nil) {
		return 0, false
	}
	for to := range s.parts {
		for _, e := range s.parts[to].inputs {
			if e.from != part {
				continue
			}
			for k := range s.parts[to].parallel {
				if lives[o.rec.task(to, k)].Restart() > 1 {
					return 0, false
				}
			}
			open += s.parts[to].parallel * (s.set.ParcelSize - 1)
		}
	}
	return open, true
}

// mayGoOn checks that a bolt that does something has room.
func (o *outBook) mayGoOn(b *simBolt, does string) {
	rec, t := o.rec, b.id()
	open, known := o.knows(t, b.part)
	if !known || b.calls != nil {
		return
	}
	rec.check(chaos.Credit)
	kept, waits := o.made[t]-o.left[t], rec.w.Now()-o.rest[t]
	if kept > open || kept > 0 && rec.punctual() && waits > rec.scene.set.Linger+200*time.Millisecond {
		rec.violate(chaos.Credit, "%s %s, and %d tuples of it have waited for room for %v", b.name(), does, kept, waits)
	}
}

// mayEnd checks that a task that passes on its end has sent all that it had.
func (o *outBook) mayEnd(t tuple.TaskID) {
	rec, part := o.rec, o.rec.plan.Tasks[t].Component
	if _, known := o.knows(t, part); !known || !rec.whole() {
		return
	}
	rec.check(chaos.Finishes)
	if o.made[t] > o.left[t] {
		rec.violate(chaos.Finishes, "%s passes on its end before %d tuples", rec.plan.TaskName(t), o.made[t]-o.left[t])
	}
}

// still checks that a tuple that was retained is still the same.
func (rec *record) still(e *execution, t tuple.Tuple) {
	rec.check(chaos.Retained)
	if id := t.Uint64("id"); id != e.id {
		rec.violate(chaos.Retained, "a tuple %016x that was retained is %016x now", e.id, id)
	}
}

// punctual reports whether all tasks act in time.
func (rec *record) punctual() bool { return rec.smooth() && !rec.scene.plans(chaos.Hang, nil) }

// smooth is punctual, but for calls that hang.
func (rec *record) smooth() bool {
	for _, k := range []chaos.Kind{chaos.Stall, chaos.Hold, chaos.Slow, chaos.Jump, chaos.Delay} {
		if rec.scene.plans(k, nil) {
			return false
		}
	}
	return true
}

// suspected checks that a bolt that has hung is soon known to hang with which tuple: it
// executes them one at a time.
func (rec *record) suspected(r *acker.Report) {
	if len(r.Fails) == 0 || r.Fails[0].Class != acker.Hung {
		return
	}
	now, n := rec.w.Now(), r.Fails[0].Suspects
	last, known := rec.blames[r.From]
	rec.blames[r.From] = now
	if d := now - last; known && d > 0 && d < 6*rec.scene.set.StuckAfter && rec.smooth() {
		rec.check(chaos.Hangs)
		if n > 1 {
			rec.violate(chaos.Hangs, "%s has hung again after %v, and there are %d suspects", rec.plan.TaskName(r.From), d, n)
		}
	}
}
