package cluster

import "cmp"

// Where a run is whose states only one node has (T18). Moving such a state is not built:
// the run stays with its node, and waits while that is gone.

// Seat returns the node that a run with Local stays on, or one that goes on with the states
// of the run before; 0: none yet, or it may be anywhere.
func (s *Submission) Seat() NodeID {
	if !s.Local {
		return 0
	}
	if s.Plan == nil {
		return s.Stays
	}
	for _, t := range s.Plan.Tasks {
		if t.Home.Node != 0 {
			return t.Home.Node
		}
	}
	return s.Stays
}

// only returns the one node of all that a run with Local may have tasks on, if it is among
// them. One that is not placed yet may have the one with the fewest tasks for its weight.
func (s *Submission) only(all []Candidate) []Candidate {
	seat := s.Seat()
	best := -1
	for i := range all {
		switch {
		case seat != 0 && all[i].Node != seat:
		case best < 0 || fewer(&all[i], &all[best]):
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return all[best : best+1 : best+1]
}

func fewer(a, b *Candidate) bool {
	if a.Draining != b.Draining {
		return b.Draining
	}
	return cmp.Or(cmp.Compare(a.Load*max(b.Weight, 1), b.Load*max(a.Weight, 1)), compareHomes(a.Home, b.Home)) < 0
}
