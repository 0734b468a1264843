package task

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/tuple"
)

// Tuples that a bolt retains. A parcel's part in a tree of which a tuple is
// retained outlives the parcel: its account moves to a part, and its entry leaves
// when the last of its tuples is acked or failed, as ever. Credit waits for nothing
// of this (R8).

// A part is one tree's share of a parcel, of which tuples are or were retained.
//
// Invariant: it is in boltTask.parts as long as its entry has not left, unless it
// is gone: then its tree has been given back.
type part struct {
	slotAccount
	tree  tuple.TreeID
	edge  tuple.EdgeID
	fails []refusal
	last  time.Duration // when a tuple of it was last retained
	at    int           // in boltTask.parts
	gone  bool
}

// A heldTuple is a retained tuple. What it has in common with others is the
// user's, from any goroutine; the rest is the task's.
type heldTuple struct {
	bolt.Held
	copy  tuple.Parcel
	task  *boltTask
	post  func(any) // to the task, from anywhere
	input int
	refs  []heldRef // none: not tracked
	void  string    // why it can not be used any more; "": it can
}

// A heldRef is one message that a retained tuple comes of.
type heldRef struct {
	part  *part
	index uint16
}

// heldFailed is the message of a Fail; that of an Ack is the *heldTuple.
type heldFailed struct {
	tuple *heldTuple
	err   error
}

// Settle is called by the user's code, from any goroutine.
func (h *heldTuple) Settle(err error) {
	if err == nil {
		h.post(h)
	} else {
		h.post(&heldFailed{h, err})
	}
}

// A bolt's collector knows its outbox and no task, to save a call for each tuple
// that is emitted; what it emits seldom takes one more step.

func (o *outbox) Retain(in tuple.Tuple) *bolt.Held           { return o.bolt.retain(in) }
func (o *outbox) Anchored(hs []*bolt.Held) bolt.Sink         { return o.bolt.anchored(hs) }
func (o *outbox) Block(fn func() any, then func(result any)) { o.bolt.block(fn, then) }
func (o *outbox) Pause(yes bool)                             { o.bolt.leaveAlone(yes) }

// retain keeps the tuple in hand.
func (t *boltTask) retain(in tuple.Tuple) *bolt.Held {
	if t.hand == nil || !in.In(t.hand, t.row) {
		tuple.Misuse("only the tuple that Execute was called with can be retained, and only before it returns")
	}
	if h := t.retained; h != nil && t.retainedRow == t.row {
		return &h.Held
	}
	if t.post == nil {
		t.post = t.ctx.Poster()
	}
	h := &heldTuple{task: t, post: t.post, input: t.hand.Input}
	own := in.CloneInto(&h.copy)
	if mutation.Is(mutation.RetainBorrows) {
		own = in
	}
	h.Held = bolt.NewHeld(own, h)
	t.retained, t.retainedRow = h, t.row
	t.holding++
	t.heldNow++
	if probe := t.set.Probe; probe != nil {
		probe.Retain(t.hand, h)
	}
	switch {
	case t.out.anchor == nil:
	case t.anchor.more == nil:
		p := t.partOf(t.slot)
		t.anchor.acc = &p.account
		h.refs = []heldRef{{p, t.anchor.index}}
	default:
		h.refs = make([]heldRef, len(t.anchor.more))
		for i := range t.anchor.more {
			a := &t.anchor.more[i]
			p := t.partOf(a.slot)
			a.acc = &p.account
			h.refs[i] = heldRef{p, a.index}
		}
	}
	return &h.Held
}

// partOf returns the part of a slot of the parcel in hand.
func (t *boltTask) partOf(slot int) *part {
	a := &t.accounts[slot]
	if a.part == nil {
		s := &t.hand.Slots[slot]
		p := &part{slotAccount: *a, tree: s.Tree, edge: s.Edge, at: len(t.parts)}
		t.refused = slices.DeleteFunc(t.refused, func(f refusal) bool {
			if f.tree == s.Tree {
				p.fails = append(p.fails, f)
			}
			return f.tree == s.Tree
		})
		a.part = p
		t.parts = append(t.parts, p)
	}
	a.part.last = t.now
	return a.part
}

// unretain makes what Retain has returned void: its Execute has failed.
func (t *boltTask) unretain() {
	if t.retained == nil || t.retainedRow != t.row {
		return
	}
	t.retained.void = "its Execute has returned an error"
	if probe := t.set.Probe; probe != nil {
		probe.Void(t.id, t.retained)
	}
	t.retained = nil
	t.holding--
	t.heldNow--
}

// settle takes an Ack or a Fail of a retained tuple.
func (t *boltTask) settle(h *heldTuple, err error) {
	if h.void != "" {
		if t.misused++; t.misused == 1 {
			t.set.Event(&Notice{Task: t.m.Name, Text: fmt.Sprintf("bolt %s: a retained tuple was acked or failed, but %s", t.node.Name, h.void)})
		}
		return
	}
	h.void = "it had been acked or failed before"
	if probe := t.set.Probe; probe != nil {
		probe.Settled(t.id, h, err)
	}
	if mutation.Is(mutation.FailHeldAcks) {
		err = nil
	}
	in := &t.m.Inputs[h.input]
	t.m.Held.Add(-1)
	class, text := acker.Failed, ""
	if err == nil {
		in.Acked.Add(1)
	} else {
		in.Failed.Add(1)
		if bolt.IsReject(err) {
			class = acker.Rejected
		}
		text = t.failureText(class, errorText(err), nil)
	}
	for _, r := range h.refs {
		p := r.part
		if err != nil {
			p.fails = append(p.fails, refusal{p.tree, r.index, class, text})
		}
		if p.left--; p.left == 0 {
			t.release(p)
		}
	}
}

