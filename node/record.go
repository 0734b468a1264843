package node

import (
	"fmt"
	"time"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// The record of batches goes through the log in the way of positions: the node that has
// the coordinator's task asks who leads, again and again, until it sees in the log what
// has become of it. An entry has one life of the coordinator that can have asked for it
// (Begin names it, and each epoch is begun by one), so what the log shows is the answer,
// whoever has carried it there and however often.

// mostEntry is how many bytes an entry of the log may have.
const mostEntry = 1 << 20

// A recording is what a coordinator's task has asked for and the log does not show yet.
type recording struct {
	*task.SaveRecord
	above uint32 // of Begin: the epoch that the log had when it was asked for
	said  time.Duration
}

type (
	// change asks who leads for an entry in the record of a run's batches.
	change struct {
		Run   cluster.Run `json:"run"`
		Entry batch.Entry `json:"entry"`
	}
	// A head says how far a record is, and is enough to see whether it has an entry. Who
	// leads knows it some time before the log is here.
	head struct {
		Run       cluster.Run       `json:"run"`
		Epoch     uint32            `json:"epoch"`
		Life      tuple.Incarnation `json:"life"`
		Committed tuple.TxID        `json:"committed"`
		Fixed     bool              `json:"fixed,omitempty"`
	}
)

func headOf(run cluster.Run, r *batch.Record) head {
	if r == nil {
		return head{Run: run}
	}
	return head{run, r.Epoch, r.Life, r.Committed, r.Fixed != nil}
}

// saveRecord begins to ask for a change of the record. A later life takes the place of an
// earlier one.
func (a *Agent) saveRecord(m *task.SaveRecord) {
	p, sub := a.parts[cluster.Run(m.Run)], a.submission(cluster.Run(m.Run))
	if p == nil || sub == nil || p.recording != nil && m.Life < p.recording.Life {
		return // nobody wants it any more
	}
	p.recording = &recording{SaveRecord: m, above: headOf(p.run, sub.Record).Epoch}
	p.sendRecord(a, sub)
}

// sendRecord asks for what has not come. A life that was replaced is told so.
func (p *part) sendRecord(a *Agent, sub *cluster.Submission) {
	r := p.recording
	e := *r.Entry
	if e.Begin {
		e.Life = r.Life
		e.Epoch = headOf(p.run, sub.Record).Epoch + 1 // others may have begun some since
	}
	r.said = a.ctx.Now()
	b, err := cluster.Entry{Batches: &cluster.Batches{Topology: sub.Topology, Run: sub.Run, Change: e}}.Encode()
	switch {
	case err != nil:
		panic(err)
	case len(b) > mostEntry:
		p.recorded(a, &task.RecordSaved{Fatal: true, Err: fmt.Errorf("what the record of batches has to take in of a batch has %d bytes, and %d are the most in a cluster, for it has messages of too many splits: make batches smaller (--batch-size)", len(b), mostEntry)})
	case a.lead != nil:
		a.lead.change(a.Self.Home, &change{p.run, e})
	default:
		a.note(a.leads.Node, &note{Change: &change{p.run, e}})
	}
}

// recordAgain asks again for what has not come.
func (p *part) recordAgain(a *Agent, now time.Duration) {
	if p.recording == nil || now-p.recording.said < sayAgain {
		return
	}
	if sub := a.submission(p.run); sub != nil {
		p.sendRecord(a, sub)
	}
}

// seeRecord answers the coordinator's task when the log here shows what has become of what
// it has asked for. Without a submission nobody wants that any more.
func (p *part) seeRecord(a *Agent, sub *cluster.Submission) {
	switch {
	case p.recording == nil:
	case sub == nil:
		p.recording = nil
	default:
		h := headOf(p.run, sub.Record)
		known, err := p.recording.outcome(&h)
		if !known {
			return
		}
		m := &task.RecordSaved{Err: err}
		if p.recording.Entry.Begin && err == nil {
			m.Record = sub.Record.Clone()
		}
		p.recorded(a, m)
	}
}

// heardHead is seeRecord by what who leads says of its log. The record itself is waited
// for.
func (a *Agent) heardHead(h *head) {
	p := a.parts[h.Run]
	if p == nil || p.recording == nil || p.recording.Entry.Begin {
		return
	}
	if known, err := p.recording.outcome(h); known {
		p.recorded(a, &task.RecordSaved{Err: err})
	}
}

func (p *part) recorded(a *Agent, m *task.RecordSaved) {
	m.N = p.recording.N
	a.ctx.Send(p.recording.Ref, m)
	p.recording = nil
}

// outcome reports whether a record shows what has become of the entry, and with err why its
// life coordinates no more; then the entry may have come into it before that, and will not
// any more. An earlier picture of the record shows nothing.
func (r *recording) outcome(h *head) (known bool, err error) {
	e := r.Entry
	switch {
	case e.Begin && h.Life > r.Life:
		return true, fmt.Errorf("%w: this is %v, and that is %v", batch.ErrReplaced, r.Life, h.Life)
	case e.Begin:
		return h.Life == r.Life && h.Epoch > r.above, nil
	case h.Epoch > e.Epoch:
		return true, fmt.Errorf("%w: it is of epoch %d, and the record has %d", batch.ErrStale, e.Epoch, h.Epoch)
	case h.Epoch < e.Epoch:
		return false, nil
	case e.Commit != nil:
		return h.Committed >= e.Commit.Tx, nil
	default:
		return h.Committed >= e.Fix.Tx || h.Committed == e.Fix.Tx-1 && h.Fixed, nil
	}
}

// change asks the log for an entry, and tells who wants it how the record is when that is
// known.
func (l *lead) change(from cluster.Home, c *change) {
	a := l.a
	sub := a.submission(c.Run)
	if sub == nil {
		return
	}
	a.propose(cluster.Entry{Batches: &cluster.Batches{Topology: sub.Topology, Run: c.Run, Change: c.Entry}}, func(cluster.Result, error) {
		sub := a.submission(c.Run)
		if sub == nil {
			return
		}
		h := headOf(c.Run, sub.Record)
		if from == a.Self.Home {
			a.heardHead(&h)
		} else {
			a.note(from.Node, &note{Head: &h})
		}
	})
}
