package task

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/tuple"
)

// How a bolt task has its part in batches.

// An exact is what a bolt task of an exactly-once topology has besides.
//
// Invariants:
//
//   - marks[i] is the last batch whose marker has come from sender i and was looked at;
//     batches up to done are complete, and the bolt has been told
//   - of a failed batch no marker is sent and nothing is said but that it has failed
//   - one call of Join or Commit is under way at a time
type exact struct {
	bolt    bolt.Batched
	state   bolt.Stateful // nil: it has none
	behind  bool          // a state: it completes when that has written
	settled []bool        // by input; nil: none waits

	marks  []tuple.TxID
	done   tuple.TxID
	at     tuple.TxID // what Execute gets is of
	tuples map[tuple.TxID]int
	failed map[tuple.TxID]bool

	completes tuple.TxID // Complete of this batch is under way

	aside   []*tuple.Parcel // wait until the batch before theirs is committed; their credit is given back
	prepaid bool            // the parcel in hand was one of them

	write tuple.TxID // is to be written when it is complete
	wrote *batch.Answer
	busy  bool          // a Join, Commit or Settle is under way
	began time.Duration // it
	call  *blockedCall  // it
	join  *Order        // waits for that, or for Prepare

	joining *Order        // the last one that did not wait any more
	tries   int           // of its Join that have failed
	fenced  *batch.Answer // a later attempt has the store; nil: not that is known

	settler   bolt.Settler // nil: nobody wants to know
	settles   bool         // a timer for it is set
	told      tuple.TxID   // what it was told last
	finishing bool         // the task ends when it has been told everything
}

type (
	// joinDone, writeDone and settleDone are what Block brings back of a stateful bolt.
	joinDone struct {
		at  tuple.Attempt
		err error
	}
	settleDone struct{ err error }
	settleNow  struct{} // the timer
	writeDone  struct {
		id      tuple.BatchID
		written bolt.Written
		err     error
	}
)

// prepareExact looks whether the bolt is made for batches.
func (t *boltTask) prepareExact() error {
	x := &t.exact
	var is bool
	if x.bolt, is = t.bolt.(bolt.Batched); !is {
		return bolt.Reject(t.notBatched("a bolt.Batched"))
	}
	if t.node.Stateful {
		if x.state, is = t.bolt.(bolt.Stateful); !is {
			return bolt.Reject(t.notBatched("a bolt.Stateful"))
		}
	}
	x.settler, _ = t.bolt.(bolt.Settler)
	t.replaces = func(b *blockedCall) bool { return x.busy && x.call == b }
	x.behind = behind(t.plan, t.plan.Tasks[t.id].Component)
	x.settled = settles(t.node)
	x.tuples, x.failed = map[tuple.TxID]int{}, map[tuple.TxID]bool{}
	return nil
}

// ordered does what the coordinator says.
func (t *boltTask) ordered(m *Order) {
	if !t.order(m) {
		return
	}
	x := &t.exact
	switch m.Kind {
	case batch.Join:
		if m.Attempt != t.round.at {
			t.enterRound(m)
			t.throwAway()
			x.join = m
			t.tryJoin()
		} else if t.round.joined {
			t.joined()
		} else if x.fenced != nil {
			t.answer(x.fenced)
		}
	case batch.Write:
		if x.wrote != nil && x.wrote.Tx == m.Tx {
			t.answer(x.wrote)
			return
		}
		x.write = m.Tx
		t.tryWrite()
	case batch.Settled:
		t.round.committed = max(t.round.committed, m.Tx)
		t.complete()
		if x.settler != nil && !x.settles {
			x.settles = true
			t.after(t.set.BatchInterval, settleNow{})
		}
	case batch.Finish:
		t.round.committed = max(t.round.committed, m.Tx)
		x.finishing = true
		t.trySettle()
	}
}

// trySettle tells the bolt what is committed, if it has not heard: a later Commit would say
// so, too. Then a task ends that is to.
func (t *boltTask) trySettle() {
	x := &t.exact
	if x.busy {
		return
	}
	tx := t.round.committed
	if x.settler == nil || tx <= x.told || x.write > tx || !t.round.joined {
		if x.finishing {
			t.end()
		}
		return
	}
	x.busy, x.told = true, tx
	settler, alive := x.settler, t.alive
	x.call = t.core.block("Settle", "", ".(*boltTask).trySettle")
	t.ctx.Block(func() any {
		return settleDone{t.calling("Settle", func() error { return settler.Settle(alive, tx) })}
	})
}

