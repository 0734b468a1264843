package sim

import (
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A creditBook watches on the network what every pair sends and may send.
type creditBook map[acquaintance]*pairBook

// A pairBook is what a pair has sent and may send. The limit that was said counts,
// whether it has arrived or not.
type pairBook struct{ sent, limit uint64 }

// message checks that nobody sends more than it may: nothing while the total is at
// the limit. So a queue is bounded by the limits.
func (c creditBook) message(rec *record, msg any) {
	switch m := msg.(type) {
	case *tuple.Parcel:
		rec.checks++
		p := c.pair(acquaintance{m.From, m.To, m.FromLife, m.ToLife})
		if p.sent >= p.limit {
			rec.violate("credit", "%s sends %d tuples to %s, and has sent %d of %d", rec.plan.TaskName(m.From), m.Len(), rec.plan.TaskName(m.To), p.sent, p.limit)
		}
		if m.Len() == 0 || m.Len() > rec.scene.set.ParcelSize {
			rec.violate("parcels", "%s sends a parcel of %d tuples", rec.plan.TaskName(m.From), m.Len())
		}
		p.sent += uint64(m.Len())
		rec.edges.parcel(rec.w.Now(), m)
		rec.tracked(m)
	case *task.Limit:
		p := c.pair(acquaintance{m.To, m.From, m.ToLife, m.FromLife})
		if most := p.sent + 8192; m.Total > most {
			rec.violate("credit", "%s is told %d, and has sent %d", rec.plan.TaskName(m.To), m.Total, p.sent)
		}
		p.limit = max(p.limit, m.Total)
	}
}

func (c creditBook) pair(k acquaintance) *pairBook {
	p := c[k]
	if p == nil {
		p = &pairBook{limit: broker.FirstLimit}
		c[k] = p
	}
	return p
}

// tracked checks that each tuple of a tracked parcel belongs to a tree.
func (rec *record) tracked(p *tuple.Parcel) {
	if rec.plan.Guarantee != topology.AtLeastOnce {
		return
	}
	n := uint32(0)
	for _, s := range p.Slots {
		n += s.Count
	}
	refs := p.Len() - len(p.Lists)
	for _, list := range p.Lists {
		refs += len(list)
	}
	if int(n) != refs || len(p.Refs) != p.Len() {
		rec.violate("parcels", "%d tuples of %d messages, but the trees count %d", p.Len(), refs, n)
	}
}
