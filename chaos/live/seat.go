package live

import (
	"context"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A seat is what is known of the life of one task. Owner: the task, on its turn; only
// trouble is others' too.
type seat struct {
	id      tuple.TaskID
	trouble *trouble
	hand    *tuple.Parcel
	trees   []*tree // by slot of hand; nil: has ended long ago
	row     int     // of hand, that is executed; one more than it
	emitted int64   // copies, by the tuple in hand
	kept    bool    // it is retained
	held    map[bolt.Owner][]unit

	// What a custom grouping is asked about: the messages of sending, else what comes of
	// anchored, else of the tuple in hand.
	sending  *tree
	sent     uint64 // counts the trees
	anchored []unit

	during    string // the call for messages of its own that it is in, or was
	returned  bool   // it has, and not panicked
	collected int64  // messages of its own, by that call, that are not sent
	missing   int64  // of those, when it was over

	_ [64]byte // what lies behind is another task's
}

// A unit is one message's part in a tree.
type unit struct {
	tree  *tree
	index uint16
}

// one execution, in a count; see tree.
const execution = 1 << 32

func (u unit) add(n int64) {
	if u.tree != nil {
		u.tree.counts[u.index].Add(n)
	}
}

func (u unit) fail() {
	if u.tree != nil {
		u.tree.fail(int(u.index))
	}
}

func (r *record) newSeat(id tuple.TaskID) *seat {
	return &seat{id: id, trouble: r.troubles[id], held: map[bolt.Owner][]unit{}}
}

// take is told that a task begins with a parcel.
func (r *record) take(p *tuple.Parcel) {
	s := r.seats[p.To]
	s.hand, s.row = p, 0
	s.trees = s.trees[:0]
	for i := range p.Slots {
		id := p.Slots[i].Tree
		s.trees = append(s.trees, r.books[id.Task].find(id))
	}
}

// units calls f with each message that the tuple in hand comes of.
func (s *seat) units(f func(unit)) {
	if s.hand == nil || s.row == 0 || s.row > len(s.hand.Refs) {
		return
	}
	ref := s.hand.Refs[s.row-1]
	if ref.Slot != tuple.Several {
		f(unit{s.trees[ref.Slot], ref.Index})
		return
	}
	for _, ref := range s.hand.Lists[ref.Index] {
		f(unit{s.trees[ref.Slot], ref.Index})
	}
}

// executed books that Execute has returned nil. What it has emitted counts from now on:
// a copy that has been executed by then has made the count too low, which nobody sees,
// for the task reports nothing before it is here.
func (s *seat) executed() {
	n := execution + s.emitted - 1
	if s.kept {
		n++ // until it is settled
	}
	if s.hand == nil || s.row > len(s.hand.Refs) {
		return // check has said so
	}
	ref := s.hand.Refs[s.row-1]
	if ref.Slot != tuple.Several {
		unit{s.trees[ref.Slot], ref.Index}.add(n)
		return
	}
	s.units(func(u unit) { u.add(n) })
}

// emit is told that the tuple in hand has brought another one.
func (r *record) emit(id tuple.TaskID, stream int, _ *tuple.Row) {
	s := r.seats[id]
	s.sending, s.anchored = nil, nil
	s.emitted += r.copies[r.plan.Tasks[id].Component][stream]
}

// failed is told that the tuple in hand has failed.
func (r *record) failed(p *tuple.Parcel, _ error) {
	s := r.seats[p.To]
	s.units(func(u unit) {
		u.fail()
		u.add(execution)
	})
}

func (r *record) retain(p *tuple.Parcel, h bolt.Owner) {
	s := r.seats[p.To]
	s.kept = true
	var of []unit
	s.units(func(u unit) { of = append(of, u) })
	s.held[h] = of
}

func (r *record) settled(id tuple.TaskID, h bolt.Owner, err error) {
	s := r.seats[id]
	for _, u := range s.held[h] {
		if err != nil {
			u.fail()
		} else {
			u.add(-1)
		}
	}
	delete(s.held, h)
}

func (r *record) void(id tuple.TaskID, h bolt.Owner) { delete(r.seats[id].held, h) }

// anchored is told that a tuple comes of retained ones: of each message once.
func (r *record) anchored(id tuple.TaskID, stream int, _ *tuple.Row, to []*bolt.Held) {
	s := r.seats[id]
	var of []unit
	known := map[unit]bool{}
	for _, h := range to {
		for _, u := range s.held[h.Owner()] {
			if !known[u] {
				known[u] = true
				of = append(of, u)
			}
		}
	}
	n := r.copies[r.plan.Tasks[id].Component][stream]
	for _, u := range of {
		u.add(n)
	}
	s.sending, s.anchored = nil, of
}

// sends is told that the task emits messages of its own.
func (s *seat) sends(t *tree) {
	s.sending, s.anchored = t, nil
	s.sent++
}

// countChosen counts the copies that a custom grouping makes, each time it is asked.
func (r *record) countChosen(n *topology.Node, choose func(topology.Sender) topology.Chooser) func(topology.Sender) topology.Chooser {
	return func(from topology.Sender) topology.Chooser {
		c := choose(from)
		if c == nil {
			return nil
		}
		id := n.First + tuple.TaskID(from.Index)
		var sent uint64 // trees, when it was asked last
		message := 0
		return func(t tuple.Tuple, room []int) []int {
			lanes := c(t, room)
			copies := int64(len(lanes))
			switch s := r.seats[id]; {
			case s.sending != nil:
				if s.sent != sent {
					sent, message = s.sent, 0
				}
				unit{s.sending, uint16(message)}.add(copies)
				message++
			case s.anchored != nil:
				for _, u := range s.anchored {
					u.add(copies)
				}
			default:
				s.emitted += copies
			}
			return lanes
		}
	}
}

// A watched is a user's bolt, and what is done to it.
type watched struct {
	bolt.Bolt
	record *record
	seat   *seat
	slowed slowed
}

// A flushing one is asked to let go of what it retains.
type flushing struct{ *watched }

func (f flushing) Flush(out *bolt.Collector) error {
	err := f.Bolt.(bolt.Flusher).Flush(out)
	f.seat.returned = true
	return err
}

func (r *record) watchBolt(factory bolt.Factory) bolt.Factory {
	return func() bolt.Bolt {
		b := factory()
		if b == nil {
			return nil
		}
		w := &watched{Bolt: b, record: r}
		if _, is := b.(bolt.Flusher); is {
			return flushing{w}
		}
		return w
	}
}

func (w *watched) Prepare(ctx context.Context, t *bolt.Task) error {
	for id := range w.record.plan.Tasks {
		if n := w.record.plan.Node(tuple.TaskID(id)); n.Name == t.Component {
			id := n.First + tuple.TaskID(t.Index)
			w.seat = w.record.newSeat(id)
			w.record.seats[id] = w.seat
			break
		}
	}
	if p, is := w.Bolt.(bolt.Preparer); is {
		return p.Prepare(ctx, t)
	}
	return nil
}

func (w *watched) Execute(in tuple.Tuple, out *bolt.Collector) error {
	s := w.seat
	s.row++
	s.unsent(w.record)
	s.check(w.record, in)
	s.emitted, s.kept, s.sending, s.anchored = 0, false, nil, nil
	if s.trouble.any.Load() {
		return w.troubled(in, out)
	}
	if err := w.Bolt.Execute(in, out); err != nil {
		return err
	}
	s.executed()
	return nil
}

// troubled is Execute of a task that harm is done to.
func (w *watched) troubled(in tuple.Tuple, out *bolt.Collector) error {
	s := w.seat
	s.trouble.wait(w.record)
	s.trouble.panics(1)
	factor := s.trouble.factor()
	if factor > 1 {
		w.slowed.begin()
	}
	err := w.Bolt.Execute(in, out)
	if factor > 1 {
		w.slowed.end(factor, w.record.healed)
	}
	if err == nil {
		s.executed()
	}
	return err
}

func (w *watched) Tick(out *bolt.Collector) error {
	var err error
	if t, is := w.Bolt.(bolt.Ticker); is {
		err = t.Tick(out)
	}
	w.seat.returned = true
	return err
}

func (w *watched) Finish(out *bolt.Collector) error {
	var err error
	if f, is := w.Bolt.(bolt.Finisher); is {
		err = f.Finish(out)
	}
	w.seat.returned = true
	return err
}

func (w *watched) Close() error {
	if c, is := w.Bolt.(bolt.Closer); is {
		return c.Close()
	}
	return nil
}
