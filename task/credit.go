package task

import (
	"math"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/tuple"
)

// A Credit says how many bytes of frames a life of a task may give to a link in all, as
// a Limit does with tuples. A link says it when it has got something; until then only
// the limits on tuples count. Late or repeated ones do no harm.
type Credit struct {
	Link  actor.Ref
	Life  tuple.Incarnation
	Bytes uint64
	// Empty is memory that parcels were encoded in, for other ones. Only who takes the
	// credit for news takes it, so it has one owner if a message comes twice.
	Empty [][]byte
}

// A linkMeter is what this life has given to one link, whose room all pairs there share.
type linkMeter struct{ given, limit uint64 }

// link returns the meter of a link, or nil for the tasks of this node.
func (o *outbox) link(p *Peer) *linkMeter {
	if !p.Far || p.Ref == nil {
		return nil
	}
	m := o.links[p.Ref]
	if m == nil {
		if o.links == nil {
			o.links = map[actor.Ref]*linkMeter{}
		}
		m = &linkMeter{limit: math.MaxUint64}
		o.links[p.Ref] = m
	}
	return m
}

// full reports whether nothing may be given to the link of p now.
func (p *pair) full() bool { return p.link != nil && p.link.given >= p.link.limit }

// gave counts a parcel in wire form.
func (m *linkMeter) gave(bytes int) {
	if m != nil {
		m.given += uint64(bytes + broker.HeaderSize)
	}
}

// credit takes what a link says.
func (o *outbox) credit(c Credit) {
	m := o.links[c.Link]
	if m == nil || c.Life != o.c.life || m.limit != math.MaxUint64 && c.Bytes <= m.limit {
		return
	}
	m.limit = c.Bytes
	for _, b := range c.Empty {
		if len(o.empty) < freeParcels && cap(b) <= mostEmpty {
			o.empty = append(o.empty, b[:0])
		}
	}
	for _, pr := range o.pairs {
		if pr.link == m {
			o.drain(pr)
		}
	}
	o.release()
}