func (t *boltTask) settleIsDone(m settleDone) {
	x := &t.exact
	x.busy = false
	t.unblock(x.call)
	if m.err != nil {
		t.set.Event(&StoreError{Doing: "show what is committed", Err: m.err})
	}
	t.tryJoin()
	t.tryWrite()
	t.trySettle()
}

// throwAway forgets what belongs to earlier rounds. Their tuples count as executed, or
// the senders' windows would shrink with each round (T8).
func (t *boltTask) throwAway() {
	x := &t.exact
	if p := t.hand; p != nil {
		t.hand = nil
		t.drops(p, p.Len()-t.row)
		if !x.prepaid {
			t.giveBack(p, p.Len()-t.row)
		}
	}
	if !mutation.Is(mutation.JoinKeepsQueue) {
		for _, p := range t.queue[t.head:] {
			t.drops(p, p.Len())
			t.giveBack(p, p.Len())
		}
		clear(t.queue)
		t.queue, t.head, t.queued = t.queue[:0], 0, 0
	}
	for _, p := range x.aside {
		t.drops(p, p.Len())
	}
	clear(x.aside)
	x.aside, x.prepaid = x.aside[:0], false
	x.marks = make([]tuple.TxID, len(t.senders))
	for i, id := range t.senders {
		x.marks[i] = t.round.committed
		if t.gone[id] {
			x.marks[i] = math.MaxUint64 // nothing is waited for of it
		}
	}
	x.done, x.at, x.write, x.wrote, x.fenced = t.round.committed, 0, 0, nil, nil
	clear(x.tuples)
	clear(x.failed)
}

// giveBack gives a parcel back of which n tuples have not been executed and never will.
func (t *boltTask) giveBack(p *tuple.Parcel, n int) {
	i := int(t.index[p.From])
	if p.FromLife < t.peers[p.From].Life {
		return
	}
	t.recycle(i, p)
	if !mutation.Is(mutation.StaleKeepsCredit) {
		t.credit(i, n)
	}
}

// accept reports whether a parcel is of the present round.
func (t *boltTask) accept(p *tuple.Parcel) bool {
	if t.round.joined && (p.Batch.Attempt == t.round.at && p.FromLife == t.round.view[p.From] || mutation.Is(mutation.AnyParcel)) {
		return true
	}
	t.m.Refused.Add(1)
	t.drops(p, p.Len())
	t.giveBack(p, p.Len())
	return false
}

// drops counts a parcel of a round that is over, of which n tuples have not been executed.
func (t *boltTask) drops(p *tuple.Parcel, n int) {
	if p.Marker {
		t.stale(metrics.StaleMarker, 1)
	}
	t.stale(metrics.StaleTuple, n)
}

// tryJoin joins the round when the bolt is there and nothing is under way.
func (t *boltTask) tryJoin() {
	x := &t.exact
	m := x.join
	if m == nil || x.busy || t.phase != working {
		return
	}
	x.join, x.joining = nil, m
	if x.state == nil {
		t.hasJoined()
		return
	}
	x.busy = true
	state, alive := x.state, t.alive
	j := &bolt.Join{Fence: tuple.Fence{Attempt: m.Attempt, Life: t.life}, Committed: m.Tx, Last: m.Last, Fixed: m.Fixed != nil}
	x.call = t.core.block("Join", "", ".(*boltTask).tryJoin")
	ms := t.m
	t.ctx.Block(func() any {
		return joinDone{m.Attempt, fenced(ms, metrics.StaleJoin, t.calling("Join", func() error { return state.Join(alive, j) }))}
	})
}

// joinTries is how often a Join is tried again: a database may be away for a minute, while
// it is started anew. A Commit that has failed is not tried again, and the life after it
// joins first.
const joinTries = 12

// joinAgain is the timer of that.
type joinAgain struct{ at tuple.Attempt }

