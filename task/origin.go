package task

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

// An origin emits a task's own messages: it keeps their values, hosts the ledger
// of their trees, and replays what failed, was lost or timed out.
//
//	batch --emit--> trees --verdict--> done
//	                  ^                  | failed, lost, timed out
//	                  +----- replays <---+----> dead
//
// Invariants:
//
//   - open = messages emitted for the first time and neither done nor dead
//   - trying = attempts in trees without a verdict = the sum of n over the ledger
//   - a batch's Open counts its messages that are neither done nor dead, those
//     not yet emitted included; it goes home when that is 0
//   - an attempt is in waiting or its tree is open, never both
type origin struct {
	c        *core
	ledger   *acker.Ledger[run]
	open     int
	bytes    int // of batches that are kept
	trying   int
	limit    int           // of open, at present
	pressing bool          // a timer is set, to see whether the limit is in the way
	pressed  int64         // messages when it was set
	pressIn  time.Duration // how long it waits
	starved  bool          // it was told that PendingBytes is in the way
	size     int           // messages a tree, at present
	grow     int           // trees done since size last changed
	waiting  replays
	alarm    int64         // the time of the replay timer that is wanted; 0: none
	overdue  int64         // messages that timed out
	tellNext time.Duration // of them
	blame    map[try]*attempt
	pass     uint64 // counts the calls of settle
	verdicts []acker.Verdict[run]
	late     []acker.Fail
	learned  []acker.Death
	// answer, if not nil, takes each verdict in place of the replays: a queue's
	// messages are not replayed.
	answer func(*acker.Verdict[run])
	// finished is told when the last message of a batch is done or dead.
	finished func(*spout.Batch)
	letters
}

// A run is the messages of one tree: n messages of a batch from first on.
type run struct {
	batch    *spout.Batch
	first, n int32
	again    *attempt      // of a replay, whose n is 1
	at       time.Duration // when they were first emitted, which of a replay is long ago
}

func (o *origin) setup() {
	c := o.c
	o.ledger = acker.NewLedger[run](acker.Config{
		Task: c.id, Life: c.life, Timeout: c.set.MessageTimeout,
		Sends: func(from, to tuple.TaskID) bool {
			t := c.plan.Tasks[to].Component
			for _, r := range c.plan.Node(from).Outputs {
				if r.To == t {
					return true
				}
			}
			return false
		},
	})
	// A life that begins when others have died knows that from the start.
	for id, p := range c.peers {
		if p.Life > c.first() && tuple.TaskID(id) != c.id {
			o.ledger.Lost(c.now, acker.Death{Task: tuple.TaskID(id), Life: p.Life - 1})
		}
	}
	o.limit, o.pressIn = c.set.MaxPending, pressAfter
	c.m.MaxPending.Set(int64(o.limit))
	o.size = o.most()
	o.blame = map[try]*attempt{}
	o.finished = o.c.batches.put
	o.setupLetters()
}

func (o *origin) most() int {
	return max(1, min(256, o.c.set.MaxPending/8, o.c.set.TreeSize))
}

// keep takes charge of a batch whose messages are about to be emitted.
func (o *origin) keep(b *spout.Batch) {
	b.Open = b.Len()
	o.bytes += b.Size()
}

// full reports whether MaxPending or its bytes are reached, and then has it looked
// at whether that is in the way.
func (o *origin) full() bool {
	if !o.atLimit() {
		return false
	}
	if !o.pressing {
		o.pressing, o.pressed = true, o.c.m.Messages.Load()
		o.c.after(o.pressIn, press{})
	}
	return true
}

func (o *origin) atLimit() bool {
	return o.open >= o.limit || o.bytes >= o.c.set.PendingBytes && o.open > 0
}

