package task

import (
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/mutation"
)

// How a spout task comes to its end.

// rest ends the task when there is nothing left to read and nothing open.
func (t *spoutTask) rest() {
	if t.ended || t.cur != nil || t.out.kept > 0 && !mutation.Is(mutation.EndEarly) {
		return
	}
	read := t.hasRead()
	if t.origin != nil && !t.origin.atRest() {
		if read || t.mustWait() {
			t.origin.runDry()
		} else {
			t.out.wet() // it is read on
		}
		return
	}
	if !read || !t.mayEnd() {
		return
	}
	for _, r := range t.splits {
		r.toldAt = 0
		t.tell(r)
	}
	if !t.leaveCommits() {
		return
	}
	if t.doomed != nil {
		t.fail(t.doomed, true, true)
		return
	}
	t.end()
}

// hasRead reports whether nothing more will be read.
func (t *spoutTask) hasRead() bool {
	if t.listing || !t.drained && (!t.listed || t.todo < len(t.splits)) {
		return false
	}
	for _, r := range t.active {
		if !r.eof && !(t.drained && r.call == nil) || r.ready != nil {
			return false
		}
	}
	return true
}

// mustWait reports whether nothing more will be read until what is open is done:
// the splits that have not ended have failed, and are opened again then.
func (t *spoutTask) mustWait() bool {
	for _, r := range t.active {
		failed := r.reader == nil && r.call == nil && len(r.waiting) > 0
		if !r.eof && !failed || r.ready != nil {
			return false
		}
	}
	return t.listed && (t.todo == len(t.splits) || t.opened >= openSplits)
}

// Stopped closes the readers.
func (t *spoutTask) Stopped(ctx actor.Context) {
	t.enter(ctx)
	if t.kill != nil {
		t.kill()
	}
	t.sayUnderWay()
	for _, r := range t.splits {
		if r.call != nil {
			r.reader, _ = r.call.leave()
		}
		t.shut(r)
	}
}
