package egret

import (
	"fmt"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/view"
)

// nodeNames returns what people call the nodes: their names, and where several have one,
// more than that.
func nodeNames(v *node.View) map[cluster.NodeID]string {
	all, same := members(v), map[string]int{}
	for _, m := range all {
		same[m.Name]++
	}
	names := map[cluster.NodeID]string{}
	for _, m := range all {
		name := oneLine(m.Name, 60)
		if same[m.Name] > 1 {
			name += " (" + m.ID.String() + ")"
		}
		names[m.ID] = name
	}
	return names
}

// whole is what is agreed on, and which nodes there are. Nothing is known of any task.
func (s *clusterSource) whole(v *node.View) *view.Sample {
	x := &view.Sample{Cluster: v.Cluster, Quorum: v.Leader != 0, Nodes: []view.Node{}, Runs: []view.Run{}}
	names := nodeNames(v)
	for _, m := range members(v) {
		n := view.Node{
			Node: names[m.ID], Addr: m.Addr, ID: nodeName(m.ID), Alive: m.State == alive, Leads: m.Leader, Votes: m.Votes, Draining: m.Draining, Tasks: m.Tasks,
		}
		switch m.State {
		case dead:
			n.Silent = "it is dead, or cannot be reached from here"
		case left:
			if n.Silent = "it has left"; tasksOf(v, m.ID) == 0 {
				continue
			}
		}
		x.Nodes = append(x.Nodes, n)
	}
	for _, sub := range v.Submissions {
		x.Runs = append(x.Runs, s.run(v, sub, names))
	}
	return x
}

// run is what is agreed on of a topology.
func (s *clusterSource) run(v *node.View, sub *cluster.Submission, names map[cluster.NodeID]string) view.Run {
	r := view.Run{
		Topology: sub.Topology, Run: runName(sub.Run), Guarantee: sub.Guarantee, Status: string(sub.Status), Reason: sub.Reason, Began: sub.Began(),
		Ended: !sub.Status.Runs(), Settings: s.settings(sub), Tasks: []view.Task{},
	}
	if sub.Status == cluster.Active {
		r.Status = "running"
	}
	switch lacks := lacks(v, sub); {
	case !sub.Status.Runs():
	case lacks != "":
		r.Status, r.Reason = "waiting", "it waits for "+lacks+", which has its states"
	case sub.Plan == nil:
		r.Status, r.Reason = "waiting", "no node has been found for its tasks yet"
	case sub.Next != nil:
		r.Status = "changing"
		r.Reason = fmt.Sprintf("%s waits until nothing is open (%s)", sub.Why, amount.Of(nextMoves(sub), "task"))
	}
	if sub.Record != nil { // until its coordinator says more
		r.Batches = &view.Batches{Last: int64(sub.Record.Committed), Rounds: map[string]int64{}}
	}
	if sub.Plan == nil {
		return r
	}
	for _, t := range sub.Plan.Tasks {
		if t.Home.Node != 0 {
			c := sub.Components[t.Component].Name
			r.Tasks = append(r.Tasks, view.Task{Task: fmt.Sprintf("%s/%d", c, t.Index), Component: c, Node: names[t.Home.Node]})
		}
	}
	return r
}

// settings are what a topology was submitted with, as people may see it.
func (s *clusterSource) settings(sub *cluster.Submission) map[string]string {
	s.mu.Lock()
	known := s.known[runName(sub.Run)].Settings
	s.mu.Unlock()
	if known != nil {
		return known
	}
	config, err := submitted(&sub.Spec)
	if err != nil {
		return nil // of another version
	}
	config.Params, config.Parallel = sub.Params, sub.Parallel
	return config.shown()
}

// nextMoves is how many tasks a change moves that waits.
func nextMoves(sub *cluster.Submission) (n int) {
	for id, t := range sub.Next.Tasks {
		if id >= len(sub.Plan.Tasks) || sub.Plan.Tasks[id].Home != t.Home {
			n++
		}
	}
	return n
}
