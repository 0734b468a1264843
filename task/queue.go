package task

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
)

// A queueTask runs one life of one task of a queue: it emits what the queue
// brings, as its origin, the outbox and MaxPending allow, and answers each message.
//
// Invariants:
//
//   - while out.kept > 0 or the origin is full, nothing is emitted
//   - a batch with a message that has no answer is in held, or with the call that
//     is under way
//   - in hand, that is open or not begun, are at most origin.limit messages, and what
//     a Next has appended that did not stop when its out was full
type queueTask struct {
	core
	alive   context.Context // ends with this life, at the latest
	reading context.Context // ends with the reading
	cancel  context.CancelFunc
	pause   time.Duration // before this life begins
	phase   queuePhase

	queue   spout.Queue // nil: not made
	open    bool        // Open has succeeded, or there is none
	into    *spout.QueueOut
	call    *queueCall // under way elsewhere; nil: none
	given   bool       // up: the task does not wait for call any more
	waiting bool       // until a reopen message

	held  map[*spout.Batch]struct{}
	ready *spout.Batch // not begun
	cur   *spout.Batch // being emitted, from next on
	next  int

	doomed  error  // ends the run when what was read is finished
	lastErr string // of Open or Next
	same    int    // how often it came in a row

	unanswered int64         // Ack or Fail returned an error
	tellAgain  time.Duration // of them
	_          [128]byte     // what lies behind is another task's
}

// The phases of a life go down this list; some are passed over.
type queuePhase uint8

const (
	queuePausing  queuePhase = iota // the pause before this life
	queueReading                    // Open and Next are called
	queueRead                       // to its end: what was read is finished
	queueDrained                    // the same, but what was not begun is handed back
	queueStopping                   // Stopped was called: everything is handed back
)

// NewQueue returns the behaviour of one life of a queue's task. alive ends with
// it: whoever ends it cancels that first, so that a call that waits comes back.
func NewQueue(alive context.Context, plan *topology.Plan, set *Settings, p Peer, peers []Peer, m *metrics.Task, sup actor.Ref, pause time.Duration) actor.Behavior {
	t := &queueTask{alive: alive, pause: pause, held: map[*spout.Batch]struct{}{}}
	t.setup(plan, set, p, peers, m, sup)
	return t
}

func (t *queueTask) Start(ctx actor.Context) {
	if !t.start(ctx, t) {
		return
	}
	if t.tracked() {
		t.origin = t.newOrigin()
		t.origin.answer = t.answer
		t.origin.finished = t.release
	}
	t.reading, t.cancel = context.WithCancel(t.alive)
	t.into = spout.NewQueueOut(t.node.Streams)
	if t.pause > 0 {
		t.after(t.pause, begin{})
		return
	}
	t.phase = queueReading
}

func (t *queueTask) Receive(ctx actor.Context, msg any) {
	t.enter(ctx)
	if t.dead || t.tooEarly(msg) {
		return
	}
	switch msg := msg.(type) {
	case queueBack:
		t.unblock(msg.call.watch)
		t.back(msg.call)
	case actor.Panicked: // not a panic, which is caught where it happens
		t.fail(&PanicError{
			Component: t.node.Name, Task: t.plan.Tasks[t.id].Index, During: "a call of the queue",
			Value: msg.Value, Stack: msg.Stack,
		}, false, true)
	case giveUp:
		t.abandon()
	case reopen:
		t.waiting = false
	case begin:
		t.phase = max(t.phase, queueReading)
	case Drain:
		t.drain()
	case check:
		t.after(t.set.MessageTimeout/4, check{})
		t.origin.check(ownTrees(t.id, &t.out))
	default:
		if !t.receive(msg) {
			panic(fmt.Sprintf("queue task got a %T", msg))
		}
	}
	if !t.dead {
		t.out.publish()
	}
}

func (t *queueTask) Turn(ctx actor.Context) bool {
	t.enter(ctx)
	if t.dead || t.phase == queuePausing {
		return false
	}
	more := t.work()
	t.advance() // also what the answers of this turn allow
	if t.dead {
		return false
	}
	if more {
		t.out.flush(t.set.Linger)
	} else {
		t.out.flush(0)
		t.rest()
		if t.halt > 0 && t.idle() {
			t.sayRest()
		}
	}
	t.out.showRoom()
	t.out.publish()
	return more
}

// work emits for one turn.
func (t *queueTask) work() (more bool) {
	sent, began := 0, t.now
	for trees := 1; sent < turnTuples; trees++ {
		if t.origin != nil {
			if t.origin.settle(); t.origin.full() {
				return false
			}
		}
		if t.out.kept > 0 || t.dead {
			return false
		}
		if t.cur == nil {
			if t.ready == nil || t.halt > 0 {
				return false
			}
			t.cur, t.next, t.ready = t.ready, 0, nil
			t.advance() // reads on while this batch is emitted
		}
		n := t.emit()
		sent += n
		if n >= 64 || trees%16 == 0 {
			if t.now = t.ctx.Now(); t.now-began >= turnTime {
				break
			}
		}
	}
	return !t.dead
}

