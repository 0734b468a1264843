package task

import (
	"time"

	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A Tap looks at a sample of the tuples of a stream, for people. It changes nothing: a task
// looks at what it has emitted as it sends it, at so many tuples and for so long, and at
// nothing where there is no tap. Its functions are called by several tasks at the same
// time, must not wait, and keep nothing of a tuple. It is not changed once it is given.
type Tap struct {
	Component, Stream string
	// Where, if not nil, makes what says whether a tuple is wanted, for one task.
	Where func() func(tuple.Tuple) (bool, error)
	// Seen is given a tuple that is wanted. It returns whether others are wanted at present.
	Seen func(task string, t tuple.Tuple) (more bool)
	// Looked is told of a parcel at how many tuples the task has looked, how many of them
	// were wanted, for how many Where has failed, and what was the matter with the last one.
	Looked func(looked, wanted, failed int, err error)
}

// Taps are all that there are at present, of a supervisor's run or of one of its tasks. The
// next ones take their place. Tasks that begin later get them as well.
type Taps []*Tap

const (
	tapEvery = 100 * time.Millisecond
	tapMost  = 1000             // tuples in that time, of a task
	tapTime  = time.Millisecond // and a hundredth of the time
)

// An allowance is what a task may still look at, for all its taps together. It outlives
// them: who opens one again and again gets no more.
//
// Invariant: over any time, looking takes at most a hundredth of it and one tuple more,
// since what a tuple takes too long is made up for by not looking.
type allowance struct {
	left  int           // tuples
	spare time.Duration // below 0: too much was used
	next  time.Duration // when there is more of both
	turn  int           // of the taps, who is first
}

// A looker is a tap in a task.
type looker struct {
	*Tap
	stream int // of the component
	route  int // of the stream; its tuples are looked at where they go by it
	where  func(tuple.Tuple) (bool, error)
}

// tapped takes in the present taps. A route that gives no tuple to several tasks is
// preferred, so that each is seen once.
func (o *outbox) tapped(taps Taps) {
	var now []looker
	for _, t := range taps {
		if t.Component != o.c.node.Name {
			continue
		}
		for i, s := range o.c.node.Streams {
			if s.Stream != t.Stream || len(o.streams[i].routes) == 0 {
				continue
			}
			l := looker{Tap: t, stream: i}
			for k, r := range o.streams[i].routes {
				if r.Grouping != topology.Custom {
					l.route = k
					break
				}
			}
			if t.Where != nil {
				l.where = t.Where()
			}
			now = append(now, l)
		}
	}
	o.lookers = now
}

// look shows a parcel to the taps of its stream. It is a call, so that one which does not
// come back is seen; in user code that emits it is part of that one.
func (o *outbox) look(l *lane, p *tuple.Parcel) {
	a, c := &o.allowed, o.c
	began := c.ctx.Now()
	if began >= a.next {
		a.next = began + tapEvery
		a.left, a.spare = tapMost, min(a.spare+tapTime, tapTime)
	}
	if a.left <= 0 || a.spare <= 0 {
		return
	}
	s, _ := c.call.Look()
	if s == 0 {
		c.call.Begin(uint8(inLook), began, 0, 0)
	}
	a.turn++
	for i := range o.lookers {
		k := &o.lookers[(a.turn+i)%len(o.lookers)]
		if k.stream != p.Stream {
			continue
		}
		r := &o.streams[k.stream].routes[k.route]
		if l.route == r && (r.Grouping != topology.All || l == &r.lanes[0]) {
			k.look(c, a, p)
		}
	}
	if s == 0 {
		c.leaveCall()
	}
}

func (k *looker) look(c *core, a *allowance, p *tuple.Parcel) {
	began := c.ctx.Now()
	looked, wanted, failed := 0, 0, 0
	var last error
	for more := true; more && looked < p.Len() && a.left > 0 && a.spare > 0; looked++ {
		a.left--
		t, yes := p.Tuple(looked), true
		if k.where != nil {
			var err error
			if yes, err = k.where(t); err != nil {
				yes, last = false, err
				failed++
			}
		}
		if yes {
			wanted++
			more = k.Seen(c.m.Name, t) || k.where != nil // there, how many others are wanted is to be known
		}
		now := c.ctx.Now()
		a.spare -= now - began
		began = now
	}
	if looked > 0 {
		k.Looked(looked, wanted, failed, last)
		a.spare -= c.ctx.Now() - began
	}
}