// press doubles the limit if nothing but it is in the way: all that is open is
// held by bolts that wait for what the limit keeps out (R10).
func (o *origin) press() {
	o.pressing = false
	if !o.atLimit() || o.c.m.Messages.Load() != o.pressed {
		o.pressIn = pressAfter
		return
	}
	holder, yes := o.ledger.Waiting(o.c.now, o.pressIn)
	switch {
	case !yes || mutation.Is(mutation.PendingStays):
	case o.bytes >= o.c.set.PendingBytes:
		if !o.starved {
			o.starved = true
			o.c.set.Event(&Notice{Task: o.c.m.Name, Text: fmt.Sprintf("%d messages are open, %s holds them all, and MaxPendingBytes is reached: %s emits no more until some are let go of", o.open, o.c.plan.Components[holder].Name, o.c.m.Name)})
		}
	default:
		o.limit *= 2
		o.pressIn = pressAgain
		o.c.m.MaxPending.Set(int64(o.limit))
		o.c.set.Event(&Notice{Task: o.c.m.Name, Text: fmt.Sprintf("%d messages are open and %s holds them all: MaxPending of %s is now %d; set it to that if it is always so", o.open, o.c.plan.Components[holder].Name, o.c.m.Name, o.limit)})
	}
}

// emit sends messages of a kept batch from first on as one tree, and returns how
// many. The tree is in the ledger before the mailbox is looked at again (R1).
func (o *origin) emit(b *spout.Batch, first int) int {
	s, cells, end := b.Run(first)
	n := min(o.size, end-first)
	o.tree(run{batch: b, first: int32(first), n: int32(n), at: o.c.now}, s, cells[:n*len(s.Kinds)])
	o.open += n
	o.c.m.Messages.Add(int64(n))
	return n
}

func (o *origin) tree(r run, s *spout.Segment, cells []tuple.Cell) {
	var acc account
	a := anchor{
		tree: tuple.TreeID{Task: o.c.id, Incarnation: o.c.life, Seq: o.ledger.Next()},
		acc:  &acc,
		key:  o.ledger.Next() | 1<<63, // apart from those of a bolt's inputs
	}
	if mutation.Is(mutation.ReuseTreeNumber) && r.again != nil && len(r.again.tries) > 1 {
		a.tree.Seq = r.again.tries[len(r.again.tries)-2].seq
	}
	if f := o.c.set.Tree; f != nil {
		f(a.tree, r.batch, int(r.first), int(r.n))
	}
	if probe := o.c.set.Probe; probe != nil {
		probe.Tree(a.tree, r.batch, int(r.first), int(r.n))
	}
	o.c.out.run(s, cells, int(r.n), &a)
	o.ledger.Open(o.c.now, acc.xor, acc.mask, r)
	if len(o.c.out.refused.fails) > 0 {
		o.refuse(a.tree.Seq)
	}
	o.trying += int(r.n)
	o.c.m.Attempts.Add(int64(r.n))
	o.c.m.Trying.Set(int64(o.trying))
}

// replay emits what is due. It returns false when it has to wait for room.
func (o *origin) replay() bool {
	for len(o.waiting) > 0 && o.waiting[0].due <= o.c.now {
		if o.c.out.kept > 0 {
			return false
		}
		a := heap.Pop(&o.waiting).(*attempt)
		if o.over(a) {
			o.bury(a)
			continue
		}
		s, cells := a.batch.Message(int(a.index))
		t := try{seq: o.ledger.Next()}
		if len(a.tries) == keptTries {
			delete(o.blame, a.tries[0])
			a.tries = a.tries[:copy(a.tries, a.tries[1:])]
		}
		a.tries = append(a.tries, t)
		o.blame[t] = a
		switch a.cause {
		case byFailure:
			o.c.m.ReplayedFailed.Add(1)
		case byLoss:
			o.c.m.ReplayedLost.Add(1)
		case byTimeout:
			o.c.m.ReplayedTimeout.Add(1)
		}
		o.tree(run{batch: a.batch, first: a.index, n: 1, again: a, at: a.first}, s, cells)
		if mutation.Is(mutation.ReplayTwice) {
			o.tree(run{batch: a.batch, first: a.index, n: 1, again: a, at: a.first}, s, cells)
		}
	}
	if len(o.waiting) > 0 {
		if due := int64(o.waiting[0].due); o.alarm == 0 || due < o.alarm {
			o.alarm = due
			o.c.after(o.waiting[0].due-o.c.now, replay{due})
		}
	}
	return o.emitLetters()
}

// settle takes the ledger's verdicts.
func (o *origin) settle() {
	o.pass++
	o.verdicts = o.ledger.Drain(o.verdicts[:0])
	for i := range o.verdicts {
		o.verdict(&o.verdicts[i])
		o.verdicts[i] = acker.Verdict[run]{}
	}
	o.late = o.ledger.Late(o.late[:0])
	for _, f := range o.late {
		o.tooLate(f)
	}
}

