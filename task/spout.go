package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
)

// A spoutTask runs one life of one task of a spout: it reads its share of the
// source's splits and emits what it reads as its origin, the outbox and
// MaxPending allow.
//
// Invariants:
//
//   - while out.kept > 0 or the origin is full, nothing is emitted for the first time
//   - a reader has at most one call of Next under way, and one batch that waits
//   - a split's position is committed when all messages before it are done or dead
type spoutTask struct {
	core
	pause     time.Duration
	committed map[string]string // positions of the lives before, by split
	alive     context.Context   // ends with this life
	kill      context.CancelFunc
	running   context.Context // ends with the reading
	cancel    context.CancelFunc
	started   bool

	splits   []*reading // this task's share
	todo     int        // splits[todo:] have not been opened
	opened   int        // splits that are open or being opened
	active   []*reading // those of splits[:todo] that may have messages yet
	turn     int        // where the search for a batch in active goes on
	listing  bool       // Splits has been called and has not returned
	listCall *blockedCall
	listed   bool
	drained  bool // read no more

	cur  *spout.Batch // being emitted, from next on
	next int

	filling filling   // of an exactly-once topology
	doomed  error     // ends the run when what was read is finished
	commits bool      // a timer for them is set
	_       [128]byte // what lies behind is another task's
}

// A reading is one split being read.
type reading struct {
	split    spout.Split
	index    int
	reader   spout.Reader // nil: not open
	prompt   bool
	out      *spout.Out
	call     *sourceCall // of Open or Next, under way elsewhere; nil: none
	paused   bool        // until a reopen message
	ready    *spout.Batch
	next     int            // of ready: what is before it has been emitted; of an exactly-once topology
	waiting  []*spout.Batch // emitted or being emitted, not committed; oldest first
	position string         // committed
	told     string         // the last position that the supervisor and the source were told
	toldAt   time.Duration
	telling  bool // Commit is under way, or will be when the store has the position
	commit   *blockedCall
	deaf     bool // Commit was left behind, and is not called any more
	eof      bool
	lastErr  string
	lastPos  string
	same     int // how often lastErr came at lastPos
}

// What Block brings back.
type (
	splitsRead struct {
		watch  *blockedCall
		splits []spout.Split
		err    error
	}
	splitOpened struct {
		r      *reading
		call   *sourceCall
		reader spout.Reader
		err    error
	}
	nextDone struct {
		r        *reading
		call     *sourceCall
		batch    *spout.Batch
		position string
		err      error
	}
	commitDone struct {
		r        *reading
		position string
		err      error
	}
	closeDone struct {
		watch *blockedCall
		r     *reading
		last  bool // the split has been read to its end
		err   error
	}
)

// NewSpout returns the behaviour of one life of a spout's task. committed are
// the positions that the lives before it have committed.
func NewSpout(plan *topology.Plan, set *Settings, p Peer, peers []Peer, m *metrics.Task, sup actor.Ref, pause time.Duration, committed map[string]string) actor.Behavior {
	t := &spoutTask{pause: pause, committed: committed}
	t.setup(plan, set, p, peers, m, sup)
	t.alive, t.kill = context.WithCancel(context.Background())
	t.running, t.cancel = t.context()
	return t
}

// context returns one for what is read from now on.
func (t *spoutTask) context() (context.Context, context.CancelFunc) {
	return context.WithCancel(t.alive)
}

func (t *spoutTask) Start(ctx actor.Context) {
	if !t.start(ctx, t) {
		return
	}
	if t.tracked() {
		t.origin = t.newOrigin()
		t.origin.finished = func(b *spout.Batch) { b.Done = true; t.commit(t.splits[b.Split]) }
	}
	if t.pause > 0 {
		t.after(t.pause, begin{})
		return
	}
	t.beginReading()
}

// beginReading lists the splits, if no round has to begin first.
func (t *spoutTask) beginReading() {
	t.started = true
	if t.round == nil {
		t.list()
	}
}

