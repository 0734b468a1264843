package sim

import (
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/egretstream/egret/actor"
)

// A context is a proc as its own code sees it.
type context proc

// in returns the proc if its code is running, and panics if a context was kept
// for later. It says no if the actor was killed during the call: a dead actor
// does nothing to the world.
func (c *context) in() (p *proc, ok bool) {
	p = (*proc)(c)
	if p.world.running != p || p.world.blocking {
		p.world.misuse("the context of %s is used outside the call that it was given to", p.label)
	}
	return p, p.state != ended
}

func (c *context) Self() actor.Ref { return c.ref }

func (c *context) Rand() *rand.Rand {
	p, _ := c.in()
	return p.chance
}

func (c *context) Now() time.Duration {
	p, _ := c.in()
	return p.world.Now() + p.ahead
}

func (c *context) Send(to actor.Ref, msg any) {
	p, ok := c.in()
	receiver := p.world.find(to)
	if ok {
		p.world.post(p, receiver, msg)
	}
}

func (c *context) After(d time.Duration, msg any) {
	if p, ok := c.in(); ok {
		w := p.world
		w.did(sets, nil, msg, d)
		w.left.Timers++
		d = max(d, 0)
		if w.timer != nil {
			d += max(w.timer(p.ref, msg), 0)
		}
		w.push(event{at: w.Now() + d, kind: atTimer, mine: true, proc: p, msg: message{from: p, body: msg}})
	}
}

func (c *context) Spawn(name string, b actor.Behavior) actor.Ref {
	p, _ := c.in()
	return p.world.spawn(p, name, b).ref
}

func (c *context) Watch(ref actor.Ref) {
	p, ok := c.in()
	other := p.world.find(ref)
	switch {
	case !ok:
		return
	case other.state == ended:
		p.world.tell(p, other)
	case !slices.Contains(other.watchers, p):
		other.watchers = append(other.watchers, p)
	}
	p.world.did(watches, other, nil, 0)
}

func (c *context) Stop(ref actor.Ref) {
	p, ok := c.in()
	other := p.world.find(ref)
	switch {
	case !ok:
		return
	case other == p:
		p.stop = true // run looks at it when the call is over
	default:
		p.world.stop(other)
	}
	p.world.did(stops, other, nil, 0)
}

// Poster returns a function for the actor's calls and what it gives to Block. A
// message takes as long as any, for the goroutine that sends it is in no hurry.
func (c *context) Poster() func(any) {
	p, _ := c.in()
	w := p.world
	return func(msg any) {
		if w.running != p {
			w.misuse("a message is posted to %s by another actor", p.label)
		}
		if p.state != ended {
			w.did(posts, nil, msg, 0)
			w.left.Timers++
			w.push(event{at: w.Now() + w.delay(), kind: atTimer, proc: p, msg: message{from: p, body: msg}})
		}
	}
}

// Abandon stops a child that its parent does not wait for any more.
func (c *context) Abandon(ref actor.Ref) {
	p, ok := c.in()
	other := p.world.find(ref)
	if other.parent != p {
		p.world.misuse("%s abandons %s, which is no child of it", p.label, other.label)
	}
	if ok && other.state != ended {
		p.world.note("abandon", other, p, nil)
		other.left = min(other.left, p.world.Now())
		if i := slices.Index(p.children, other); i >= 0 {
			p.children = slices.Delete(p.children, i, i+1)
		}
		p.world.stop(other)
	}
}

// Inspect answers as a host would, but with nothing to see.
func (c *context) Inspect(ref actor.Ref) {
	c.Block(func() any { return actor.Stack{Ref: ref, Text: "simulated"} })
}

func (c *context) Block(fn func() any) {
	if p, ok := c.in(); ok {
		w := p.world
		w.did(asks, nil, nil, 0)
		w.left.Blocks++
		at := w.Now() + w.delay()
		if w.wait > 0 {
			at += w.upTo(w.wait)
		}
		if w.blocked != nil {
			at += max(w.blocked(p.ref), 0)
		}
		w.push(event{at: at, kind: atBlock, proc: p, fn: fn, msg: message{sent: w.Now()}})
	}
}

// stop sends an order to stop, which is in no order with messages.
func (w *World) stop(p *proc) {
	w.left.Messages++
	w.push(event{at: w.Now() + w.delay(), kind: atStop, proc: p})
}

// block runs the function of a Block. It belongs to no call of its actor, and an
// actor that has ended does not hold it back; if it was killed, the function may
// have gone down with it, or not have. One that was asked for in the rest of a
// call, after the kill, was never asked for.
func (w *World) block(p *proc, asked time.Duration, fn func() any) {
	if asked > p.silent || p.silent <= w.now && w.oneIn(2) {
		w.left.Blocks--
		w.note("unblock", p, nil, nil)
		return
	}
	w.note("block", p, nil, nil)
	result := w.callBlocked(p, fn)
	w.did(gets, nil, result, 0)
	w.push(event{at: w.Now() + w.delay(), kind: atReply, proc: p, msg: message{from: p, body: result}})
	w.spent = 0
}

func (w *World) callBlocked(p *proc, fn func() any) (result any) {
	w.running, w.blocking = p, true
	defer func() {
		if r := recover(); r != nil {
			result = actor.Panicked{Value: r, Stack: debug.Stack()}
		}
		w.running, w.blocking = nil, false
	}()
	return fn()
}
