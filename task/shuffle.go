package task

import (
	"math"
	"time"

	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// How a shuffle finds its lanes.
//
// A parcel can only be addressed once (R5), and one that is kept for want of room
// holds up the whole task. So as long as it can be helped none is begun before a
// lane has room: a shuffle that has none in any lane is held, and that holds up
// the task as a kept parcel does. Only what Execute still emits then has to guess
// which lane will have room first.

// A pace is what is known of how soon a pair will have room again.
type pace struct {
	at   time.Duration // the last rise of its limit, or when that was used up
	step int           // of the last rise, in tuples
	each time.Duration // that a tuple takes the receiver
}

// wait guesses how long it takes until n more tuples are allowed. Limits rise in
// steps. One that has not risen for a while is thought to be that far away.
func (p *pace) wait(now time.Duration, n int) time.Duration {
	step, each := p.step, p.each
	if step == 0 { // its limit has not risen yet: those are preferred whose has
		step, each = broker.FirstLimit, 10*time.Millisecond
	}
	return max(time.Duration(max(n, step))*each, now-p.at)
}

// pick returns the lane for the next shuffled tuple: the one whose parcel is
// open, else of two random ones that with more room, up to the first limit, so
// that a slow task gets less and does not hold up the others.
func (o *outbox) pick(r *route) *lane {
	if r.at != nil && r.at.open != nil {
		return r.at
	}
	n := uint64(len(r.lanes))
	if n == 1 {
		r.at = &r.lanes[0]
		return r.at
	}
	if home := r.lanes[r.home].pair; r.Grouping == topology.LocalOrShuffle && home.near() && home.room() > 0 {
		r.at = &r.lanes[r.home]
		return r.at
	}
	x := uint64(o.rnd.next())
	i := (x & 0xffffffff) * n >> 32
	k := (i + 1 + (x>>32)*(n-1)>>32) % n
	best := &r.lanes[i]
	if r.lanes[k].pair.some() > best.pair.some() {
		best = &r.lanes[k]
	}
	if best.pair.room() <= 0 {
		best = o.soonest(r, int(i))
	}
	r.at = best
	return best
}

// soonest returns a lane with room, the first from lane at on, or the one that
// should have some soonest. Before any limit has risen that is a mere guess, and
// a wrong one holds up the task for as long as the slow task takes for a parcel.
func (o *outbox) soonest(r *route, at int) *lane {
	for k := range r.lanes {
		if l := &r.lanes[(at+k)%len(r.lanes)]; l.pair.room() > 0 {
			return l
		}
	}
	best, least := &r.lanes[0], time.Duration(math.MaxInt64)
	for k := range r.lanes {
		pr := r.lanes[k].pair
		if pr.ref == nil {
			continue
		}
		if wait := pr.pace.wait(o.c.now, 1-pr.room()); wait < least {
			best, least = &r.lanes[k], wait
		}
	}
	return best
}

// room is what may be sent now; a task whose address is not known gets nothing.
func (p *pair) room() int {
	if p.ref == nil || p.full() {
		return 0
	}
	return p.meter.Room() - len(p.kept)
}

// may reports whether a parcel may be sent now: one parcel may overshoot.
func (p *pair) may(q *tuple.Parcel) bool {
	if q.Marker {
		return true
	}
	room := p.meter.Room()
	return room > 0 && !p.full() && !(mutation.Is(mutation.ParcelMustFit) && room < q.Len()) || mutation.Is(mutation.IgnoreLimit)
}

// some is room as a shuffle compares it. The first limit is as good as any more,
// or a task that has just begun would get nothing beside those with full windows.
func (p *pair) some() int { return min(p.room(), broker.FirstLimit) }

// shuffles reports whether r has a choice of lanes.
func (r *route) shuffles() bool {
	return len(r.lanes) > 1 && r.any()
}

// any reports whether any task will do for a tuple.
func (r *route) any() bool {
	return r.Grouping == topology.Shuffle || r.Grouping == topology.LocalOrShuffle || r.Grouping == topology.None
}

func (r *route) room() bool {
	for k := range r.lanes {
		if r.lanes[k].pair.room() > 0 {
			return true
		}
	}
	return false
}

// hold holds r if there is no room for its next parcel.
func (o *outbox) hold(r *route) {
	if r.held || !r.shuffles() || r.room() {
		return
	}
	r.held = true
	o.held++
	o.block()
}

// release lets go what has room again.
func (o *outbox) release() {
	for i := 0; i < len(o.streams) && o.held > 0; i++ {
		for k := range o.streams[i].routes {
			if r := &o.streams[i].routes[k]; r.held && r.room() {
				r.held = false
				o.held--
				o.unkeep(1)
			}
		}
	}
}