func (t *boltTask) joinOnceMore(m joinAgain) {
	if x := &t.exact; x.join == nil && m.at == t.round.at && !t.round.joined {
		x.join = x.joining
		t.tryJoin()
	}
}

func (t *boltTask) hasJoined() {
	t.exact.tries = 0
	if t.guard(inRound, t.exact.bolt.Round) {
		t.joined()
	}
}

func (t *boltTask) joinIsDone(m joinDone) {
	x := &t.exact
	x.busy = false
	t.unblock(x.call)
	_, panicked := errors.AsType[*PanicError](m.err)
	fenced, isFenced := errors.AsType[*bolt.FencedError](m.err)
	switch {
	case x.join != nil:
		t.tryJoin() // a later round has begun
	case isFenced:
		if m.at == t.round.at {
			x.fenced = &batch.Answer{Kind: batch.Fenced, BatchID: t.batchID(t.round.committed), Fence: fenced.By.Epoch, Err: cut(m.err.Error(), maxErr)}
			t.answer(x.fenced)
		}
	case m.err != nil && !bolt.IsReject(m.err) && !panicked && x.tries < joinTries:
		x.tries++
		pause := backoff(x.tries)
		t.set.Event(&StoreError{Doing: "join the state of " + t.m.Name, Err: m.err, Again: pause})
		t.after(pause, joinAgain{m.at})
	case m.err != nil:
		t.stateFailed("join its state", m.err)
	case m.at == t.round.at:
		t.hasJoined()
	}
}

// stateFailed ends this life: nobody knows what its store has.
func (t *boltTask) stateFailed(what string, err error) {
	p, panicked := errors.AsType[*PanicError](err)
	t.dies(failed{err: fmt.Errorf("%s cannot %s: %w", t.m.Name, what, err), fatal: bolt.IsReject(err) || panicked && p.Misuse, own: true, away: !panicked})
}

// enterBatch tells the bolt and the outbox which batch the tuples are of that come now.
func (t *boltTask) enterBatch(tx tuple.TxID) {
	t.out.enter(t.batchID(tx))
	if x := &t.exact; x.at != tx {
		x.at = tx
		t.guard(inBatch, func() { x.bolt.Batch(tx) })
	}
}

// takeBatch looks at a parcel before it comes into hand. It returns false if it is not
// to: it was a marker, or has to wait.
func (t *boltTask) takeBatch(p *tuple.Parcel) bool {
	x := &t.exact
	i := t.index[p.From]
	tx := p.Batch.Tx
	switch {
	case p.Marker && tx != x.marks[i]+1, tx <= x.marks[i]:
		// A link is in order or dead, so this is a bug (T6).
		t.failBatch(x.marks[i]+1, fmt.Sprintf("%s sends batch %d (marker: %t) behind the marker of %d", t.plan.TaskName(p.From), tx, p.Marker, x.marks[i]), false)
		t.queued -= p.Len()
		t.giveBack(p, p.Len())
		return false
	case p.Marker:
		x.marks[i] = tx
		t.giveBack(p, 0)
		t.complete()
		return false
	case x.settled != nil && x.settled[p.Input] && tx > t.round.committed+1 && !mutation.Is(mutation.SettledUnawaited):
		x.aside = append(x.aside, p)
		t.queued -= p.Len()
		t.credit(int(i), p.Len())
		return false
	}
	t.enterBatch(tx)
	return true
}

// takeAside takes a parcel in hand that has waited for a commit.
func (t *boltTask) takeAside() bool {
	x := &t.exact
	i := slices.IndexFunc(x.aside, func(p *tuple.Parcel) bool { return p.Batch.Tx <= t.round.committed+1 })
	if i < 0 {
		return false
	}
	p := x.aside[i]
	x.aside = slices.Delete(x.aside, i, i+1)
	x.prepaid = true
	t.queued += p.Len()
	t.enterBatch(p.Batch.Tx)
	t.begun(p)
	return true
}

