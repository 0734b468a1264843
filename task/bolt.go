package task

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A boltTask runs one life of one task of a bolt.
//
// Invariants:
//
//   - while out.kept > 0 nothing is executed and nothing ticks
//   - accounts[i] belongs to slot i of the parcel in hand; its entry is reported
//     when left is 0, and only then
//   - Finish is called when every sender's present life has ended and the queue
//     is empty, once
type boltTask struct {
	core
	alive     context.Context // ends with this life, at the latest
	cancel    context.CancelFunc
	pause     time.Duration // before this life begins
	phase     phase
	bolt      bolt.Bolt
	collector *bolt.Collector

	queue  []*tuple.Parcel // received and not begun, from head on
	head   int
	queued int // tuples in the queue and in the rest of hand

	hand     *tuple.Parcel
	row      int
	sender   int // of the parcel in hand
	accounts []slotAccount
	anchor   anchor
	slot     int       // that anchor belongs to; -1: none yet
	since    int       // tuples of hand before it are booked in accounts
	keys     uint64    // counts the anchors
	refused  []refusal // whose trees' entries have not left
	several  []anchor  // room for anchor.more

	parts       []*part    // of which tuples are retained
	retained    *heldTuple // the last one of hand
	retainedRow int
	holding     int       // of the tuples of hand from since on, those that are retained
	heldNow     int64     // retained in the present stretch
	post        func(any) // to this task, from anywhere; nil: not needed yet
	misused     int       // retained tuples that were acked twice, and the like
	saying      bool      // a timer is set, to say what is held
	said        uint64    // calls when it was last said or was to be
	away        int       // calls of Async that are under way
	back        []returned
	paused      bool   // Execute is to be left alone
	calls       uint64 // of user code, or stretches of them
	ticks       uint64 // of those, Tick

	senders   []tuple.TaskID
	index     []int32 // of senders, by TaskID
	eof       []bool  // by sender: its present life has passed on the end
	dry       []bool  // by sender: it has nothing more for now
	arrived   uint64  // news of that, and parcels
	waits     uint64  // arrived, when a timer was set for quiet
	quiet     uint64  // arrived, of which nothing has come for flushAfter
	flushCall uint64  // calls when Flush was last called
	open      int     // senders that have not
	empty     [][]*tuple.Parcel
	spare     []*tuple.Parcel       // empty, for what comes from other nodes
	gone      map[tuple.TaskID]bool // of senders: the plan has them no more
	window    *broker.Window
	step      int           // tuples until the clock is read
	careful   time.Duration // until then step is 1

	exact     exact // of an exactly-once topology
	during    string
	flushed   time.Duration // when reports were last sent
	nextTick  time.Duration
	failures  int64         // of executions
	tellAgain time.Duration // of them
	owed      bool          // a tick that came while there was no room
	_         [128]byte     // what lies behind is another task's
}

type phase uint8

const (
	pausing  phase = iota // the pause before this life, or Start was not called
	working               // prepared
	finished              // Finish has returned; waiting for its messages
)

// NewBolt returns the behaviour of one life of a bolt's task. alive ends with it:
// whoever ends it cancels that first, so that user code that waits comes back.
func NewBolt(alive context.Context, plan *topology.Plan, set *Settings, p Peer, peers []Peer, m *metrics.Task, sup actor.Ref, pause time.Duration) actor.Behavior {
	t := &boltTask{alive: alive, pause: pause}
	t.setup(plan, set, p, peers, m, sup)
	return t
}

