package task

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// How a bolt task works off the parcels in its queue.

// A refusal is the failure of a tuple in hand.
type refusal struct {
	tree  tuple.TreeID
	index uint16
	class acker.FailClass
	text  string
}

// A slotAccount adds up what became of one tree's tuples in the parcel in hand.
type slotAccount struct {
	account
	left uint32 // messages of tuples that are neither acked nor failed
	part *part  // where the account is when a tuple is or was retained, else nil
}

// work executes tuples until there is nothing left, no room, or the turn is over.
func (t *boltTask) work() (more bool) {
	began := t.now
	done := 0
	for {
		if t.out.kept > 0 && !mutation.Is(mutation.ExecuteBlocked) {
			return false
		}
		if len(t.back) > 0 {
			t.callReturned()
			if t.dead || t.out.kept > 0 {
				return false
			}
		}
		if t.owed && t.halt == 0 {
			t.owed = false
			t.callTick()
			if t.dead || t.out.kept > 0 {
				return false
			}
		}
		if t.hand != nil && t.tracked() && t.hand.FromLife < t.peers[t.hand.From].Life {
			t.dropHand()
		}
		if t.paused || t.hand == nil && !t.take() {
			return false
		}
		if t.hand == nil {
			continue // it was a marker
		}
		done += t.execute()
		if t.dead {
			return false
		}
		if done >= turnTuples || t.now-began >= turnTime {
			return t.out.stops == 0 && (t.hand != nil || t.head < len(t.queue))
		}
	}
}

// take gets the next parcel into hand.
func (t *boltTask) take() bool {
	if len(t.exact.aside) > 0 && t.takeAside() {
		return !t.dead
	}
	for t.head < len(t.queue) {
		p := t.queue[t.head]
		t.queue[t.head] = nil
		if t.head++; t.head == len(t.queue) {
			t.queue, t.head = t.queue[:0], 0
		} else if t.head >= 64 && t.head*2 >= len(t.queue) {
			n := copy(t.queue, t.queue[t.head:])
			clear(t.queue[n:])
			t.queue, t.head = t.queue[:n], 0
		}
		if t.tracked() && p.FromLife < t.peers[p.From].Life {
			t.queued -= p.Len()
			t.m.Refused.Add(1)
			continue // its trees have been given back
		}
		if t.round != nil && !t.takeBatch(p) {
			return !t.dead
		}
		if p.Len() == 0 {
			continue // nobody sends one, and what is in hand has a tuple left
		}
		t.begun(p)
		return true
	}
	return false
}

// begun makes p the parcel in hand.
func (t *boltTask) begun(p *tuple.Parcel) {
	t.hand, t.row, t.since, t.slot, t.seen = p, 0, 0, -1, false
	t.call.Hand(p)
	t.retained, t.holding, t.refused = nil, 0, t.refused[:0]
	if probe := t.set.Probe; probe != nil {
		probe.Take(p)
	}
	t.sender = int(t.index[p.From])
	t.accounts = t.accounts[:0]
	for i := range p.Slots {
		t.accounts = append(t.accounts, slotAccount{left: p.Slots[i].Count})
		if s := &p.Slots[i]; mutation.Is(mutation.ReportBeforeExecute) {
			t.reports.entry(s.Tree, s.Edge, 0)
			s.Edge = 0
		}
	}
}

