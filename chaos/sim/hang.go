package sim

import (
	"iter"
	"time"
)

// An aside is a call that may hang: it runs in a coroutine, so that the world can
// go on and the call be continued later.
//
//	world --next--> call ... Hang(d)
//	  ^               |
//	  +-----yield-----+       d later: next again, until the call has returned
type aside struct {
	step  step
	next  func() (time.Duration, bool)
	stop  func()
	yield func(time.Duration) bool
	more  bool
	threw thrown
}

func (w *World) callAside(p *proc, s step, m message) {
	a := &aside{step: s}
	a.next, a.stop = iter.Pull(func(yield func(time.Duration) bool) {
		a.yield = yield
		a.more, a.threw = p.enter(s, m)
	})
	p.aside = a
	w.goOn(p)
}

// goOn continues the call that an actor is in.
func (w *World) goOn(p *proc) {
	if w.now < p.busy && p.hanging {
		w.hangUntil(p) // frozen meanwhile
		return
	}
	p.hanging = false
	w.running = p
	if d, hangs := p.aside.next(); hangs {
		w.running = nil
		p.busy = max(p.busy, w.now) + w.spent + d
		w.spent = 0
		w.note("hang", p, nil, nil)
		w.hangUntil(p)
		return
	}
	a := p.aside
	p.aside = nil
	w.called(p, a.step, a.more, a.threw)
	w.rouse(p)
}

// hangUntil lets p do nothing until it is no longer busy.
func (w *World) hangUntil(p *proc) {
	p.hanging, p.armed = true, true
	w.push(event{at: p.busy, kind: atRun, proc: p})
}

// Hang makes the actor whose code is running hang in its call for d, as if it
// waited for something that does not come. What it has done so far is done; the
// world goes on without it; messages to it wait, and a kill takes it in the middle.
// It needs Config.Hangs.
func (w *World) Hang(d time.Duration) {
	p := w.running
	if p == nil || w.blocking || p.aside == nil {
		w.misuse("Hang outside a call of an actor in a world with Config.Hangs")
	}
	w.did(hung, nil, nil, d)
	p.aside.yield(max(d, 0))
}

// Release ends the calls that hang, also those of the killed, after which the world
// is of no use any more. What is left of a call is executed then, for a goroutine
// cannot be ended from outside; to the world it does nothing.
func (w *World) Release() {
	for _, p := range w.procs {
		if p.aside == nil {
			continue
		}
		w.kill(p, "kill", false) // so that the rest of the call does nothing
		w.running = p
		p.aside.stop()
		p.aside, w.running = nil, nil
	}
}