func (t *boltTask) Start(ctx actor.Context) {
	if !t.start(ctx, t) {
		return
	}
	if len(t.letters) > 0 {
		t.ensureOrigin()
	}
	t.reports.accounts = t.unreported
	t.out.bolt = t
	t.onDeath, t.onReplan = t.forgetSender, t.replanned
	t.senders = t.plan.Senders(t.plan.Tasks[t.id].Component)
	t.index = make([]int32, len(t.plan.Tasks)) // -1: sends nothing here
	for i := range t.index {
		t.index[i] = -1
	}
	for i, id := range t.senders {
		t.index[id] = int32(i)
	}
	t.eof, t.open = make([]bool, len(t.senders)), len(t.senders)
	t.dry = make([]bool, len(t.senders))
	t.empty = make([][]*tuple.Parcel, len(t.senders))
	t.window = broker.NewWindow(len(t.senders), broker.Settings{Bytes: t.set.QueuedBytes})
	t.step = 1
	t.accounts = make([]slotAccount, 0, 64)
	if t.pause > 0 {
		t.after(t.pause, begin{})
		return
	}
	t.begin()
}

// begin makes the bolt and prepares it.
func (t *boltTask) begin() {
	ctx, cancel := context.WithCancel(t.alive)
	t.cancel = cancel
	task := t.plan.Tasks[t.id]
	var err error
	ok := t.guard(inPrepare, func() {
		if t.bolt = t.node.Bolt(); t.bolt == nil {
			err = errors.New("the factory has returned no bolt")
			return
		}
		t.collector = bolt.NewCollector(ctx, t.node.Declared(), t.out.sink())
		if p, is := t.bolt.(bolt.Preparer); is {
			err = p.Prepare(ctx, &bolt.Task{
				Topology: t.plan.Topology, Component: t.node.Name, Index: task.Index,
				Parallel: t.node.Parallel, Life: int(t.life.Restart()), Streams: t.node.Declared(), Own: &t.m.Own,
				Continued: t.set.Continued,
				Logger:    t.set.Logger.With("topology", t.plan.Topology, "component", t.node.Name, "task", task.Index),
			})
		}
	})
	if !ok {
		if err != nil {
			t.bolt = nil // replaced meanwhile, and there is nothing to close
		}
		return
	}
	if err == nil && t.round != nil {
		err = t.prepareExact()
	}
	if err != nil {
		t.bolt = nil
		t.dies(failed{err: fmt.Errorf("%s: Prepare: %w", t.m.Name, err), fatal: bolt.IsReject(err), own: true, away: t.round != nil})
		return
	}
	t.phase = working
	t.tryJoin()
	if _, is := t.bolt.(bolt.Ticker); !is && t.node.Every > 0 && t.life.Restart() == 1 && task.Index == 0 {
		t.set.Event(&Notice{Task: t.m.Name, Text: "bolt " + t.node.Name + " has an interval (Every) but no Tick"})
	}
	if _, is := t.bolt.(bolt.Ticker); is && t.node.Every > 0 {
		t.nextTick = t.now + t.node.Every
		t.after(t.node.Every, tick{})
	}
	if probe := t.set.Probe; probe != nil && probe.Tick != nil {
		t.askProbe(t.alive)
	}
}

// guard calls user code outside Execute. A panic in it ends this life. It returns
// false if this life is over.
func (t *boltTask) guard(during callKind, f func()) (ok bool) {
	t.during = during.String()
	t.calls++
	if during == inTick {
		t.ticks++
	}
	t.enterCall(during)
	defer func() {
		r := recover()
		if r != nil && during == inPrepare {
			t.bolt = nil
		}
		if !t.leaveCall() {
			ok = false
			return
		}
		t.now = t.ctx.Now() // it may have taken long, and what comes next begins now
		if r != nil {
			t.died(r, "")
			ok = false
		}
	}()
	f()
	return true
}

// died ends this life by a panic; inHand describes the tuple that was executed.
func (t *boltTask) died(value any, inHand string) {
	err := &PanicError{
		Component: t.node.Name, Task: t.plan.Tasks[t.id].Index, During: t.during,
		Value: value, Tuple: inHand, Stack: debug.Stack(),
	}
	if tx := t.exact.completes; tx > 0 {
		t.failBatch(tx, fmt.Sprintf("panic in Complete: %v", value), tuple.Misused(value) != nil)
	}
	if m := tuple.Misused(value); m != nil {
		err.Value, err.Stack, err.Misuse = m, nil, true
	}
	t.fail(err, err.Misuse, t.during != "Execute")
}

