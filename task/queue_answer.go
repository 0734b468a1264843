package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
)

// A queueCall is a call of Open or Next that is under way elsewhere. If the task
// ends meanwhile, the call hands back what it has brought and closes the queue.
type queueCall struct {
	*sourceCall
	opening bool
	// Written before the call is back.
	queue spout.Queue
	open  bool
	batch *spout.Batch
	err   error
}

// What Block brings back.
type queueBack struct{ call *queueCall }

// callQueue calls Next for n messages at most, or Open if that has not succeeded.
func (t *queueTask) callQueue(n int) {
	c := &queueCall{sourceCall: newCall(nil), opening: !t.open, queue: t.queue, open: t.open, batch: t.batches.get()}
	t.call = c
	if c.opening {
		c.watch = t.block("Open", "", ".(*queueTask).openOf")
	}
	t.into.Collect(c.batch, n)
	ctx, into, node, plan := t.reading, t.into, t.node, t.plan
	t.ctx.Block(func() any {
		if c.opening {
			c.err = t.openOf(ctx, c, node, plan)
		} else {
			c.err = t.calling("Next", func() error { return c.queue.Next(ctx, into) })
		}
		if !c.back() {
			t.leftBehind(c)
		}
		return queueBack{c}
	})
}

// openOf makes the queue of this life and opens it. Nothing else of t is touched, and its
// node and plan may be others by now.
func (t *queueTask) openOf(ctx context.Context, c *queueCall, node *topology.Node, plan *topology.Plan) error {
	return t.calling("Open", func() error {
		if c.queue == nil {
			if c.queue = node.Queue(); c.queue == nil {
				return spout.Fatal(errors.New("the factory has returned no queue"))
			}
		}
		if o, is := c.queue.(spout.Opener); is {
			err := o.Open(ctx, &spout.Task{
				Topology: plan.Topology, Component: t.component, Index: t.number,
				Parallel: node.Parallel, Logger: t.set.Logger.With("topology", plan.Topology, "component", t.component, "task", t.number),
			})
			if err != nil {
				return err
			}
		}
		c.open = true
		return nil
	})
}

// leftBehind is the end of a call whose task has ended. It is not called on the
// task's turn, but nobody else has the queue any more. The counters are the next
// life's: these messages are in no books.
func (t *queueTask) leftBehind(c *queueCall) {
	var errs []error
	for i := range c.batch.Len() {
		id, _ := c.batch.Answer(i)
		if err := t.calling("Fail", func() error { return c.queue.Fail(context.WithoutCancel(t.alive), id, errNotBegun) }); err != nil {
			errs = append(errs, fmt.Errorf("fail %q: %w", id, err))
		}
	}
	if len(errs) > 0 {
		t.set.Event(&QueueError{Task: t.m.Name, Err: errs[0], Lost: int64(len(errs))})
	}
	t.closeQueue(c)
}

func (t *queueTask) closeQueue(c *queueCall) {
	if q, is := c.queue.(io.Closer); is && c.open {
		if err := t.calling("Close", q.Close); err != nil {
			t.set.Event(&Notice{Task: t.m.Name, Text: t.m.Name + ": Close: " + err.Error()})
		}
	}
}

var (
	errNotBegun  = fmt.Errorf("%w: the message was not begun", spout.ErrUnfinished)
	errUnsent    = fmt.Errorf("%w: a grouping has chosen a task that is not there, or has panicked", spout.ErrRejected)
	errStillOpen = fmt.Errorf("%w: the task has ended with the message open", spout.ErrUnfinished)
)

// answer tells the queue what became of the messages of a tree. If it panics the
// rest stays open, and Stopped hands it back.
func (t *queueTask) answer(v *acker.Verdict[run]) {
	if mutation.Is(mutation.AckLost) {
		v.Outcome = acker.Done
	}
	r, m, fails := &v.Message, t.m, v.Fails
	lost, counter := spout.ErrLost, &m.Lost
	if v.Outcome == acker.TimedOut {
		why := t.origin.noProgress(v)
		t.origin.tellTimedOut(int64(r.n)-int64(len(fails)), why)
		lost, counter = fmt.Errorf("%w: %s", spout.ErrTimedOut, why), &m.TimedOut
	}
	// Counted when all is said: a call may hang, and the counters become another life's.
	acked, failed, given, over := 0, 0, 0, 0
	for i := range int(r.n) {
		if t.replaced {
			return // in the middle of it: what is unanswered, Stopped hands back
		}
		if t.dead {
			over++
			continue
		}
		at := int(r.first) + i
		switch {
		case len(fails) > 0 && int(fails[0].Index) == i:
			failed++
			t.handBack(r.batch, at, failure(&fails[0]))
			fails = fails[1:]
		case v.Outcome == acker.Done:
			acked++
			t.ack(r.batch, at)
		default:
			given++
			t.handBack(r.batch, at, lost)
		}
	}
	if t.replaced {
		return
	}
	m.Lost.Add(int64(over))
	m.Failed.Add(int64(failed))
	counter.Add(int64(given))
	if acked > 0 {
		m.Acked.Add(int64(acked))
		m.Complete.Record(t.now-r.at, int64(acked))
	}
	if told := acked + failed + given; told > 0 {
		t.origin.settled(r.batch, told)
	}
}

