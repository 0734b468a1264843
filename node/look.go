package node

import (
	"maps"
	"slices"
	"time"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// What an agent hears from those who look at what its node does.
type (
	// A Look asks what this node has, and had, of the runs that the log knows. Reply is
	// called once, and must not wait.
	Look struct{ Reply func([]Part) }
	// A ToRun is a message for the supervisor of a run, if there is one here.
	ToRun struct {
		Run cluster.Run
		Msg any
	}
)

// A Part is what a node has of a run, or what it had of one that has ended.
type Part struct {
	Run   cluster.Run
	Plan  *topology.Plan
	Began time.Time // when the run was submitted; zero: this node does not know it any more
	Over  bool
	Tasks []PartTask // that are here or were, in the order of the plan
}

// A PartTask is a task that is on a node, or was.
type PartTask struct {
	ID      tuple.TaskID
	Here    bool
	Life    tuple.Incarnation // 0: it has none
	Metrics *metrics.Task     // of all that this process has done as this task
}

// look returns the part as others may read it; false: it has never had a task.
func (p *part) look(a *Agent) (Part, bool) {
	if p.plan == nil {
		return Part{}, false
	}
	x := Part{Run: p.run, Plan: p.plan, Over: p.over || p.sup == nil}
	if sub := a.state.Submission(p.plan.Topology); sub != nil && sub.Run == p.run {
		x.Began = sub.Began()
	}
	for id, m := range p.metrics {
		t := PartTask{ID: tuple.TaskID(id), Metrics: m, Life: p.own[tuple.TaskID(id)].Life}
		t.Here = id < len(p.placed.Tasks) && p.placed.Tasks[id].Home == a.Self.Home
		if t.Here || p.had[t.ID] {
			x.Tasks = append(x.Tasks, t)
		}
	}
	return x, true
}

// looked answers a Look.
func (a *Agent) looked() []Part {
	all := slices.Collect(maps.Values(a.past))
	for _, p := range a.parts {
		if x, has := p.look(a); has {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(x, y Part) int { return int(x.Run) - int(y.Run) })
	return all
}

// toRun passes a message on to the supervisor of a run.
func (a *Agent) toRun(m ToRun) {
	if p := a.parts[m.Run]; p != nil && p.sup != nil {
		a.ctx.Send(p.sup, m.Msg)
	}
}
