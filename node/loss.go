package node

import (
	"fmt"
	"slices"
	"strings"

	"github.com/egretstream/egret/cluster"
)

// A Loss is what a run has lost on one node of one component: tasks, which begin anew
// elsewhere.
type Loss struct {
	Topology  string
	Run       cluster.Run
	Component string
	Tasks     []string // "count/2"
	Node      string   // that had them: its name
	Why       string   // they do not go on there
	to        []string // nodes that have them now
}

// losses lists what an entry that repairs a plan gives up.
func (a *Agent) losses(e *cluster.Entry) (all []*Loss) {
	if e.SetPlan == nil || e.SetPlan.Base == 0 {
		return nil
	}
	sub := a.state.Submission(e.SetPlan.Topology)
	for _, m := range movesOf(sub, e.SetPlan.Plan) {
		component, _, _ := strings.Cut(m.Task, "/")
		from, to := a.nameOf(m.From.Node), a.nameOf(m.To.Node)
		at := slices.IndexFunc(all, func(l *Loss) bool { return l.Component == component && l.Node == from })
		if at < 0 {
			at = len(all)
			l := &Loss{Topology: sub.Topology, Run: sub.Run, Component: component, Node: from, Why: a.lead.c.Fails(sub.Run, m.From)}
			if l.Why == "" {
				l.Why = "the process of node " + from + " is gone"
			}
			all = append(all, l)
		}
		l := all[at]
		l.Tasks = append(l.Tasks, m.Task)
		if !slices.Contains(l.to, to) {
			l.to = append(l.to, to)
		}
	}
	return all
}

// tellLost tells the program, when it is agreed on.
func (a *Agent) tellLost(all []*Loss) {
	for _, l := range all {
		if a.Program.Lost != nil {
			a.Program.Lost(l)
		}
	}
}

// String says it for people.
func (l *Loss) String() string {
	verb := "begins"
	if len(l.Tasks) > 1 {
		verb = "begin"
	}
	return fmt.Sprintf("%s: %s %s anew on %s", l.Why, some(l.Tasks), verb, some(l.to))
}

// some lists a few of many.
func some(all []string) string {
	if n := len(all); n > mostMoves {
		return fmt.Sprintf("%s and %d others", strings.Join(all[:mostMoves], ", "), n-mostMoves)
	}
	return strings.Join(all, ", ")
}
