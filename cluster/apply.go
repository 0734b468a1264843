package cluster

import (
	"maps"
	"slices"
)

func (f *Found) apply(s *State, _ *Result) error {
	switch {
	case f.Cluster == "":
		return refuse(ErrInvalid, "a cluster without an id")
	case s.Cluster != "":
		return refuse(ErrRunning, "the cluster has the id %s already", s.Cluster)
	}
	s.Cluster = f.Cluster
	return nil
}

func (u *Submit) apply(s *State, r *Result) error {
	at, err := when(u.At)
	if err != nil {
		return err
	}
	if err := checkSpec(&u.Spec); err != nil {
		return err
	}
	next := &Submission{Spec: u.Spec, Status: Active, Since: at, Submitted: at}
	if old := s.Submission(u.Spec.Topology); old != nil {
		if old.Status.Runs() {
			return refuse(ErrRunning, "topology %q runs already, as run %d: stop it first, to go on where it is, or kill it, to begin anew", old.Topology, old.Run)
		}
		if old.leaves() {
			if err := next.goOn(old); err != nil {
				return err
			}
			r.Before = old.Run
		}
	}
	if err := s.give(r); err != nil {
		return err
	}
	next.Run = Run(r.Epoch)
	s.put(next)
	return nil
}

func (c *SetStatus) apply(s *State, _ *Result) error {
	at, err := when(c.At)
	if err != nil {
		return err
	}
	sub, err := s.of(c.Topology, c.Run)
	switch {
	case err != nil:
		return err
	case !c.Status.Runs():
		return refuse(ErrInvalid, "topology %q cannot be made %q", c.Topology, c.Status)
	case sub.Status == c.Status, sub.Status == Stopped && c.Status == Stopping:
		return nil
	case !sub.Status.Runs() && c.Status == Ending: // it may have ended since it was asked for
		s.drop(sub)
		return nil
	case !sub.Status.Runs():
		return ended(sub)
	case sub.Status == Ending:
		return refuse(ErrEnded, "topology %q is being killed", c.Topology)
	case sub.Status == Stopping && c.Status != Ending:
		return refuse(ErrEnded, "topology %q is being stopped", c.Topology)
	}
	sub.Status, sub.Since = c.Status, at
	s.put(sub)
	return nil
}

func (c *SetPlan) apply(s *State, r *Result) error {
	sub, err := s.planned(c.Topology, c.Run, c.Base)
	if err != nil {
		return err
	}
	if err := checkPlan(sub.Components, c.Plan, true); err != nil {
		return err
	}
	if err := checkStep(sub.Plan, c.Plan); err != nil {
		return err
	}
	if err := s.give(r); err != nil {
		return err
	}
	was := sub.Plan
	sub.Plan = c.Plan.inForce(r.Epoch)
	keepEpochs(was, sub.Plan)
	if sub.First == 0 {
		sub.First = r.Epoch
	}
	sub.Next, sub.NextAt, sub.Why = nil, 0, ""
	s.put(sub)
	return nil
}

func (c *ProposeNext) apply(s *State, _ *Result) error {
	sub, err := s.planned(c.Topology, c.Run, c.Base)
	switch {
	case err != nil:
		return err
	case sub.Plan == nil:
		return refuse(ErrStale, "topology %q has no plan yet that another one could follow", c.Topology)
	case sub.Next != nil:
		return refuse(ErrRunning, "topology %q is being changed already (%s): wait for it", c.Topology, sub.Why)
	}
	if err := checkPlan(sub.Components, c.Plan, false); err != nil {
		return err
	}
	if err := checkStep(sub.Plan, c.Plan); err != nil {
		return err
	}
	next := *c.Plan
	next.Epoch = 0
	sub.Next, sub.NextAt, sub.Why = &next, s.Applied, c.Why
	s.put(sub)
	return nil
}

func (c *CancelNext) apply(s *State, _ *Result) error {
	sub, err := s.planned(c.Topology, c.Run, c.Base)
	switch {
	case err != nil:
		return err
	case sub.Next == nil:
		return refuse(ErrStale, "topology %q is not being changed", c.Topology)
	}
	sub.Next, sub.NextAt, sub.Why = nil, 0, ""
	s.put(sub)
	return nil
}

