package task

import (
	"fmt"
	"slices"
	"time"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// How a spout task has its part in batches.
//
// It keeps no message: a batch that fails is read again, from the positions that the
// coordinator's record has (T14). What it has read and not emitted is good only within
// a round.

// A filling is what a spout task of an exactly-once topology has besides.
//
// Invariants:
//
//   - batches are emitted in their order, one after the other (T5); between them cur is nil,
//     but of a non-transactional spout whose round has ended
//   - a batch ends where a call of Next has ended, so that a reader can go on there; but
//     for one with fixed ranges
type filling struct {
	orders   []*Order // batches that are to be emitted, in order
	last     tuple.TxID
	now      *Order // is being emitted; nil: none
	until    time.Duration
	ranges   batch.Ranges
	messages int
	emitted  []*batch.Answer // the last few, for those who ask again
	said     batch.Answer    // the last Input
	short    bool            // a fixed range cannot be had again
	once     bool            // it has been in a round; a non-transactional one reads on
}

// cutBatch is the timer of a batch that has been filled long enough.
type cutBatch struct{}

// ordered does what the coordinator says.
func (t *spoutTask) ordered(m *Order) {
	if !t.order(m) {
		return
	}
	f := &t.filling
	switch m.Kind {
	case batch.Join:
		if m.Attempt != t.round.at {
			t.enterRound(m)
			t.readAgain(m.Positions)
			t.joined()
		} else if t.round.joined {
			t.joined()
		}
	case batch.Begin:
		if i := slices.IndexFunc(f.emitted, func(a *batch.Answer) bool { return a.Tx == m.Tx }); i >= 0 {
			t.answer(f.emitted[i])
		} else if m.Tx == f.last+1 || m.Tx > f.last && mutation.Is(mutation.BeginUnordered) { // or it was said twice, or comes again in its turn
			f.last = m.Tx
			f.orders = append(f.orders, m)
		}
	case batch.Finish:
		if t.doomed != nil {
			t.fail(t.doomed, true, true)
			return
		}
		t.end()
	}
}

// readAgain begins a round: nothing is left of what was read, and it is read again from
// the positions.
func (t *spoutTask) readAgain(positions batch.Positions) {
	f := &t.filling
	keep := f.once && t.node.Batches == topology.NonTransactional
	*f = filling{last: t.round.committed, once: true}
	if keep || t.listed && mutation.Is(mutation.PositionsKept) {
		return
	}
	t.cancel() // what waits comes back
	t.running, t.cancel = t.context()
	for _, r := range t.splits {
		if r.call != nil {
			r.reader, _ = r.call.leave()
			t.unblock(r.call.watch)
			r.call = nil
		}
		t.shut(r)
	}
	if t.cur != nil {
		t.batches.put(t.cur)
	}
	t.splits, t.active, t.todo, t.opened, t.turn, t.cur, t.next = nil, nil, 0, 0, 0, nil, 0
	t.listed, t.committed = false, map[string]string{}
	for split, p := range positions {
		t.committed[split] = p
	}
	t.list()
}

// fill emits for one turn.
func (t *spoutTask) fill() (more bool) {
	f := &t.filling
	sent, began := 0, t.now
	for n := 1; sent < turnTuples; n++ {
		if t.out.kept > 0 || t.dead || !t.round.joined || t.ended {
			return false
		}
		if f.now == nil && !t.nextBatch() {
			t.sayInput()
			return false
		}
		if t.full() {
			t.endBatch()
			continue
		}
		if t.cur == nil && !t.chooseNext() {
			return false // a reader or the timer brings us here again
		}
		k := t.emitPart()
		sent += k
		if k >= 64 || n%16 == 0 {
			if t.now = t.ctx.Now(); t.now-began >= turnTime {
				break
			}
		}
	}
	return true
}

// nextBatch begins the next batch that is ordered.
func (t *spoutTask) nextBatch() bool {
	f := &t.filling
	if len(f.orders) == 0 || !t.listed && !t.drained {
		return false
	}
	if t.drained && f.orders[0].Fixed != nil {
		return false // it cannot be read again, and is left for the next run
	}
	f.now, f.orders = f.orders[0], f.orders[1:]
	f.ranges, f.messages, f.said = batch.Ranges{}, 0, batch.Answer{}
	f.until = t.now + t.set.BatchInterval
	t.after(t.set.BatchInterval, cutBatch{})
	t.out.enter(f.now.BatchID)
	return true
}

// full reports whether the batch has what it is to have.
func (t *spoutTask) full() bool {
	f := &t.filling
	if f.now.Fixed != nil { // of which other tasks have their own splits
		return !slices.ContainsFunc(t.splits, func(r *reading) bool { return t.missing(string(r.split)) > 0 })
	}
	return t.cur == nil && (f.messages >= t.set.BatchSize || t.now >= f.until || t.hasRead())
}

// missing is how many messages the batch lacks of a split whose range is fixed.
func (t *spoutTask) missing(split string) int {
	f := &t.filling
	return f.now.Fixed[split].Messages - f.ranges[split].Messages
}

func (t *spoutTask) hasReady() bool {
	return slices.ContainsFunc(t.active, func(r *reading) bool { return r.ready != nil })
}

// chooseNext finds what is emitted next.
func (t *spoutTask) chooseNext() bool {
	f := &t.filling
	fixed := f.now.Fixed
	if fixed == nil {
		return t.choose()
	}
	if f.short {
		return false
	}
	for _, r := range t.splits { // also one of which nothing is missing: at its end it makes room for another to be read
		split := string(r.split)
		missing := t.missing(split) > 0
		if r.ready == nil && !t.advance(r) {
			if missing && r.eof && r.call == nil && !t.drained { // else nobody waits for it
				f.short = true
				t.failBatch(fmt.Sprintf("split %s ends before all %d messages of the batch have come again: its source is not transactional", split, fixed[split].Messages))
			}
			if t.dead || f.short {
				return false
			}
			continue
		}
		if !missing {
			continue
		}
		t.cur, t.next = r.ready, r.next
		r.ready, r.next = nil, 0
		return true
	}
	return false
}

// failBatch says that the batch cannot be emitted, and that no other try helps.
func (t *spoutTask) failBatch(text string) {
	t.answer(&batch.Answer{Kind: batch.Failed, BatchID: t.filling.now.BatchID, Err: "spout " + t.node.Name + ": " + text, Broken: true})
}

// emitPart emits messages of what is current, up to all of it.
func (t *spoutTask) emitPart() int {
	f, b := &t.filling, t.cur
	r := t.splits[b.Split]
	split := string(r.split)
	s, cells, end := b.Run(t.next)
	n := end - t.next
	if f.now.Fixed != nil {
		n = min(n, t.missing(split))
	}
	t.out.run(s, cells[:n*len(s.Kinds)], n, nil)
	t.m.Untracked.Add(int64(n))
	part, is := f.ranges[split]
	if !is {
		part.From = r.position
	}
	part.Messages += n
	f.messages += n
	t.next += n
	if t.next == b.Len() {
		r.position, r.waiting = b.Position, slices.Delete(r.waiting, 0, 1) // others are read ahead
		part.To = r.position
		t.batches.put(b)
		t.cur = nil
	}
	f.ranges[split] = part
	if f.now.Fixed != nil && t.missing(split) == 0 {
		part.To = f.now.Fixed[split].To
		f.ranges[split] = part
		r.position = part.To
		if t.cur != nil { // the rest is the next batch's
			r.ready, r.next, t.cur = b, t.next, nil
		}
	}
	return n
}

// endBatch sends the markers and says what the batch has.
func (t *spoutTask) endBatch() {
	f := &t.filling
	t.out.mark(f.now.BatchID)
	more, ended := t.input()
	a := &batch.Answer{Kind: batch.Emitted, BatchID: f.now.BatchID, Ranges: f.ranges, More: more, Ended: ended, Tuples: f.messages}
	f.now, f.ranges = nil, nil
	if f.emitted = append(f.emitted, a); len(f.emitted) > 2*t.set.MaxBatches {
		f.emitted = slices.Delete(f.emitted, 0, 1)
	}
	f.said = batch.Answer{Kind: batch.Input, More: more, Ended: ended}
	t.answer(a)
}

// input looks whether there is something to emit, and whether there will never be.
func (t *spoutTask) input() (more, ended bool) {
	if t.listed && t.halt == 0 && !t.hasReady() {
		// Nothing is chosen: the next batch may have fixed ranges, and want another split.
		for _, r := range t.active {
			if t.advance(r); t.dead {
				return false, false
			}
		}
	}
	return t.cur != nil || t.hasReady(), t.cur == nil && t.hasRead()
}

// sayInput tells the coordinator when that has changed.
func (t *spoutTask) sayInput() {
	more, ended := t.input()
	if f := &t.filling; !t.dead && (more != f.said.More || ended != f.said.Ended) {
		a := batch.Answer{Kind: batch.Input, BatchID: t.batchID(f.last), More: more, Ended: ended}
		if t.answer(&a) { // nobody asks for it
			f.said = a
		}
	}
}