func (t *boltTask) Receive(ctx actor.Context, msg any) {
	t.enter(ctx)
	if t.dead || t.tooEarly(msg) {
		return
	}
	switch msg := msg.(type) {
	case *tuple.Parcel:
		t.parcel(msg)
	case *Encoded:
		if p := t.decode(msg); p != nil {
			t.parcel(p)
		}
	case *Order:
		t.ordered(msg)
	case joinDone:
		t.joinIsDone(msg)
	case joinAgain:
		t.joinOnceMore(msg)
	case writeDone:
		t.writeIsDone(msg)
	case settleDone:
		t.settleIsDone(msg)
	case settleNow:
		t.exact.settles = false
		t.trySettle()
	case *End:
		if t.current(msg.From, msg.FromLife, msg.ToLife) {
			if i := t.index[msg.From]; !t.eof[i] {
				t.eof[i] = true
				t.open--
			}
		}
	case *Dry:
		if t.current(msg.From, msg.FromLife, msg.ToLife) {
			t.news(int(t.index[msg.From]), !msg.Not)
		}
	case *Ask:
		if t.current(msg.From, msg.FromLife, msg.ToLife) {
			if i := int(t.index[msg.From]); !mutation.Is(mutation.LoseLimit) {
				t.tell(i, t.window.Limit(i))
			}
		}
	case *heldTuple:
		t.settle(msg, nil)
	case *heldFailed:
		t.settle(msg.tuple, msg.err)
	case returned:
		if len(t.back) == 0 || !mutation.Is(mutation.CallLost) {
			t.back = append(t.back, msg)
		}
	case actor.Panicked: // a call of Async, which catches panics, has ended its goroutine
		t.fail(&PanicError{
			Component: t.node.Name, Task: t.plan.Tasks[t.id].Index, During: "a call of Async",
			Value: msg.Value, Stack: msg.Stack,
		}, false, true)
	case tick:
		t.tick()
	case quiet:
		t.quiet = max(t.quiet, msg.arrived) // timers of about the same time may change places
	case sayHeld:
		t.idleHeld()
	case tickNow:
		t.tickNow(msg)
	case careful:
		t.careful, t.step = msg.until, 1
	case begin:
		t.begin()
	case check:
		t.check()
	default:
		if !t.receive(msg) {
			panic(fmt.Sprintf("bolt task got a %T", msg))
		}
	}
	if !t.dead {
		t.out.publish()
	}
}

// parcel queues what has come, unless it is of or for a dead life.
func (t *boltTask) parcel(p *tuple.Parcel) {
	if p.FromLife > t.peers[p.From].Life {
		t.learn(Peer{Task: p.From, Life: p.FromLife})
	}
	// Of an untracked topology what a dead life has still sent counts, but not behind
	// Finish: the run may be over before it is executed.
	if p.ToLife != t.life || (t.tracked() || t.phase == finished) && p.FromLife < t.peers[p.From].Life {
		t.m.Refused.Add(1)
		if t.round != nil {
			t.drops(p, p.Len())
		}
		return
	}
	if t.round != nil && !t.accept(p) {
		return
	}
	t.news(int(t.index[p.From]), false)
	t.window.Weighed(p.Len(), p.Text())
	t.queue = append(t.queue, p)
	t.queued += p.Len()
	t.m.Queued.Set(int64(t.queued))
}

// forgetSender does what a receiver of tuples has to do about a death.
func (t *boltTask) forgetSender(task tuple.TaskID) {
	i := t.index[task]
	if i < 0 {
		return
	}
	t.window.Reset(int(i))
	t.empty[i] = nil
	t.news(int(i), false)
	if t.eof[i] && !t.gone[task] {
		t.eof[i] = false
		t.open++
	}
}