func failure(f *acker.Fail) error {
	if f.Class == acker.Hung {
		if f.Suspects > 1 {
			return fmt.Errorf("%w: one of %d suspects of a hang %s", spout.ErrLost, f.Suspects, f.Err)
		}
		return fmt.Errorf("%w: hung %s", spout.ErrFailed, f.Err)
	}
	if f.Class == acker.Rejected {
		return fmt.Errorf("%w: %s", spout.ErrRejected, f.Err)
	}
	return fmt.Errorf("%w: %s", spout.ErrFailed, f.Err)
}

// ack answers a message that is done. Its counter is the caller's.
func (t *queueTask) ack(b *spout.Batch, i int) {
	if id, first := b.Answer(i); first {
		t.enterCall(inAck)
		err := t.calling("Ack", func() error { return t.queue.Ack(t.alive, id) })
		if t.leaveCall() {
			t.answered("Ack", id, err)
		}
	}
}

// handBack answers a message that is not, and reports whether it had no answer yet.
func (t *queueTask) handBack(b *spout.Batch, i int, why error) bool {
	id, first := b.Answer(i)
	if !first {
		return false
	}
	ctx := t.alive
	if t.phase == queueStopping {
		ctx = context.WithoutCancel(ctx)
	}
	t.enterCall(inFail)
	err := t.calling("Fail", func() error { return t.queue.Fail(ctx, id, why) })
	if t.leaveCall() {
		t.m.HandedBack.Add(1)
		t.answered("Fail", id, err)
	}
	return true
}

// answered looks at what the queue has said to an answer. A panic ends this life.
func (t *queueTask) answered(during, id string, err error) {
	if err == nil {
		return
	}
	if p := panicOf(err); p != nil && t.phase != queueStopping {
		t.fail(err, p.Misuse, true)
		return
	}
	t.unanswered++
	e := &QueueError{Task: t.m.Name, Err: fmt.Errorf("%s %q: %w", during, id, err), Lost: t.unanswered, Quiet: t.unanswered > 1 && t.now < t.tellAgain}
	if !e.Quiet {
		t.tellAgain = t.now + failureEvery
	}
	t.set.Event(e)
}

// giveUpReady hands back the batch that is not begun, if there is one.
func (t *queueTask) giveUpReady() {
	b := t.ready
	if b == nil {
		return
	}
	if t.giveUp(b); t.dead {
		return
	}
	t.ready = nil
	if t.origin != nil {
		t.origin.bytes -= b.Size()
	}
	t.release(b)
}

// giveUp hands back what is unanswered in a batch that is held.
func (t *queueTask) giveUp(b *spout.Batch) {
	begun := b.Len()
	switch b {
	case t.ready:
		begun = 0
	case t.cur:
		begun = t.next
	}
	for i := range b.Len() {
		if t.dead && t.phase != queueStopping {
			return // of a panic: Stopped goes on here
		}
		switch {
		case i >= begun:
			if t.handBack(b, i, errNotBegun) {
				t.m.Messages.Add(1)
			}
		case t.handBack(b, i, errStillOpen) && t.origin == nil: // an Ack before it has panicked
			t.m.Untracked.Add(-1)
			t.m.Messages.Add(1)
		}
	}
}

func isPanic(err error) bool { return panicOf(err) != nil }

func panicOf(err error) *PanicError {
	p, _ := errors.AsType[*PanicError](err)
	return p
}

// Stopped hands back everything that is in hand and closes the queue.
func (t *queueTask) Stopped(ctx actor.Context) {
	t.enter(ctx)
	t.dead, t.phase = true, queueStopping
	t.sayUnderWay()
	if t.cancel != nil {
		t.cancel()
	}
	open := make([]*spout.Batch, 0, len(t.held))
	for b := range t.held {
		open = append(open, b)
	}
	slices.SortFunc(open, func(x, y *spout.Batch) int { return int(x.Number) - int(y.Number) })
	for _, b := range open {
		if mutation.Is(mutation.KeepUnanswered) {
			break
		}
		t.giveUp(b)
	}
	t.m.Lost.Add(t.m.Trying.Load())
	t.m.Trying.Set(0)
	// What is under way is asked last: as long as the task was there, the queue was its.
	c := t.call
	if c == nil {
		c = &queueCall{queue: t.queue, open: t.open}
	} else if c.left() {
		return // the call closes the queue, when it returns
	} else {
		t.queue, t.ready = c.queue, c.batch
		t.giveUp(c.batch)
	}
	t.enterCall(inClose)
	t.closeQueue(c)
	t.leaveCall()
}
