package node

import (
	"slices"
	"time"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/task"
)

// Positions of sources go through the log. The node that has the spout's task asks who
// leads, again and again, until it sees in the log what it has asked for, or something
// later: so an answer cannot be lost.

// save begins to ask for positions.
func (a *Agent) save(m *task.SavePositions) {
	p := a.parts[cluster.Run(m.Run)]
	if p == nil {
		return
	}
	p.saving = m
	p.sendSave(a)
	p.seeSaved(a, a.submission(p.run))
}

func (p *part) sendSave(a *Agent) {
	p.said = a.ctx.Now()
	s := &save{Run: p.run}
	for _, at := range p.saving.Positions {
		s.Positions = append(s.Positions, cluster.Position{Component: at.Component, Split: at.Split, Position: at.Position, Life: at.Life})
	}
	if a.lead != nil {
		a.lead.save(s)
	} else {
		a.note(a.leads.Node, &note{Save: s})
	}
}

// saveAgain asks again for what has not come.
func (p *part) saveAgain(a *Agent, now time.Duration) {
	if p.saving != nil && now-p.said >= sayAgain && !mutation.Is(mutation.SaveOnce) {
		p.sendSave(a)
	}
}

// seeSaved tells the supervisor when the log has all that was asked for. Without a
// submission nobody wants it any more.
func (p *part) seeSaved(a *Agent, sub *cluster.Submission) {
	if p.saving == nil || p.sup == nil {
		return
	}
	if sub == nil {
		p.saving = nil
		a.ctx.Send(p.sup, task.Saved{})
		return
	}
	refused := 0
	for _, at := range p.saving.Positions {
		has, known := sub.Positions.At(at.Component, at.Split)
		switch {
		case !known || has.Life < at.Life || has.Life == at.Life && has.Position != at.Position:
			return
		case has.Life > at.Life:
			refused++
		}
	}
	p.saving = nil
	a.ctx.Send(p.sup, task.Saved{Refused: refused})
}

// submission returns that of a run, nil if the log has another one, or none.
func (a *Agent) submission(run cluster.Run) *cluster.Submission {
	i := slices.IndexFunc(a.state.Submissions, func(s *cluster.Submission) bool { return s.Run == run })
	if i < 0 {
		return nil
	}
	return a.state.Submissions[i]
}