func (o *origin) verdict(v *acker.Verdict[run]) {
	r := &v.Message
	n := int(r.n)
	o.trying -= n
	m := o.c.m
	if o.answer == nil {
		m.Trying.Set(int64(o.trying))
	}
	if f := o.c.set.Verdict; f != nil {
		f(&Verdict{Tree: tuple.TreeID{Task: o.c.id, Incarnation: o.c.life, Seq: v.Seq}, Batch: r.batch, First: int(r.first), N: n, Outcome: v.Outcome, Fails: v.Fails})
	}
	switch {
	case o.answer != nil:
		o.answer(v)
		o.c.m.Trying.Set(int64(o.trying)) // when they are counted
	case v.Outcome == acker.Done:
		if len(v.Fails) == 0 || mutation.Is(mutation.AckFailed) {
			o.done(r, n)
			break
		}
		for k := range v.Fails {
			o.failed(r, v.Seq, &v.Fails[k])
		}
		m.Failed.Add(int64(len(v.Fails)))
		o.done(r, n-len(v.Fails))
	default:
		o.givenBack(v, r)
	}
	if v.Outcome == acker.TimedOut {
		o.size, o.grow = max(1, o.size/2), 0
	} else if o.size < o.most() {
		if o.grow++; o.grow >= 64 {
			o.size, o.grow = o.size+1, 0
		}
	}
}

// done counts n messages of a run, which are all or all that did not fail.
func (o *origin) done(r *run, n int) {
	if n == 0 {
		return
	}
	o.c.m.Acked.Add(int64(n))
	o.c.m.Complete.Record(o.c.now-r.at, int64(n))
	if r.again != nil {
		o.forget(r.again)
	}
	o.settled(r.batch, n)
}

// settled takes n messages of a batch off the books.
func (o *origin) settled(b *spout.Batch, n int) {
	o.open -= n
	if b.Open -= n; b.Open == 0 {
		o.bytes -= b.Size()
		if b.Split == letterSplit {
			o.letterDone(b)
			return
		}
		o.finished(b)
	}
}

func (o *origin) attempt(r *run, index uint16) *attempt {
	if r.again != nil {
		return r.again
	}
	return &attempt{batch: r.batch, index: r.first + int32(index), first: r.at, at: -1}
}

func (o *origin) failed(r *run, seq uint64, f *acker.Fail) {
	a := o.attempt(r, f.Index)
	delete(o.blame, try{seq, f.Index}) // counted here, so never again
	o.count(a, f)
	by := byFailure
	if f.Class == acker.Hung {
		by = byLoss
	}
	o.wait(a, by)
}

// count books a failure.
func (o *origin) count(a *attempt, f *acker.Fail) {
	if f.Class == acker.Hung {
		o.hung(a, f)
		return
	}
	if f.Class == acker.Panicked {
		// A tuple may come of several attempts of one message, all but the last of them
		// given back: its panic is one failure and comes as one report.
		if a.pass == o.pass {
			return
		}
		a.pass = o.pass
	}
	a.failures++
	a.err = f.Err
	a.rejected = a.rejected || f.Class == acker.Rejected
	a.note(f.Class.String() + ": " + f.Err)
}

// hung books that a bolt did not come back with a message, or with one of its
// neighbours. It is dead when that has happened often enough and nobody else can
// have been the cause the last time: so neighbours live.
func (o *origin) hung(a *attempt, f *acker.Fail) {
	a.losses++
	a.hangs++
	note := "hung: " + f.Err
	if f.Suspects > 1 {
		note = fmt.Sprintf("one of %d suspects of a hang: %s", f.Suspects, f.Err)
	}
	a.note(note)
	if mutation.Is(mutation.BlameNeighbours) {
		a.hung, a.err = true, f.Err
	}
	if f.Suspects == 1 && a.hangs >= maxHangs {
		a.hung = true
		times := "twice"
		if a.hangs > 2 {
			times = fmt.Sprintf("%d times", a.hangs)
		}
		a.err = "hung " + times + " " + f.Err
	}
}

