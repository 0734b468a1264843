package task

import (
	"fmt"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// What tasks say to tasks of other nodes. It goes to the link to that node, in a Far.

// mostEmpty bounds the memory of one parcel that is used again.
const mostEmpty = 64 << 10

// A Far is a message for a task of another node, to the link that leads there: an
// *Encoded, *acker.Report, *Limit, *Ask, *End or *Dry. Its receiver is in it.
type Far struct {
	Run uint32
	Msg any
}

// An Encoded is a parcel in its wire form. Encoded, End and Dry of one pair of tasks
// stay in order.
type Encoded struct {
	From, To tuple.TaskID
	FromLife tuple.Incarnation
	Plan     uint32 // the sender's
	Input    int    // of the receiver
	Tuples   int
	// Bytes are the link's when they are sent, until it gives them back; and of the task
	// that gets them, for ever: what is decoded points into them.
	Bytes []byte
}

// say sends a message to a task whose address is known.
func (c *core) say(to tuple.TaskID, msg any) {
	p := &c.peers[to]
	if p.Far {
		msg = &Far{c.set.Share.Run, msg}
	}
	c.ctx.Send(p.Ref, msg)
}

// first is the life that a task has when nothing has become of it yet: later ones
// know that others have died.
func (c *core) first() tuple.Incarnation {
	if s := c.set.Share; s != nil {
		return tuple.NewIncarnation(s.First, 1)
	}
	return tuple.NewIncarnation(c.plan.Epoch, 1)
}

// sendFar sends p to another node. What of it cannot travel has failed.
func (o *outbox) sendFar(pr *pair, p *tuple.Parcel) {
	for {
		var memory []byte
		if n := len(o.empty); n > 0 {
			memory, o.empty = o.empty[n-1], o.empty[:n-1]
		}
		b, err := tuple.AppendParcel(memory, p)
		if most := o.c.set.Share.MaxParcel; err == nil && len(b) > most {
			err = fmt.Errorf("a parcel of %s bytes, most of them of one tuple, is for another node, and at most %s may travel at a time: emit less in one tuple",
				amount.Digits(len(b)), amount.Digits(most))
		}
		if err == nil {
			pr.link.gave(len(b))
			o.c.say(pr.task, &Encoded{From: p.From, To: p.To, FromLife: p.FromLife, Plan: p.Plan, Input: p.Input, Tuples: p.Len(), Bytes: b})
			break
		}
		if !o.cannotTravel(pr, p, err) {
			break
		}
	}
	p.Reset()
	pr.free = append(pr.free, p)
}

// nearest chooses for each local-or-shuffle a task of this node, if there is one: the
// first from its own index on, so that senders choose different ones.
func (o *outbox) nearest() {
	own := o.c.plan.Tasks[o.c.id].Index
	for i := range o.streams {
		for k := range o.streams[i].routes {
			r := &o.streams[i].routes[k]
			if r.Grouping != topology.LocalOrShuffle {
				continue
			}
			n := len(r.lanes)
			r.home = own % n
			for by := range n {
				if l := (own + by) % n; r.lanes[l].pair.near() {
					r.home = l
					break
				}
			}
		}
	}
}

// near reports whether a task is known to be on this node.
func (p *pair) near() bool { return p.ref != nil && p.link == nil }

// decode makes a parcel of what has come from another node. It is nil if the bytes
// are not one.
func (t *boltTask) decode(m *Encoded) *tuple.Parcel {
	var p *tuple.Parcel
	if n := len(t.spare); n > 0 {
		p, t.spare = t.spare[n-1], t.spare[:n-1]
	} else {
		p = new(tuple.Parcel)
	}
	var err error
	if m.Input >= len(t.node.Inputs) {
		err = fmt.Errorf("it is for input %d of %s, which has %d", m.Input, t.node.Name, len(t.node.Inputs))
	} else {
		err = tuple.DecodeInPlace(m.Bytes, p, t.node.Inputs[m.Input].Stream)
	}
	if err == nil && (p.From != m.From || p.Input != m.Input || int(p.From) >= len(t.index) || t.index[p.From] < 0 || p.Len() == 0 && !p.Marker) {
		err = fmt.Errorf("task %d has nothing to send to %s", p.From, t.m.Name)
	}
	if err != nil {
		t.m.Refused.Add(1)
		t.set.Event(&Notice{Task: t.m.Name, Text: fmt.Sprintf("a parcel from another node is refused, do all nodes run the same program? %v", err)})
		return nil
	}
	p.Opened = t.now // the sender's clock is another one
	return p
}

// cannotTravel fails the heaviest tuple of p, which is too large or has a value that
// cannot be encoded, and leaves the others in p. It returns false if none are left.
func (o *outbox) cannotTravel(pr *pair, p *tuple.Parcel, err error) bool {
	row, most := 0, -1
	for i := range p.Len() {
		if n := tuple.TextOf(p.Row(i), p.Kinds); n > most {
			row, most = i, n
		}
	}
	c := o.c
	text := c.node.Kind() + " " + c.node.Name + ": " + err.Error()
	o.tellUnsent(text, cut(describe(c.plan, p, row), failureText))
	// Nobody executes it, so the receiver's limit is not raised for it: it was not sent.
	pr.meter.Unsent(1)
	o.streams[p.Stream].sent--
	if len(p.Slots) > 0 {
		p.Remove(row, func(s tuple.Slot, index uint16, last bool) {
			f := acker.Fail{Seq: s.Tree.Seq, Index: index, Class: acker.Rejected, Err: text}
			e := acker.Entry{Seq: s.Tree.Seq, Xor: s.Edge}
			c.settleEdge(s.Tree, f, e, last)
		})
	} else {
		p.Remove(row, nil)
	}
	return p.Len() > 0
}

// settleEdge reports that a message has failed in this task's own outbox, and, if
// the last, that the edge of its parcel is consumed.
func (c *core) settleEdge(t tuple.TreeID, f acker.Fail, e acker.Entry, last bool) {
	if t.Task != c.id {
		c.reports.fail(t, f.Index, f.Class, f.Err)
		if last {
			c.reports.entry(t, e.Xor, 0)
		}
		return
	}
	// Its own ledger may not have the tree yet, so it is told as by others.
	r := &acker.Report{From: c.id, FromLife: c.life, To: c.id, ToLife: t.Incarnation, Fails: []acker.Fail{f}}
	if last {
		r.Entries = []acker.Entry{e}
	}
	c.ctx.Send(c.ctx.Self(), r)
}
