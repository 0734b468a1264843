package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/egretstream/egret/actor"
)

type state uint8

// The life of an actor: it goes down this list, and a kill or a panic goes to
// ended from anywhere.
const (
	starting state = iota // Start has not been called; messages wait
	running
	stopping // takes no message, waits for its children to end
	ended
)

// An address is the Ref of an actor. It is a value without a pointer, so that no
// use that is made of it can differ between two runs.
type address struct {
	number int // in order of spawning, from 1
	name   string
}

func (a address) String() string { return a.name + "#" + strconv.Itoa(a.number) }

// A proc is one actor.
//
// Invariants:
//
//   - armed means that the heap has an atRun for it; while there is something to
//     do (a start, a message, a turn, a stop) and state is not ended, it is armed
//     or inside a call or, when stopping, waiting for children
//   - children are those that have not ended, in order of spawning
//   - ended: behavior is nil, and mailbox and children are empty
type proc struct {
	world    *World
	number   int
	ref      actor.Ref // an address
	label    string
	behavior actor.Behavior
	chance   *rand.Rand
	parent   *proc // nil: spawned from outside
	children []*proc
	watchers []*proc

	state   state
	armed   bool
	turn    bool // a turn is due when the mailbox is dry
	stop    bool // an order to stop has come
	mailbox fifo

	links map[*proc]*link // by receiver; never ranged over
	out   []*link         // the same, in order of first use

	born    time.Duration
	busy    time.Duration // does nothing before
	slow    float64
	ahead   time.Duration // of its clock before the world's
	silent  time.Duration // killed then: what it says later was never said
	left    time.Duration // abandoned then
	aside   *aside        // the call that it is in, in a world with hangs
	hanging bool          // in it, until it is no longer busy
	err     error         // the panic that ended it
}

// step is what a proc is doing in its call.
type step string

const (
	inStart   step = "start"
	inReceive step = "recv"
	inTurn    step = "turn"
	inStopped step = "stopped"
)

func (w *World) spawn(parent *proc, name string, b actor.Behavior) *proc {
	number := len(w.procs)
	p := &proc{
		world:    w,
		number:   number,
		ref:      address{number, name},
		label:    name + "#" + strconv.Itoa(number),
		behavior: b,
		chance:   rand.New(rand.NewPCG(w.seed, uint64(number))),
		parent:   parent,
		slow:     1,
		silent:   math.MaxInt64,
		left:     math.MaxInt64,
	}
	if parent != nil {
		p.ahead = parent.ahead // the same machine
	}
	w.procs = append(w.procs, p)
	w.note("spawn", p, parent, nil)
	w.wantTurn(p, true)
	if parent != nil {
		if parent.state >= stopping { // nobody would stop the child
			w.end(p)
			return p
		}
		parent.children = append(parent.children, p)
	}
	p.born = w.Now()
	p.busy = p.born + w.delay()
	w.wake(p)
	return p
}

// wake sees to it that p runs when it is no longer busy.
func (w *World) wake(p *proc) {
	if !p.armed && p.state != ended {
		p.armed = true
		w.push(event{at: max(w.now, p.busy), kind: atRun, proc: p})
	}
}

func (w *World) wantTurn(p *proc, want bool) {
	if p.turn != want {
		p.turn = want
		if want {
			w.left.Turns++
		} else {
			w.left.Turns--
		}
	}
}

// run lets p do one thing.
func (w *World) run(p *proc) {
	p.armed = false
	switch {
	case p.state == ended: // maybe in the middle of a call that hung
		return
	case p.aside != nil:
		w.goOn(p)
		return
	case w.now < p.busy: // frozen since it was armed
	case p.state == starting:
		p.state = running
		w.call(p, inStart, message{})
	case p.state == running && p.stop:
		w.close(p)
	case p.state == stopping:
		if len(p.children) > 0 {
			return // the last of them wakes it
		}
		if p.err == nil {
			w.call(p, inStopped, message{})
		} else {
			w.end(p)
		}
		return
	case p.mailbox.len() > 0:
		m := p.mailbox.pop()
		w.left.Messages--
		w.call(p, inReceive, m)
	case p.turn:
		w.call(p, inTurn, message{})
	}
	w.rouse(p)
}

