package sim

import (
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/tuple"
)

// How the simulated sources, queues and bolts do what a plan wants of them. What a
// bolt does with a tuple depends on the plan, the tuple and how often it has done
// it, and on nothing else but the time at which a fault begins and ends.

// panicText is what simulated parts panic with. What else comes out of a task is a
// fault of the engine.
const panicText = "simulated: panic"

// task returns the task of a part.
func (rec *record) task(part, index int) tuple.TaskID {
	return rec.plan.Components[part].First + tuple.TaskID(index)
}

// here returns the task whose code is running.
func (rec *record) here() tuple.TaskID { return rec.adv.tasks[rec.w.running.ref.(address).name] }

func (b *simBolt) id() tuple.TaskID { return b.rec.task(b.part, b.task) }

// trouble returns what is wrong with a tuple that a bolt executes, which it has had
// trouble with so many times before: refuse, reject, panic or poison, or "".
func (rec *record) trouble(id tuple.TaskID, x uint64, before int) chaos.Kind {
	if rec.adv.strikes(chaos.Panic, id, "") != nil {
		return chaos.Panic
	}
	for _, k := range [...]chaos.Kind{chaos.Poison, chaos.Panic, chaos.Reject, chaos.Refuse} {
		if rec.adv.hits(k, id, x) == nil {
			continue
		}
		times := 1 // how often
		switch {
		case k == chaos.Poison || k == chaos.Reject:
			times = before + 1
		case k == chaos.Refuse && rec.scene.set.MaxReplays < 0:
			times += int(x >> 32 % 3)
		case k == chaos.Refuse: // also more than are forgiven
			times += int(x >> 32 % (uint64(rec.scene.set.MaxReplays) + 2))
		}
		if before < times {
			return k
		}
	}
	return ""
}

// panicNow panics, and books that the life of a task ends by it.
func (rec *record) panicNow(p *proc, k chaos.Kind) {
	rec.adv.did(k, "")
	rec.panicked(p)
	panic(panicText)
}

// panicIn panics in a call if a fault was armed for it.
func (rec *record) panicIn(p *proc, id tuple.TaskID, in chaos.Call) {
	if rec.adv.strikes(chaos.Panic, id, in) != nil {
		rec.panicNow(p, chaos.Panic)
	}
}

// breaks reports whether a call of a source or queue is to return an error; x is a
// hash of what it is about.
func (rec *record) breaks(id tuple.TaskID, in chaos.Call, x uint64, once func() bool) bool {
	a := rec.adv
	if a.strikes(chaos.Break, id, in) == nil && a.strikes(chaos.Break, id, "") == nil &&
		(a.hits(chaos.Break, id, mix(x, hashOf(string(in)), 1)) == nil || !once()) {
		return false
	}
	a.did(chaos.Break, "")
	rec.broken++
	return true
}

// paused reports whether a source has nothing to read just now.
func (rec *record) paused(id tuple.TaskID) bool {
	h := rec.adv.hits(chaos.Pause, id, 0)
	if h == nil {
		return false
	}
	if !contains(h.on, id) { // counted once
		h.on = append(h.on, id)
		rec.adv.did(chaos.Pause, "")
	}
	return true
}

func contains(ids []tuple.TaskID, id tuple.TaskID) bool {
	for _, x := range ids {
		if x == id {
			return true
		}
	}
	return false
}

// again reports whether a source gives out a message twice.
func (rec *record) again(id tuple.TaskID, x uint64) bool {
	if rec.adv.hits(chaos.Redeliver, id, x) == nil {
		return false
	}
	rec.adv.did(chaos.Redeliver, "")
	return true
}

// harmless reports whether a plan makes a run late at most, or ends it: then every tuple
// comes through, tracked or not.
func (s *scene) harmless() bool {
	for _, k := range [...]chaos.Kind{chaos.Kill, chaos.Crash, chaos.Refuse, chaos.Reject, chaos.Panic, chaos.Poison, chaos.Hang, chaos.Forget, chaos.Misroute, chaos.Break} {
		if s.plans(k, nil) {
			return false
		}
	}
	return true
}

// quickest is how many times as long, at least, something takes under a plan.
func (s *scene) quickest() float64 {
	least := 1.0
	for _, f := range s.plan {
		if f.Kind == chaos.Slow {
			least *= min(f.Factor, 1)
		}
	}
	return least
}

// mood says in a word what a plan does: nothing, or it has bolts fail, or tasks die
// and the like, or what is done forgotten, so that trees time out.
func (s *scene) mood() string {
	rank := 0
	for _, f := range s.plan {
		r := 2
		switch f.Kind {
		case chaos.Drain, chaos.Stop:
			r = 0
		case chaos.Refuse, chaos.Reject, chaos.Misroute:
			r = 1
		case chaos.Forget:
			r = 3
		case chaos.Lose:
			if f.Class == chaos.Report {
				r = 3
			}
		}
		rank = max(rank, r)
	}
	return moodNames[rank]
}

var moodNames = [...]string{"peaceful", "failing", "deadly", "forgetful"}

// plans reports whether a plan has a fault of a kind for a part, or for any if that
// is nil.
func (s *scene) plans(k chaos.Kind, p *part) bool {
	for _, f := range s.plan {
		if f.Kind == k && (p == nil || f.Who.Component == "*" || f.Who.Component == p.name) {
			return true
		}
	}
	return false
}

// always is for errors that may come again and again.
func always() bool { return true }
