package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/cluster"
)

// A lead is what an agent has while its node leads the log.
type lead struct {
	a      *Agent
	c      *cluster.Coordinator
	saves  map[cluster.Run]map[splitOf]cluster.Position // that wait for an entry
	counts map[cluster.Home]*counts
	timer  bool
	found  time.Duration // when the first entry is asked for again
}

// A splitOf is a split of a component.
type splitOf struct{ component, split string }

type saveNow struct{}

const saveEvery = 20 * time.Millisecond // entries with positions

func newLead(a *Agent) *lead {
	now := a.ctx.Now()
	l := &lead{
		a: a, c: cluster.NewCoordinator(a.Self.Home, now, a.Patience),
		saves: map[cluster.Run]map[splitOf]cluster.Position{}, counts: map[cluster.Home]*counts{},
	}
	l.c.Members(now, a.members)
	return l
}

// decide asks for the entries that bring about what should be.
func (a *Agent) decide() {
	if a.lead == nil {
		return
	}
	if a.state.Cluster == "" && a.Cluster != "" && a.ctx.Now() >= a.lead.found {
		a.lead.found = a.ctx.Now() + time.Second
		a.propose(cluster.Entry{Found: &cluster.Found{Cluster: a.Cluster}}, nil)
	}
	for _, e := range a.lead.c.Decide(a.ctx.Now(), &a.state, a.wall(), nil) {
		text, args := a.announcement(&e)
		lost := a.losses(&e)
		if text == "" && len(lost) == 0 {
			a.propose(e, nil)
			continue
		}
		a.propose(e, func(r cluster.Result, err error) {
			if err == nil && r.Err == nil {
				if text != "" {
					a.Tell(text, args...)
				}
				a.tellLost(lost)
			}
		})
	}
}

// announcement is what people are told of what is decided without them, when it is agreed
// on; "": nothing.
func (a *Agent) announcement(e *cluster.Entry) (text string, args []any) {
	switch {
	case e.SetPlan != nil && e.SetPlan.Base != 0:
		sub := a.state.Submission(e.SetPlan.Topology)
		var moves []string
		for _, m := range movesOf(sub, e.SetPlan.Plan) {
			moves = append(moves, fmt.Sprintf("%s from %s to %s", m.Task, a.nameOf(m.From.Node), a.nameOf(m.To.Node)))
		}
		if n := len(moves); n > mostMoves {
			moves = append(moves[:mostMoves], fmt.Sprintf("and %d others", n-mostMoves))
		}
		if len(moves) > 0 {
			return "a process is gone, and its tasks begin anew", []any{"topology", sub.Topology, "tasks", strings.Join(moves, ", ")}
		}
	case e.Finish != nil && e.Finish.Status == cluster.Failed:
		return "a topology has failed", []any{"topology", e.Finish.Topology, "error", e.Finish.Reason}
	}
	return "", nil
}

// mostMoves is how many moves are told.
const mostMoves = 10

// nameOf is what people call a node.
func (a *Agent) nameOf(id cluster.NodeID) string {
	if n, known := a.state.Node(id); known {
		return n.Name
	}
	return id.String()
}

// propose asks for an entry. done, if not nil, is told what has become of it.
func (a *Agent) propose(e cluster.Entry, done func(cluster.Result, error)) {
	b, err := e.Encode()
	if err != nil {
		panic(err)
	}
	id := a.id()
	if done != nil {
		a.asks[id] = &pending{done: done, until: a.ctx.Now() + askFor}
	}
	a.Log.Propose(id, b)
}

// proposed takes in what has become of an entry.
func (a *Agent) proposed(m Proposed) {
	if w := a.asks[m.ID]; w != nil && w.done != nil {
		delete(a.asks, m.ID)
		w.done(m.Result, m.Err)
	}
}

// save takes positions for the next entry of their run.
func (l *lead) save(s *save) {
	all := l.saves[s.Run]
	if all == nil {
		all = map[splitOf]cluster.Position{}
		l.saves[s.Run] = all
	}
	for _, p := range s.Positions {
		at := splitOf{p.Component, p.Split}
		if p.Life >= all[at].Life {
			all[at] = p
		}
	}
	if l.timer {
		return
	}
	l.timer = true
	l.a.ctx.After(saveEvery, saveNow{})
}

// saveNow asks for an entry for each run with positions that wait.
func (l *lead) saveNow() {
	l.timer = false
	for _, run := range slices.Sorted(maps.Keys(l.saves)) {
		sub := l.a.submission(run)
		if sub == nil {
			continue
		}
		c := &cluster.Commit{Topology: sub.Topology, Run: run}
		for _, p := range l.saves[run] {
			c.Positions = append(c.Positions, p)
		}
		slices.SortFunc(c.Positions, func(x, y cluster.Position) int {
			return cmp.Or(cmp.Compare(x.Component, y.Component), cmp.Compare(x.Split, y.Split))
		})
		l.a.propose(cluster.Entry{Commit: c}, nil)
	}
	clear(l.saves)
}
