package task

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// ErrDrain reports that a run did not come to rest before its deadline.
var ErrDrain = errors.New("not drained")

// DrainBy asks the supervisor to end the run in good order: spouts read no more,
// and what is open is finished. After the deadline the run is ended as it is.
type DrainBy struct{ Deadline time.Duration }

// A Supervisor is the parent of all tasks of a run on one node. It starts them,
// starts them again when they die, tells everybody of it, keeps the committed
// positions, and stops everything at the end.
//
//	running --all ended, Stop, deadline--> stopping --all stopped--> stopped
//
// A task's incarnation is an actor of its own, so what was in a dead one's
// mailbox is gone with it.
type Supervisor struct {
	plan     *topology.Plan
	set      *Settings
	ms       []*metrics.Task
	done     func(error)
	ctx      actor.Context
	children []child // by TaskID
	keep     keeper
	running  int  // tasks whose present life has not ended its input
	draining bool // spouts that are started again must not read either
	stopping int  // 0: not yet; else 1 + the component that is being stopped
	left     int  // its tasks that have not stopped
	err      error

	lookAfter time.Duration // until the next look for stuck tasks
	looked    time.Duration // the last one
	round     int           // of looks
	aways     []away
	stucks    []pendingStuck
	behind    []string // tasks that were left behind, for people
	waits     []waiting
	partings  []parting
	over      bool // done was called

	taps Taps // that there are at present

	questions []*question // that are not answered
	asked     uint64      // how many there were

	part        *Share                             // what is here at present; nil: everything
	saidEnded   Ended                              // to who is over it
	halted      uint64                             // which Halt; 0: none
	halts       int                                // how many there were
	restedTasks map[tuple.TaskID]tuple.Incarnation // who has said that it has nothing left to do, of that
}

type child struct {
	ref     actor.Ref
	life    tuple.Incarnation
	born    time.Duration      // when this life was to begin
	pause   time.Duration      // before it
	deaths  int                // in a row
	strikes int                // of those, outside Execute
	aways   int                // deaths in a row for want of what keeps its state, which are none of those
	cancel  context.CancelFunc // of what user code may wait for
	tuples  int64              // progress of the lives before this one
	why     *failed
	ended   bool
	far     bool // it is on another node, and ref is the link to that
	gone    bool // its actor has ended, or it has none here
	waits   bool // for an earlier life that has not ended, with its own; it is gone until then
	call    *call
	watch   watch
	careful time.Duration // tuple by tuple until then
	stopAt  time.Duration // when its actor was told to stop; 0: it was not
}

// NewSupervisor returns the behaviour that runs a plan. ms are the counters of
// its tasks; done is called once, at the end, with what went wrong.
func NewSupervisor(plan *topology.Plan, set *Settings, ms []*metrics.Task, done func(error)) *Supervisor {
	return &Supervisor{plan: plan, set: set, ms: ms, done: done, part: set.Share}
}

func (s *Supervisor) Start(ctx actor.Context) {
	s.ctx = ctx
	s.children = make([]child, len(s.plan.Tasks))
	for id := range s.children {
		far := !s.here(tuple.TaskID(id))
		s.children[id] = child{life: s.base(tuple.TaskID(id)), far: far, gone: far, ended: far}
	}
	s.restedTasks = map[tuple.TaskID]tuple.Incarnation{}
	s.keep.start(s)
	var own []tuple.TaskID
	for i := range s.children {
		if id := tuple.TaskID(i); s.here(id) {
			s.spawn(id)
			own = append(own, id)
		}
	}
	s.running = len(own)
	s.tell(&Peers{Peers: s.peers()})
	s.sayLives(s.own(own))
	s.sayEnded()
	s.watchEvery(s.set.StuckAfter / 4)
}

func (s *Supervisor) peers() []Peer {
	ps := make([]Peer, len(s.children))
	for id, c := range s.children {
		ps[id] = Peer{Task: tuple.TaskID(id), Life: c.life, Ref: c.ref, Far: c.far}
	}
	return ps
}