// rouse wakes p if there is something for it to do.
func (w *World) rouse(p *proc) {
	if p.mailbox.len() > 0 || p.turn || p.stop {
		w.wake(p)
	}
}

// call enters the actor's code, and books what comes of it when it is over: now,
// unless the call hangs.
func (w *World) call(p *proc, s step, m message) {
	w.note(string(s), p, m.from, m.body)
	if w.look != nil {
		w.look.calls(w, p, s, m)
	}
	if w.hangs {
		w.callAside(p, s, m)
		return
	}
	w.running = p
	more, threw := p.enter(s, m)
	w.called(p, s, more, threw)
}

// A thrown is a panic of an actor's code; its value is nil if there was none.
type thrown struct {
	value any
	stack []byte
}

func (p *proc) enter(s step, m message) (more bool, threw thrown) {
	defer func() {
		if r := recover(); r != nil {
			threw = thrown{r, debug.Stack()}
		}
	}()
	switch s {
	case inStart:
		p.behavior.Start((*context)(p))
	case inReceive:
		if hears := p.world.hears; hears != nil {
			hears(p, m.body, func() { p.behavior.Receive((*context)(p), m.body) })
		} else {
			p.behavior.Receive((*context)(p), m.body)
		}
	case inTurn:
		more = p.behavior.Turn((*context)(p))
	case inStopped:
		p.behavior.Stopped((*context)(p))
	}
	return more, threw
}

// called books the end of a call and the time that it took.
func (w *World) called(p *proc, s step, more bool, threw thrown) {
	p.busy = max(p.busy, w.now) + w.spent + w.stretch(p, w.drawCost())
	w.running = nil
	if s == inTurn && more {
		w.did(rests, nil, nil, 1)
	}
	if threw.value != nil {
		w.panicked(p, s, threw)
	}
	w.spent = 0
	switch {
	case s == inStopped:
		w.end(p)
	case p.state == running && s == inReceive:
		w.wantTurn(p, true)
	case p.state == running && s == inTurn:
		w.wantTurn(p, more)
	}
}

func (w *World) drawCost() time.Duration {
	if w.cost <= time.Microsecond {
		return max(w.cost, 1)
	}
	return time.Microsecond + w.upTo(w.cost-time.Microsecond)
}

func (w *World) stretch(p *proc, d time.Duration) time.Duration {
	if p.slow == 1 {
		return d
	}
	return time.Duration(float64(d) * p.slow)
}

// panicked ends p by a panic of its own code, once its children have stopped. Its
// watchers hear of the panic, and the run has failed.
func (w *World) panicked(p *proc, s step, threw thrown) {
	err, ok := threw.value.(error)
	if ok {
		err = fmt.Errorf("panic: %w", err)
	} else {
		err = fmt.Errorf("panic: %v", threw.value)
	}
	w.fail(fmt.Errorf("%s at %v, in %s: %w\n%s", p.label, w.Now(), s, err, threw.stack))
	w.note("panic", p, nil, nil)
	if p.state == running {
		p.err, p.stop = err, true
		w.close(p)
	} else if p.state == stopping {
		p.err = err
	}
}

// close begins the end of p: it takes no more messages and waits for its children.
func (w *World) close(p *proc) {
	p.state = stopping
	w.loseMailbox(p)
	for _, child := range p.children {
		w.orderStop(child)
	}
}

func (w *World) loseMailbox(p *proc) {
	for p.mailbox.len() > 0 {
		w.lose("lost", p, p.mailbox.pop())
	}
	w.wantTurn(p, false)
}

// orderStop makes p stop after the call that it is in.
func (w *World) orderStop(p *proc) {
	if p.state != ended {
		p.stop = true
		w.wake(p)
	}
}

// end takes p out of the world and tells who watches it.
func (w *World) end(p *proc) {
	if p.state == ended {
		return
	}
	p.state = ended
	w.note("end", p, nil, nil)
	w.loseMailbox(p)
	p.mailbox, p.behavior = fifo{}, nil
	if up := p.parent; up != nil {
		if i := slices.Index(up.children, p); i >= 0 {
			up.children = slices.Delete(up.children, i, i+1)
		}
		if up.state == stopping && len(up.children) == 0 {
			w.wake(up)
		}
	}
	for _, watcher := range p.watchers {
		w.tell(watcher, p)
	}
	p.watchers = nil
}
