package sim

import (
	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// A batchRound is what was said of an attempt.
type batchRound struct {
	committed tuple.TxID
	view      []tuple.Incarnation
	joined    map[tuple.TaskID]bool
}

// A batchLink is what one life has sent to another.
type batchLink struct {
	at     tuple.Attempt
	marked tuple.TxID // the last marker
}

// said checks what a life says to another one.
func (b *batchBook) said(from, to *proc, msg any) {
	switch m := msg.(type) {
	case *task.Order:
		b.joined[from] = m.Attempt
		b.order(m)
	case *task.Answer:
		if m.Kind == batch.Joined {
			b.joined[from] = m.Attempt
		}
		if m.Kind == batch.Joined && b.rounds[m.Attempt] != nil {
			b.rounds[m.Attempt].joined[m.From] = true
		}
	case *tuple.Parcel:
		b.parcel(m)
	case *task.Limit:
		b.check(chaos.Credit)
		p := b.pairs.pair(acquaintance{m.To, m.From, m.ToLife, m.FromLife})
		if m.Total > p.sent+8192 {
			b.violate(chaos.Credit, "%s is told %d, and has sent %d", to.label, m.Total, p.sent)
		}
		p.limit = max(p.limit, m.Total)
	}
}

// order checks what a coordinator says.
func (b *batchBook) order(m *task.Order) {
	r := b.run
	record := &r.records.record
	b.check(chaos.Rounds)
	switch m.Kind {
	case batch.Join:
		round := b.rounds[m.Attempt]
		if round == nil {
			round = &batchRound{m.Tx, m.View, map[tuple.TaskID]bool{}}
			b.rounds[m.Attempt] = round
			b.twin(chaos.Rounds)
		}
		if m.Tx != round.committed {
			b.violate(chaos.Rounds, "round %v begins behind %d and behind %d", m.Attempt, round.committed, m.Tx)
		}
		if m.Epoch == record.Epoch && m.Tx != record.Committed {
			b.violate(chaos.Rounds, "round %v begins behind batch %d, and %d is committed", m.Attempt, m.Tx, record.Committed)
		}
	case batch.Begin:
		b.begins(m.BatchID)
		round := b.rounds[m.Attempt]
		for id := range round.view {
			if n := &r.plan.Components[r.plan.Tasks[id].Component]; !n.Coordinates && !round.joined[tuple.TaskID(id)] {
				b.violate(chaos.Rounds, "batch %v begins, and %s has not joined", m.BatchID, r.plan.TaskName(tuple.TaskID(id)))
			}
		}
	case batch.Write:
		if m.Epoch == record.Epoch && m.Tx > record.Committed+1 {
			b.violate(chaos.Rounds, "batch %v is written, and %d is committed", m.BatchID, record.Committed)
		}
	case batch.Settled:
		if m.Tx > record.Committed {
			b.violate(chaos.Rounds, "batch %d is said to be settled, and %d is", m.Tx, record.Committed)
		}
	case batch.Finish:
		if !r.complete() && !r.asked {
			b.violate(chaos.Rounds, "tasks are told to end, and not all is committed%s", r.stuck())
		}
	}
}

// begins checks that a batch is counted that comes again in a run.
func (b *batchBook) begins(id tuple.BatchID) {
	if id.Attempt == b.begun.Attempt && id.Tx <= b.begun.Tx {
		return
	}
	b.begun = id
	if id.Tx > b.furthest {
		b.furthest = id.Tx
	} else {
		b.saw("batch begun again")
		b.again++
	}
	// Who is killed while it gives its orders has counted what it has not said.
	if n := b.run.ms[len(b.run.ms)-1].Batches.Replayed.Load(); n < b.again || n > b.again && b.run.kills == 0 {
		b.violate(chaos.Rounds, "batch %v begins, %d have begun again, and %d are counted", id, b.again, n)
	}
}

// parcel checks the order of a link, who may be on it, and that nobody sends more than
// it may. A marker takes no room.
func (b *batchBook) parcel(p *tuple.Parcel) {
	r := b.run
	b.check(chaos.Markers)
	key := acquaintance{p.From, p.To, p.FromLife, p.ToLife}
	from, to := r.plan.TaskName(p.From), r.plan.TaskName(p.To)
	round := b.rounds[p.Batch.Attempt]
	if round == nil {
		b.violate(chaos.Markers, "%s sends %s something of attempt %v, which has not begun", from, to, p.Batch.Attempt)
		return
	}
	if round.view[p.From] != p.FromLife || round.view[p.To] != p.ToLife {
		b.violate(chaos.Markers, "%s %v sends %s %v something of attempt %v, of which they have no part", from, p.FromLife, to, p.ToLife, p.Batch.Attempt)
	}
	l := b.links[key]
	if l == nil {
		l = &batchLink{}
		b.links[key] = l
		b.all = append(b.all, key)
	}
	if p.Batch.Attempt.Less(l.at) {
		b.violate(chaos.Markers, "%s sends %s something of attempt %v behind %v", from, to, p.Batch.Attempt, l.at)
	}
	if l.at != p.Batch.Attempt {
		*l = batchLink{p.Batch.Attempt, round.committed}
	}
	pair := b.pairs.pair(key)
	switch {
	case p.Marker:
		b.twin(chaos.Markers)
		if p.Batch.Tx != l.marked+1 || p.Len() != 0 {
			b.violate(chaos.Markers, "%s sends %s the marker of %v behind that of %d", from, to, p.Batch, l.marked)
		}
		b.passedOn(p, round)
		l.marked = p.Batch.Tx
		return
	case p.Batch.Tx <= l.marked:
		b.violate(chaos.Markers, "%s sends %s a tuple of %v behind its marker", from, to, p.Batch)
	}
	b.check(chaos.Credit)
	if pair.sent >= pair.limit {
		b.violate(chaos.Credit, "%s sends %s %d tuples, and has sent %d of %d", from, to, p.Len(), pair.sent, pair.limit)
	}
	pair.sent += uint64(p.Len())
}

// passedOn checks that who sends a marker was sent it by all that send to it.
func (b *batchBook) passedOn(p *tuple.Parcel, round *batchRound) {
	for _, id := range b.run.plan.Senders(b.run.plan.Tasks[p.From].Component) {
		l := b.links[acquaintance{id, p.From, round.view[id], p.FromLife}]
		if l == nil || l.at != p.Batch.Attempt || l.marked < p.Batch.Tx {
			b.violate(chaos.Markers, "%s sends the marker of %v, and has not got that of %s", b.run.plan.TaskName(p.From), p.Batch, b.run.plan.TaskName(id))
		}
	}
}

// creditAtEnd checks that at rest each pair of the last run may send again: also what was
// dropped since its round was over has been given back.
func (b *batchBook) creditAtEnd() {
	for _, k := range b.all {
		from, to := b.run.now[k.from], b.run.now[k.to]
		if from == nil || to == nil || from.life != k.fromLife || to.life != k.toLife || k.fromLife.Restart() > 1 {
			continue // where the sender lives may not have been known: then it asks
		}
		b.twin(chaos.Credit)
		senders := len(b.run.plan.Senders(b.run.plan.Tasks[k.to].Component))
		if p := b.pairs.pairs[k]; p.limit < p.sent+uint64(max(1, 16/senders)) {
			b.violate(chaos.Credit, "at rest, %s has sent %d tuples to %s, and may send %d", b.run.plan.TaskName(k.from), p.sent, b.run.plan.TaskName(k.to), p.limit)
		}
	}
}
