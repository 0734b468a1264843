package task

import (
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// An anchor is the message that a tuple comes of, and where the edges that it
// makes are charged.
type anchor struct {
	tree  tuple.TreeID
	index uint16
	acc   *account
	key   uint64 // not 0, and another one whenever tree changes
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
//   - kept is the sum over all pairs; while it is above 0 the task executes nothing
type outbox struct {
	c      *core
	pairs  []pair
	byTask []*pair // by TaskID; nil for tasks that nothing is sent to
	routes []route
	first  []int // routes of stream s are routes[first[s]:first[s+1]]
	live   []*lane
	kept   int
	since  time.Duration // when kept last rose from 0
	asking bool          // a timer is set
	rnd    wyrand
	text   []byte // for AlwaysEncode

	emitted, sent []int64 // by stream, since the counters were last published
}

// A pair is this life and the present life of one task that it sends to.
type pair struct {
	task  tuple.TaskID
	bit   uint64
	ref   actor.Ref // nil while the task's address is not known
	meter broker.Meter
	kept  []*tuple.Parcel // closed without room, oldest first
	free  []*tuple.Parcel // come home empty
	done  bool            // the end has been passed on and must be again to a new life
}

// A route leads one stream to one component.
type route struct {
	*topology.Route
	lanes []lane
	owner []uint16 // of each key group, for Fields
	at    *lane    // where shuffled tuples go until the parcel is closed
	home  int      // the lane that a local-or-shuffle prefers
}

// A lane leads one stream to one task.
type lane struct {
	pair   *pair
	input  int
	schema *tuple.Schema
	open   *tuple.Parcel
	key    uint64 // of the anchor whose tree has the last slot of open; 0: none
	listed bool   // in outbox.live
}

func (o *outbox) setup(c *core, seed uint64) {
	o.c, o.rnd = c, wyrand(seed)
	o.byTask = make([]*pair, len(c.plan.Tasks))
	o.emitted, o.sent = make([]int64, len(c.node.Streams)), make([]int64, len(c.node.Streams))
	n := 0
	for _, r := range c.node.Outputs {
		to := &c.plan.Components[r.To]
		for i := range to.Parallel {
			if id := to.First + tuple.TaskID(i); o.byTask[id] == nil {
				o.byTask[id] = &pair{task: id, bit: 1 << (id % 64), ref: c.peers[id].Ref}
				n++
			}
		}
	}
	o.routes = make([]route, len(c.node.Outputs))
	o.first = make([]int, len(c.node.Streams)+1)
	for i := range c.node.Outputs {
		def := &c.node.Outputs[i]
		to := &c.plan.Components[def.To]
		r := &o.routes[i]
		r.Route, r.lanes = def, make([]lane, to.Parallel)
		for k := range r.lanes {
			r.lanes[k] = lane{pair: o.byTask[to.First+tuple.TaskID(k)], input: def.Input, schema: c.node.Streams[def.Stream]}
		}
		if def.Grouping == topology.Fields {
			r.owner = make([]uint16, tuple.KeyGroups)
			for g := range r.owner {
				r.owner[g] = uint16(tuple.Owner(g, to.Parallel))
			}
		}
		r.home = c.plan.Tasks[c.id].Index % to.Parallel
		for s := def.Stream + 1; s < len(o.first); s++ {
			o.first[s] = i + 1
		}
	}
	o.pairs = make([]pair, 0, n)
	for id, p := range o.byTask {
		if p != nil {
			o.pairs = append(o.pairs, *p)
			o.byTask[id] = &o.pairs[len(o.pairs)-1]
		}
	}
	for i := range o.routes {
		for k := range o.routes[i].lanes {
			l := &o.routes[i].lanes[k]
			l.pair = o.byTask[l.pair.task]
		}
	}
}

// put emits one tuple on a stream; a is nil for one that is not tracked.
func (o *outbox) put(stream int, kinds []tuple.Kind, cells []tuple.Cell, text int, a *anchor) {
	o.emitted[stream]++
	for i := o.first[stream]; i < o.first[stream+1]; i++ {
		r := &o.routes[i]
		var l *lane
		switch r.Grouping {
		case topology.Fields:
			l = &r.lanes[r.owner[tuple.KeyGroup(tuple.Hash(cells, kinds, r.Fields))]]
		case topology.All:
			for k := range r.lanes {
				o.add(&r.lanes[k], kinds, cells, text, a)
			}
			continue
		case topology.Global:
			l = &r.lanes[0]
		default:
			l = o.pick(r)
		}
		o.add(l, kinds, cells, text, a)
	}
}

func (o *outbox) add(l *lane, kinds []tuple.Kind, cells []tuple.Cell, text int, a *anchor) {
	p := l.open
	if p == nil || !p.Fits(kinds) {
		p = o.begin(l, kinds)
	}
	p.Append(cells, text)
	if a != nil {
		if l.key == a.key {
			p.Slots[len(p.Slots)-1].Count++
		} else {
			o.slot(l, p, a).Count++
		}
		p.Refs = append(p.Refs, tuple.Ref{Slot: uint16(len(p.Slots) - 1), Index: a.index})
	}
	if p.Len() >= o.c.set.ParcelSize || p.Text() >= parcelText {
		o.close(l)
	}
}

// slot returns the slot of a's tree at the end of p. The edge is made now, when
// the first tuple of the tree goes in, never when the parcel closes (R2).
func (o *outbox) slot(l *lane, p *tuple.Parcel, a *anchor) *tuple.Slot {
	l.key = a.key
	if k := len(p.Slots) - 1; k >= 0 && p.Slots[k].Tree == a.tree {
		return &p.Slots[k]
	}
	e := o.rnd.next()
	a.acc.xor ^= e
	a.acc.mask |= l.pair.bit
	p.Slots = append(p.Slots, tuple.Slot{Tree: a.tree, Edge: e})
	return &p.Slots[len(p.Slots)-1]
}

// run emits n messages of one stream and one tree, with indices from a.index on.
func (o *outbox) run(stream int, kinds []tuple.Kind, cells []tuple.Cell, n int, a *anchor) {
	o.emitted[stream] += int64(n)
	w := len(kinds)
	for i := o.first[stream]; i < o.first[stream+1]; i++ {
		r := &o.routes[i]
		if r.Grouping == topology.Fields || r.Grouping == topology.All {
			o.each(r, kinds, cells, n, a)
			continue
		}
		for at := 0; at < n; {
			l := &r.lanes[0]
			if r.Grouping != topology.Global {
				l = o.pick(r)
			}
			p := l.open
			if p == nil || !p.Fits(kinds) {
				p = o.begin(l, kinds)
			}
			k := min(n-at, o.c.set.ParcelSize-p.Len())
			p.AppendRun(cells[at*w:(at+k)*w], k)
			if a != nil {
				o.slot(l, p, a).Count += uint32(k)
				p.AppendRefs(uint16(len(p.Slots)-1), a.index+uint16(at), k)
			}
			at += k
			if p.Len() >= o.c.set.ParcelSize || p.Text() >= parcelText {
				o.close(l)
			}
		}
	}
}

// each is run for groupings that look at every tuple.
func (o *outbox) each(r *route, kinds []tuple.Kind, cells []tuple.Cell, n int, a *anchor) {
	w := len(kinds)
	var b anchor
	var bp *anchor
	if a != nil {
		b, bp = *a, &b
	}
	for i := range n {
		row := cells[i*w : (i+1)*w]
		text := tuple.TextOf(row, kinds)
		if r.Grouping == topology.Fields {
			o.add(&r.lanes[r.owner[tuple.KeyGroup(tuple.Hash(row, kinds, r.Fields))]], kinds, row, text, bp)
		} else {
			for k := range r.lanes {
				o.add(&r.lanes[k], kinds, row, text, bp)
			}
		}
		b.index++
	}
}

// pick returns the lane for the next shuffled tuple: the one whose parcel is
// open, else of two random ones that with more room, so that a slow task gets
// less and does not hold up the others.
func (o *outbox) pick(r *route) *lane {
	if r.at != nil && r.at.open != nil {
		return r.at
	}
	n := uint64(len(r.lanes))
	if n == 1 {
		r.at = &r.lanes[0]
		return r.at
	}
	if r.Grouping == topology.LocalOrShuffle && r.lanes[r.home].pair.room() > 0 {
		r.at = &r.lanes[r.home]
		return r.at
	}
	x := uint64(o.rnd.next())
	i := (x & 0xffffffff) * n >> 32
	k := (i + 1 + (x>>32)*(n-1)>>32) % n
	best := &r.lanes[i]
	if r.lanes[k].pair.room() > best.pair.room() {
		best = &r.lanes[k]
	}
	if best.pair.room() <= 0 {
		for k := range r.lanes {
			if r.lanes[k].pair.room() > best.pair.room() {
				best = &r.lanes[k]
			}
		}
	}
	r.at = best
	return best
}

// room is what may be sent now; a task whose address is not known gets nothing.
func (p *pair) room() int {
	if p.ref == nil {
		return 0
	}
	return p.meter.Room() - len(p.kept)
}

// begin opens a parcel on l, closing one of other kinds. It is addressed to the
// life of the receiver that is known now, and never to another one (R5).
func (o *outbox) begin(l *lane, kinds []tuple.Kind) *tuple.Parcel {
	if l.open != nil {
		o.close(l)
	}
	var p *tuple.Parcel
	if k := len(l.pair.free) - 1; k >= 0 {
		p, l.pair.free = l.pair.free[k], l.pair.free[:k]
	} else {
		p = new(tuple.Parcel)
	}
	c := o.c
	p.From, p.FromLife = c.id, c.life
	p.To, p.ToLife = l.pair.task, c.peers[l.pair.task].Life
	p.Input, p.Schema, p.Opened = l.input, l.schema, c.now
	p.Begin(kinds, c.set.ParcelSize)
	l.open, l.key = p, 0
	if !l.listed {
		l.listed = true
		o.live = append(o.live, l)
	}
	return p
}

// close sends the open parcel of l, or keeps it if there is no room.
func (o *outbox) close(l *lane) {
	p := l.open
	l.open = nil
	pr := l.pair
	if len(pr.kept) == 0 && pr.ref != nil && pr.meter.Room() > 0 {
		o.send(pr, p)
		return
	}
	pr.kept = append(pr.kept, p)
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
	pr.meter.Sent(n)
	stream := o.streamOf(p)
	o.sent[stream] += int64(n)
	if o.c.set.AlwaysEncode {
		p = o.recode(pr, p)
	}
	o.c.ctx.Send(pr.ref, p)
}

func (o *outbox) streamOf(p *tuple.Parcel) int {
	for i, s := range o.c.node.Streams {
		if s == p.Schema {
			return i
		}
	}
	return 0
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
	if len(pr.free) < 256 {
		pr.free = append(pr.free, m.Parcels...)
	}
	pr.meter.Raise(m.Total)
	o.drain(pr)
}

// drain sends what was kept, as far as there is room.
func (o *outbox) drain(pr *pair) {
	if len(pr.kept) == 0 || pr.ref == nil {
		return
	}
	n := 0
	for n < len(pr.kept) && pr.meter.Room() > 0 {
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
		if pr := &o.pairs[i]; len(pr.kept) > 0 && pr.ref != nil {
			o.c.ctx.Send(pr.ref, &Ask{From: o.c.id, FromLife: o.c.life, To: pr.task, ToLife: o.c.peers[pr.task].Life})
		}
	}
	o.asking = true
	o.c.after(askAfter, ask{})
}

// found gives a pair its address.
func (o *outbox) found(task tuple.TaskID, ref actor.Ref) {
	pr := o.byTask[task]
	if pr == nil {
		return
	}
	pr.ref = ref
	o.drain(pr)
	if pr.done {
		o.endTo(pr)
	}
}

// dropTo forgets the pair with a life that has ended. Parcels for it are thrown
// away, for the ledgers know; without ledgers they go to its successor.
func (o *outbox) dropTo(task tuple.TaskID, next tuple.Incarnation) {
	pr := o.byTask[task]
	if pr == nil {
		return
	}
	pr.meter, pr.ref = broker.Meter{}, nil
	if !o.c.tracked() {
		for _, p := range pr.kept {
			p.ToLife = next
		}
	} else {
		n := len(pr.kept)
		clear(pr.kept)
		pr.kept = pr.kept[:0]
		o.unkeep(n)
	}
	for i := range o.routes {
		for k := range o.routes[i].lanes {
			l := &o.routes[i].lanes[k]
			if l.pair != pr || l.open == nil {
				continue
			}
			if o.c.tracked() {
				l.open.Reset()
				pr.free = append(pr.free, l.open)
				l.open = nil
			} else {
				l.open.ToLife = next
			}
		}
	}
}

// end sends the end of input behind everything else. Nothing may be kept or open.
func (o *outbox) end() {
	for i := range o.pairs {
		o.endTo(&o.pairs[i])
	}
}

func (o *outbox) endTo(pr *pair) {
	pr.done = true
	if pr.ref != nil {
		o.c.ctx.Send(pr.ref, &End{From: o.c.id, FromLife: o.c.life, To: pr.task, ToLife: o.c.peers[pr.task].Life})
	}
}

// trees calls f for every tree that waits in an open or kept parcel.
func (o *outbox) trees(f func(tuple.TreeID)) {
	visit := func(p *tuple.Parcel) {
		for i := range p.Slots {
			f(p.Slots[i].Tree)
		}
	}
	for _, l := range o.live {
		if l.open != nil {
			visit(l.open)
		}
	}
	for i := range o.pairs {
		for _, p := range o.pairs[i].kept {
			visit(p)
		}
	}
}

// publish brings the counters up to date.
func (o *outbox) publish() {
	for i := range o.emitted {
		o.c.m.Streams[i].Emitted.Add(o.emitted[i])
		o.c.m.Streams[i].Transferred.Add(o.sent[i])
		o.emitted[i], o.sent[i] = 0, 0
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
