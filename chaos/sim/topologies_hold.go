package sim

import (
	gocontext "context"
	"math/rand/v2"
	"time"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/tuple"
)

// Bolts that retain tuples: some gather them and anchor what they emit to all they
// hold, some hand them to calls that come back when they like.

// drawHold draws what a retaining bolt needs.
func (s *scene) drawHold(r *rand.Rand, p *part) {
	switch p.act {
	case holding:
		p.hold = one(r, 1, 2, 5, 20, 100, 300, 300)
		if p.every = around(r, 10*time.Millisecond, 3*time.Second); chance(r, 40) {
			p.every = 0 // it waits for Flush, or until it holds enough
		}
		if p.every == 0 || p.hold > s.set.MaxPending { // else each message may have to wait for a tick
			s.set.PendingBytes = 64 << 20
		}
		p.together = chance(r, 60)
	case calling, inOrder:
		p.hold = 1 + r.IntN(6)
		p.streams = min(p.streams, 1)
	}
}

func (a act) retains() bool { return a == holding || a == calling || a == inOrder }

// A keptTuple is one that a bolt has retained.
type keptTuple struct {
	*bolt.Held
	e    *execution
	what chaos.Kind
}

// keep retains the tuple in hand.
func (b *simBolt) keep(e *execution, what chaos.Kind, in tuple.Tuple, out *bolt.Collector) {
	p := &b.rec.scene.parts[b.part]
	k := keptTuple{out.Retain(in), e, what}
	b.children(e, out, atOnce)
	if e.tries == 1 && b.rec.adv.hits(chaos.Forget, b.id(), mix(e.id, 'g', 0)) != nil {
		b.rec.adv.did(chaos.Forget, "")
		b.rec.forgot++
		e.root.head().kinForgets++
		return
	}
	e.root.held++
	b.kept = append(b.kept, k)
	if len(b.kept) >= p.hold {
		b.letGo(out)
	}
}

// letGo emits what comes of the tuples that b has retained, anchored to each or to
// all of them, and lets go of them.
func (b *simBolt) letGo(out *bolt.Collector) {
	rec, kept := b.rec, b.kept
	b.kept = nil
	if len(kept) == 0 {
		return
	}
	together := rec.scene.parts[b.part].together
	var all []*bolt.Held
	for _, k := range kept {
		rec.still(k.e, k.Tuple)
		all = append(all, k.Held)
		rec.check(chaos.Retained)
		if m := k.e.root; m.acked && m.attempts == 1 && m.reads == 1 && m.replays == 0 {
			rec.violate(chaos.Retained, "%s is acked, and %s still retains a tuple of it", m.name, b.name())
		}
		if together {
			rec.join(kept[0].e.root, k.e.root)
		}
	}
	for _, k := range kept {
		to := all
		if !together {
			to = []*bolt.Held{k.Held}
		}
		b.children(k.e, out.Anchor(to...), later)
	}
	for _, k := range kept {
		if k.what != "" {
			k.Fail(b.inTrouble(k.e, k.what))
			continue
		}
		k.e.oks = append(k.e.oks, rec.moment(b.proc))
		k.Ack()
	}
}

// Which of the tuples that come of a retained one are emitted when.
const (
	atOnce = 1 << iota // anchored to the tuple in hand
	later
)

func (b *simBolt) Flush(out *bolt.Collector) error {
	b.letGo(out)
	return nil
}

// children emits what comes of a tuple, at once, later or both.
func (b *simBolt) children(e *execution, out *bolt.Collector, when int) {
	s := b.rec.scene
	for n := range s.children(e.place) {
		c := child(e.place, n)
		if when>>(mix(c, 'w', 0)%2)&1 == 0 {
			continue
		}
		b.seq++
		b.emit(out, streamOf(c, len(b.streams)), c, s.row(e.root.id, c, b.number, b.seq))
	}
}

// A callee is one tuple on its way through a call.
type callee struct {
	e    *execution
	what chaos.Kind
	seq  int64 // of the tuple before its first child
}

// calls is the part of a simBolt that is a bolt.Async. What it emits in order has
// numbers in order.
type calls struct {
	bolt.Bolt
	of map[tuple.Tuple]callee
}

func (b *simBolt) newCalls() *calls {
	p := &b.rec.scene.parts[b.part]
	c := &calls{of: map[tuple.Tuple]callee{}}
	made := bolt.Async
	if p.act == inOrder {
		made = bolt.AsyncInOrder
	}
	c.Bolt = made(p.hold, b.called)()
	return c
}

func (b *simBolt) call(e *execution, what chaos.Kind, in tuple.Tuple, out *bolt.Collector) error {
	b.calls.of[out.Retain(in).Tuple] = callee{e, what, b.seq}
	b.seq += int64(b.rec.scene.children(e.place))
	return b.calls.Execute(in, out)
}

func (b *simBolt) called(_ gocontext.Context, in tuple.Tuple, yield func(...any)) error {
	s := b.rec.scene
	k := b.calls.of[in]
	delete(b.calls.of, in)
	b.rec.still(k.e, in)
	by := b.number
	if s.parts[b.part].act == calling {
		by = 0 // it comes as it likes
	}
	for n := range s.children(k.e.place) {
		k.seq++
		yield(s.row(k.e.root.id, child(k.e.place, n), by, k.seq)...)
	}
	if k.what != "" {
		return b.inTrouble(k.e, k.what)
	}
	k.e.oks = append(k.e.oks, b.rec.moment(b.proc))
	return nil
}

// join makes two messages kin: what comes of one is anchored to the other, too, so
// when it fails both do.
func (rec *record) join(m, other *root) {
	m, other = m.head(), other.head()
	if m == other {
		return
	}
	other.kin = m
	m.kinFails += other.kinFails
	m.kinRejects += other.kinRejects
	m.kinHangs += other.kinHangs
	m.kinForgets += other.kinForgets
	m.kinFailed = max(m.kinFailed, other.kinFailed)
}

// head returns the message that stands for all the kin of m.
func (m *root) head() *root {
	for m.kin != nil {
		m = m.kin
	}
	return m
}

func (s *scene) retains() bool {
	for i := range s.parts {
		if s.parts[i].act.retains() {
			return true
		}
	}
	return false
}

// holds reports whether a part of the scene retains tuples for longer than a call.
func (s *scene) holds() bool {
	for i := range s.parts {
		if s.parts[i].act == holding && !s.parts[i].spout() {
			return true
		}
	}
	return false
}