func (s *Supervisor) spawn(id tuple.TaskID) {
	c := &s.children[id]
	p := Peer{Task: id, Life: c.life}
	var b actor.Behavior
	if s.plan.Node(id).Source != nil {
		committed := s.keep.committed(s.plan.Tasks[id].Component)
		if mutation.Is(mutation.LostPosition) {
			clear(committed)
		}
		t := NewSpout(s.plan, s.set, p, s.peers(), s.ms[id], s.ctx.Self(), c.pause, committed)
		t.(*spoutTask).letters, t.(*spoutTask).expects = s.keep.lettersOf(id), s.keep.backlog
		b = t
	} else {
		var alive context.Context
		alive, c.cancel = context.WithCancel(context.Background())
		if s.plan.Node(id).Coordinates {
			b = NewCoordinator(alive, s.plan, s.set, p, s.peers(), s.ms[id], s.ctx.Self(), c.pause)
		} else if s.plan.Node(id).Queue != nil {
			b = NewQueue(alive, s.plan, s.set, p, s.peers(), s.ms[id], s.ctx.Self(), c.pause)
		} else {
			t := NewBolt(alive, s.plan, s.set, p, s.peers(), s.ms[id], s.ctx.Self(), c.pause)
			t.(*boltTask).letters, t.(*boltTask).expects = s.keep.lettersOf(id), s.keep.backlog
			b = t
		}
	}
	halted := s.halted // from the first moment: what was told later it would hear of behind its first turn
	if mutation.Is(mutation.UnhaltedLife) {
		halted = 0
	}
	switch b := b.(type) {
	case *spoutTask:
		c.call, c.cancel, b.halt = b.call, b.kill, halted
	case *queueTask:
		c.call, b.halt = b.core.call, halted
	case *coordTask:
		c.call, b.halt = b.core.call, halted
	case *boltTask:
		c.call, b.halt, b.careful = b.call, halted, c.careful
	}
	c.watch = watch{}
	c.born = s.ctx.Now() + c.pause
	c.ref = s.ctx.Spawn(s.ms[id].Name, b)
	s.ctx.Watch(c.ref)
	if probe := s.set.Probe; probe != nil && probe.Spawned != nil {
		probe.Spawned(Peer{Task: id, Life: c.life, Ref: c.ref})
	}
	if s.draining && drains(s.plan.Node(id)) && !mutation.Is(mutation.DrainForgotten) {
		s.ctx.Send(c.ref, Drain{})
	}
	if len(s.taps) > 0 {
		s.ctx.Send(c.ref, s.taps)
	}
	s.askAgain(id)
}

func (s *Supervisor) Receive(ctx actor.Context, msg any) {
	s.ctx = ctx
	switch msg := msg.(type) {
	case ended:
		c := &s.children[msg.task]
		if msg.life == c.life && !c.ended {
			c.ended = true
			if s.running--; s.running == 0 && s.part == nil {
				s.stop(nil)
			}
			s.sayEnded()
		}
	case failed:
		c := &s.children[msg.task]
		if msg.life != c.life || s.stopping > 0 {
			break
		}
		if msg.fatal {
			s.stop(msg.err)
			break
		}
		c.why = &msg // acted on when the actor has ended
	case actor.Terminated:
		s.terminated(msg)
	case look:
		s.lookAround(msg.round)
	case actor.Stack:
		s.hasStack(msg)
	case cameBack:
		s.isBack(msg)
	case underWay:
		s.hears(msg)
	case committed:
		if msg.life != s.children[msg.task].life {
			s.ms[msg.task].Stale.Add(1) // R12
			break
		}
		s.keep.commit(&msg)
		s.children[msg.task].strikes = 0
	case DrainBy:
		s.drain(msg.Deadline)
	case drainOver:
		if s.stopping == 0 {
			s.stop(fmt.Errorf("%w: %s open after %v", ErrDrain, amount.Of(s.open(), "message"), msg.after))
		}
	case Taps:
		s.taps = msg
		s.tell(msg)
	case Stop:
		s.stop(fmt.Errorf("%w: stopped with %s open", ErrDrain, amount.Of(s.open(), "message")))
	default:
		if s.keep.receive(msg) || s.share(msg) || s.inquire(msg) {
			break
		}
		panic(fmt.Sprintf("supervisor got a %T", msg))
	}
}

type drainOver struct{ after time.Duration }

func (s *Supervisor) open() (n int64) {
	for _, m := range s.ms {
		n += m.Open()
	}
	return n
}

func (s *Supervisor) drain(deadline time.Duration) {
	if s.draining || s.stopping > 0 {
		return
	}
	s.draining = true
	s.keep.noBacklog()
	s.ctx.After(deadline, drainOver{deadline})
	for id := range s.children {
		if c := &s.children[id]; drains(s.plan.Node(tuple.TaskID(id))) && !c.far && c.ref != nil {
			s.ctx.Send(c.ref, Drain{})
		}
	}
}

// drains reports whether the tasks of a component are told that the run drains.
func drains(n *topology.Node) bool { return n.Reads() || n.Coordinates }

// ErrKilled is why a task has died that somebody else has ended.
var ErrKilled = errors.New("killed")

func (s *Supervisor) terminated(msg actor.Terminated) {
	if i := slices.IndexFunc(s.partings, func(p parting) bool { return p.ref == msg.Ref }); i >= 0 {
		s.parted(i)
		return
	}
	for id := range s.children {
		c := &s.children[id]
		if c.ref != msg.Ref || c.gone || c.far {
			continue
		}
		if s.stopping > 0 {
			s.stopped(tuple.TaskID(id))
			return
		}
		err, own := msg.Err, msg.Err != nil
		if c.why != nil {
			err, own = c.why.err, c.why.own
		} else if err == nil {
			err = ErrKilled
		}
		if c.why != nil && c.why.away && s.begun() {
			c.aways, own = c.aways+1, false
		} else {
			c.aways = 0
		}
		until := s.ctx.Now()
		if c.why != nil && c.why.until > 0 {
			until = c.why.until
		}
		c.why = nil
		s.again(tuple.TaskID(id), err, own, until)
		return
	}
}