// givenBack replays all messages of a tree that was lost or timed out. Those that
// had failed before count as failed.
func (o *origin) givenBack(v *acker.Verdict[run], r *run) {
	by, why := byLoss, "lost with a task"
	counter := &o.c.m.Lost
	if v.Outcome == acker.TimedOut {
		by, why, counter = byTimeout, o.noProgress(v), &o.c.m.TimedOut
	}
	given := int64(0)
	bad := make(map[uint16]*acker.Fail, len(v.Fails))
	for k := range v.Fails {
		bad[v.Fails[k].Index] = &v.Fails[k]
	}
	for i := range uint16(r.n) {
		if f := bad[i]; f != nil {
			if f.Class == acker.Hung {
				given++
			} else {
				o.c.m.Failed.Add(1)
			}
			o.failed(r, v.Seq, f)
			continue
		}
		given++
		a := o.attempt(r, i)
		a.losses++
		if mutation.Is(mutation.CountLosses) {
			a.failures++
		}
		a.note(why)
		if t := (try{v.Seq, i}); o.blame[t] == nil {
			a.tries = append(a.tries, t)
			o.blame[t] = a
		}
		o.wait(a, by)
	}
	counter.Add(given)
	if by == byTimeout {
		o.tellTimedOut(given, why)
	}
}

// tellTimedOut makes it known that n messages of a tree have timed out.
func (o *origin) tellTimedOut(n int64, why string) {
	if n == 0 {
		return
	}
	o.overdue += n
	e := &TimedOut{Task: o.c.m.Name, Err: why, Messages: n, TimedOut: o.overdue, Quiet: o.overdue > n && o.c.now < o.tellNext}
	if !e.Quiet {
		o.tellNext = o.c.now + failureEvery
	}
	o.c.set.Event(e)
}

func (o *origin) noProgress(v *acker.Verdict[run]) string {
	why := "no progress for " + o.c.set.MessageTimeout.String()
	if v.Holder >= 0 {
		why += ", held by " + o.c.plan.Components[v.Holder].Name
	}
	return why
}

// wait schedules the next attempt: after a pause for a failure, at once for what
// was nobody's fault.
func (o *origin) wait(a *attempt, by cause) {
	a.cause, a.due = by, o.c.now
	if by == byFailure && !o.over(a) {
		a.due += backoff(a.failures)
	}
	heap.Push(&o.waiting, a)
	o.c.out.wet()
}

// over reports whether another attempt would be one too many.
func (o *origin) over(a *attempt) bool {
	if mutation.Is(mutation.DieTooEarly) && a.failures == o.c.set.MaxReplays && a.failures > 0 {
		return true
	}
	return a.rejected || a.hung || o.c.set.MaxReplays >= 0 && a.failures > o.c.set.MaxReplays
}

// tooLate honours a fail of a panic or hang that came when its tree had been given
// back: the message is no innocent (R7).
func (o *origin) tooLate(f acker.Fail) {
	a := o.blame[try{f.Seq, f.Index}]
	if a == nil || mutation.Is(mutation.ForgetLateFail) {
		return
	}
	delete(o.blame, try{f.Seq, f.Index})
	o.count(a, &f)
	if f.Class != acker.Hung && a.at >= 0 && !o.over(a) {
		a.due = max(a.due, o.c.now+backoff(a.failures))
		heap.Fix(&o.waiting, a.at)
	}
}

func (o *origin) forget(a *attempt) {
	for _, t := range a.tries {
		delete(o.blame, t)
	}
}

// check is done each quarter of the message timeout.
func (o *origin) check(queued []uint64) {
	if len(queued) > 0 && !mutation.Is(mutation.NotQueued) {
		o.ledger.Report(o.c.now, &acker.Report{
			From: o.c.id, FromLife: o.c.life, To: o.c.id, ToLife: o.c.life, Queued: queued,
		})
	}
	o.ledger.Expire(o.c.now)
}

// runDry says that there is nothing more for now, when all has been read and nothing
// waits for a replay. Nothing may be kept or open.
func (o *origin) runDry() {
	if len(o.waiting) == 0 {
		o.c.out.dry()
	}
}

// atRest reports whether nothing is open.
func (o *origin) atRest() bool { return o.open == 0 && len(o.again) == 0 }
