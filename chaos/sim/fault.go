package sim

import (
	"time"

	"github.com/egretstream/egret/actor"
)

// Kill ends an actor and its children now, in the middle of what they do. No
// Stopped is called. What they said arrives; what they would have said in the
// rest of the call that they are in, by their own clocks, does not. Watchers are
// told. An actor that has ended cannot be killed.
func (w *World) Kill(ref actor.Ref) { w.kill(w.find(ref), "kill", false) }

// Crash is Kill as by the loss of a machine: what is on its way from the actor
// and its children is lost too, on each link from some point on.
func (w *World) Crash(ref actor.Ref) { w.kill(w.find(ref), "crash", true) }

func (w *World) kill(p *proc, how string, cut bool) {
	if p.state == ended {
		return
	}
	w.note(how, p, nil, nil)
	p.silent = w.Now()
	for _, l := range p.out {
		n := l.queue.len()
		keep := n
		for keep > 0 && l.queue.at(keep-1).sent > p.silent {
			keep--
		}
		if cut {
			keep = w.chance.IntN(keep + 1)
		}
		for i := keep; i < n; i++ {
			w.note("cut", l.to, p, l.queue.at(i).body)
		}
		l.queue.cut(keep)
		w.left.Messages -= n - keep
		if keep == 0 {
			// The heap may have an event for a message that was cut, later than the news
			// that p has ended, which is sent next. That event finds nothing.
			p.links[l.to] = &link{from: p, to: l.to, frozen: l.frozen}
		}
	}
	children := p.children
	p.children = nil
	for _, child := range children {
		w.kill(child, how, cut)
	}
	w.end(p)
}

// Freeze stops an actor for d, as a signal or a garbage collection would. Its
// messages and timers pile up meanwhile. Freezes of one actor add up.
func (w *World) Freeze(ref actor.Ref, d time.Duration) {
	p := w.find(ref)
	w.note("freeze", p, nil, nil)
	p.busy = max(p.busy, w.now) + d
}

// Slow makes all that an actor does take factor times as long, what it spends
// included. A factor of 1 heals it.
func (w *World) Slow(ref actor.Ref, factor float64) {
	if !(factor > 0) {
		w.misuse("a factor of %v is no slowness: it must be above 0", factor)
	}
	p := w.find(ref)
	w.note("slow", p, nil, nil)
	p.slow = factor
}

// Jump makes the clock of an actor jump forward by d, as that of a machine that was
// suspended: what the actor takes for the time is later by d from now on, and its
// timers come so much earlier, at once if they were due meanwhile. Actors that it
// spawns later have its clock. The world's own Now does not jump.
func (w *World) Jump(ref actor.Ref, d time.Duration) { w.jump(w.find(ref), d) }

func (w *World) jump(p *proc, d time.Duration) {
	w.note("jump", p, nil, nil)
	p.ahead += d
	for _, e := range w.events {
		if e.kind == atTimer && e.mine && e.proc == p {
			e.at = max(e.at-d, w.now)
		}
	}
	w.events.order()
}
