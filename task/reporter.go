package task

import (
	"slices"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A reporter gathers what a task has to say to the ledgers and sends it in
// reports, one open report for each ledger.
//
// Invariant: every entry of an open report was made under the view that the
// report will carry; see raises the view only when nothing is waiting (R4).
type reporter struct {
	c    *core
	open []*acker.Report // by TaskID of the ledger; nil: nothing to say
	live []tuple.TaskID  // those with an open report
	view []acker.Death   // of the tasks this one sends to; replaced, never changed
	// sealed are reports under an older view, of ledgers whose address is not known
	// yet; oldest first. They are few: one a ledger and death.
	sealed []*acker.Report
	// accounts calls f for every account whose entry has not been reported.
	accounts func(f func(tree tuple.TreeID, a *account))
}

func (r *reporter) setup(c *core) {
	r.c = c
	r.open = make([]*acker.Report, len(c.plan.Tasks))
	// A life may begin when others have died already, also tasks that are retired.
	for id := range c.peers {
		if p := c.peers[id]; r.covers(tuple.TaskID(id)) && p.Life > c.first() {
			r.view = append(r.view, acker.Death{Task: tuple.TaskID(id), Life: p.Life - 1})
		}
	}
}

// covers reports whether the view has a task if it has died: it is of a component that
// this one sends to, whether it ever was there when this one was or not.
func (r *reporter) covers(id tuple.TaskID) bool {
	to := r.c.plan.Tasks[id].Component
	return slices.ContainsFunc(r.c.node.Outputs, func(o topology.Route) bool { return o.To == to })
}

// to returns the open report for the ledger of a tree, or nil if that ledger is
// of a dead life.
func (r *reporter) to(t tuple.TreeID) *acker.Report {
	known := r.c.peers[t.Task].Life
	if mutation.Is(mutation.ReportOfEarlierLife) {
		t.Incarnation = max(t.Incarnation, known)
	}
	if t.Incarnation != known {
		if t.Incarnation < known {
			return nil
		}
		r.c.learn(Peer{Task: t.Task, Life: t.Incarnation})
	}
	m := r.open[t.Task]
	if m == nil {
		m = &acker.Report{
			From: r.c.id, FromLife: r.c.life,
			To: t.Task, ToLife: t.Incarnation,
		}
		r.open[t.Task] = m
		r.live = append(r.live, t.Task)
	}
	return m
}

// entry reports an account: the edge that was consumed and those that were made.
func (r *reporter) entry(t tuple.TreeID, xor tuple.EdgeID, mask uint64) {
	m := r.open[t.Task]
	if m == nil || m.ToLife != t.Incarnation {
		if m = r.to(t); m == nil {
			return
		}
	}
	if m.Entries == nil {
		m.Entries = make([]acker.Entry, 0, reportSize)
	}
	m.Entries = append(m.Entries, acker.Entry{Seq: t.Seq, Xor: xor, Mask: mask})
	if len(m.Entries) >= reportSize {
		r.flushTo(t.Task)
	}
}

func (r *reporter) fail(t tuple.TreeID, index uint16, class acker.FailClass, text string) {
	if m := r.to(t); m != nil {
		m.Fails = append(m.Fails, acker.Fail{Seq: t.Seq, Index: index, Class: class, Err: text})
	}
}

func (r *reporter) queued(t tuple.TreeID) {
	m := r.to(t)
	if m == nil {
		return
	}
	if n := len(m.Queued); n > 0 && m.Queued[n-1] == t.Seq {
		return // a tree's tuples mostly lie side by side
	}
	m.Queued = append(m.Queued, t.Seq)
}

func (r *reporter) held(t tuple.TreeID, component int, within, waits bool) {
	if m := r.to(t); m != nil {
		m.Held = append(m.Held, acker.Held{Seq: t.Seq, Component: component, Within: within, Waits: waits})
	}
}

// lostTo reports as lost every tree with an unreported edge to a task.
func (r *reporter) lostTo(task tuple.TaskID) {
	if mutation.Is(mutation.NoLostReport) || r.accounts == nil || !r.c.tracked() || r.c.out.byTask[task] == nil {
		return
	}
	bit := acker.Bit(task)
	any := false
	r.accounts(func(t tuple.TreeID, a *account) {
		if a.mask&bit == 0 {
			return
		}
		if m := r.to(t); m != nil {
			m.Lost = append(m.Lost, t.Seq)
			any = true
		}
	})
	if any {
		r.flush()
	}
}

// forget throws away what was to be said to lives of a task before next.
func (r *reporter) forget(task tuple.TaskID, next tuple.Incarnation) {
	if m := r.open[task]; m != nil && m.ToLife < next {
		r.open[task] = nil
		r.drop(task)
	}
	r.sealed = slices.DeleteFunc(r.sealed, func(m *acker.Report) bool { return m.To == task && m.ToLife < next })
}

// see raises the view: all lives of the task up to life are dead.
func (r *reporter) see(task tuple.TaskID, life tuple.Incarnation) {
	if !r.covers(task) {
		return
	}
	// What flush could not send was made under the old view and keeps it: its edges
	// to this task go to the dead life, and under the new view they would stand for
	// the living one.
	for i := len(r.live) - 1; i >= 0 && !mutation.Is(mutation.ReportUnderNewView); i-- {
		id := r.live[i]
		m := r.open[id]
		m.View = r.view
		r.sealed = append(r.sealed, m)
		r.open[id] = nil
		r.drop(id)
	}
	view := make([]acker.Death, 0, len(r.view)+1)
	for _, d := range r.view {
		if d.Task != task {
			view = append(view, d)
		}
	}
	r.view = append(view, acker.Death{Task: task, Life: life})
}

func (r *reporter) drop(task tuple.TaskID) {
	for i, id := range r.live {
		if id == task {
			r.live[i] = r.live[len(r.live)-1]
			r.live = r.live[:len(r.live)-1]
			return
		}
	}
}

// flush sends everything that can be sent.
func (r *reporter) flush() {
	for i := len(r.live) - 1; i >= 0; i-- {
		r.flushTo(r.live[i])
	}
}

// flushTo sends the open report for one ledger. A ledger whose address is not
// known yet gets it later.
func (r *reporter) flushTo(task tuple.TaskID) {
	if len(r.sealed) > 0 {
		r.unseal(task)
	}
	m := r.open[task]
	if m == nil {
		return
	}
	if task == r.c.id {
		r.open[task] = nil
		r.drop(task)
		return // one's own ledger is told directly; nothing comes here
	}
	if r.c.peers[task].Ref == nil {
		return
	}
	m.View = r.view
	r.open[task] = nil
	r.drop(task)
	r.c.say(task, m)
}

// unseal sends the sealed reports for one ledger, if it can be reached now.
func (r *reporter) unseal(task tuple.TaskID) {
	if r.c.peers[task].Ref == nil {
		return
	}
	r.sealed = slices.DeleteFunc(r.sealed, func(m *acker.Report) bool {
		if m.To == task {
			r.c.say(task, m)
		}
		return m.To == task
	})
}