// complete goes over to the batches of which everything has come and been executed.
func (t *boltTask) complete() {
	x := &t.exact
	for !t.dead && t.round.joined {
		tx := x.done + 1
		if slices.Min(x.marks) < tx && !(mutation.Is(mutation.FirstMarkerCompletes) && slices.Max(x.marks) >= tx) || x.failed[tx] {
			return
		}
		if x.settled != nil && (tx > t.round.committed+1 || slices.ContainsFunc(x.aside, func(p *tuple.Parcel) bool { return p.Batch.Tx == tx })) {
			return
		}
		if x.state != nil {
			x.done = tx
			if !x.behind {
				t.answer(&batch.Answer{Kind: batch.Ready, BatchID: t.batchID(tx), Tuples: x.tuples[tx]})
			}
			t.tryWrite()
			continue
		}
		if !t.callComplete(tx) {
			return
		}
		x.done = tx
		a := &batch.Answer{Kind: batch.Ready, BatchID: t.batchID(tx), Tuples: x.tuples[tx]}
		if delete(x.tuples, tx); x.behind {
			a.Kind = batch.Wrote
		}
		t.answer(a)
	}
}

// callComplete tells the bolt that a batch is whole, and everybody behind it. It returns
// false if that has failed.
func (t *boltTask) callComplete(tx tuple.TxID) bool {
	x := &t.exact
	t.out.enter(t.batchID(tx))
	var err error
	x.completes = tx
	if !t.guard(inComplete, func() { err = x.bolt.Complete(tx, t.collector) }) {
		return false
	}
	x.completes = 0
	if err != nil {
		t.tellFailure(err.Error(), nil)
		t.failBatch(tx, err.Error(), bolt.IsReject(err))
		return false
	}
	t.out.mark(t.batchID(tx))
	if x.at != tx {
		x.at = 0 // the outbox is at another batch than the next tuples, maybe
	}
	if t.hand != nil { // and what is left of it is of its own batch
		t.enterBatch(t.hand.Batch.Tx)
	}
	return !t.dead
}

// tryWrite writes the batch that is to be written, when it is complete.
func (t *boltTask) tryWrite() {
	x := &t.exact
	if x.write == 0 || x.write > x.done || x.failed[x.write] || x.busy || x.join != nil || x.wrote != nil && x.wrote.Tx >= x.write {
		return
	}
	x.busy = true
	x.began = t.now
	id, state, alive := t.batchID(x.write), x.state, t.alive
	x.call = t.core.block("Commit", "", ".(*boltTask).tryWrite")
	ms := t.m
	t.ctx.Block(func() any {
		var w bolt.Written
		err := t.calling("Commit", func() (err error) { w, err = state.Commit(alive, id); return err })
		return writeDone{id, w, fenced(ms, metrics.StaleWrite, err)}
	})
}

// fenced counts a call that the store has refused. It is called where the call was made, off
// the task's turn: who hears of a zombie's call has no part in the run any more.
func fenced(m *metrics.Task, what metrics.StaleKind, err error) error {
	if _, is := errors.AsType[*bolt.FencedError](err); is {
		m.StaleBatches[what].Add(1)
	}
	return err
}

func (t *boltTask) writeIsDone(m writeDone) {
	x := &t.exact
	x.busy = false
	t.unblock(x.call)
	switch {
	case x.join != nil:
		t.tryJoin()
	case m.err != nil:
		t.stateFailed(fmt.Sprintf("write batch %v", m.id), m.err)
	case m.id.Attempt == t.round.at && t.round.joined && t.callComplete(m.id.Tx):
		x.wrote = &batch.Answer{Kind: batch.Wrote, BatchID: m.id, Groups: m.written.Groups, Keys: m.written.Keys, Took: t.now - x.began, Tuples: x.tuples[m.id.Tx]}
		delete(x.tuples, m.id.Tx)
		t.answer(x.wrote)
		t.trySettle()
	}
}

// failBatch says that user code has failed in a batch, once. Broken: no other try helps.
func (t *boltTask) failBatch(tx tuple.TxID, text string, broken bool) {
	x := &t.exact
	if x.failed[tx] {
		return
	}
	x.failed[tx] = true
	t.answer(&batch.Answer{Kind: batch.Failed, BatchID: t.batchID(tx), Err: cut(t.failureText(acker.Panicked, text, nil), failureText), Broken: broken})
}
