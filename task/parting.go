package task

import (
	"fmt"
	"slices"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/tuple"
)

// How a task is let go of that has another life in a later plan.
//
// Its actor is told to stop, but may be in the middle of a turn, and then hands back and
// closes what it has. Its counters are the task's: what it has open is given up when it has
// ended and not before, and the next life, if that is to be here as well, begins then. So no
// two lives count at the same time, and none opens what another one has not closed yet.

// A parting is a life that was told to stop, and has not ended.
type parting struct {
	task tuple.TaskID
	ref  actor.Ref
	call *call
}

// A lookParting looks whether a parting life is still in the call in which it was seen.
type lookParting struct {
	ref  actor.Ref
	call metrics.Sight
}

// release lets go of the present life of a task.
func (s *Supervisor) release(id tuple.TaskID) {
	c := &s.children[id]
	if c.far {
		return
	}
	if !c.ended {
		s.running--
	}
	if c.gone {
		return
	}
	s.forgetAway(id, c.life)
	s.ctx.Stop(c.ref)
	c.end()
	s.partings = append(s.partings, parting{id, c.ref, c.call})
	s.lookAtParting(c.ref, c.call)
}

// parts reports whether an earlier life of a task has not ended yet.
func (s *Supervisor) parts(id tuple.TaskID) bool {
	return slices.ContainsFunc(s.partings, func(p parting) bool { return p.task == id })
}

func (s *Supervisor) lookAtParting(ref actor.Ref, c *call) {
	if s.set.StuckAfter > 0 {
		call, _ := c.Look()
		s.ctx.After(s.set.StuckAfter, lookParting{ref, call})
	}
}

// seeParting does not wait any longer for a life whose user code does not come back,
// though its context has ended.
func (s *Supervisor) seeParting(m lookParting) {
	i := slices.IndexFunc(s.partings, func(p parting) bool { return p.ref == m.ref })
	if i < 0 {
		return
	}
	p := s.partings[i]
	now, _ := p.call.Look()
	hangs := now != 0 && now.Same(m.call) && callKind(now.Kind()) != inLook
	if hangs {
		_, hangs = p.call.Take(now)
	}
	if !hangs {
		s.lookAtParting(p.ref, p.call)
		return
	}
	name := s.ms[p.task].Name
	s.set.Event(&Notice{Task: name, Text: fmt.Sprintf("task %s was let go of and has not come back from %v for %v: it is not waited for", name, callKind(now.Kind()), rounded(s.set.StuckAfter))})
	s.ctx.Abandon(p.ref)
	s.parted(i)
}

// parted takes in that a parting life counts no more.
func (s *Supervisor) parted(i int) {
	id := s.partings[i].task
	s.partings = slices.Delete(s.partings, i, i+1)
	s.ms[id].Abandon()
	if c := &s.children[id]; c.waits && s.stopping == 0 {
		c.waits, c.gone = false, false
		s.spawn(id)
		s.introduce(id)
	}
}

// introduce tells everybody of a life that has just begun, and it of everybody.
func (s *Supervisor) introduce(id tuple.TaskID) {
	c := &s.children[id]
	news := &Peers{Peers: []Peer{{Task: id, Life: c.life, Ref: c.ref}}}
	for other := range s.children {
		if c := &s.children[other]; tuple.TaskID(other) != id && !c.far && c.ref != nil && !mutation.Is(mutation.SilentSupervisor) {
			s.ctx.Send(c.ref, news)
		}
	}
	s.ctx.Send(c.ref, &Peers{Peers: s.peers()})
	s.sayLives(s.own([]tuple.TaskID{id}))
}
