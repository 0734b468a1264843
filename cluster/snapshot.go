package cluster

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/tuple"
)

// snapshotVersion is raised when an older version could not read what is written.
const snapshotVersion = 2

type snapshot struct {
	Version     int      `json:"version"`
	Cluster     string   `json:"cluster"`
	Epoch       uint32   `json:"epoch"`
	Applied     uint64   `json:"applied"`
	Nodes       []Node   `json:"nodes"`
	Submissions []stored `json:"submissions"`
	Unread      Unread   `json:"unread"`
}

// stored is a submission with its positions, which name their component once.
type stored struct {
	*Submission
	Positions []committed   `json:"positions"`
	Record    *batch.Record `json:"record,omitempty"`
}

type committed struct {
	Component string  `json:"component"`
	Splits    []split `json:"splits"`
}

type split struct {
	Split    string            `json:"split"`
	Position string            `json:"position"`
	Life     tuple.Incarnation `json:"life"`
}

// Snapshot returns the whole state: the same bytes for the same state.
func (s *State) Snapshot() ([]byte, error) {
	out := snapshot{snapshotVersion, s.Cluster, s.Epoch, s.Applied, s.Nodes, make([]stored, 0, len(s.Submissions)), s.Unread}
	for _, sub := range s.Submissions {
		var all []committed
		for p := range sub.Positions.All() {
			if len(all) == 0 || all[len(all)-1].Component != p.Component {
				all = append(all, committed{Component: p.Component})
			}
			c := &all[len(all)-1]
			c.Splits = append(c.Splits, split{p.Split, p.Position, p.Life})
		}
		out.Submissions = append(out.Submissions, stored{sub, all, sub.Record})
	}
	return json.Marshal(out)
}

// Restore makes s what it was when the snapshot was taken. With an error, a *Refusal, s
// is as before.
func (s *State) Restore(data []byte) error {
	var head struct{ Version int }
	if err := json.Unmarshal(data, &head); err != nil {
		return refuse(ErrCorrupt, "the snapshot of the cluster's state cannot be read: %v", err)
	}
	if head.Version != snapshotVersion {
		return refuse(ErrNewer, "the snapshot of the cluster's state has version %d, and this version of Egret reads %d:"+
			" run the same version on all nodes", head.Version, snapshotVersion)
	}
	var in snapshot
	if err := strictly(data, &in); err != nil {
		return refuse(ErrCorrupt, "the snapshot of the cluster's state cannot be read: %v", err)
	}
	next := State{Cluster: in.Cluster, Epoch: in.Epoch, Applied: in.Applied, Nodes: in.Nodes, Unread: in.Unread}
	for _, from := range in.Submissions {
		if from.Submission == nil {
			return refuse(ErrCorrupt, "the snapshot has a submission of nothing")
		}
		var all []Position
		for _, c := range from.Positions {
			for _, p := range c.Splits {
				all = append(all, Position{c.Component, p.Split, p.Position, p.Life})
			}
		}
		sub := from.Submission
		sub.Record = from.Record
		sub.Positions, _ = Positions{}.with(all)
		if sub.Positions.Len() != len(all) {
			return refuse(ErrCorrupt, "the snapshot has two positions of one place of topology %q", sub.Topology)
		}
		next.Submissions = append(next.Submissions, sub)
	}
	if err := next.check(); err != nil {
		return err
	}
	*s = next
	return nil
}

// check returns a refusal of a state that no log can have led to.
func (s *State) check() error {
	broken := func(format string, args ...any) error {
		return refuse(ErrCorrupt, "the state of the cluster contradicts itself: "+format, args...)
	}
	for i, n := range s.Nodes {
		if n.ID == 0 || n.Boot == 0 || i > 0 && s.Nodes[i-1].ID >= n.ID {
			return broken("node %v", n.ID)
		}
	}
	for i, sub := range s.Submissions {
		name := sub.Topology
		if err := checkSpec(&sub.Spec); err != nil {
			return broken("%v", err)
		}
		switch {
		case i > 0 && s.Submissions[i-1].Topology >= name:
			return broken("topology %q is there twice, or in the wrong place", name)
		case sub.Run == 0 || sub.Run > Run(s.Epoch):
			return broken("run %d of topology %q", sub.Run, name)
		case !sub.Status.Runs() && sub.Status != Done && !sub.Status.Leaves():
			return broken("topology %q is %q", name, sub.Status)
		case sub.Next != nil && (sub.Plan == nil || !sub.Status.Runs()):
			return broken("topology %q is to have another plan, and has none", name)
		}
		if why := sub.checkRecord(s.Epoch); why != "" {
			return broken("topology %q: %s", name, why)
		}
		if sub.Plan != nil {
			if err := checkPlan(sub.Components, sub.Plan, true); err != nil {
				return broken("%v", err)
			}
			least, most := uint32(math.MaxUint32), uint32(0)
			for _, t := range sub.Plan.Tasks {
				least, most = min(least, t.Epoch), max(most, t.Epoch)
			}
			if least <= uint32(sub.Run) || most > sub.Plan.Epoch || sub.Plan.Epoch > s.Epoch {
				return broken("topology %q, run %d, has a plan with epoch %d, and tasks with epochs from %d to %d", name, sub.Run, sub.Plan.Epoch, least, most)
			}
		}
		if sub.Next != nil {
			if err := checkPlan(sub.Components, sub.Next, false); err != nil {
				return broken("%v", err)
			}
			if err := checkStep(sub.Plan, sub.Next); err != nil {
				return broken("%v", err)
			}
		}
		for p := range sub.Positions.All() {
			known := slices.ContainsFunc(sub.Components, func(k Component) bool { return k.Name == p.Component })
			if !known || p.Life.Epoch() > s.Epoch {
				return broken("a position of component %q of topology %q by life %v", p.Component, name, p.Life)
			}
		}
	}
	return nil
}
