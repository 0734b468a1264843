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
	if o.kept == 0 { // else the turn says it
		o.c.m.WaitsFor.Set(0)
	}
}

// showRoom says at the end of a turn how much may be sent, and for whom the task waits.
func (o *outbox) showRoom() {
	o.c.m.Room.Set(int64(o.roomLeft()))
	o.c.m.WaitsFor.Set(o.waitsFor())
}

// waitsFor is the metric: the same task as before as long as that has no room. Where a
// link holds up what several tasks have room for, it is none.
func (o *outbox) waitsFor() (found int64) {
	if o.kept == 0 {
		return 0
	}
	before := o.c.m.WaitsFor.Load()
	same := func(pr *pair) bool {
		if pr.ref != nil && pr.meter.Room() > 0 {
			return false
		}
		if id := int64(pr.task) + 1; id == before || found == 0 {
			found = id
		}
		return found == before
	}
	for _, pr := range o.pairs {
		if len(pr.kept) > 0 && same(pr) {
			return found
		}
	}
	for i := 0; i < len(o.streams) && o.held > 0; i++ {
		for k := range o.streams[i].routes {
			r := &o.streams[i].routes[k]
			for n := 0; r.held && n < len(r.lanes); n++ {
				if same(r.lanes[n].pair) {
					return found
				}
			}
		}
	}
	return found
}

// roomLeft is what may be sent in all, for the metric.
func (o *outbox) roomLeft() int {
	n := 0
	for i := range o.pairs {
		n += max(0, o.pairs[i].meter.Room())
	}
	return n
}
