package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// hangs are the calls of a scene's parts that do not come back for long. The zero
// value has none.
type hangs struct {
	oneIn  int           // one in so many tuples at a bolt finds it hanging; 0: none
	always int           // one in so many of those does so each time
	own    int           // hangs in Prepare, Tick, Finish and Next that are left, of each task
	most   time.Duration // of one
}

func (h *hangs) any() bool { return h.most > 0 }

// drawHangs has numbers of its own, so that a seed without hangs draws what it
// always drew.
func (s *scene) drawHangs() {
	r := rand.New(rand.NewPCG(s.seed, 0x68616e67))
	if s.mood < deadly || !chance(r, 25) {
		return
	}
	h := &s.hangs
	s.set.StuckAfter = min(one(r, 50*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond, 2*time.Second), s.set.MessageTimeout/4)
	s.set.Replace = chance(r, 80)
	h.most = time.Duration(one(r, 2, 3, 10)) * s.set.StuckAfter
	if chance(r, 80) {
		h.oneIn = 100 + r.IntN(400)
		h.always = one(r, 1, 2, 5)
		if !s.set.Replace {
			h.always = 1 << 30 // one that always outlasts the timeout would be tried for ever
		}
	}
	if h.oneIn == 0 || chance(r, 40) {
		h.own = 1 + r.IntN(2)
	}
}

func (h *hangs) String() string {
	if !h.any() {
		return ""
	}
	return fmt.Sprintf(", one in %d hangs, one in %d of them always, %d in other calls, for up to %v", h.oneIn, h.always, h.own, h.most)
}

// hang makes the part whose code is running hang, for longer or shorter than may
// be. It books a death, which the engine will make of it, if so it is set.
func (rec *record) hang(p *proc, x uint64) {
	h, set := &rec.scene.hangs, &rec.scene.set
	d := time.Duration(x % uint64(h.most))
	rec.hung++
	silent := d
	if set.Replace {
		silent = min(d, 2*set.StuckAfter)
	}
	if silent > set.MessageTimeout/4 {
		rec.timeouts = true
	}
	if set.Replace && d >= set.StuckAfter*3/4 && p.state != ended { // it may be seen so
		rec.kills++
		rec.died()
	}
	rec.w.Hang(d)
}

// hangIn hangs in a call outside Execute, as often as is drawn for the task.
func (rec *record) hangIn(p *proc, task, what string) {
	h := &rec.scene.hangs
	if h.own == 0 || rec.w.blocking || rec.hungIn[task] >= h.own {
		return
	}
	x := mix(uint64(len(rec.bolts)), uint64(len(what)), rec.calls)
	if x%4 == 0 {
		rec.hungIn[task]++
		rec.hang(p, x>>3)
	}
}

// hangWith hangs with a tuple, if it is one of those that do this.
func (rec *record) hangWith(b *simBolt, e *execution) {
	h := &rec.scene.hangs
	if h.oneIn == 0 {
		return
	}
	x := mix(e.id, 'h', uint64(b.part))
	if x%uint64(h.oneIn) != 0 {
		return
	}
	if again := x / uint64(h.oneIn) % uint64(h.always); e.hangs > 0 && again != 0 {
		return
	}
	e.hangs++
	e.root.head().kinHangs++
	d := mix(e.id, 'H', 0) // the same each time: a message hangs for good or does not
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
	by, seq := in.Int64("by"), in.Int64("seq")
	if by > 0 {
		if z := rec.bolts[by-1]; z.late > 0 && seq >= z.late {
			rec.violate("zombies", "%s gets number %d of incarnation %d, which was replaced before number %d", b.name(), seq, by, z.late)
		}
	}
	if m != nil && m.owner != nil && m.born >= m.owner.left {
		rec.violate("zombies", "%s gets an %s, which was replaced before it said that", b.name(), m.name)
	}
}

// hungDead checks a message that is said to be dead of a hang: one that has never
// hung may be a suspect, as often as you like, but does not die of it.
func (rec *record) hungDead(m *root, err string) {
	if n := m.head().kinHangs; n < 1 || rec.scene.guarantee == topology.AtMostOnce {
		rec.violate("hangs", "%s is dead (%s), but has hung %d times", m.name, err, n)
	}
}
