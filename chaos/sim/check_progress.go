package sim

import (
	"time"

	"github.com/egretstream/egret/chaos"
)

// A progress is what comes about when everything is healed: messages that nobody has
// read before come through, and the run comes to its end.
type progress struct {
	healed bool
	at     time.Duration
	fresh  []int // by part: messages that were first read since
	done   []int // and of those, that are done or dead
	first  time.Duration
}

// afterHeal is how long it may take until new messages come through, and until a run
// has ended that ends by itself. It allows for all that is left to be executed, for
// bolts that take 30 ms a tuple, and for the pauses before replays and restarts.
const afterHeal = 15 * time.Minute

// healed reports whether the time of the faults is over.
func (rec *record) healed() bool { return rec.progress.healed }

// heal begins the last phase of a run.
func (rec *record) heal() {
	n := len(rec.scene.parts)
	rec.progress = progress{healed: true, at: rec.w.Now(), fresh: make([]int, n), done: make([]int, n)}
}

// read books that a message is read for the first time.
func (p *progress) read(m *root) {
	if p.healed {
		m.fresh = true
		p.fresh[m.part]++
	}
}

// settled books that a message is done or dead.
func (p *progress) settled(m *root, now time.Duration) {
	if m.fresh {
		m.fresh = false
		p.done[m.part]++
		p.first = max(p.first, now-p.at)
	}
}

// newThrough reports whether of each source that was held back something new has come
// through.
func (rec *record) newThrough() bool {
	p := &rec.progress
	for i := range p.fresh {
		if p.done[i] == 0 && (p.fresh[i] > 0 || rec.heldBack(i)) {
			return false
		}
	}
	return true
}

// heldBack reports whether a part has messages that are held back until all is
// healed.
func (rec *record) heldBack(part int) bool {
	for _, b := range rec.splits[part] {
		if b.gate < b.messages && b.gate <= len(b.roots) {
			return true
		}
	}
	return false
}

// moves checks, after each event, that a run that was healed gets on.
func (rec *record) moves() {
	p := &rec.progress
	if !p.healed || rec.w.Now() < p.at+afterHeal {
		return
	}
	switch {
	case !rec.newThrough() && !rec.scene.flushes() && rec.whole():
		rec.violate(chaos.Rest, "nothing new has come through %v after everything was healed: of %d new messages of each part %d are done", afterHeal, p.fresh, p.done)
	case !rec.scene.endless() || !rec.whole():
		rec.violate(chaos.Rest, "the run goes on %v after everything was healed", afterHeal)
	}
}

// progressAtEnd counts the parts of which something new has come through.
func (rec *record) progressAtEnd() {
	rec.twin(chaos.Rest)
	for _, n := range rec.progress.done {
		if n > 0 {
			rec.twin(chaos.Rest)
			rec.saw("liveness phase")
		}
	}
}

// flushes reports whether somebody may hold tuples until the input has ended.
func (s *scene) flushes() bool {
	for i := range s.parts {
		if s.parts[i].act == holding && s.parts[i].every == 0 {
			return true
		}
	}
	return false
}
