package task

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/tuple"
)

// How the supervisor finds tasks that do not come back from user code. It looks
// where each of them is, four times in StuckAfter:
//
//	seen in a call --in it for StuckAfter--> told, and told again
//	                                          |          |
//	                 (OnStuck: Replace) replaced        (the run is stopped) left behind
//
// A replaced life goes on in its goroutine until it returns, and finds out then.

// A watch is what the supervisor has seen of one life.
type watch struct {
	call   metrics.Sight // that it was in at the last look
	looked time.Duration // the last look
	before time.Duration // the last look that did not see the call
	first  time.Duration // the first one that did
	tell   time.Duration // tell of it when it has lasted for so long
}

// look is the timer of the next look. One of an earlier round is not wanted any more.
type look struct{ round int }

// careful tells a bolt's task to execute one tuple at a time until then: a hang is
// to have one suspect.
type careful struct{ until time.Duration }

// An away is a life that was found stuck and has not come back.
type away struct {
	task  tuple.TaskID
	life  tuple.Incarnation
	kind  callKind
	began time.Duration
	over  bool // it has been replaced or left behind
}

// A pendingStuck waits for the stack of its task.
type pendingStuck struct {
	ref   actor.Ref
	event *Stuck
}

// watchEvery looks every so often from now on.
func (s *Supervisor) watchEvery(d time.Duration) {
	if s.set.StuckAfter > 0 {
		s.round++
		s.lookAfter, s.looked = d, s.ctx.Now()
		s.ctx.After(d, look{s.round})
	}
}

func (s *Supervisor) lookAround(round int) {
	if round != s.round {
		return
	}
	s.overslept()
	for id := range s.children {
		if s.over {
			return
		}
		s.lookAt(tuple.TaskID(id))
	}
	if !s.over {
		s.ctx.After(s.lookAfter, look{s.round})
	}
}

// overslept takes what a look comes too late out of all calls: the machine may have
// been suspended, and time in which nothing ran is no evidence against anybody.
func (s *Supervisor) overslept() {
	now := s.ctx.Now()
	late := now - s.looked - s.lookAfter
	s.looked = now
	if late <= 0 {
		return
	}
	for id := range s.children {
		c := &s.children[id]
		c.watch.looked += late
		c.watch.before += late
		c.watch.first += late
		if c.stopAt > 0 {
			c.stopAt += late
		}
	}
}

func (s *Supervisor) lookAt(id tuple.TaskID) {
	c, now := &s.children[id], s.ctx.Now()
	if c.gone || c.ref == nil {
		return
	}
	w := &c.watch
	before := w.looked
	w.looked = now
	call, since := c.call.Look()
	if call == 0 || !call.Same(w.call) {
		w.call, w.before, w.first, w.tell = call, before, now, s.set.StuckAfter
		return
	}
	// Many rows that became slow all of a sudden look like one call. Who is asked
	// enters a new one soon, and is then known to get on.
	c.call.Ask(call)
	began := min(max(since, w.before), w.first)
	if now-began < s.set.StuckAfter {
		return
	}
	if s.set.Replace && s.stopping == 0 && callKind(call.Kind()) != inLook { // which is ours, and in the middle of a turn
		s.replace(id, call, began)
		return
	}
	if now-began >= w.tell {
		w.tell *= 2
		s.tellStuck(id, call, began)
	}
	if s.stopping > 0 && c.stopAt > 0 && now-c.stopAt >= leaveAfter {
		s.leaveBehind(id, call, began)
	}
}

// tellStuck says that a task is stuck, with its stack, which comes a little later.
func (s *Supervisor) tellStuck(id tuple.TaskID, call metrics.Sight, began time.Duration) {
	c := &s.children[id]
	p, still := c.call.Pin(call)
	if still {
		s.stuck(id, call, began, p, false)
	}
}

// stuck books that a life was found in a call for too long.
func (s *Supervisor) stuck(id tuple.TaskID, call metrics.Sight, began time.Duration, p *tuple.Parcel, over bool) {
	c, m := &s.children[id], s.ms[id]
	i := s.findAway(id, c.life)
	again := i >= 0
	if !again {
		i = len(s.aways)
		s.aways = append(s.aways, away{task: id, life: c.life})
		m.Stuck.Add(1)
	}
	a := &s.aways[i]
	a.kind, a.began, a.over = callKind(call.Kind()), began, over
	e := &Stuck{Task: m.Name, Life: c.life, During: a.kind.String(), For: s.ctx.Now() - began, Replaced: over && s.stopping == 0, Again: again}
	if a.kind == inExecute {
		first, end := call.Rows()
		e.Tuple, e.Others = describe(s.plan, p, first), end-first-1
	}
	for _, other := range s.stucks {
		if other.ref == c.ref {
			return // its stack is on its way
		}
	}
	s.stucks = append(s.stucks, pendingStuck{c.ref, e})
	s.ctx.Inspect(c.ref)
}

// hasStack tells of a stuck task when its stack has come.
func (s *Supervisor) hasStack(msg actor.Stack) {
	for i, p := range s.stucks {
		if p.ref == msg.Ref {
			s.stucks = append(s.stucks[:i], s.stucks[i+1:]...)
			p.event.Stack = msg.Text
			s.set.Event(p.event)
			return
		}
	}
}

func (s *Supervisor) findAway(id tuple.TaskID, life tuple.Incarnation) int {
	for i := range s.aways {
		if s.aways[i].task == id && s.aways[i].life == life {
			return i
		}
	}
	return -1
}

