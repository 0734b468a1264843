package sim

import (
	"math/rand/v2"
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// drawStuck draws whether a scene's engine looks for tasks that hang. It has numbers
// of its own.
func (s *scene) drawStuck() {
	r := rand.New(rand.NewPCG(s.seed, 0x68616e67))
	if chance(r, 60) {
		s.set.StuckAfter = min(one(r, 50*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond, 2*time.Second), s.set.MessageTimeout/4)
		s.set.Replace = chance(r, 80)
	}
}

// hang makes the part whose code is running hang, for longer or shorter than may
// be. It books a death, which the engine will make of it, if so it is set.
func (rec *record) hang(p *proc, d time.Duration) {
	set := &rec.scene.set
	rec.hung++
	rec.adv.did(chaos.Hang, "")
	rec.hangsOf = append(rec.hangsOf, hangBook{p, rec.w.Now(), d})
	silent := d
	if set.Replace {
		silent = min(d, 2*set.StuckAfter)
	}
	rec.silent(silent)
	if set.Replace && d >= set.StuckAfter*3/4 && p.state != ended { // it may be seen so
		rec.kills++
		rec.died(p.ref.(address).name)
	}
	rec.w.Hang(d)
}

// hangIn hangs in a call outside Execute if a fault was armed for it. A call under
// Block cannot.
func (rec *record) hangIn(p *proc, id tuple.TaskID, in chaos.Call) {
	if rec.w.blocking {
		return
	}
	if h := rec.adv.strikes(chaos.Hang, id, in); h != nil {
		rec.hang(p, h.Most)
	}
}

// hangWith hangs with a tuple, if it is one of those that do this: one in two of
// them each time, unless nobody would end that.
func (rec *record) hangWith(b *simBolt, e *execution) {
	d := time.Duration(0)
	if h := rec.adv.strikes(chaos.Hang, b.id(), ""); h != nil {
		d = h.Most
	} else {
		x := mix(e.id, 'h', uint64(b.part))
		if h = rec.adv.hits(chaos.Hang, b.id(), x); h == nil || e.hangs > 0 && (!rec.scene.set.Replace || x>>40%2 == 0) {
			return
		}
		d = time.Duration(mix(e.id, 'H', 0) % uint64(h.Most)) // the same each time: a message hangs for good or does not
	}
	e.hangs++
	e.root.head().kinHangs++
	rec.hang(b.proc, d)
	b.isLate()
}

// isLate is asked when a call has come back: what a replaced bolt emits from now on
// is for nobody.
func (b *simBolt) isLate() {
	if b.proc.left <= b.rec.w.Now() && b.late == 0 {
		b.late = b.seq + 1
	}
}

// checkLate checks that nothing comes of what a bolt has emitted after it was
// replaced.
func (rec *record) checkLate(b *simBolt, in tuple.Tuple, m *root) {
	rec.check(chaos.Zombies)
	by, seq := in.Int64("by"), in.Int64("seq")
	if by > 0 {
		if z := rec.bolts[by-1]; z.late > 0 && seq >= z.late {
			rec.violate(chaos.Zombies, "%s gets number %d of incarnation %d, which was replaced before number %d", b.name(), seq, by, z.late)
		}
	}
	if m != nil && m.owner != nil && m.born >= m.owner.left {
		rec.violate(chaos.Zombies, "%s gets an %s, which was replaced before it said that", b.name(), m.name)
	}
}

// hungDead checks a message that is said to be dead of a hang: one that has never
// hung may be a suspect, as often as you like, but does not die of it.
func (rec *record) hungDead(m *root, err string) {
	rec.check(chaos.Hangs)
	if n := m.head().kinHangs; n < 1 || rec.scene.guarantee == topology.AtMostOnce {
		rec.violate(chaos.Hangs, "%s is dead (%s), but has hung %d times", m.name, err, n)
	}
}