func (t *boltTask) Turn(ctx actor.Context) bool {
	t.enter(ctx)
	if t.dead || t.phase == pausing {
		return false
	}
	more := t.work()
	if t.dead {
		return false
	}
	if t.origin != nil {
		t.origin.settle()
		t.origin.replay()
	}
	if more {
		t.out.flush(t.set.Linger)
	} else {
		t.out.flush(0)
	}
	// At rest at once, and else each Linger, or the acks of a slow task would wait
	// for many. A task without room is mostly back within microseconds: reports that
	// went out now would wake the spouts for a few entries. If it is not, its asking
	// brings it here again.
	if !more && t.out.kept == 0 || t.now-t.flushed >= t.set.Linger {
		t.flushed = t.now
		t.reports.flush()
	}
	if !more {
		if t.round == nil {
			t.rest()
		}
		if t.halt > 0 && t.idle() {
			t.sayRest()
		}
	}
	t.m.Queued.Set(int64(t.queued))
	t.out.showRoom()
	if t.origin != nil {
		t.m.Kept.Set(int64(t.origin.bytes))
	}
	t.out.publish()
	return more
}

// callOwn calls Tick or Finish, whose tuples come of no input.
func (t *boltTask) callOwn(during callKind, f func() error) bool {
	t.ensureOrigin()
	own := newOwnMessages(&t.core)
	t.out.own = own
	if probe := t.set.Probe; probe != nil {
		probe.Own(t.id, during.String())
		defer probe.Own(t.id, "")
	}
	var err error
	ok := t.guard(during, func() { err = f() })
	t.out.own = nil
	if !ok {
		return false
	}
	own.publish()
	if err != nil {
		t.fail(fmt.Errorf("%s: %v: %w", t.m.Name, during, err), false, true)
		return false
	}
	return true
}

func (t *boltTask) tick() {
	if t.phase != working {
		return
	}
	if late := t.now - t.nextTick; late >= 0 {
		t.nextTick += (late/t.node.Every + 1) * t.node.Every // those that were missed are not made up for
	}
	t.after(t.nextTick-t.now, tick{})
	if t.halt > 0 || t.out.kept > 0 && !mutation.Is(mutation.TickBlocked) {
		t.owed = true // once, however many were missed
		return
	}
	t.callTick()
}

func (t *boltTask) callTick() {
	t.callOwn(inTick, func() error { return t.bolt.(bolt.Ticker).Tick(t.collector) })
}

// rest looks whether all input has ended, and whether what Finish emitted is done.
func (t *boltTask) rest() {
	if len(t.parts) > 0 && !t.saying && t.said != t.calls-t.ticks {
		t.saying, t.said = true, t.calls-t.ticks
		t.after(heldAfter, sayHeld{})
	}
	if t.hand != nil || t.head < len(t.queue) || t.out.kept > 0 && !mutation.Is(mutation.EndEarly) || t.away > 0 {
		return
	}
	if t.open > 0 && !(mutation.Is(mutation.FinishEarly) && t.open < len(t.senders)) {
		t.runDry()
		return
	}
	if t.phase == working {
		if f, is := t.bolt.(bolt.Flusher); is && !t.tracked() && t.m.Held.Load() > 0 && t.flushCall != t.calls && !t.callFlush(f) {
			return
		}
		t.phase = finished
		if f, is := t.bolt.(bolt.Finisher); is {
			if !t.callOwn(inFinish, func() error { return f.Finish(t.collector) }) {
				return
			}
			t.out.flush(0)
			if t.origin != nil {
				t.origin.settle()
			}
		}
	}
	switch {
	case t.phase != finished || t.out.kept > 0 && !mutation.Is(mutation.EndEarly):
	case t.origin != nil && !t.origin.atRest():
		t.origin.runDry()
	case t.mayEnd():
		t.end()
	}
}