// emit sends the next messages of the current batch: one tree. Without tracking
// they are acked when they have been put into parcels.
func (t *queueTask) emit() int {
	b, first := t.cur, t.next
	if t.origin == nil {
		return t.emitUntracked(b, first)
	}
	n := t.origin.emit(b, first)
	if t.next += n; t.next == b.Len() {
		t.cur = nil
	}
	return n
}

// emitUntracked sends messages and answers them: those that a grouping rejects have
// not been sent on.
func (t *queueTask) emitUntracked(b *spout.Batch, first int) int {
	s, cells, end := b.Run(first)
	n, w := end-first, len(s.Kinds)
	t.m.Untracked.Add(int64(n))
	var rejected []int
	for i := range n {
		before := t.out.refused.n
		t.out.run(s, cells[i*w:(i+1)*w], 1, nil)
		if t.out.refused.n != before {
			rejected = append(rejected, i)
		}
	}
	if t.next += n; t.next == b.Len() {
		t.cur = nil
	}
	for i := 0; i < n && !t.dead; i++ {
		if len(rejected) == 0 || rejected[0] != i {
			t.ack(b, first+i)
			continue
		}
		rejected = rejected[1:]
		if t.handBack(b, first+i, errUnsent) {
			t.m.Untracked.Add(-1)
			t.m.Messages.Add(1)
		}
	}
	if t.cur == nil && !t.dead {
		t.release(b)
	}
	return n
}

// room is for how many messages Next may be asked.
func (t *queueTask) room() int {
	n := readBatch
	if t.origin != nil {
		if t.origin.full() {
			return 0
		}
		if n = t.origin.limit - t.origin.open; mutation.Is(mutation.TakeTooMany) {
			n = t.origin.limit
		}
	}
	if t.cur != nil {
		n -= t.cur.Len() - t.next
	}
	return min(n, readBatch)
}

// advance calls Open or Next, if there is room for what it brings.
func (t *queueTask) advance() {
	if t.dead || t.phase != queueReading || t.call != nil || t.waiting || t.ready != nil {
		return
	}
	if n := t.room(); n > 0 {
		t.callQueue(n)
	}
}

// back takes what a call of Open or Next has brought.
func (t *queueTask) back(c *queueCall) {
	t.call, t.queue, t.open = nil, c.queue, c.open
	b, some := c.batch, c.batch.Len() > 0
	if some {
		t.held[b] = struct{}{}
		if t.origin != nil {
			t.origin.keep(b)
		}
		t.ready = b
	} else {
		t.batches.put(b)
	}
	switch {
	case t.phase == queueDrained:
		if isPanic(c.err) { // any other error may be that of a call that was called off
			t.set.Event(&QueueError{Task: t.m.Name, Err: c.err})
		}
		t.giveUpReady()
	case c.err == nil:
		t.lastErr = ""
		if !some && !c.opening {
			t.waiting = true
			t.after(emptyPause, reopen{})
		}
	case c.err == io.EOF && !c.opening:
		t.phase = queueRead
	default:
		t.broken(c, some)
	}
}

// broken pauses a queue that has failed; the same error too often in a row ends
// the run, when what was read before is finished.
func (t *queueTask) broken(c *queueCall, some bool) {
	err := c.err
	if p := panicOf(err); p != nil {
		t.fail(err, p.Misuse, true)
		return
	}
	if t.lastErr != err.Error() || some {
		t.lastErr, t.same = err.Error(), 0
	}
	t.same++
	if spout.IsFatal(err) || t.same >= sameErrors {
		t.doomed = fmt.Errorf("queue %s: %w", t.node.Name, err)
		if t.same >= sameErrors {
			t.doomed = fmt.Errorf("%w (%d times in a row)", t.doomed, t.same)
		}
		t.phase = queueRead
		return
	}
	t.waiting = true
	pause := backoff(t.same)
	t.set.Event(&QueueError{Task: t.m.Name, Err: err, Again: pause})
	t.after(pause, reopen{})
}

// drain ends the input here: what has been read and not begun is handed back.
func (t *queueTask) drain() {
	if t.phase >= queueDrained {
		return
	}
	t.phase = queueDrained
	t.cancel() // a Next that waits comes back
	if t.call != nil {
		t.after(leaveAfter, giveUp{})
	}
	t.giveUpReady()
}

// release is the end of a batch whose messages all have their answers.
func (t *queueTask) release(b *spout.Batch) {
	delete(t.held, b)
	t.batches.put(b)
}

// rest ends the task when there is nothing left to read and nothing open.
func (t *queueTask) rest() {
	if t.ended || t.phase < queueRead || t.call != nil && !t.given || t.ready != nil || t.cur != nil || t.out.kept > 0 {
		return
	}
	if t.origin != nil && !t.origin.atRest() {
		t.origin.runDry()
		return
	}
	if t.doomed != nil {
		t.fail(t.doomed, true, true)
		return
	}
	t.end()
}