// execute runs the parcel in hand to its end, or until there is no room, or the
// time to look at the clock has come. It returns how many tuples it executed.
func (t *boltTask) execute() int {
	p := t.hand
	from := t.row
	before := t.now
	failed := int64(0)
	end := min(p.Len(), from+t.step)
	t.call.Begin(uint8(inExecute), before, from, end)
	for t.row < end && (t.out.stops == 0 || mutation.Is(mutation.ExecuteBlocked) && !t.paused) && !t.dead && !t.call.Asked() {
		failed += t.some(p, end)
	}
	n := t.row - from
	if !t.leaveCall() {
		return n
	}
	if n == 0 {
		return 0
	}
	in := &t.m.Inputs[p.Input]
	in.Executed.Add(int64(n))
	in.Failed.Add(failed)
	in.Acked.Add(int64(n) - failed - t.heldNow)
	t.m.Held.Add(t.heldNow)
	credit := n
	if mutation.Is(mutation.RetainKeepsCredit) {
		credit -= int(t.heldNow)
	}
	t.heldNow = 0
	t.queued -= n
	if t.dead {
		return n
	}
	if t.round != nil {
		t.exact.tuples[p.Batch.Tx] += n
	}
	t.now = t.ctx.Now()
	took := t.now - before
	t.m.Execute.Record(took/time.Duration(n), int64(n))
	t.window.Worked(n, took)
	// As many tuples as take about a millisecond until the next look, and one
	// when they are slow, so that each of those is timed by itself.
	switch each := took / time.Duration(n); {
	case each >= slowTuple:
		t.step = 1
	case took < time.Millisecond/2 && t.now >= t.careful:
		t.step = min(tuple.MaxParcel, t.step*2)
	case took > time.Millisecond:
		t.step = max(1, t.step/4)
	}
	t.executed(t.sender, credit, p)
	return n
}

// executed raises the sender's limit, which never waits for an ack (R8), and
// sends an emptied parcel home.
func (t *boltTask) executed(sender, n int, p *tuple.Parcel) {
	prepaid := t.exact.prepaid
	if t.row == p.Len() {
		if probe := t.set.Probe; probe != nil {
			probe.Executed(p)
		}
		t.hand, t.exact.prepaid = nil, false
		if !t.seen {
			p.Expire()
		}
	}
	if p.FromLife < t.peers[p.From].Life {
		return // the present life has a total of its own
	}
	if t.hand == nil {
		t.recycle(sender, p)
	}
	if !prepaid {
		t.credit(sender, n)
	} else if t.hand == nil {
		t.complete()
	}
}

// recycle empties a parcel for its next use, here or at home.
func (t *boltTask) recycle(sender int, p *tuple.Parcel) {
	if t.set.AlwaysEncode || t.seen {
		return
	}
	p.Reset()
	if !t.peers[p.From].Far {
		t.empty[sender] = append(t.empty[sender], p)
	} else if len(t.spare) < freeParcels {
		t.spare = append(t.spare, p)
	}
}

// credit says that the sender may send n tuples more.
func (t *boltTask) credit(sender, n int) {
	t.window.Executed(sender, n)
	if limit, tell := t.window.Raise(sender); tell || len(t.empty[sender]) >= emptyParcels {
		t.tell(sender, limit)
	}
}

func (t *boltTask) tell(sender int, limit uint64) {
	peer := &t.peers[t.senders[sender]]
	if peer.Ref == nil {
		return // it will ask
	}
	t.say(peer.Task, &Limit{
		From: t.id, FromLife: t.life, To: peer.Task, ToLife: peer.Life,
		Total: limit, Each: t.window.Each(), Parcels: t.empty[sender],
	})
	t.empty[sender] = nil
}

// some executes tuples of p from t.row to end. It returns early, with t.row
// behind the tuple, after a failure, and says how many failed: 0 or 1.
func (t *boltTask) some(p *tuple.Parcel, end int) (failed int64) {
	t.during = "Execute"
	t.calls++
	defer func() {
		if r := recover(); r != nil {
			failed = 1
			t.threw(p, r)
		}
	}()
	if len(p.Slots) == 0 {
		t.anchor.acc, t.out.anchor = nil, nil
		for t.row < end {
			if err := t.bolt.Execute(p.Tuple(t.row), t.collector); err != nil {
				t.tellFailure(err.Error(), p) // which may panic, so the tuple is still in hand
				if t.round != nil {
					t.failBatch(p.Batch.Tx, err.Error(), bolt.IsReject(err))
				}
				t.unretain()
				t.probeFailed(p, err)
				t.row++
				return 1
			}
			t.row++
			if t.out.stops > 0 || t.call.Asked() {
				break
			}
		}
		return 0
	}
	for t.row < end {
		ref := p.Refs[t.row]
		if int(ref.Slot) != t.slot {
			t.leave(p)
			t.enterSlot(p, ref)
		}
		t.anchor.index = ref.Index
		if err := t.bolt.Execute(p.Tuple(t.row), t.collector); err != nil {
			class := acker.Failed
			if bolt.IsReject(err) {
				class = acker.Rejected
			}
			t.refuse(class, err.Error(), p) // which may panic, so the tuple is still in hand
			t.unretain()
			t.probeFailed(p, err)
			t.row++
			failed = 1
			break
		}
		t.row++
		if t.out.stops > 0 || t.call.Asked() {
			break
		}
	}
	t.leave(p)
	return failed
}