func (t *spoutTask) Receive(ctx actor.Context, msg any) {
	t.enter(ctx)
	if t.dead || t.tooEarly(msg) {
		return
	}
	switch msg := msg.(type) {
	case splitsRead:
		t.unblock(msg.watch)
		if msg.watch == t.listCall { // or it was of an earlier round
			t.share(msg)
		}
	case splitOpened:
		t.unblock(msg.call.watch)
		if msg.call == msg.r.call { // or it was abandoned
			t.isOpen(msg)
		}
	case nextDone:
		if msg.call == msg.r.call {
			msg.r.call = nil
			t.read(msg.r, msg.batch, msg.position, msg.err)
		}
	case kept:
		if r := t.splits[msg.index]; !r.deaf {
			t.tellSource(r, msg.position)
		}
	case giveUp:
		t.abandon()
	case commitDone:
		t.hasTold(msg)
	case closeDone:
		t.unblock(msg.watch)
		if msg.last && slices.Contains(t.splits, msg.r) {
			t.opened--
		}
		if msg.err != nil {
			t.set.Event(&SourceError{Task: t.m.Name, Split: string(msg.r.split), Position: msg.r.position, Err: fmt.Errorf("close: %w", msg.err)})
		}
	case actor.Panicked: // not a panic, which is caught where it happens
		t.fail(&PanicError{
			Component: t.node.Name, Task: t.plan.Tasks[t.id].Index, During: "a call of the source",
			Value: msg.Value, Stack: msg.Stack,
		}, false, true)
	case reopen:
		msg.r.paused = false
	case commit:
		t.commits = false
		for _, r := range t.splits {
			t.tell(r)
		}
	case begin:
		t.beginReading()
	case *Order:
		t.ordered(msg)
	case cutBatch: // the turn that follows looks at the time
	case Drain:
		t.drain()
	case check:
		t.after(t.set.MessageTimeout/4, check{})
		t.origin.check(ownTrees(t.id, &t.out))
	default:
		if !t.receive(msg) {
			panic(fmt.Sprintf("spout task got a %T", msg))
		}
	}
	if !t.dead {
		t.out.publish()
	}
}

// share takes this task's splits: every Parallel-th, beginning with its index.
func (t *spoutTask) share(m splitsRead) {
	t.listing = false
	if t.drained {
		return // nothing will be read, and the error may be that of a call that was called off
	}
	if t.hurt(m.err, "", "") {
		return
	}
	task := t.plan.Tasks[t.id]
	for i, s := range m.splits {
		if i%t.node.Parallel == task.Index {
			t.splits = append(t.splits, &reading{split: s, index: len(t.splits), position: t.committed[string(s)], out: spout.NewOut(t.node.Declared())})
		}
	}
	t.listed = true
	t.tellStrangers(m.splits)
}

// hurt handles an error that no reopening can mend: a panic ends this life and
// anything else in Splits the run.
func (t *spoutTask) hurt(err error, split, position string) bool {
	switch {
	case err == nil:
		return false
	case spout.IsFatal(err):
		t.doom(t.wrap(err, split))
	default:
		if p, is := errors.AsType[*PanicError](err); is {
			t.fail(err, p.Misuse, true)
		} else {
			t.fail(t.wrap(err, split), split == "", true)
		}
	}
	return true
}

// doom ends the run with an error, but first what was read before it is finished.
func (t *spoutTask) doom(err error) {
	if t.doomed != nil {
		return
	}
	t.doomed = err
	t.stopReading()
}

func (t *spoutTask) wrap(err error, split string) error {
	if split == "" {
		return fmt.Errorf("spout %s: %w", t.node.Name, err)
	}
	return fmt.Errorf("spout %s, split %s: %w", t.node.Name, split, err)
}

