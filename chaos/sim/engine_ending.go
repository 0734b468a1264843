package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/task"
)

// enough reports whether all is healed, and endless sources have given what they
// should, of which something has come through.
func (rec *record) enough() bool {
	if !rec.healed() {
		return false
	}
	if rec.scene.flushes() && rec.w.Now() > rec.progress.at+afterHeal/3 {
		// A split whose reader has failed is opened again when all that was read of it is
		// done, and here somebody may hold that until all input has ended.
		return true
	}
	for i := range rec.splits {
		for _, b := range rec.splits[i] {
			if b.endless && len(b.roots) < b.messages {
				return false
			}
		}
	}
	return rec.newThrough() || rec.scene.flushes()
}

// end ends a run with endless sources when they have given enough.
func (r *run) end() {
	if r.done || !r.scene.endless() || !r.rec.whole() || !r.rec.enough() {
		return
	}
	f := r.scene.last
	r.rec.asked(f, f.Kind == chaos.Drain)
	if f.Kind == chaos.Stop {
		r.w.Send(r.sup, task.Stop{})
		return
	}
	r.w.Send(r.sup, task.DrainBy{Deadline: r.rec.drainFor})
}

// whole reports whether the run was not asked to end before its input had ended.
func (rec *record) whole() bool { return !rec.drained && !rec.stopped }

// cut reports whether a run has ended in the middle, as it may.
func (rec *record) cut(err error) bool {
	if rec.broken >= sameErrors && errors.Is(err, errBroken) || rec.givenUp(err) {
		rec.stopped = true // by the engine, which had reason to
		return true
	}
	return (rec.stopped || rec.drained && rec.short) && errors.Is(err, task.ErrDrain)
}

// How often a source errs at a place, or a task dies, before a run must put up with
// it no more.
const sameErrors, mostStrikes = 5, 5

// givenUp reports whether a run has ended because a task had died too often.
func (rec *record) givenUp(err error) bool {
	var name string
	var times int
	if n, _ := fmt.Sscanf(fmt.Sprint(err), "task %s has died %d times in a row", &name, &times); n < 2 {
		return false
	}
	deaths := 0
	for _, d := range rec.deaths {
		if d.task == name {
			deaths++
		}
	}
	return times > mostStrikes && deaths >= times
}

// reads checks that nobody reads long after a drain. What was asked for before may be
// late, and a new life may have begun when it is told.
func (rec *record) reads(p *proc) {
	rec.check(chaos.Drained)
	if now := rec.w.Now(); rec.drained && now > max(p.born, rec.drainedAt)+time.Second {
		rec.violate(chaos.Drained, "%s reads on, %v after the drain and %v after its birth", p.label, now-rec.drainedAt, now-p.born)
	}
}

// position returns up to where a split is known to be settled.
func (rec *record) position(b *splitBook) int {
	if rec.store != nil {
		return rec.store.position(b)
	}
	return b.commits
}

// left reports whether a message of a run that was drained is left for the next
// one: it is unread, or will be read again because the task that had it has died.
// Nothing may be half done that is not read again, or read again that is done.
func (rec *record) left(m *root) bool {
	if !rec.drained || m.split == nil {
		return false
	}
	begun := m.verdicts > 0 || len(m.dead) > 0
	for _, e := range m.all {
		begun = begun || e.tries > 0
	}
	behind := m.index >= rec.position(m.split)
	if rec.kills+rec.panics+rec.crashes == 0 && begun == behind {
		rec.violate(chaos.Drained, "%s is begun: %v, and %v is left at %d", m.name, begun, m.split, rec.position(m.split))
	}
	return behind
}

// inputOver reports whether all that a part gets has been read to its end.
func (rec *record) inputOver(part int) bool {
	p := &rec.scene.parts[part]
	if b := rec.queues[part]; b != nil {
		return b.eof
	}
	for _, b := range rec.splits[part] {
		if len(b.roots) < b.messages {
			return false
		}
	}
	for _, e := range p.inputs {
		if !rec.inputOver(e.from) {
			return false
		}
	}
	for from := range rec.scene.parts {
		if _, is := p.mourns[from]; is && !rec.inputOver(from) {
			return false
		}
	}
	return true
}
