package egrettest

import (
	"slices"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

// Retained tuples, and what is emitted when their Execute has long returned.

// forget takes an attempt off the books that has a verdict or will get none.
func (r *recorder) forget(a *attempt) {
	if r.trying[a] && a.held == 0 {
		r.busy--
	}
	delete(r.trying, a)
}

// holds books that so many more tuples that came of an attempt are retained: its
// verdict may have to wait for a row that is not there yet, so nothing waits for it.
func (r *recorder) holds(a *attempt, more int) {
	if a == nil {
		return
	}
	before := a.held
	a.held += more
	switch {
	case !r.trying[a]:
	case before == 0:
		r.busy--
	case a.held == 0:
		r.busy++
	}
}

func (r *recorder) retain(p *tuple.Parcel, h bolt.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.stations[p.To].hand
	r.held[h] = x
	r.holds(x.in.attempt(), 1)
}

func (r *recorder) settled(id tuple.TaskID, h bolt.Owner, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.held[h]
	delete(r.held, h)
	r.holds(x.in.attempt(), -1)
	if err != nil {
		x.err = err
	}
	r.change()
}

func (r *recorder) void(id tuple.TaskID, h bolt.Owner) { r.settled(id, h, nil) }

func (r *recorder) asAway(id tuple.TaskID, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away += by
	r.stations[id].away += by
	r.change()
}

// anchored writes down a tuple of several under the first of them.
func (r *recorder) anchored(id tuple.TaskID, stream int, row *tuple.Row, to []*bolt.Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.held[to[0].Owner()]
	for _, h := range to[1:] {
		if y := r.held[h.Owner()]; slices.Compare(y.path(), x.path()) < 0 {
			x = y
		}
	}
	e := r.emission(&r.stations[id], stream, row)
	e.by, e.seq = x, len(x.emitted)
	x.emitted = append(x.emitted, e)
}
