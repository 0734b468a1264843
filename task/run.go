package task

import (
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// How the outbox takes many messages at once.

// run emits n messages of one tree, with indices from a.index on: cells of a
// segment of a batch.
func (o *outbox) run(seg *spout.Segment, cells []tuple.Cell, n int, a *anchor) {
	if probe := o.c.set.Probe; probe != nil && probe.Message != nil {
		o.probeRun(probe, seg, cells, n, a)
		return
	}
	o.spread(seg, cells, n, a)
}

// spread is run without the probe.
func (o *outbox) spread(seg *spout.Segment, cells []tuple.Cell, n int, a *anchor) {
	s := &o.streams[seg.Stream]
	s.emitted += int64(n)
	w := len(seg.Kinds)
	row := tuple.RowOf(seg.Kinds)
	row.Direct = seg.Direct
	for i := range s.routes {
		t := &s.routes[i]
		if t.each {
			o.each(t, &row, cells, n, a)
			continue
		}
		for at := 0; at < n; {
			l := &t.lanes[0]
			if t.Grouping != topology.Global {
				l = o.pick(t)
			}
			p := l.open
			if p == nil || !p.Fits(&row) {
				p = o.begin(l, seg.Kinds)
			}
			k := min(n-at, o.size-p.Len())
			if a != nil {
				if l.key != a.key {
					o.slot(l, p, a)
				}
				p.AppendRefs(l.slot, a.index+uint16(at), k)
			}
			p.AppendRun(cells[at*w:(at+k)*w], k)
			at += k
			if p.Len() >= o.size || p.Text() >= parcelText {
				o.close(l)
			}
		}
	}
}

// each is run for groupings that look at every tuple.
func (o *outbox) each(t *route, row *tuple.Row, cells []tuple.Cell, n int, a *anchor) {
	w := len(row.Kinds)
	var b *anchor
	if a != nil {
		b = new(*a)
	}
	for i := range n {
		row.Cells = cells[i*w : (i+1)*w]
		row.Text = tuple.TextOf(row.Cells, row.Kinds)
		if b != nil {
			b.index = a.index + uint16(i)
		}
		switch t.Grouping {
		case topology.Fields:
			o.add(t.lane(row), row, b)
		case topology.All:
			for k := range t.lanes {
				o.add(&t.lanes[k], row, b)
			}
		default:
			if err := o.choose(t, row, b); err != nil {
				o.refuse(b, err)
			}
		}
	}
}
