package task

import "github.com/egretstream/egret/tuple"

// What is to be seen of an outbox: trees, counters, room.

// trees calls f for every tree that waits in an open or kept parcel.
func (o *outbox) trees(f func(tuple.TreeID)) {
	o.waiting(func(p *tuple.Parcel) {
		for i := range p.Slots {
			f(p.Slots[i].Tree)
		}
	})
}

// waiting calls f for every open or kept parcel.
func (o *outbox) waiting(f func(*tuple.Parcel)) {
	for _, l := range o.live {
		if l.open != nil {
			f(l.open)
		}
	}
	for i := range o.pairs {
		for _, p := range o.pairs[i].kept {
			f(p)
		}
	}
}

// publish brings the counters up to date.
func (o *outbox) publish() {
	for i := range o.streams {
		s := &o.streams[i]
		o.c.m.Streams[i].Emitted.Add(s.emitted)
		o.c.m.Streams[i].Transferred.Add(s.sent)
		s.emitted, s.sent = 0, 0
	}
}

// roomLeft is what may be sent in all, for the metric.
func (o *outbox) roomLeft() int {
	n := 0
	for i := range o.pairs {
		n += max(0, o.pairs[i].meter.Room())
	}
	return n
}