// forgetAway is called when a life has ended: one that did so by itself is away no
// more.
func (s *Supervisor) forgetAway(id tuple.TaskID, life tuple.Incarnation) {
	if i := s.findAway(id, life); i >= 0 && !s.aways[i].over {
		s.aways = append(s.aways[:i], s.aways[i+1:]...)
	}
}

// isBack says that a task that was stuck has come back.
func (s *Supervisor) isBack(msg cameBack) {
	i := s.findAway(msg.task, msg.life)
	if i < 0 {
		return
	}
	a := s.aways[i]
	s.aways = append(s.aways[:i], s.aways[i+1:]...)
	name := s.ms[msg.task].Name
	text := fmt.Sprintf("task %s came back from %v after %v", name, a.kind, rounded(msg.at-a.began))
	if a.over {
		text += ", too late: what it says is refused, and it is closed"
	}
	s.set.Event(&Notice{Task: name, Back: true, Text: text})
}

// replace declares the life of a stuck task over and starts the next one.
func (s *Supervisor) replace(id tuple.TaskID, call metrics.Sight, began time.Duration) {
	c, m := &s.children[id], s.ms[id]
	p, still := c.call.Take(call)
	if !still {
		return
	}
	s.stuck(id, call, began, p, true)
	kind, d := callKind(call.Kind()), rounded(s.ctx.Now()-began)
	err, own, until := fmt.Errorf("%s: %v did not come back for %v", m.Name, kind, d), kind != inExecute, began
	if c.why != nil { // it was in Close, after a failure
		err, own, c.why = c.why.err, c.why.own, nil
	}
	switch kind {
	case inPrepare:
		until = c.born
	case inNext, inAck, inFail: // when it began is known by the looks alone
		until = max(c.watch.before, c.born)
	}
	c.cancel()
	s.ctx.Abandon(c.ref)
	if kind == inExecute {
		s.beCareful(id)
		s.blame(id, p, call, d) // before the news of the death, which gives the trees back
	}
	c.aways = 0
	s.again(id, err, own, until)
}

// beCareful makes the tasks of a component execute one tuple at a time for a
// while: the next hang of the same message has one suspect then.
func (s *Supervisor) beCareful(id tuple.TaskID) {
	if mutation.Is(mutation.Careless) {
		return
	}
	n := s.plan.Node(id)
	until := s.ctx.Now() + carefulFor*s.set.StuckAfter
	for i := range n.Parallel {
		c := &s.children[n.First+tuple.TaskID(i)]
		c.careful = until
		if other := n.First + tuple.TaskID(i); other != id && !c.far && c.ref != nil { // whose next life is told when it is made
			s.ctx.Send(c.ref, careful{until})
		}
	}
}

// blame tells the ledgers of the messages that a stuck bolt had in hand.
func (s *Supervisor) blame(id tuple.TaskID, p *tuple.Parcel, call metrics.Sight, d time.Duration) {
	if len(p.Slots) == 0 {
		return
	}
	type message struct {
		tree  tuple.TreeID
		index uint16
	}
	var suspects []message
	known := map[message]bool{}
	suspect := func(r tuple.Ref) {
		if m := (message{p.Slots[r.Slot].Tree, r.Index}); !known[m] {
			known[m] = true
			suspects = append(suspects, m)
		}
	}
	first, end := call.Rows()
	for _, r := range p.Refs[first:end] {
		if r.Slot != tuple.Several {
			suspect(r)
			continue
		}
		for _, r := range p.Lists[r.Index] {
			suspect(r)
		}
	}
	n := len(suspects)
	if end-first == 1 {
		n = 1 // one tuple, so all that it comes of
	}
	text := fmt.Sprintf("in bolt %s, for %v", s.plan.Node(id).Name, d)
	var reports []*acker.Report
	for _, m := range suspects {
		ledger := &s.children[m.tree.Task]
		if m.tree.Incarnation != ledger.life {
			continue
		}
		var r *acker.Report
		for _, other := range reports {
			if other.To == m.tree.Task {
				r = other
			}
		}
		if r == nil {
			r = &acker.Report{From: id, FromLife: s.children[id].life, To: m.tree.Task, ToLife: ledger.life}
			reports = append(reports, r)
		}
		r.Fails = append(r.Fails, acker.Fail{Seq: m.tree.Seq, Index: m.index, Class: acker.Hung, Suspects: n, Err: text})
	}
	for _, r := range reports {
		s.sayTo(r.To, r)
	}
}

// leaveBehind ends the wait for a stuck task while the run is being stopped.
func (s *Supervisor) leaveBehind(id tuple.TaskID, call metrics.Sight, began time.Duration) {
	c := &s.children[id]
	p, still := c.call.Take(call)
	if !still {
		return
	}
	s.stuck(id, call, began, p, true)
	s.ctx.Abandon(c.ref)
	s.behind = append(s.behind, fmt.Sprintf("task %s did not come back from %v", s.ms[id].Name, callKind(call.Kind())))
	s.stopped(id)
}

// finish is the end of the run, but for what the store has to keep.
func (s *Supervisor) finish() {
	s.over = true
	for _, p := range s.stucks { // nobody hears of their stacks any more
		s.set.Event(p.event)
	}
	s.stucks = nil
	s.err = s.outcome()
	if behind := strings.Join(s.behind, ", "); behind != "" {
		if s.err == nil {
			s.err = errors.New(behind)
		} else {
			s.err = fmt.Errorf("%w; %s", s.err, behind)
		}
	}
	s.keep.finish()
}

// rounded returns d as people want to read it.
func rounded(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