// open opens the splits that may be read now.
func (t *spoutTask) open() {
	for t.opened < openSplits && t.todo < len(t.splits) {
		t.opened++
		t.active = append(t.active, t.splits[t.todo])
		t.todo++
	}
	t.active = slices.DeleteFunc(t.active, func(r *reading) bool { return r.eof && r.call == nil && r.ready == nil })
	for _, r := range t.active {
		if r.reader != nil || r.call != nil || r.eof || r.paused || len(r.waiting) > 0 {
			continue
		}
		t.callOpen(r)
	}
}

func (t *spoutTask) isOpen(m splitOpened) {
	r := m.r
	r.call = nil
	if m.err == nil && m.reader == nil {
		m.err = errors.New("a call of Open has returned neither a reader nor an error")
	}
	if m.err != nil {
		t.broken(r, m.err)
		return
	}
	r.reader = m.reader
	if t.drained {
		r.eof = true
		t.shut(r)
		return
	}
	_, r.prompt = m.reader.(spout.Prompt)
}

// broken pauses a split whose reader has failed; the same error at the same
// position too often ends the run.
func (t *spoutTask) broken(r *reading, err error) {
	if t.drained {
		r.eof = true
		t.shut(r)
		return
	}
	if _, is := errors.AsType[*PanicError](err); is || spout.IsFatal(err) {
		t.hurt(err, string(r.split), r.position)
		if t.doomed != nil {
			r.eof = true
			t.shut(r)
		}
		return
	}
	position := r.position
	if n := len(r.waiting); n > 0 {
		position = r.waiting[n-1].Position
	}
	if r.lastErr == err.Error() && r.lastPos == position {
		r.same++
	} else {
		r.lastErr, r.lastPos, r.same = err.Error(), position, 1
	}
	if r.same >= sameErrors {
		t.doom(fmt.Errorf("%w (%d times at position %q)", t.wrap(err, string(r.split)), r.same, position))
		r.eof = true
		t.shut(r)
		return
	}
	t.shut(r)
	r.paused = true
	pause := backoff(r.same)
	t.set.Event(&SourceError{Task: t.m.Name, Split: string(r.split), Position: position, Err: err, Again: pause})
	t.after(pause, reopen{r})
}

// read takes what a call of Next has appended.
func (t *spoutTask) read(r *reading, b *spout.Batch, position string, err error) {
	b.Position = position
	if _, is := errors.AsType[*PanicError](err); is {
		b.Reset() // nobody knows the position behind it; the next life reads it again
	}
	if b.Len() > 0 && !t.drained {
		b.Split = r.index
		r.ready = b
		r.waiting = append(r.waiting, b)
		if t.tracked() {
			t.origin.keep(b)
		}
	} else {
		t.batches.put(b)
	}
	switch {
	case err == nil && t.drained:
		r.eof = true
		t.shut(r)
	case err == nil:
		if b.Len() == 0 {
			r.paused = true
			t.after(emptyPause, reopen{r})
		}
	case err == io.EOF:
		r.eof = true
		t.shut(r)
	default:
		t.broken(r, err)
	}
}

// advance calls Next where the reader allows it. It returns true if that has
// brought a batch at once.
func (t *spoutTask) advance(r *reading) bool {
	if r.reader == nil || r.call != nil || r.paused || r.eof || r.ready != nil || t.drained {
		return false
	}
	b := t.batches.get()
	if r.prompt {
		r.out.Collect(b, promptBatch)
		t.enterCall(inNext)
		position, err := t.nextOf(t.running, r.reader, r.out)
		if !t.leaveCall() {
			return false
		}
		t.read(r, b, position, err)
		return r.ready != nil
	}
	r.out.Collect(b, readBatch)
	t.callNext(r, b)
	return false
}

