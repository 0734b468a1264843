package task

import (
	"slices"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// Empty parcels kept for one receiver.
const freeParcels = 256

// An anchor is the message that a tuple comes of, and where the edges that it
// makes are charged.
type anchor struct {
	tree  tuple.TreeID
	index uint16
	acc   *account
	key   uint64 // not 0, and another one whenever tree changes
	slot  int    // of the parcel in hand, where it comes of one
	// more are the messages of a tuple that comes of several, those of one tree side
	// by side; then they count and not the fields above, but for key.
	more []anchor
}

// An account adds up the edges charged to one input parcel's part in one tree.
type account struct {
	xor  tuple.EdgeID
	mask uint64 // acker.Bit of the tasks that the edges go to
}

// An outbox puts tuples into parcels and sends them as far as there is room.
//
// Invariants:
//
//   - a lane has at most one open parcel; an open parcel is not empty and not full
//   - a pair with kept parcels sends nothing before them, so its order holds
//   - kept is the kept parcels of all pairs and the held shuffles; while it is above
//     0 the task executes nothing
type outbox struct {
	c       *core
	bolt    *boltTask // nil: a spout's
	pairs   []*pair
	byTask  []*pair // by TaskID; nil for tasks that nothing is sent to
	links   map[actor.Ref]*linkMeter
	streams []output
	size    int          // tuples a parcel
	anchor  *anchor      // of what is put now; nil: not tracked
	own     *ownMessages // takes what is put now; nil: it has an input
	live    []*lane
	kept    int
	stops   int           // kept, and one more while a bolt wants to be left alone
	held    int           // shuffles
	saidDry bool          // to a pair, maybe
	since   time.Duration // when kept last rose from 0
	asking  bool          // a timer is set
	rnd     wyrand
	text    []byte   // for AlwaysEncode
	empty   [][]byte // memory for parcels to other nodes
	refused refusals
	putter  *anchoredSink // that puts just now; nil: none
	batch   tuple.BatchID // of what is put; of an exactly-once topology
	lookers []looker      // taps of what this task emits; mostly none
	allowed allowance     // for them
}

// An output is one stream of the component.
type output struct {
	routes        []route
	emitted, sent int64 // since the counters were last published
}

// A pair is this life and the present life of one task that it sends to.
type pair struct {
	task  tuple.TaskID
	bit   uint64
	ref   actor.Ref  // nil while the task's address is not known
	link  *linkMeter // that leads there; nil: it is on this node
	meter broker.Meter
	pace  pace
	kept  []*tuple.Parcel // closed without room, oldest first
	free  []*tuple.Parcel // come home empty
	done  bool            // the end has been passed on and must be again to a new life
	dry   bool            // the same of a Dry, which no parcel has followed

	marked tuple.BatchID // the last marker that was sent, or is kept
}

// A route leads one stream to one component.
type route struct {
	*topology.Route
	lanes []lane
	owner []uint16 // of each key group, for Fields
	at    *lane    // where shuffled tuples go until the parcel is closed
	home  int      // the lane that a local-or-shuffle prefers
	held  bool     // no lane has room
	each  bool     // the grouping looks at every tuple

	choice choice
}

// A lane leads one stream to one task.
type lane struct {
	route  *route
	pair   *pair
	input  int
	stream int
	open   *tuple.Parcel
	key    uint64 // of the anchor whose tree has the last slot of open; 0: none
	size   int    // outbox.size
	slot   uint16 // of open, that the tuples from from on are of
	from   int
	listed bool // in outbox.live
}

// setup is an error if a custom grouping does not give its chooser.
func (o *outbox) setup(c *core, seed uint64) error {
	o.c, o.rnd = c, wyrand(seed)
	o.byTask = make([]*pair, len(c.plan.Tasks))
	o.size = c.set.ParcelSize
	for _, r := range c.node.Outputs {
		to := &c.plan.Components[r.To]
		for i := range to.Parallel {
			if id := to.First + tuple.TaskID(i); o.byTask[id] == nil {
				o.pair(id)
			}
		}
	}
	o.streams = make([]output, len(c.node.Streams))
	for i := range c.node.Outputs {
		def := &c.node.Outputs[i]
		r := o.route(def)
		if err := r.choice.setup(c, def); err != nil {
			return err
		}
		r.each = !r.any() && def.Grouping != topology.Global
		s := &o.streams[def.Stream]
		s.routes = append(s.routes, r)
	}
	for i := range o.streams {
		for k := range o.streams[i].routes {
			r := &o.streams[i].routes[k]
			for n := range r.lanes {
				r.lanes[n].route = r
			}
		}
	}
	return nil
}

// Put emits one tuple, anchored to what anchor points at. It is what a bolt's
// collector calls, so it also serves Tick and Finish, whose tuples go into own.
func (o *outbox) Put(stream int, r *tuple.Row) {
	if o.own != nil {
		o.own.put(stream, r)
		return
	}
	s := &o.streams[stream]
	s.emitted++
	for i := range s.routes {
		t := &s.routes[i]
		switch t.Grouping {
		case topology.Fields:
			o.add(t.lane(r), r, o.anchor)
		case topology.All:
			for k := range t.lanes {
				o.add(&t.lanes[k], r, o.anchor)
			}
		case topology.Global:
			o.add(&t.lanes[0], r, o.anchor)
		case topology.Shuffle, topology.LocalOrShuffle, topology.None:
			o.add(o.pick(t), r, o.anchor)
		default:
			if err := o.choose(t, r, o.anchor); err != nil {
				o.reject(err)
			}
		}
	}
}

// lane returns where a key goes.
func (t *route) lane(r *tuple.Row) *lane {
	return &t.lanes[t.owner[r.KeyGroup(t.Fields)]]
}

func (o *outbox) add(l *lane, r *tuple.Row, a *anchor) {
	p := l.open
	if p == nil || !p.Fits(r) {
		p = o.begin(l, r.Kinds)
	}
	full := p.Append(r) >= l.size
	if a != nil {
		if l.key != a.key {
			full = o.slot(l, p, a) || full
		}
		p.Refs = append(p.Refs, tuple.Ref{Slot: l.slot, Index: a.index})
	}
	if full || p.Text() >= parcelText {
		o.close(l)
	}
}

// slot makes the tuples that go into p from now on those of a's tree. The edge is
// made now, when the first tuple of the tree goes in, never when the parcel
// closes (R2). It reports whether p can take no more slots.
func (o *outbox) slot(l *lane, p *tuple.Parcel, a *anchor) (full bool) {
	l.count(p)
	if a.more != nil {
		return o.list(l, p, a)
	}
	l.key = a.key
	k := len(p.Slots)
	if k > 0 && p.Slots[k-1].Tree == a.tree {
		l.slot = uint16(k - 1)
		return false
	}
	o.edge(l, p, a)
	if mutation.Is(mutation.ForgetEdge) && p.Slots[k].Edge%8 == 0 || mutation.Is(mutation.EdgeAtClose) && a.tree.Task != o.c.id {
		a.acc.xor ^= p.Slots[k].Edge // out again
	}
	l.slot = uint16(k)
	return false
}

// edge makes a slot of a's tree and with it an edge.
func (o *outbox) edge(l *lane, p *tuple.Parcel, a *anchor) {
	e := o.rnd.next()
	a.acc.xor ^= e
	a.acc.mask |= l.pair.bit
	p.Slots = append(p.Slots, tuple.Slot{Tree: a.tree, Edge: e})
}

// list makes the next tuple of p one of all the messages of a, in slots of its own.
func (o *outbox) list(l *lane, p *tuple.Parcel, a *anchor) (full bool) {
	refs := make([]tuple.Ref, len(a.more))
	for i := range a.more {
		m := &a.more[i]
		if i == 0 || m.tree != a.more[i-1].tree {
			o.edge(l, p, m)
		}
		k := len(p.Slots) - 1
		p.Slots[k].Count++
		refs[i] = tuple.Ref{Slot: uint16(k), Index: m.index}
	}
	p.Lists = append(p.Lists, refs)
	l.key, l.slot, a.index = 0, tuple.Several, uint16(len(p.Lists)-1)
	l.from = len(p.Refs) + 1 // its count is made
	return len(p.Slots) > tuple.MaxSlots-tuple.MaxAnchors-tuple.MaxParcel
}

// count adds to the last slot the tuples from l.from on, which are its own.
func (l *lane) count(p *tuple.Parcel) {
	if n := len(p.Refs) - l.from; n > 0 {
		p.Slots[l.slot].Count += uint32(n)
	}
	l.from = len(p.Refs)
}

// begin opens a parcel on l, closing one of other kinds.
func (o *outbox) begin(l *lane, kinds []tuple.Kind) *tuple.Parcel {
	if l.open != nil {
		o.close(l)
	}
	p := o.parcel(l)
	p.Begin(kinds, o.size)
	if o.c.tracked() && cap(p.Refs) < o.size {
		p.Refs = make([]tuple.Ref, 0, o.size)
	}
	l.open, l.key, l.from = p, 0, 0
	if !l.listed {
		l.listed = true
		o.live = append(o.live, l)
	}
	return p
}

// parcel returns an empty parcel for l. It is addressed to the life of the
// receiver that is known now, and never to another one (R5).
func (o *outbox) parcel(l *lane) *tuple.Parcel {
	var p *tuple.Parcel
	if k := len(l.pair.free) - 1; k >= 0 {
		p, l.pair.free = l.pair.free[k], l.pair.free[:k]
	} else {
		p = new(tuple.Parcel)
		if o.c.tracked() {
			p.Slots = make([]tuple.Slot, 0, 8)
		}
	}
	c := o.c
	p.From, p.FromLife = c.id, c.life
	p.To, p.ToLife = l.pair.task, c.peers[l.pair.task].Life
	p.Input, p.Stream, p.Schema, p.Opened = l.input, l.stream, c.node.Streams[l.stream], c.now
	p.Batch = o.batch
	return p
}

// close dispatches the open parcel of l.
func (o *outbox) close(l *lane) {
	p := l.open
	l.open = nil
	l.count(p)
	if mutation.Is(mutation.EdgeAtClose) {
		for _, s := range p.Slots {
			if s.Tree.Task != o.c.id {
				o.c.reports.entry(s.Tree, s.Edge, l.pair.bit)
			}
		}
	}
	o.dispatch(l, p)
}

// dispatch sends a parcel, or keeps it if there is no room.
func (o *outbox) dispatch(l *lane, p *tuple.Parcel) {
	pr := l.pair
	if o.lookers != nil && !o.c.over() && !o.c.round.stranger(p) {
		o.look(l, p) // before: it may take too long, as any call
	}
	if o.c.over() && !mutation.Is(mutation.ZombieSends) || o.c.round.stranger(p) {
		o.c.refused.Add(1)
		p.Reset()
		pr.free = append(pr.free, p)
		return
	}
	if probe := o.c.set.Probe; probe != nil && p.Len() == 1 {
		probe.Send(p)
	}
	if (len(pr.kept) == 0 || p.Marker && mutation.Is(mutation.MarkerOvertakes)) && pr.ref != nil && pr.may(p) {
		o.send(pr, p)
	} else {
		pr.kept = append(pr.kept, p)
		o.block()
	}
	o.hold(l.route)
}

// block counts one more reason to execute nothing.
func (o *outbox) block() {
	o.stops++
	if o.kept++; o.kept == 1 {
		o.since = o.c.now
		if !o.asking {
			o.asking = true
			o.c.after(askAfter, ask{})
		}
	}
}

func (o *outbox) send(pr *pair, p *tuple.Parcel) {
	n := p.Len()
	pr.dry, p.Plan = false, o.c.plan.Epoch
	if pr.meter.Sent(n); pr.meter.Room() <= 0 {
		pr.pace.at = o.c.now
	}
	o.streams[p.Stream].sent += int64(n)
	if pr.link != nil {
		o.sendFar(pr, p)
		return
	}
	if o.c.set.AlwaysEncode {
		p = o.recode(pr, p)
	}
	o.c.ctx.Send(pr.ref, p)
}

// recode sends p through the codec, as if the receiver were on another node.
func (o *outbox) recode(pr *pair, p *tuple.Parcel) *tuple.Parcel {
	b, err := tuple.AppendParcel(o.text[:0], p)
	if err != nil {
		panic(err) // the codec of an Any: a mistake of its author, found by AlwaysEncode
	}
	o.text = b[:0]
	q := new(tuple.Parcel)
	if err := tuple.DecodeParcel(b, q, p.Schema); err != nil {
		panic(err)
	}
	if probe := o.c.set.Probe; probe != nil {
		probe.Recode(p, q)
	}
	p.Reset()
	pr.free = append(pr.free, p)
	return q
}

// flush closes open parcels: all, or with linger above 0 those that are older.
func (o *outbox) flush(linger time.Duration) {
	k := 0
	for _, l := range o.live {
		if l.open != nil && o.c.now-l.open.Opened < linger {
			o.live[k] = l
			k++
			continue
		}
		l.listed = false
		if l.open != nil {
			o.close(l)
		}
	}
	o.live = o.live[:k]
}

// limit takes a limit of a receiver and its empty parcels.
func (o *outbox) limit(m *Limit) {
	pr := o.byTask[m.From]
	if pr == nil {
		return
	}
	if len(pr.free) < freeParcels {
		pr.free = append(pr.free, m.Parcels...)
	}
	before := pr.meter.Limit()
	pr.meter.Raise(m.Total)
	if by := pr.meter.Limit() - before; by > 0 {
		pr.pace = pace{at: o.c.now, step: int(by), each: m.Each}
	}
	o.drain(pr)
	o.release()
}

// drain sends what was kept, as far as there is room.
func (o *outbox) drain(pr *pair) {
	if len(pr.kept) == 0 || pr.ref == nil {
		return
	}
	n := 0
	if mutation.Is(mutation.Overtake) {
		slices.Reverse(pr.kept)
	}
	for n < len(pr.kept) && pr.may(pr.kept[n]) {
		o.send(pr, pr.kept[n])
		n++
	}
	pr.kept = pr.kept[:copy(pr.kept, pr.kept[n:])]
	o.unkeep(n)
}

func (o *outbox) unkeep(n int) {
	if n == 0 {
		return
	}
	o.stops -= n
	if o.kept -= n; o.kept == 0 {
		o.c.m.Throttled.Add(int64(o.c.now - o.since))
	}
}

// ask is the timer of one who had no room a while ago.
func (o *outbox) ask() {
	o.asking = false
	if o.kept == 0 {
		return
	}
	for i := range o.pairs {
		if pr := o.pairs[i]; pr.ref != nil && (len(pr.kept) > 0 || o.held > 0 && pr.room() <= 0) {
			o.c.say(pr.task, &Ask{From: o.c.id, FromLife: o.c.life, To: pr.task, ToLife: o.c.peers[pr.task].Life})
		}
	}
	o.c.m.Throttled.Add(int64(o.c.now - o.since)) // up to now: it may last
	o.since = o.c.now
	o.asking = true
	o.c.after(askAfter, ask{})
}

// found gives a pair its address.
func (o *outbox) found(p Peer) {
	pr := o.byTask[p.Task]
	if pr == nil {
		return
	}
	pr.ref, pr.link = p.Ref, o.link(&p)
	o.drain(pr)
	o.release()
	if pr.dry {
		o.dryTo(pr)
	}
	if pr.done {
		o.endTo(pr)
	}
}

// dry says behind everything else that there is nothing more for now, to those who
// have not heard it since they last got something. Nothing may be kept or open.
func (o *outbox) dry() {
	for _, pr := range o.pairs {
		if !pr.dry {
			o.dryTo(pr)
		}
	}
}

func (o *outbox) dryTo(pr *pair) {
	pr.dry, o.saidDry = true, true
	o.sayDry(pr, false)
}

// wet takes back that there is nothing more for now: something will come.
func (o *outbox) wet() {
	if !o.saidDry {
		return
	}
	o.saidDry = false
	for _, pr := range o.pairs {
		if pr.dry {
			pr.dry = false
			o.sayDry(pr, true)
		}
	}
}

func (o *outbox) sayDry(pr *pair, not bool) {
	if pr.ref != nil {
		o.c.say(pr.task, &Dry{From: o.c.id, FromLife: o.c.life, To: pr.task, ToLife: o.c.peers[pr.task].Life, Not: not})
	}
}

// dropTo forgets the pair with a life that has ended. Parcels for it are thrown
// away, for the ledgers know; without ledgers they go to its successor.
func (o *outbox) dropTo(task tuple.TaskID, next tuple.Incarnation) {
	pr := o.byTask[task]
	if pr == nil {
		return
	}
	total := broker.Meter{}
	if mutation.Is(mutation.KeepTotal) {
		total = pr.meter
	}
	pr.meter, pr.pace, pr.ref = total, pace{at: o.c.now}, nil
	drop := o.c.plan.Guarantee != topology.AtMostOnce && !mutation.Is(mutation.ReaddressParcel)
	if !drop {
		for _, p := range pr.kept {
			p.ToLife = next
		}
	} else {
		n := len(pr.kept)
		clear(pr.kept)
		pr.kept = pr.kept[:0]
		o.unkeep(n)
	}
	for _, l := range o.live {
		if l.pair != pr || l.open == nil {
			continue
		}
		if drop {
			l.open.Reset()
			pr.free = append(pr.free, l.open)
			l.open = nil
		} else {
			l.open.ToLife = next
		}
	}
}

// end sends the end of input behind everything else. Nothing may be kept or open.
func (o *outbox) end() {
	for i := range o.pairs {
		o.endTo(o.pairs[i])
	}
}

func (o *outbox) endTo(pr *pair) {
	pr.done = true
	if pr.ref != nil {
		o.c.say(pr.task, &End{From: o.c.id, FromLife: o.c.life, To: pr.task, ToLife: o.c.peers[pr.task].Life})
	}
}