func (c *Switch) apply(s *State, r *Result) error {
	sub, err := s.planned(c.Topology, c.Run, c.Base)
	switch {
	case err != nil:
		return err
	case sub.Next == nil:
		return refuse(ErrStale, "topology %q is not being changed", c.Topology)
	}
	if err := s.give(r); err != nil {
		return err
	}
	was := sub.Plan
	sub.Plan = sub.Next.inForce(r.Epoch)
	keepEpochs(was, sub.Plan)
	sub.Next, sub.NextAt, sub.Why = nil, 0, ""
	sub.Components = slices.Clone(sub.Components)
	sub.Parallel = maps.Clone(sub.Parallel)
	for i, l := range sub.Plan.Components {
		if k := &sub.Components[i]; k.Parallel != l.Parallel {
			k.Parallel = l.Parallel
			if sub.Parallel == nil {
				sub.Parallel = map[string]int{}
			}
			sub.Parallel[k.Name] = l.Parallel
		}
	}
	s.put(sub)
	return nil
}

func (c *Commit) apply(s *State, r *Result) error {
	sub, err := s.of(c.Topology, c.Run)
	if err != nil {
		return err
	}
	names := map[string]string{} // the same string for each position of a component
	for _, k := range sub.Components {
		names[k.Name] = k.Name
	}
	positions := slices.Clone(c.Positions)
	for i := range positions {
		p := &positions[i]
		if names[p.Component] == "" {
			return refuse(ErrInvalid, "topology %q has no component %q whose position could be committed", c.Topology, p.Component)
		}
		// A life that nobody can have would refuse all that come after it.
		if p.Life.Epoch() > s.Epoch {
			return refuse(ErrInvalid, "a position of topology %q comes from life %v, and the last epoch is %d", c.Topology, p.Life, s.Epoch)
		}
		p.Component = names[p.Component]
	}
	sub.Positions, r.Old = sub.Positions.with(positions)
	s.put(sub)
	return nil
}

func (c *Finish) apply(s *State, _ *Result) error {
	at, err := when(c.At)
	if err != nil {
		return err
	}
	sub, err := s.running(c.Topology, c.Run)
	switch {
	case err != nil:
		return err
	case c.Status != Done && c.Status != Failed && c.Status != Stopped:
		return refuse(ErrInvalid, "topology %q cannot finish as %q", c.Topology, c.Status)
	case sub.Status == Ending: // who leads did not know yet that it is to be forgotten,
		return refuse(ErrEnded, "topology %q is being killed", c.Topology)
	case sub.Status == Stopping && c.Status != Stopped: // or to go on later
		return refuse(ErrEnded, "topology %q is being stopped", c.Topology)
	case c.Status == Stopped && sub.Status != Stopping:
		return refuse(ErrRunning, "topology %q runs, and nobody has stopped it", c.Topology)
	}
	sub.Status, sub.Reason, sub.Since = c.Status, c.Reason, at
	sub.Next, sub.NextAt, sub.Why = nil, 0, ""
	s.put(sub)
	return nil
}

func (c *Forget) apply(s *State, _ *Result) error {
	sub, err := s.of(c.Topology, c.Run)
	switch {
	case err != nil:
		return err
	case sub.Status.Runs() && sub.Status != Ending:
		return refuse(ErrRunning, "topology %q runs: kill it before it is forgotten", c.Topology)
	}
	s.drop(sub)
	return nil
}

func (c *SawNode) apply(s *State, _ *Result) error {
	n, _ := s.Node(c.Node)
	switch {
	case c.Node == 0 || c.Boot == 0:
		return refuse(ErrInvalid, "a node has an id and counts its processes from 1: this is %v.%d", c.Node, c.Boot)
	case c.Boot < n.Boot:
		return refuse(ErrStale, "process %d of node %v is over: the last one seen is %d", c.Boot, c.Node, n.Boot)
	}
	s.putNode(Node{c.Node, c.Name, c.Addr, c.Boot, n.Draining})
	return nil
}

func (c *DrainNode) apply(s *State, _ *Result) error {
	n, known := s.Node(c.Node)
	if !known {
		return refuse(ErrUnknown, "there is no node %v", c.Node)
	}
	n.Draining = c.On
	s.putNode(n)
	return nil
}

func (c *ForgetNode) apply(s *State, _ *Result) error {
	if _, known := s.Node(c.Node); !known {
		return refuse(ErrUnknown, "there is no node %v", c.Node)
	}
	for _, sub := range s.Submissions {
		if !sub.Status.Runs() || sub.Plan == nil {
			continue
		}
		if slices.ContainsFunc(sub.Plan.Tasks, func(t Task) bool { return t.Home.Node == c.Node }) {
			return refuse(ErrRunning, "node %v has tasks of topology %q: they must have another one before it is forgotten", c.Node, sub.Topology)
		}
	}
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n Node) bool { return n.ID == c.Node })
	return nil
}
