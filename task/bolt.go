package task

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/metrics"
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
	pause     time.Duration // before this life begins
	phase     phase
	bolt      bolt.Bolt
	collector *bolt.Collector
	cancel    context.CancelFunc

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

	senders []tuple.TaskID
	index   []int32 // of senders, by TaskID
	eof     []bool  // by sender: its present life has passed on the end
	open    int     // senders that have not
	empty   [][]*tuple.Parcel
	window  *broker.Window
	step    int // tuples until the clock is read

	during   string
	nextTick time.Duration
	owed     bool      // a tick that came while there was no room
	_        [128]byte // what lies behind is another task's
}

type phase uint8

const (
	pausing  phase = iota // the pause before this life, or Start was not called
	working               // prepared
	finished              // Finish has returned; waiting for its messages
)

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
	left uint32 // tuples that are neither acked nor failed
}

// NewBolt returns the behaviour of one life of a bolt's task.
func NewBolt(plan *topology.Plan, set *Settings, p Peer, peers []Peer, m *metrics.Task, sup actor.Ref, pause time.Duration) actor.Behavior {
	t := &boltTask{pause: pause}
	t.setup(plan, set, p, peers, m, sup)
	return t
}

func (t *boltTask) Start(ctx actor.Context) {
	t.start(ctx)
	t.reports.accounts = t.unreported
	t.onDeath = t.forgetSender
	t.senders = t.plan.Senders(t.plan.Tasks[t.id].Component)
	t.index = make([]int32, len(t.plan.Tasks)) // -1: sends nothing here
	for i := range t.index {
		t.index[i] = -1
	}
	for i, id := range t.senders {
		t.index[id] = int32(i)
	}
	t.eof, t.open = make([]bool, len(t.senders)), len(t.senders)
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
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	task := t.plan.Tasks[t.id]
	var err error
	ok := t.guard("Prepare", func() {
		t.bolt = t.node.Bolt()
		t.collector = bolt.NewCollector(ctx, t.node.Streams, &t.out)
		if p, is := t.bolt.(bolt.Preparer); is {
			err = p.Prepare(ctx, &bolt.Task{
				Topology: t.plan.Topology, Component: t.node.Name, Index: task.Index,
				Parallel: t.node.Parallel, Logger: t.set.Logger.With("component", t.node.Name, "task", task.Index),
				Streams: t.node.Streams,
			})
		}
	})
	if !ok {
		return
	}
	if err != nil {
		t.bolt = nil
		t.fail(fmt.Errorf("%s: Prepare: %w", t.m.Name, err), false, true)
		return
	}
	t.phase = working
	if _, is := t.bolt.(bolt.Ticker); is && t.node.Every > 0 {
		t.nextTick = t.now + t.node.Every
		t.after(t.node.Every, tick{})
	}
}

