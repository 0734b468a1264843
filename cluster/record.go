package cluster

import (
	"errors"
	"slices"

	"github.com/egretstream/egret/batch"
)

// The record of an exactly-once topology is in the log (T9): so it is one for all who could
// coordinate its batches, and an entry is compared with it where it is applied.

// Batches changes the record of a run's batches, whatever its status: what was written is
// written. One that the record does not take is refused.
type Batches struct {
	Topology string      `json:"topology"`
	Run      Run         `json:"run"`
	Change   batch.Entry `json:"change"`
}

func (c *Batches) apply(s *State, _ *Result) error {
	sub, err := s.of(c.Topology, c.Run)
	if err != nil {
		return err
	}
	if c.Change.Epoch == 0 {
		return refuse(ErrInvalid, "batches of topology %q that nobody coordinates", c.Topology)
	}
	// A life that nobody can have would refuse all that come after it.
	if e := &c.Change; e.Begin && (e.Life == 0 || e.Life.Epoch() > s.Epoch) {
		return refuse(ErrInvalid, "life %v of the coordinator of topology %q begins, and the last epoch is %d", e.Life, c.Topology, s.Epoch)
	}
	for _, component := range c.Change.Components() {
		if !sub.has(component) {
			return refuse(ErrInvalid, "topology %q has no component %q that batches could have to do with", c.Topology, component)
		}
	}
	next := sub.Record.Clone()
	if err := next.Apply(&c.Change); err != nil {
		why := ErrInvalid
		if errors.Is(err, batch.ErrStale) {
			why = ErrStale
		}
		return refuse(why, "topology %q: %v", c.Topology, err)
	}
	sub.Record = next
	s.put(sub)
	return nil
}

// has reports whether there is a component with a name.
func (s *Submission) has(component string) bool {
	for i := range s.Components {
		if s.Components[i].Name == component {
			return true
		}
	}
	return false
}

// leaves reports whether the next run of the same name goes on from s. So it does from one in
// batches that is done: states that have all of its input fit no other record.
func (s *Submission) leaves() bool {
	return s.Status.Leaves() || s.Status == Done && s.Record != nil
}

// goOn takes over what a run before has left. A source that is not there any more has no
// positions; a record of batches that does not fit is refused.
func (s *Submission) goOn(old *Submission) error {
	s.Positions = old.Positions.only(s.spout)
	if old.Record == nil {
		return nil
	}
	shape := batch.Shape{Dropped: s.Dropped}
	for i := range s.Components {
		c := &s.Components[i]
		if c.Spout {
			shape.Sources = append(shape.Sources, c.Name)
		}
		if c.State {
			shape.States = append(shape.States, c.Name)
		}
		if c.FromHere {
			shape.FromHere = append(shape.FromHere, c.Name)
		}
	}
	dropped, misfit := old.Record.Fit(&shape)
	if misfit != nil {
		return refuse(ErrUnfit, "topology %q: the record of batches of run %d, of which %d is the last one, %s: give it the name that it had; %s; or kill the topology, and submit it with empty states",
			s.Topology, old.Run, old.Record.Committed, misfit.What, misfit.Remedy)
	}
	if s.Record = old.Record; dropped != nil {
		s.Record = old.Record.Without(dropped)
	}
	if s.Local {
		s.Stays = old.Seat()
	}
	return nil
}

// spout reports whether there is a spout with a name.
func (s *Submission) spout(component string) bool {
	return slices.ContainsFunc(s.Components, func(c Component) bool { return c.Spout && c.Name == component })
}

// checkRecord returns why a record is none that a log can have led to.
func (s *Submission) checkRecord(last uint32) string {
	r := s.Record
	switch {
	case r == nil:
		return ""
	case r.Epoch == 0 || r.Life == 0 || r.Life.Epoch() > last:
		return "its batches are coordinated by nobody that can be"
	}
	for _, component := range r.Components() {
		if !s.has(component) && !slices.Contains(s.Dropped, component) {
			return "there are batches of a component " + component
		}
	}
	return ""
}