// end lets user code know that the life it works for is over.
func (c *child) end() {
	if c.cancel != nil {
		c.cancel()
	}
}

// again starts the next life of a task, after one that was good until a time.
func (s *Supervisor) again(id tuple.TaskID, err error, own bool, until time.Duration) {
	c, m := &s.children[id], s.ms[id]
	c.end()
	s.forgetAway(id, c.life)
	// One that was killed has done nothing wrong: there is nothing to wait for, and
	// nothing to give up, however often it comes. Nor is one whose database is away, but for
	// that there is something to wait for.
	killed := errors.Is(err, ErrKilled) || c.aways > 0
	n := progress(m)
	if n > c.tuples {
		c.deaths = min(c.deaths, 1) // it gets on: a short pause
		if s.plan.Node(id).Queue != nil {
			c.strikes = 0 // as a committed position does for a spout
		}
	}
	if until-c.born >= max(time.Second, 2*c.pause) {
		c.deaths, c.strikes, c.aways = 0, 0, min(c.aways, 1)
	}
	c.tuples = n
	if !killed {
		c.deaths++
	}
	if own {
		c.strikes++
	}
	if times := c.deaths; c.strikes > maxStrikes || times > s.mostDeaths() {
		if c.strikes > maxStrikes {
			times = c.strikes
		}
		s.set.Event(&Died{Task: m.Name, Life: c.life, Err: err})
		c.gone = true
		s.stop(fmt.Errorf("task %s has died %d times in a row, the last time of: %w", m.Name, times, err))
		return
	}
	c.pause = 0 // the first time at once
	if c.deaths > 1 && !killed {
		c.pause = backoff(c.deaths - 1)
	}
	if c.aways > 1 {
		c.pause = backoff(c.aways - 1)
	}
	if c.careful > s.ctx.Now() {
		c.careful += c.pause // it is the next life that is to take care
	}
	m.Abandon()
	m.Restarts.Add(1)
	s.set.Event(&Died{Task: m.Name, Life: c.life, Err: err, Again: c.pause})
	if c.ended {
		c.ended = false
		s.running++
		s.sayEnded()
	}
	c.life++
	s.spawn(id)
	s.introduce(id)
}

// begun reports whether anything has got on in this run, so that all tasks were ready once:
// on another node, if it was not here.
func (s *Supervisor) begun() bool {
	return s.part != nil && s.plan.Epoch > s.part.First || slices.ContainsFunc(s.ms, func(m *metrics.Task) bool { return progress(m) > 0 })
}

// progress is how far a task has come in all its lives: a task that gets on does
// not keep dying, however often it dies.
func progress(m *metrics.Task) (n int64) {
	for i := range m.Inputs {
		n += m.Inputs[i].Acked.Load()
	}
	return n + m.Acked.Load()
}

// mostDeaths is how often a task may die in a row. A message that kills does so
// once for each of its replays, and is no reason to end the run.
func (s *Supervisor) mostDeaths() int {
	if s.set.MaxReplays < 0 {
		return math.MaxInt
	}
	return maxDeaths + s.set.MaxReplays
}

// stop ends the run: components are stopped in topological order.
func (s *Supervisor) stop(err error) {
	if s.stopping > 0 {
		return
	}
	s.err = err
	s.seeCalls()
	s.watchEvery(min(stopLook, s.set.StuckAfter/4))
	s.stopNext()
}

func (s *Supervisor) stopNext() {
	for s.left == 0 {
		if s.stopping == len(s.plan.Components) {
			s.stopping++
			s.finish()
			return
		}
		n := &s.plan.Components[s.stopping]
		s.stopping++
		s.left = n.Parallel
		for i := range n.Parallel {
			id := n.First + tuple.TaskID(i)
			if s.children[id].gone {
				s.left--
				continue
			}
			s.children[id].stopAt = max(s.ctx.Now(), 1)
			s.ctx.Stop(s.children[id].ref)
			s.children[id].end() // and user code that waits comes back
		}
	}
}

// stopped counts a task that has ended while the run is being stopped.
func (s *Supervisor) stopped(id tuple.TaskID) {
	s.children[id].gone = true
	s.children[id].end() // it may have died before it was its turn to be stopped
	s.ms[id].WaitsFor.Set(0)
	n := &s.plan.Components[s.stopping-1]
	if id >= n.First && id < n.First+tuple.TaskID(n.Parallel) {
		s.left--
		s.stopNext()
	}
}

// Turn does nothing: a supervisor has no work of its own.
func (s *Supervisor) Turn(actor.Context) bool { return false }

// Stopped does nothing: its children are stopped with it.
func (s *Supervisor) Stopped(actor.Context) {}