// choose finds the next batch to emit, round the open splits.
func (t *spoutTask) choose() bool {
	n := len(t.active)
	for i := range n {
		r := t.active[(t.turn+i)%n]
		if r.ready == nil && !t.advance(r) {
			if t.dead {
				return false
			}
			continue
		}
		t.cur, t.next = r.ready, r.next
		r.ready, r.next = nil, 0
		t.turn = (t.turn + i + 1) % n
		if !r.prompt {
			t.advance(r) // reads on while this batch is emitted
		}
		return true
	}
	return false
}

func (t *spoutTask) Turn(ctx actor.Context) bool {
	t.enter(ctx)
	if t.dead || !t.started {
		return false
	}
	var more bool
	if t.round == nil {
		more = t.work()
	} else {
		more = t.fill()
	}
	if t.dead {
		return false
	}
	if t.listed && !t.drained {
		t.open() // also what the verdicts of this turn allow
	}
	if more {
		t.out.flush(t.set.Linger)
	} else {
		t.out.flush(0)
		if t.round == nil {
			t.rest()
		}
		if t.halt > 0 && t.idle() {
			t.sayRest()
		}
	}
	t.out.showRoom()
	if t.origin != nil {
		t.m.Kept.Set(int64(t.origin.bytes))
	}
	t.out.publish()
	return more
}

// work emits for one turn.
func (t *spoutTask) work() (more bool) {
	sent, began := 0, t.now
	for trees := 1; sent < turnTuples; trees++ {
		if t.tracked() {
			t.origin.settle()
			if !t.origin.replay() || t.origin.full() {
				return false
			}
		}
		if t.out.kept > 0 || t.dead {
			return false
		}
		if t.cur == nil && (t.halt > 0 || !t.choose()) {
			return false
		}
		n := t.emit()
		sent += n
		if n >= 64 || trees%16 == 0 {
			if t.now = t.ctx.Now(); t.now-began >= turnTime {
				break
			}
		}
	}
	return true
}

// emit sends the next messages of the current batch: one tree.
func (t *spoutTask) emit() int {
	b := t.cur
	var n int
	if t.tracked() {
		n = t.origin.emit(b, t.next)
	} else {
		s, cells, end := b.Run(t.next)
		n = end - t.next
		t.out.run(s, cells, n, nil)
		t.m.Untracked.Add(int64(n))
	}
	if t.next += n; t.next == b.Len() {
		t.cur = nil
		if !t.tracked() {
			b.Done = true
			t.commit(t.splits[b.Split])
		}
	}
	return n
}

// commit moves the position of a split over all that is done.
func (t *spoutTask) commit(r *reading) {
	n := 0
	for n < len(r.waiting) && r.waiting[n].Done && r.waiting[n] != t.cur {
		r.position = r.waiting[n].Position
		t.batches.put(r.waiting[n])
		n++
	}
	if n == 0 {
		return
	}
	if mutation.Is(mutation.CommitPastOpen) && n < len(r.waiting) {
		r.position = r.waiting[n].Position
	}
	k := copy(r.waiting, r.waiting[n:])
	clear(r.waiting[k:])
	r.waiting = r.waiting[:k]
	t.tell(r)
}

// drain ends the input here: what has been read and not begun is dropped, and
// will be read again by the next run.
func (t *spoutTask) drain() {
	if t.drained {
		return
	}
	for _, r := range t.splits {
		if b := r.ready; b != nil {
			r.ready = nil
			r.waiting = r.waiting[:len(r.waiting)-1]
			if t.tracked() {
				t.origin.bytes -= b.Size()
			}
			t.batches.put(b)
		}
	}
	t.stopReading()
}

func (t *spoutTask) stopReading() {
	t.drained, t.expects = true, false
	if t.origin != nil {
		t.origin.again = nil // the store has them
	}
	t.cancel() // a Next that waits comes back
	for _, r := range t.splits {
		if r.call == nil && !r.eof {
			r.eof = true
			t.shut(r)
		}
	}
	if t.callsUnderWay() {
		t.after(leaveAfter, giveUp{})
	}
}
