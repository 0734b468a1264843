package cluster

import (
	"math"
	"slices"
	"strings"
)

// A State is what all nodes agree on. It is a function of the entries of the log, in
// their order, and of nothing else.
//
// Owner: whoever applies the log. Nothing that a State refers to is ever changed, so a
// copy of it (one assignment) is a picture of this moment that others may read as long
// as they like.
type State struct {
	Cluster     string        // id; empty until it is founded
	Epoch       uint32        // the last that was given to a run or a plan
	Applied     uint64        // the index of the last entry
	Submissions []*Submission // by topology; one for each name
	Nodes       []Node        // by id; also those that are gone
	Unread      Unread
}

// Unread says that there were entries that could not be read. From then on this node
// does not know what the others know, unless they have the same version.
type Unread struct {
	Count int    `json:"count,omitempty"`
	First uint64 `json:"first,omitempty"` // index in the log
	Last  uint64 `json:"last,omitempty"`
	Kind  string `json:"kind,omitempty"` // of the last, its first 40 bytes; empty if it was broken
}

// A Result is what became of an entry.
type Result struct {
	Kind   string // of the entry, as in its JSON; empty if it is broken
	Epoch  uint32 // that was given to the run or the plan
	Before Run    // Submit: the run that this one goes on from; 0: none
	Old    int    // positions that were passed over: an earlier life sent them
	Err    error  // nil, or a *Refusal
}

// Apply takes the entry at an index of the log, each once and in order. The refused
// ones change nothing.
func (s *State) Apply(index uint64, entry []byte) Result {
	if index <= s.Applied {
		return Result{Err: refuse(ErrStale, "entry %d was applied already: the last was %d", index, s.Applied)}
	}
	s.Applied = index
	c, kind, err := decode(entry)
	r := Result{Kind: kind, Err: err}
	if err != nil {
		if s.Unread.Count == 0 {
			s.Unread.First = index
		}
		s.Unread.Count++
		s.Unread.Last, s.Unread.Kind = index, kind
		return r
	}
	if _, first := c.(*Found); !first && s.Cluster == "" {
		r.Err = refuse(ErrUnknown, "there is no cluster yet")
	} else {
		r.Err = c.apply(s, &r)
	}
	return r
}

// Submission returns the submission of a topology, or nil.
func (s *State) Submission(topology string) *Submission {
	if i, ok := s.find(topology); ok {
		return s.Submissions[i]
	}
	return nil
}

// Node returns what is known of a node.
func (s *State) Node(id NodeID) (n Node, known bool) {
	i, known := s.findNode(id)
	if known {
		n = s.Nodes[i]
	}
	return n, known
}

func (s *State) find(topology string) (int, bool) {
	return slices.BinarySearchFunc(s.Submissions, topology, func(sub *Submission, name string) int {
		return strings.Compare(sub.Topology, name)
	})
}

func (s *State) findNode(id NodeID) (int, bool) {
	return slices.BinarySearchFunc(s.Nodes, id, func(n Node, id NodeID) int {
		if n.ID < id {
			return -1
		}
		return int(min(n.ID-id, 1))
	})
}

// put replaces the submission of a topology, or adds it.
func (s *State) put(sub *Submission) {
	i, found := s.find(sub.Topology)
	s.Submissions = slices.Clone(s.Submissions)
	if found {
		s.Submissions[i] = sub
	} else {
		s.Submissions = slices.Insert(s.Submissions, i, sub)
	}
}

// drop removes the submission of a topology, with its positions.
func (s *State) drop(sub *Submission) {
	s.Submissions = slices.DeleteFunc(slices.Clone(s.Submissions), func(o *Submission) bool { return o.Topology == sub.Topology })
}

func (s *State) putNode(n Node) {
	i, found := s.findNode(n.ID)
	s.Nodes = slices.Clone(s.Nodes)
	if found {
		s.Nodes[i] = n
	} else {
		s.Nodes = slices.Insert(s.Nodes, i, n)
	}
}

// of returns a copy of the submission that an entry is for. It becomes part of the
// state by put.
func (s *State) of(topology string, run Run) (*Submission, error) {
	sub := s.Submission(topology)
	switch {
	case sub == nil:
		return nil, refuse(ErrUnknown, "there is no topology %q", topology)
	case sub.Run != run:
		return nil, refuse(ErrStale, "topology %q has been submitted again: this was meant for run %d, and now it is %d", topology, run, sub.Run)
	}
	next := *sub
	return &next, nil
}

// running is of, for what only a running one can have done to it.
func (s *State) running(topology string, run Run) (*Submission, error) {
	sub, err := s.of(topology, run)
	if err == nil && !sub.Status.Runs() {
		return nil, ended(sub)
	}
	return sub, err
}

// ended is the refusal of what only a running one can have done to it.
func ended(sub *Submission) error {
	return refuse(ErrEnded, "topology %q is %s", sub.Topology, sub.Status)
}

// planned is running, with the plan that an entry was made for.
func (s *State) planned(topology string, run Run, base uint32) (*Submission, error) {
	sub, err := s.running(topology, run)
	if err == nil && sub.epoch() != base {
		return nil, refuse(ErrStale, "topology %q has another plan by now: this was meant for %d, and it is %d", topology, base, sub.epoch())
	}
	return sub, err
}

// epoch returns that of the present plan, 0 for none.
func (s *Submission) epoch() uint32 {
	if s.Plan == nil {
		return 0
	}
	return s.Plan.Epoch
}

// give takes the next epoch.
func (s *State) give(r *Result) error {
	if s.Epoch == math.MaxUint32 {
		return refuse(ErrFull, "all epochs have been given away")
	}
	s.Epoch++
	r.Epoch = s.Epoch
	return nil
}
