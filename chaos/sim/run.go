package sim

import (
	"errors"
	"fmt"
	"time"
)

// Why Run gave up.
var (
	// ErrLimit reports that a limit passed before the condition held.
	ErrLimit = errors.New("the limit has passed")
	// ErrRest reports that nothing was left to do and the condition did not hold.
	ErrRest = errors.New("at rest, and what was waited for has not happened")
)

// A Limit bounds a run, counted from its beginning. Zero is no limit.
type Limit struct {
	Time   time.Duration // made-up time
	Events int
}

// Run lets events happen until the condition holds, which is looked at after
// each; with a nil condition, until the world is at rest: no message, no turn, no
// timer left. It returns early with what Err will say as well when the code of an
// actor panics, and with an error that is ErrRest or ErrLimit.
func (w *World) Run(until func() bool, limit Limit) error {
	failed, first, end := len(w.failures), w.count, w.now+limit.Time
	for {
		switch {
		case len(w.failures) > failed:
			return errors.Join(w.failures[failed:]...)
		case until != nil && until():
			return nil
		case len(w.events) == 0 && until == nil:
			return nil
		case len(w.events) == 0:
			return fmt.Errorf("at %v: %w", w.now, ErrRest)
		case limit.Time > 0 && w.events[0].at > end:
			w.now = end
			return fmt.Errorf("%w: %v of made-up time; left: %v", ErrLimit, limit.Time, w.left)
		case limit.Events > 0 && w.count-first >= limit.Events:
			return fmt.Errorf("%w: %d events, at %v; left: %v", ErrLimit, limit.Events, w.now, w.left)
		}
		w.Step()
	}
}

// RunFor lets d of made-up time pass. Its error is a panic in the code of an
// actor.
func (w *World) RunFor(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	end := w.now + d
	if err := w.Run(nil, Limit{Time: d}); err != nil && !errors.Is(err, ErrLimit) {
		return err
	}
	w.now = end
	return nil
}

// Step lets the next event happen. It returns false if there is none.
func (w *World) Step() bool {
	if w.running != nil {
		w.misuse("an actor's code cannot run the world that runs it")
	}
	if len(w.events) == 0 {
		return false
	}
	next := w.events.pop()
	e := *next
	*next = event{}
	w.free = append(w.free, next)
	w.now = e.at
	w.count++
	if w.look != nil {
		w.look.happens(w, &e)
	}
	switch p := e.proc; e.kind {
	case atRun:
		w.run(p)
	case atLink:
		w.arrive(e.link)
	case atLoose:
		w.deliver(p, e.msg)
	case atTimer:
		w.left.Timers--
		w.left.Messages++
		w.deliver(p, e.msg)
	case atStop:
		w.left.Messages--
		w.orderStop(p)
	case atBlock:
		w.block(p, e.msg.sent, e.fn)
	case atReply:
		w.left.Blocks--
		w.left.Messages++
		w.deliver(p, e.msg)
	case atPlan:
		w.left.Plans--
		e.fn()
	case atFault:
		e.fn()
	}
	if w.trace != nil {
		w.trace.seen(w)
	}
	return true
}

func (w *World) push(e event) {
	w.seq++
	e.seq = w.seq
	var slot *event
	if n := len(w.free); n > 0 {
		slot, w.free = w.free[n-1], w.free[:n-1]
	} else {
		slot = new(event)
	}
	*slot = e
	w.events.push(slot)
}