// guard calls user code outside Execute. A panic in it ends this life.
func (t *boltTask) guard(during string, f func()) (ok bool) {
	t.during = during
	defer func() {
		if r := recover(); r != nil {
			if during == "Prepare" {
				t.bolt = nil
			}
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
	if m := tuple.Misused(value); m != nil {
		err.Value, err.Stack = m, nil
	}
	t.fail(err, false, t.during != "Execute")
}

func (t *boltTask) Receive(ctx actor.Context, msg any) {
	t.enter(ctx)
	if t.dead {
		return
	}
	switch msg := msg.(type) {
	case *tuple.Parcel:
		t.parcel(msg)
	case *End:
		if t.current(msg.From, msg.FromLife, msg.ToLife) {
			if i := t.index[msg.From]; !t.eof[i] {
				t.eof[i] = true
				t.open--
			}
		}
	case *Ask:
		if t.current(msg.From, msg.FromLife, msg.ToLife) {
			i := int(t.index[msg.From])
			t.tell(i, t.window.Limit(i))
		}
	case tick:
		t.tick()
	case begin:
		t.begin()
	case check:
		t.check()
	default:
		if !t.receive(msg) {
			panic(fmt.Sprintf("bolt task got a %T", msg))
		}
	}
	t.out.publish()
}

// parcel queues what has come, unless it is of or for a dead life.
func (t *boltTask) parcel(p *tuple.Parcel) {
	if p.FromLife > t.peers[p.From].Life {
		t.learn(Peer{Task: p.From, Life: p.FromLife})
	}
	if p.ToLife != t.life || t.tracked() && p.FromLife < t.peers[p.From].Life {
		t.m.Refused.Add(1)
		return
	}
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
	if t.eof[i] {
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
	t.reports.flush() // each turn, or the acks of a slow task would wait for many
	if !more {
		t.rest()
	}
	t.m.Queued.Set(int64(t.queued))
	t.m.Room.Set(int64(t.out.roomLeft()))
	t.out.publish()
	return more
}

// work executes tuples until there is nothing left, no room, or the turn is over.
func (t *boltTask) work() (more bool) {
	began := t.now
	done := 0
	for {
		if t.out.kept > 0 {
			return false
		}
		if t.owed {
			t.owed = false
			t.callTick()
			if t.dead || t.out.kept > 0 {
				return false
			}
		}
		if t.hand != nil && t.tracked() && t.hand.FromLife < t.peers[t.hand.From].Life {
			t.queued -= t.hand.Len() - t.row
			t.hand = nil // its trees have been given back
		}
		if t.hand == nil && !t.take() {
			return false
		}
		done += t.execute()
		if t.dead {
			return false
		}
		if done >= turnTuples || t.now-began >= turnTime {
			return t.out.kept == 0 && (t.hand != nil || t.head < len(t.queue))
		}
	}
}

// take gets the next parcel into hand.
func (t *boltTask) take() bool {
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
		t.hand, t.row, t.since, t.slot = p, 0, 0, -1
		t.refused = t.refused[:0]
		t.sender = int(t.index[p.From])
		t.accounts = t.accounts[:0]
		for i := range p.Slots {
			t.accounts = append(t.accounts, slotAccount{left: p.Slots[i].Count})
		}
		return true
	}
	return false
}

// execute runs the parcel in hand to its end, or until there is no room, or the
// time to look at the clock has come. It returns how many tuples it executed.
func (t *boltTask) execute() int {
	p := t.hand
	from := t.row
	before := t.now
	failed := int64(0)
	end := min(p.Len(), from+t.step)
	for t.row < end && t.out.kept == 0 && !t.dead {
		failed += t.some(p, end)
	}
	n := t.row - from
	if n == 0 {
		return 0
	}
	in := &t.m.Inputs[p.Input]
	in.Executed.Add(int64(n))
	in.Failed.Add(failed)
	in.Acked.Add(int64(n) - failed)
	t.queued -= n
	if t.dead {
		return n
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
	case took < time.Millisecond/2:
		t.step = min(tuple.MaxParcel, t.step*2)
	case took > time.Millisecond:
		t.step = max(1, t.step/4)
	}
	t.executed(t.sender, n, p)
	return n
}

// executed raises the sender's limit, which never waits for an ack (R8), and
// sends an emptied parcel home.
func (t *boltTask) executed(sender, n int, p *tuple.Parcel) {
	if t.row == p.Len() {
		t.hand = nil
	}
	if p.FromLife < t.peers[p.From].Life {
		return // the present life has a total of its own
	}
	if t.hand == nil && !t.set.AlwaysEncode {
		p.Reset()
		t.empty[sender] = append(t.empty[sender], p)
	}
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
	t.ctx.Send(peer.Ref, &Limit{
		From: t.id, FromLife: t.life, To: peer.Task, ToLife: peer.Life,
		Total: limit, Each: t.window.Each(), Parcels: t.empty[sender],
	})
	t.empty[sender] = nil
}

// some executes tuples of p from t.row to end. It returns early, with t.row
// behind the tuple, after a failure, and says how many failed: 0 or 1.
func (t *boltTask) some(p *tuple.Parcel, end int) (failed int64) {
	t.during = "Execute"
	defer func() {
		if r := recover(); r != nil {
			failed = 1
			t.threw(p, r)
		}
	}()
	if len(p.Slots) == 0 {
		t.anchor.acc, t.out.anchor = nil, nil
		for t.row < end {
			err := t.bolt.Execute(p.Tuple(t.row), t.collector)
			t.row++
			if err != nil {
				return 1
			}
			if t.out.kept > 0 {
				break
			}
		}
		return 0
	}
	for t.row < end {
		ref := p.Refs[t.row]
		if int(ref.Slot) != t.slot {
			t.leave(p)
			t.enterSlot(p, int(ref.Slot))
		}
		t.anchor.index = ref.Index
		err := t.bolt.Execute(p.Tuple(t.row), t.collector)
		t.row++
		if err != nil {
			class := acker.Failed
			if bolt.IsReject(err) {
				class = acker.Rejected
			}
			t.refuse(class, err.Error())
			failed = 1
			break
		}
		if t.out.kept > 0 {
			break
		}
	}
	t.leave(p)
	return failed
}

// enterSlot makes the tuples that follow anchored to another tree.
func (t *boltTask) enterSlot(p *tuple.Parcel, slot int) {
	t.slot = slot
	t.anchor.tree = p.Slots[slot].Tree
	t.anchor.acc = &t.accounts[slot].account
	t.keys++
	t.anchor.key = t.keys
	t.out.anchor = &t.anchor
}

// leave books the tuples up to t.row, acked or failed: their tree's part is so
// much less, and its entry leaves when nothing is left.
func (t *boltTask) leave(p *tuple.Parcel) {
	n := t.row - t.since
	if n == 0 {
		return
	}
	t.since = t.row
	a := &t.accounts[t.slot]
	if a.left -= uint32(n); a.left == 0 {
		s := &p.Slots[t.slot]
		if len(t.refused) > 0 {
			t.tellRefused(s.Tree)
		}
		t.reports.entry(s.Tree, s.Edge^a.xor, a.mask)
	}
}

func (t *boltTask) refuse(class acker.FailClass, text string) {
	t.refused = append(t.refused, refusal{t.anchor.tree, t.anchor.index, class, "bolt " + t.node.Name + ": " + text})
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
	inHand := describe(p, t.row)
	if mistake == nil {
		if t.anchor.acc != nil {
			t.refuse(acker.Panicked, fmt.Sprintf("panic in Execute: %v", value))
		}
		for len(t.refused) > 0 { // their entries will never leave
			t.tellRefused(t.refused[0].tree)
		}
		t.row++
		t.died(value, inHand)
		return
	}
	t.row++
	if t.anchor.acc != nil {
		t.refuse(acker.Rejected, mistake.Error())
		t.leave(p)
	}
}

// describe returns the values of a tuple for people, cut when they are long.
func describe(p *tuple.Parcel, row int) string {
	var b strings.Builder
	b.WriteByte('{')
	t := p.Tuple(row)
	for i, f := range p.Schema.Fields {
		if i > 0 {
			b.WriteString(", ")
		}
		s := t.At(i).String()
		if t.At(i).Kind() == tuple.KindString {
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
	if t.hand == nil {
		return
	}
	for i := range t.accounts {
		if a := &t.accounts[i]; a.left > 0 {
			f(t.hand.Slots[i].Tree, &a.account)
		}
	}
}

// callOwn calls Tick or Finish, whose tuples come of no input.
func (t *boltTask) callOwn(during string, f func() error) bool {
	t.ensureOrigin()
	own := newOwnMessages(&t.core)
	t.out.own = own
	var err error
	ok := t.guard(during, func() { err = f() })
	t.out.own = nil
	if !ok {
		return false
	}
	own.publish()
	if err != nil {
		t.fail(fmt.Errorf("%s: %s: %w", t.m.Name, during, err), false, true)
		return false
	}
	return true
}

func (t *boltTask) tick() {
	if t.phase != working {
		return
	}
	for t.nextTick <= t.now {
		t.nextTick += t.node.Every
	}
	t.after(t.nextTick-t.now, tick{})
	if t.out.kept > 0 {
		t.owed = true // once, however many were missed
		return
	}
	t.callTick()
}

func (t *boltTask) callTick() {
	t.callOwn("Tick", func() error { return t.bolt.(bolt.Ticker).Tick(t.collector) })
}

// rest looks whether all input has ended, and whether what Finish emitted is done.
func (t *boltTask) rest() {
	if t.open > 0 || t.hand != nil || t.head < len(t.queue) || t.out.kept > 0 {
		return
	}
	if t.phase == working {
		t.phase = finished
		if f, is := t.bolt.(bolt.Finisher); is {
			if !t.callOwn("Finish", func() error { return f.Finish(t.collector) }) {
				return
			}
			t.out.flush(0)
			if t.origin != nil {
				t.origin.settle()
			}
		}
	}
	if t.phase == finished && t.out.kept == 0 && (t.origin == nil || t.origin.atRest()) {
		t.end()
	}
}

// check says for every tree that waits here that it is still queued, so that
// waiting is never taken for a lack of progress (R9).
func (t *boltTask) check() {
	t.after(t.set.MessageTimeout/4, check{})
	note := func(tree tuple.TreeID) {
		if tree.Task != t.id {
			t.reports.queued(tree)
		}
	}
	for _, p := range t.queue[t.head:] {
		for i := range p.Slots {
			note(p.Slots[i].Tree)
		}
	}
	t.unreported(func(tree tuple.TreeID, _ *account) { note(tree) })
	t.out.trees(note)
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
	if c, is := t.bolt.(bolt.Closer); is {
		t.dead = true // a panic in Close is nobody's failure any more
		defer func() { recover() }()
		c.Close()
	}
}