// enterSlot makes the tuples that follow anchored to another tree, or the next one
// to several messages.
func (t *boltTask) enterSlot(p *tuple.Parcel, ref tuple.Ref) {
	t.keys++
	t.anchor.key = t.keys
	t.out.anchor = &t.anchor
	if ref.Slot != tuple.Several {
		t.slot = int(ref.Slot)
		t.anchor.tree, t.anchor.more = p.Slots[t.slot].Tree, nil
		t.anchor.acc = &t.account(t.slot).account
		return
	}
	t.slot = -1 // of no tuple, so that the next one comes here again
	t.several = t.several[:0]
	for _, r := range p.Lists[ref.Index] {
		t.several = append(t.several, anchor{
			tree: p.Slots[r.Slot].Tree, index: r.Index, slot: int(r.Slot), acc: &t.account(int(r.Slot)).account,
		})
	}
	t.anchor.more = t.several
}

// account returns the account of a slot of the parcel in hand.
func (t *boltTask) account(slot int) *slotAccount {
	a := &t.accounts[slot]
	if a.part != nil {
		return &a.part.slotAccount
	}
	return a
}

// leave books the tuples up to t.row, acked or failed: their tree's part is so
// much less, and its entry leaves when nothing is left.
func (t *boltTask) leave(p *tuple.Parcel) {
	n := t.row - t.since - t.holding
	if mutation.Is(mutation.RetainAcks) {
		n += t.holding
	}
	t.since, t.holding = t.row, 0
	if n == 0 {
		return
	}
	if t.slot >= 0 {
		t.book(p, t.slot, uint32(n))
		return
	}
	for i := range t.anchor.more {
		t.book(p, t.anchor.more[i].slot, 1)
	}
}

func (t *boltTask) book(p *tuple.Parcel, slot int, n uint32) {
	a := t.account(slot)
	if a.left -= n; a.left > 0 {
		return
	}
	if part := t.accounts[slot].part; part != nil {
		t.release(part)
		return
	}
	s := &p.Slots[slot]
	if mutation.Is(mutation.FailBehindEntry) {
		t.reports.entry(s.Tree, s.Edge^a.xor, a.mask)
		t.reports.flush()
		a.xor, a.mask = s.Edge, 0 // what follows adds nothing
	}
	if len(t.refused) > 0 {
		t.tellRefused(s.Tree)
	}
	t.reports.entry(s.Tree, s.Edge^a.xor, a.mask)
}

// tellFailure makes a failure known before messages are dead of it. The tuple that has
// failed is that at t.row of p, or p is nil.
func (t *boltTask) tellFailure(text string, p *tuple.Parcel) {
	f := &Failure{Err: text}
	if p != nil {
		f.Tuple = cut(describe(t.plan, p, t.row), failureText)
	}
	t.told(f)
}

func (t *boltTask) told(f *Failure) {
	t.failures++
	f.Task, f.Err, f.Failed = t.m.Name, "bolt "+t.node.Name+": "+cut(f.Err, failureText), t.failures
	if f.Quiet = t.failures > 1 && t.now < t.tellAgain; !f.Quiet {
		t.tellAgain = t.now + failureEvery
	}
	t.set.Event(f)
}

// refuse notes that the tuple in hand, of p, has failed.
func (t *boltTask) refuse(class acker.FailClass, text string, p *tuple.Parcel) {
	text = t.failureText(class, text, p)
	if t.anchor.more == nil {
		t.refuseOne(t.slot, refusal{t.anchor.tree, t.anchor.index, class, text})
		return
	}
	for i := range t.anchor.more {
		a := &t.anchor.more[i]
		t.refuseOne(a.slot, refusal{a.tree, a.index, class, text})
	}
}

