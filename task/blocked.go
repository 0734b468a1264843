package task

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/egretstream/egret/tuple"
)

// How a task watches the calls of user code that it has given to Block and that are
// to return soon: Splits, Open, Commit and Close of a source, Open of a queue. Next
// may wait for as long as it likes, and is not watched.
//
//	called --StuckAfter--> told, with its stack, and again each time twice as long
//	                         |
//	               (a Commit that is all that is waited for) left behind
//
// A task with a state has Join, Commit and Settle called so. With OnStuck: Replace its life
// ends then, and the next one joins in a new round: what the call does after all is undone
// by that, or refused by the store (T11).

// A blockedCall is one of them, under way. Owner: the task.
type blockedCall struct {
	what  string // "Commit"
	split string // "": of none
	in    string // Egret's function that makes the call: by it the goroutine is found
	began time.Duration
	slept time.Duration // of that, in which nobody looked though it was time: no evidence
	tell  time.Duration // tell of it when it has lasted for so long
	due   bool          // it is told of when the stack has come
	told  bool
}

func (b *blockedCall) String() string {
	if b.split == "" {
		return b.what
	}
	return b.what + " of split " + b.split
}

// blockedCalls are those of one task.
type blockedCalls struct {
	all     []*blockedCall
	looking bool          // the timer of the next look is set
	due     time.Duration // of it
	asked   bool          // for a stack
}

type (
	// lookBlocked is the timer of the next look at blocked calls.
	lookBlocked struct{}
	// underWay tells the supervisor what a life that is being stopped has waited for.
	underWay struct {
		task tuple.TaskID
		life tuple.Incarnation
		text string
	}
)

// block begins to watch a call.
func (c *core) block(what, split, in string) *blockedCall {
	b := &blockedCall{what: what, split: split, in: in, began: c.now, tell: c.set.StuckAfter}
	c.blocked.all = append(c.blocked.all, b)
	c.lookAgain()
	return b
}

func (c *core) lookAgain() {
	if !c.blocked.looking && c.set.StuckAfter > 0 && len(c.blocked.all) > 0 {
		c.blocked.looking, c.blocked.due = true, c.now+c.set.StuckAfter/4
		c.after(c.set.StuckAfter/4, lookBlocked{})
	}
}

// unblock says that a call has returned; nil is one that was not watched.
func (c *core) unblock(b *blockedCall) {
	for i, other := range c.blocked.all {
		if other != b {
			continue
		}
		c.blocked.all = append(c.blocked.all[:i], c.blocked.all[i+1:]...)
		if b.told {
			c.set.Event(&Notice{Task: c.m.Name, Back: true, Text: fmt.Sprintf("task %s: %v came back after %v", c.m.Name, b, rounded(c.now-b.began))})
		}
		return
	}
}

// lookBlocked looks for calls that last too long, and asks where they are.
func (c *core) lookBlocked() {
	c.blocked.looking = false
	some := false
	for _, b := range c.blocked.all {
		b.slept += max(c.now-max(c.blocked.due, b.began), 0)
		if c.now-b.began-b.slept >= b.tell {
			b.tell *= 2
			b.due, some = true, true
		}
	}
	if some && !c.blocked.asked {
		c.blocked.asked = true
		c.ctx.Inspect(c.ctx.Self())
	}
	c.lookAgain()
}

// hasStack tells of the calls that last too long, now that it is known where the
// task's goroutines are.
func (c *core) hasStack(stack string) {
	c.blocked.asked = false
	for _, b := range c.blocked.all {
		if !b.due {
			continue
		}
		again := b.told
		if b.due = false; !b.told {
			b.told = true
			c.m.Stuck.Add(1)
		}
		replace := c.set.Replace && c.replaces != nil && c.replaces(b)
		c.set.Event(&Stuck{Task: c.m.Name, Life: c.life, During: b.String(), For: c.now - b.began, Stack: stackIn(stack, b.in), Replaced: replace, Again: again})
		if replace {
			c.dies(failed{err: fmt.Errorf("%s: %v did not come back for %v", c.m.Name, b, rounded(c.now-b.began)), own: true, until: max(b.began, 1)})
			return
		}
	}
}

// stackIn returns the stack of a goroutine that has been through a function, of
// those that are divided by empty lines; or all of them if there is none.
func stackIn(stacks, function string) string {
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		if strings.Contains(stack, function) {
			return stack
		}
	}
	return stacks
}

// sayUnderWay tells the supervisor, at the end of a life, of calls that have not
// returned.
func (c *core) sayUnderWay(more ...string) {
	for _, b := range c.blocked.all {
		more = append(more, fmt.Sprintf("%v for %v", b, rounded(c.ctx.Now()-b.began)))
	}
	if len(more) > 0 {
		c.ctx.Send(c.sup, underWay{c.id, c.life, few(more)})
	}
}

// few names some of many.
func few(all []string) string {
	const most = 5
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// A waiting is a task that has held up the end of a run, for people.
type waiting struct {
	task tuple.TaskID
	text string
}

// seeCalls takes down, when a run is ended before its time, which tasks are in a
// call on their turn for longer than is usual.
func (s *Supervisor) seeCalls() {
	for id := range s.children {
		c := &s.children[id]
		if c.gone {
			continue
		}
		call, since := c.call.Look()
		if call == 0 || !call.Same(c.watch.call) {
			continue
		}
		if d := s.ctx.Now() - min(max(since, c.watch.before), c.watch.first); d >= leaveAfter {
			s.waits = append(s.waits, waiting{tuple.TaskID(id), fmt.Sprintf("%v for %v", callKind(call.Kind()), rounded(d))})
		}
	}
}

// hears takes down what a task was waiting for when it was stopped.
func (s *Supervisor) hears(msg underWay) {
	if s.stopping > 0 && msg.life == s.children[msg.task].life {
		s.waits = append(s.waits, waiting{msg.task, msg.text})
	}
}

// outcome adds to the error of a run that was ended before its time who has held it
// up; but if all tasks had ended when they were told to stop, there is no error.
func (s *Supervisor) outcome() error {
	if !errors.Is(s.err, ErrDrain) {
		return s.err
	}
	if s.running == 0 && s.open() == 0 {
		return nil
	}
	var texts []string
	for _, w := range s.waits {
		if i := s.findAway(w.task, s.children[w.task].life); i < 0 || !s.aways[i].over { // else it is said below
			texts = append(texts, fmt.Sprintf("task %s was in %s", s.ms[w.task].Name, w.text))
		}
	}
	if len(texts) == 0 {
		return s.err
	}
	return fmt.Errorf("%w; %s", s.err, few(texts))
}