// news notes that a sender has something, or nothing more for now.
func (t *boltTask) news(sender int, dry bool) {
	t.dry[sender] = dry
	t.arrived++
	if !dry {
		t.out.wet()
	}
}

// runDry passes on that there is nothing more for now, when all senders have said
// so, behind what Flush emits. That may be behind Finish, if a sender had ended and
// its next life has sent something.
func (t *boltTask) runDry() {
	if !t.tracked() {
		return
	}
	if t.origin != nil && len(t.origin.waiting) > 0 {
		return
	}
	for i := range t.dry {
		if !t.dry[i] && !t.eof[i] {
			return
		}
	}
	if f, is := t.bolt.(bolt.Flusher); is && len(t.parts) > 0 && t.flushCall != t.calls {
		// What has been sent may fail yet, and the replays come by several ways. Those
		// who hear of it take their dryness back, which is here long before the wait is
		// over.
		if t.quiet != t.arrived {
			if t.waits != t.arrived {
				t.waits = t.arrived
				t.after(flushAfter, quiet{t.arrived})
			}
			return
		}
		if !t.callFlush(f) {
			return
		}
	}
	if !mutation.Is(mutation.NoDry) {
		t.out.dry()
	}
}

// callFlush reports whether the task goes on and all that was emitted has left.
func (t *boltTask) callFlush(f bolt.Flusher) bool {
	if !mutation.Is(mutation.NoFlush) && !t.callOwn(inFlush, func() error { return f.Flush(t.collector) }) {
		return false
	}
	t.flushCall = t.calls
	t.out.flush(0)
	return t.out.kept == 0
}

// check says for every tree that waits here that it is still queued, so that
// waiting is never taken for a lack of progress (R9).
func (t *boltTask) check() {
	t.after(t.set.MessageTimeout/4, check{})
	note := func(tree tuple.TreeID) {
		if tree.Task != t.id && !mutation.Is(mutation.NotQueued) {
			t.reports.queued(tree)
		}
	}
	for _, p := range t.queue[t.head:] {
		for i := range p.Slots {
			note(p.Slots[i].Tree)
		}
	}
	if t.hand != nil && len(t.hand.Slots) > 0 {
		for i := t.row; i < t.hand.Len(); i++ {
			t.hand.Trees(i, note)
		}
	}
	t.out.trees(note)
	t.sayHeld()
	t.reports.flush()
	if t.origin != nil {
		t.origin.check(ownTrees(t.id, &t.out))
	}
}

// ownTrees lists the trees of a task's own ledger that wait in its outbox.
func ownTrees(id tuple.TaskID, o *outbox) (seqs []uint64) {
	o.trees(func(tree tuple.TreeID) {
		if tree.Task == id {
			seqs = append(seqs, tree.Seq)
		}
	})
	return seqs
}

// Stopped closes the bolt.
func (t *boltTask) Stopped(ctx actor.Context) {
	t.enter(ctx)
	if t.cancel != nil {
		t.cancel()
	}
	if t.away > 0 {
		t.sayUnderWay(fmt.Sprintf("%d calls of Async", t.away))
	}
	if c, is := t.bolt.(bolt.Closer); is {
		t.dead = true // what Close does is nobody's failure any more, but is told
		t.during = "Close"
		t.enterCall(inClose)
		defer func() {
			r := recover()
			t.leaveCall()
			if r != nil {
				t.tellClose(fmt.Sprintf("panic: %v", r))
			}
		}()
		if err := c.Close(); err != nil {
			t.tellClose(err.Error())
		}
		if mutation.Is(mutation.CloseTwice) {
			_ = c.Close()
		}
	}
}

func (t *boltTask) tellClose(text string) {
	t.set.Event(&Notice{Task: t.m.Name, Text: t.m.Name + ": Close: " + text})
}