func (t *boltTask) refuseOne(slot int, f refusal) {
	if p := t.accounts[slot].part; p != nil {
		p.fails = append(p.fails, f)
	} else {
		t.refused = append(t.refused, f)
	}
}

// failureText tells of a failure and returns its text for the ledger; p is as in
// tellFailure.
func (t *boltTask) failureText(class acker.FailClass, text string, p *tuple.Parcel) string {
	text = cut(text, failureText)
	if class != acker.Panicked { // which is told as a death
		t.tellFailure(text, p)
	}
	return "bolt " + t.node.Name + ": " + text
}

// tellRefused reports the failures in a tree. They travel with the entry that may
// end the tree, so that no order of reports can make an ack of them (R6).
func (t *boltTask) tellRefused(tree tuple.TreeID) {
	t.refused = slices.DeleteFunc(t.refused, func(f refusal) bool {
		if f.tree == tree {
			t.reports.fail(f.tree, f.index, f.class, f.text)
		}
		return f.tree == tree
	})
}

// threw handles what Execute has panicked with: a mistake rejects the tuple, and
// anything else fails it and ends this life.
func (t *boltTask) threw(p *tuple.Parcel, value any) {
	mistake := tuple.Misused(value)
	inHand := describe(t.plan, p, t.row)
	if mistake == nil {
		if !t.leaveCall() {
			return // what has become of its tuple is for another life to find out
		}
		t.probeFailed(p, &PanicError{Component: t.node.Name, Task: t.plan.Tasks[t.id].Index, During: t.during, Value: value, Tuple: inHand})
		if t.out.anchor != nil {
			t.refuse(acker.Panicked, fmt.Sprintf("panic in Execute: %v", value), p)
		}
		for len(t.refused) > 0 { // their entries will never leave
			t.tellRefused(t.refused[0].tree)
		}
		for _, p := range t.parts {
			for _, f := range p.fails {
				t.reports.fail(f.tree, f.index, f.class, f.text)
			}
		}
		if t.round != nil {
			t.failBatch(p.Batch.Tx, fmt.Sprintf("panic in Execute: %v", value), false)
		}
		t.row++
		t.died(value, inHand)
		return
	}
	t.probeFailed(p, bolt.Reject(mistake))
	if t.out.anchor != nil {
		t.refuse(acker.Rejected, mistake.Error(), p)
	} else {
		t.tellFailure(mistake.Error(), p)
		if t.round != nil {
			t.failBatch(p.Batch.Tx, mistake.Error(), true)
		}
	}
	t.unretain()
	t.row++
	if t.out.anchor != nil {
		t.leave(p)
	}
}

// cut returns at most n bytes of a text, or a few more that say that it was cut.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

// describe returns the values of a tuple for people, cut when they are long, without those
// that are masked, or any if nobody may look at tuples.
func describe(plan *topology.Plan, p *tuple.Parcel, row int) string {
	s := *p.Schema
	if plan.NoTaps {
		s.Masked = s.Fields
	}
	return describeValues(&s, p.Tuple(row).At)
}

func describeValues(schema *tuple.Schema, at func(i int) tuple.Value) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range schema.Fields {
		if i > 0 {
			b.WriteString(", ")
		}
		s := at(i).String()
		if schema.Masks(i) {
			s = tuple.Mask
		} else if at(i).Kind() == tuple.KindString {
			s = fmt.Sprintf("%q", s[:min(len(s), 100)])
		}
		fmt.Fprintf(&b, "%s: %s", f, s[:min(len(s), 104)])
		if b.Len() > 1000 {
			b.WriteString(", ...")
			break
		}
	}
	b.WriteByte('}')
	return b.String()
}

// unreported visits the accounts of trees in hand whose entry has not left.
func (t *boltTask) unreported(f func(tuple.TreeID, *account)) {
	if t.hand != nil {
		for i := range t.accounts {
			if a := &t.accounts[i]; a.left > 0 && a.part == nil {
				f(t.hand.Slots[i].Tree, &a.account)
			}
		}
	}
	for _, p := range t.parts {
		f(p.tree, &p.account)
	}
}