// release reports a part of which all tuples are acked or failed.
func (t *boltTask) release(p *part) {
	if p.gone {
		return
	}
	for _, f := range p.fails {
		t.reports.fail(f.tree, f.index, f.class, f.text)
	}
	t.reports.entry(p.tree, p.edge^p.xor, p.mask)
	t.removePart(p)
}

func (t *boltTask) removePart(p *part) {
	p.gone = true
	last := t.parts[len(t.parts)-1]
	t.parts[p.at], last.at = last, p.at
	t.parts[len(t.parts)-1] = nil
	t.parts = t.parts[:len(t.parts)-1]
}

// dropHand drops the parcel in hand, whose sender is dead and whose trees have been
// given back.
func (t *boltTask) dropHand() {
	t.queued -= t.hand.Len() - t.row
	for i := range t.accounts {
		if p := t.accounts[i].part; p != nil && !p.gone {
			t.removePart(p)
		}
	}
	t.hand = nil
}

// sayHeld tells the ledgers of the trees of which tuples are retained.
func (t *boltTask) sayHeld() {
	component := t.plan.Tasks[t.id].Component
	for _, p := range t.parts {
		if mutation.Is(mutation.NotHeld) {
			break
		}
		t.reports.held(p.tree, component, p.last > t.now-t.node.Holds, t.away == 0)
	}
}

// An anchoredSink takes what is emitted on a collector made by Anchor.
type anchoredSink struct {
	t       *boltTask
	anchor  *anchor // nil: not tracked
	call    uint64
	several anchor
	refs    []heldRef
}

// anchored returns a sink for tuples that come of retained ones.
func (t *boltTask) anchored(hs []*bolt.Held) bolt.Sink {
	s := &anchoredSink{t: t, call: t.calls}
	if len(hs) == 0 {
		tuple.Misuse("Anchor needs a retained tuple")
	}
	var as []anchor
	for _, held := range hs {
		if held == nil {
			tuple.Misuse("Anchor was given nil for a retained tuple")
		}
		h, is := held.Owner().(*heldTuple)
		if !is || h.task != t {
			tuple.Misuse("Anchor was given a tuple that another task has retained, or an earlier life of this one")
		}
		if h.void != "" {
			tuple.Misuse("Anchor was given a retained tuple that is of no use any more: " + h.void)
		}
		s.refs = append(s.refs, h.refs...)
		for _, r := range h.refs {
			as = append(as, anchor{tree: r.part.tree, index: r.index, acc: &r.part.account})
		}
	}
	if !t.tracked() {
		return s
	}
	if len(as) > 1 {
		slices.SortStableFunc(as, func(a, b anchor) int { return cmp.Or(compareTrees(a.tree, b.tree), cmp.Compare(a.index, b.index)) })
		as = slices.CompactFunc(as, func(a, b anchor) bool { return a.tree == b.tree && a.index == b.index })
	}
	if mutation.Is(mutation.DropAnchor) && len(as) > 1 {
		as = as[1:]
	}
	if len(as) > tuple.MaxAnchors {
		tuple.Misuse(fmt.Sprintf("Anchor was given tuples of %d messages, and %d is the most: emit more tuples of fewer messages each", len(as), tuple.MaxAnchors))
	}
	s.several = as[0]
	if len(as) > 1 {
		s.several = anchor{more: as}
	}
	t.keys++
	s.several.key = t.keys
	s.anchor = &s.several
	return s
}

func compareTrees(a, b tuple.TreeID) int {
	return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Incarnation, b.Incarnation), cmp.Compare(a.Seq, b.Seq))
}

// Put emits one tuple.
func (s *anchoredSink) Put(stream int, r *tuple.Row) {
	if s.call != s.t.calls {
		tuple.Misuse("a collector that Anchor has made is used after the call that it was made in")
	}
	o := &s.t.out
	was, own := o.anchor, o.own
	o.anchor, o.own, o.putter = s.anchor, nil, s
	defer func() { o.anchor, o.own, o.putter = was, own, nil }() // also after a misuse
	o.Put(stream, r)
}

// A returned is what Block brings back of a call that bolt.Async has made.
type returned struct {
	result any
	then   func(any)
}

// block calls fn elsewhere and then with its result on a turn.
func (t *boltTask) block(fn func() any, then func(any)) {
	t.away++
	if probe := t.set.Probe; probe != nil {
		probe.Away(t.id, 1)
	}
	t.ctx.Block(func() any { return returned{fn(), then} })
}

// leaveAlone says whether Execute is to be left alone.
func (t *boltTask) leaveAlone(yes bool) {
	if yes == t.paused {
		return
	}
	if t.paused = yes; yes {
		t.out.stops++
	} else {
		t.out.stops--
	}
}

// callReturned goes on with what has come back.
func (t *boltTask) callReturned() {
	for len(t.back) > 0 && t.out.kept == 0 && !t.dead {
		r := t.back[0]
		t.back[0] = returned{}
		if t.back = t.back[1:]; len(t.back) == 0 {
			t.back = nil
		}
		t.away--
		t.guard(inReturn, func() { r.then(r.result) })
		if probe := t.set.Probe; probe != nil {
			probe.Away(t.id, -1)
		}
	}
}

// idleHeld says what is held by a task that has done nothing for a while, so that
// spouts that wait for it know (R10).
func (t *boltTask) idleHeld() {
	t.saying = false
	if t.said != t.calls-t.ticks {
		return // it has done something, and comes to rest again
	}
	t.sayHeld()
	t.reports.flush()
}
