package task

import (
	"context"
	"fmt"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A coordTask runs one life of the coordinator of an exactly-once topology: it tells
// the machine what has happened and does what that wants.
type coordTask struct {
	core
	alive   context.Context
	pause   time.Duration
	machine *batch.Coordinator // nil before the pause is over
	alarm   time.Duration      // when the next timer fires; 0: none is set
	silent  bool               // it has said that the record fails, and nothing was committed since
	plans   int                // that machines were made of
	quiet   bool               // the last plan has come when nothing was under way
	showing bool               // a timer is set, to show how it is
	asked   uint64             // changes of the record, of the log
	begins  bool               // the last of them is Begin
	drained bool               // no more batches are to begin
	begun   tuple.BatchID      // the last one
}

type (
	// recordDone is what has become of a request for the record.
	recordDone struct {
		machine *batch.Coordinator // who has asked; it may have been replaced since
		call    *blockedCall
		begin   bool
		record  *batch.Record
		err     error
	}
	// coordTick is the timer of the coordinator.
	coordTick struct{}
)

// NewCoordinator returns the behaviour of one life of the coordinator of batches. alive
// ends with it.
func NewCoordinator(alive context.Context, plan *topology.Plan, set *Settings, p Peer, peers []Peer, m *metrics.Task, sup actor.Ref, pause time.Duration) actor.Behavior {
	t := &coordTask{alive: alive, pause: pause}
	t.setup(plan, set, p, peers, m, sup)
	return t
}

func (t *coordTask) Start(ctx actor.Context) {
	if !t.start(ctx, t) {
		return
	}
	t.onReplan = t.begin
	if t.pause > 0 {
		t.after(t.pause, begin{})
		return
	}
	t.begin()
}

// begin makes the machine, of a first or another plan. What another one has asked for
// and is not answered is in the record or will be refused, for this one begins an epoch.
func (t *coordTask) begin() {
	t.quiet = t.halt > 0 && t.machine != nil && t.machine.Idle()
	t.machine = batch.NewCoordinator(roles(t.plan), batch.Settings{
		Ahead: t.set.MaxBatches, Patience: t.set.MessageTimeout, MaxReplays: t.set.MaxReplays,
	})
	t.plans++
	t.machine.Hold(t.now, t.halt > 0)
	if t.drained {
		t.machine.Drain(t.now)
	}
	t.tellLives()
	t.do()
}

// roles are what the machine must know of the tasks.
func roles(p *topology.Plan) []batch.Role {
	all := make([]batch.Role, len(p.Tasks))
	for c := range p.Components {
		n := &p.Components[c]
		r := batch.Role{Component: n.Name, Kind: batch.Bolt, Behind: behind(p, c), Settled: settles(n) != nil}
		switch {
		case n.Coordinates:
			r.Kind = batch.Bystander
		case n.Source != nil:
			r.Kind, r.Transactional = batch.Spout, n.Batches == topology.Transactional
		case n.Stateful:
			r.Kind, r.Settled = batch.Stateful, true
		}
		for i := range n.Parallel {
			all[int(n.First)+i] = r
		}
	}
	return all
}

func (t *coordTask) Receive(ctx actor.Context, msg any) {
	t.enter(ctx)
	if t.dead || t.tooEarly(msg) {
		return
	}
	switch msg := msg.(type) {
	case *Answer:
		if !t.current(msg.From, msg.FromLife, msg.ToLife) || t.machine == nil || !t.machine.Answer(t.now, msg.From, msg.FromLife, &msg.Answer) {
			t.stale(metrics.StaleAnswer, 1)
		}
	case recordDone:
		t.unblock(msg.call)
		if msg.machine != t.machine {
			break
		}
		if msg.begin {
			t.machine.Recovered(t.now, msg.record, msg.err)
		} else {
			t.machine.Appended(t.now, msg.err)
		}
	case showNow:
		t.show()
		return
	case *RecordSaved:
		t.recordSaved(msg)
	case coordTick:
		t.alarm = 0
		if t.machine != nil {
			t.machine.Tick(t.now)
		}
	case begin:
		t.begin()
	case Drain:
		if t.drained = true; t.machine != nil {
			t.machine.Drain(t.now)
		}
	case check: // it has no trees
	default:
		if !t.receive(msg) {
			panic(fmt.Sprintf("coordinator got a %T", msg))
		}
		if t.machine != nil {
			t.machine.Hold(t.now, t.halt > 0)
			t.tellLives()
		}
	}
	t.do()
}

// tellLives tells the machine who lives. Who cannot be reached does not.
func (t *coordTask) tellLives() {
	lives := make([]tuple.Incarnation, len(t.plan.Tasks))
	for i := range lives {
		if p := &t.peers[i]; p.Ref != nil {
			lives[i] = p.Life
		}
	}
	t.machine.Lives(t.now, lives)
}

// do does what the machine wants.
func (t *coordTask) do() {
	if t.machine == nil || t.dead {
		return
	}
	t.showSoon()
	e := t.machine.Take()
	for _, l := range e.Orders {
		if p := &t.peers[l.To]; p.Ref != nil { // else it is said again
			if l.Order.Kind == batch.Begin {
				t.beginning(l.Order.BatchID)
			}
			t.say(l.To, &Order{From: t.id, To: l.To, FromLife: t.life, ToLife: p.Life, Order: *l.Order})
		}
	}
	switch {
	case e.Request.Begin:
		t.ask("Begin", nil)
	case e.Request.Append != nil:
		t.ask("Append", e.Request.Append)
	}
	for i := range e.Events {
		if t.tell(&e.Events[i]); t.dead {
			return
		}
	}
	if at, ok := t.machine.Next(); ok && (t.alarm == 0 || at < t.alarm) {
		t.alarm = max(at, t.now+1)
		t.after(t.alarm-t.now, coordTick{})
	}
}

// beginning counts a batch that spout tasks are told to begin, if it comes again. The counters
// outlive the lives of the coordinator.
func (t *coordTask) beginning(id tuple.BatchID) {
	if id.Attempt == t.begun.Attempt && id.Tx <= t.begun.Tx {
		return // said to another one, or once more
	}
	t.begun = id
	if b := &t.m.Batches; int64(id.Tx) <= b.Begun.Load() {
		b.Replayed.Add(1)
	} else {
		b.Begun.Set(int64(id.Tx))
	}
}

// ask has a request for the record done elsewhere.
func (t *coordTask) ask(what string, e *batch.Entry) {
	if e != nil {
		if bad := e.Unwritable(); bad != "" {
			t.fail(fmt.Errorf("a source has a split or a position that is not UTF-8, %.100q: the record of batches cannot keep it", bad), true, true)
			return
		}
	}
	if t.set.Records == nil {
		t.askLog(e)
		return
	}
	m, records, alive := t.machine, t.set.Records, t.alive
	call := t.block(what+" of the record", "", ".(*coordTask).ask")
	t.ctx.Block(func() any {
		d := recordDone{machine: m, call: call, begin: e == nil}
		d.err = t.calling(what, func() (err error) {
			if e == nil {
				d.record, err = records.Begin(alive)
				return err
			}
			return records.Append(alive, e)
		})
		return d
	})
}

// tell lets people know what the machine says, and ends what it says is over.
func (t *coordTask) tell(e *batch.Event) {
	switch e.Kind {
	case batch.Committed:
		t.silent = false
		b := &t.m.Batches
		b.Last.Set(int64(e.Tx))
		b.Committed.Add(1)
		b.Messages.Add(int64(e.Messages))
		b.Tuples.Add(int64(e.Tuples))
		b.Keys.Add(int64(e.Keys))
		if e.Messages > 0 {
			t.m.Complete.Record(e.Took, int64(e.Messages))
		}
	case batch.BatchFailed: // the task has told
		t.m.Batches.Failed.Add(1)
	case batch.RoundBegan:
		cause := t.cause(e)
		t.m.Batches.Causes[cause].Add(1)
		if cause != batch.Start {
			t.m.Batches.Rounds.Add(1)
			t.set.Event(&Notice{Task: t.m.Name, Text: fmt.Sprintf("batches from %d on come again (attempt %v): %v%s", e.Tx+1, e.Attempt, cause, t.named(e.Tasks))})
		}
	case batch.RecordFailed:
		if !t.silent {
			t.silent = true
			t.set.Event(&StoreError{Doing: "keep the record of batches", Err: e.Err, Again: time.Second})
		}
	case batch.Replaced:
		t.stale(metrics.StaleEntry, 1)
		t.fail(fmt.Errorf("%s: %w", t.m.Name, e.Err), false, true)
	case batch.Fatal:
		t.fail(fmt.Errorf("%w%s", e.Err, t.named(e.Tasks)), true, true)
	case batch.Finished:
		t.end()
	}
}

// named names some tasks, if there are any.
func (t *coordTask) named(ids []tuple.TaskID) string {
	if len(ids) == 0 {
		return ""
	}
	var names []string
	for _, id := range ids {
		names = append(names, t.plan.TaskName(id))
	}
	return " (" + few(names) + ")"
}

// Turn has nothing to do: all that happens is a message. The task is at rest when nothing
// is under way that a new plan would throw away (T18).
func (t *coordTask) Turn(ctx actor.Context) bool {
	t.enter(ctx)
	if t.halt > 0 && !t.dead && t.machine != nil && t.machine.Idle() {
		t.sayRest()
	}
	return false
}

// Stopped says what was waited for.
func (t *coordTask) Stopped(ctx actor.Context) {
	t.enter(ctx)
	t.sayUnderWay()
}
