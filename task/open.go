package task

import (
	"cmp"
	"slices"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/tuple"
)

// Which messages are open, and where they are, for people.
//
//	Oldest ------> supervisor --which are open?--> tasks with open messages
//	                    ^------- their oldest ------'
//	Whereabouts -> supervisor --where are these?--> all tasks
//	                    ^------- what each has -----'
//
// A task answers between two turns. One that has not answered after answerTime is inside a
// call of user code, mostly: then the supervisor looks from outside, and says what it sees.
// Nothing is noted for this while nobody asks. Who asks sees to it that few questions are
// under way at a time.

// Oldest asks a supervisor for up to N open trees of its tasks, the oldest first. Say is
// called once, by its actor, and must not wait; not at all if the run ends before.
type Oldest struct {
	N   int
	Say func([]OpenTree)
}

// Whereabouts asks a supervisor which of its tasks have something of the given trees. Of is
// not changed any more. Say is as in Oldest.
type Whereabouts struct {
	Of  []Sought
	Say func([]TreePlace)
}

// An OpenTree is a tree without a verdict; or a message between two attempts, which is in
// none; or so many messages of which their task does not say more.
type OpenTree struct {
	Sought
	Task     tuple.TaskID
	Messages int
	Replay   bool
	Message  string        // the first one, cut short; empty if it may not be shown
	Err      string        // of a replay: how the last attempt has ended
	Age      time.Duration // since the message was first emitted
	Silent   time.Duration // since something was last heard of the tree
	Between  bool          // it is in no tree: ID is that of the last one
	Waits    time.Duration // until it is emitted again, if it is between two attempts
	Unknown  bool          // Task has not answered: During and Inside say why
	During   string
	Inside   time.Duration
}

// A Sought is a tree that is looked for.
type Sought struct {
	ID   tuple.TreeID
	Mask uint64 // acker.Bit of the tasks that had something of it
}

// A TreePlace is what one task has of a tree.
type TreePlace struct {
	Tree   int // index in Whereabouts.Of
	Task   tuple.TaskID
	Queued int           // tuples that wait for it, once for each of their messages in the tree
	Held   int           // the same, that it retains
	Unsent int           // and that it has emitted and not sent
	Waits  time.Duration // until its next life begins
	During string        // the call of user code that it is in, if it has not answered
	Inside time.Duration // and for how long
	Hand   bool          // and what it executes is of the tree
	Others int           // or another one of so many that are in hand
	Maybe  bool          // it has not answered, and nothing of the tree is seen in its hand
}

const answerTime = time.Second

type (
	// openAsked is a question to a task; both n and of are as the supervisor got them.
	openAsked struct {
		number uint64
		n      int
		of     map[tuple.TreeID]int // nil: which are open?
	}
	openSaid struct {
		task   tuple.TaskID
		life   tuple.Incarnation
		number uint64
		trees  []OpenTree
		places []TreePlace
	}
	answerOver struct{ number uint64 }
)

// A question is one that a supervisor has been asked.
type question struct {
	openAsked
	began  time.Duration
	left   map[tuple.TaskID]bool // who has not answered
	sought []Sought
	trees  []OpenTree
	places []TreePlace
	say    func(*question)
}

// inquire handles what concerns questions. It returns false for anything else.
func (s *Supervisor) inquire(msg any) bool {
	switch msg := msg.(type) {
	case Oldest:
		q := &question{say: func(q *question) { msg.Say(firstTrees(q.trees, msg.N)) }}
		q.n = msg.N
		s.ask(q, func(id tuple.TaskID) bool { return s.ms[id].Open() > 0 })
	case Whereabouts:
		q := &question{sought: msg.Of, say: func(q *question) { msg.Say(q.places) }}
		q.of = make(map[tuple.TreeID]int, len(msg.Of))
		for i, t := range msg.Of {
			q.of[t.ID] = i
		}
		s.ask(q, func(tuple.TaskID) bool { return len(msg.Of) > 0 })
	case openSaid:
		for _, q := range s.questions {
			if q.number == msg.number && q.left[msg.task] && msg.life == s.children[msg.task].life {
				q.trees = append(q.trees, msg.trees...)
				q.places = append(q.places, s.beginning(msg)...)
				delete(q.left, msg.task)
				s.answered(q)
				break
			}
		}
	case answerOver:
		for _, q := range s.questions {
			if q.number == msg.number {
				s.answerFor(q)
				s.answered(q)
				break
			}
		}
	default:
		return false
	}
	return true
}

// ask asks those tasks that are here.
func (s *Supervisor) ask(q *question, whom func(tuple.TaskID) bool) {
	s.asked++
	q.number, q.began, q.left = s.asked, s.ctx.Now(), map[tuple.TaskID]bool{}
	s.questions = append(s.questions, q)
	for i := range s.children {
		c, id := &s.children[i], tuple.TaskID(i)
		if s.stopping > 0 || c.ref == nil || c.far || c.gone || !whom(id) {
			continue
		}
		q.left[id] = true
		s.ctx.Send(c.ref, &q.openAsked)
		if call, _ := c.call.Look(); call != 0 {
			c.call.Ask(call) // many tuples that are slow hold up the answer less
		}
	}
	if len(q.left) > 0 {
		s.ctx.After(answerTime, answerOver{q.number})
	}
	s.answered(q)
}

// askAgain gives a new life the questions that the one before has not answered.
func (s *Supervisor) askAgain(id tuple.TaskID) {
	for _, q := range s.questions {
		if q.left[id] {
			s.ctx.Send(s.children[id].ref, &q.openAsked)
		}
	}
}

// answered says the answer, if nobody is waited for.
func (s *Supervisor) answered(q *question) {
	if len(q.left) == 0 {
		s.questions = slices.DeleteFunc(s.questions, func(o *question) bool { return o == q })
		slices.SortFunc(q.places, func(a, b TreePlace) int {
			return cmp.Or(cmp.Compare(a.Tree, b.Tree), cmp.Compare(a.Task, b.Task))
		})
		q.say(q)
	}
}

// beginning adds to the places of a task that its life has not begun yet.
func (s *Supervisor) beginning(m openSaid) []TreePlace {
	if wait := s.children[m.task].born - s.ctx.Now(); wait > 0 {
		for i := range m.places {
			m.places[i].Waits = wait
		}
	}
	return m.places
}

// answerFor says what can be seen from outside of tasks that have not answered.
func (s *Supervisor) answerFor(q *question) {
	for i := range s.children {
		c, id := &s.children[i], tuple.TaskID(i)
		if !q.left[id] {
			continue
		}
		delete(q.left, id)
		if c.far || c.gone {
			continue // by now
		}
		var hand *tuple.Parcel
		during, inside := "", time.Duration(0)
		first, end := 0, 0
		if call, since := c.call.Look(); call != 0 {
			if call.Same(c.watch.call) {
				since = min(max(since, c.watch.before), c.watch.first)
			}
			kind := callKind(call.Kind())
			if hand, _ = c.call.Pin(call); kind != inExecute {
				hand = nil
			}
			first, end = call.Rows()
			during, inside = kind.String(), s.ctx.Now()-min(since, q.began)
		}
		if q.of == nil {
			q.trees = append(q.trees, OpenTree{Task: id, Messages: int(s.ms[id].Open()), Unknown: true, Age: inside, Silent: inside, During: during, Inside: inside})
			continue
		}
		at := make([]TreePlace, len(q.sought))
		if hand != nil && len(hand.Slots) > 0 {
			each(q.of, hand, first, end, func(tree int) { at[tree].Hand, at[tree].Others = true, end-first-1 })
			each(q.of, hand, end, hand.Len(), func(tree int) { at[tree].Queued++ })
		}
		for tree, p := range at {
			p.Maybe = p == TreePlace{}
			if p.Maybe && q.sought[tree].Mask&acker.Bit(id) == 0 {
				continue
			}
			p.Tree, p.Task, p.During = tree, id, during
			p.Inside = inside
			q.places = append(q.places, p)
		}
	}
}

// each calls f for the trees that are sought of the tuples of a parcel from first up to
// end, once for each message of them that a tuple comes of.
func each(of map[tuple.TreeID]int, p *tuple.Parcel, first, end int, f func(tree int)) {
	if !slices.ContainsFunc(p.Slots, func(s tuple.Slot) bool { _, is := of[s.Tree]; return is }) {
		return
	}
	for i := first; i < end; i++ {
		p.Trees(i, func(id tuple.TreeID) {
			if tree, is := of[id]; is {
				f(tree)
			}
		})
	}
}

// firstTrees puts trees into order, and returns the first n.
func firstTrees(all []OpenTree, n int) []OpenTree {
	slices.SortStableFunc(all, func(a, b OpenTree) int {
		return cmp.Or(cmp.Compare(b.Age, a.Age), cmp.Compare(a.Task, b.Task), cmp.Compare(a.ID.Seq, b.ID.Seq))
	})
	return all[:min(n, len(all))]
}

// sayOpen answers a question.
func (c *core) sayOpen(m *openAsked) {
	said := openSaid{task: c.id, life: c.life, number: m.number}
	switch {
	case m.of != nil && c.tracked():
		said.places = c.placesOf(m.of)
	case m.of == nil && c.origin != nil:
		said.trees = c.origin.oldest(m.n)
	}
	c.ctx.Send(c.sup, said)
}

// placesOf returns what this task has of trees.
func (c *core) placesOf(of map[tuple.TreeID]int) (all []TreePlace) {
	at := map[int]*TreePlace{}
	place := func(tree int) *TreePlace {
		if at[tree] == nil {
			at[tree] = &TreePlace{Tree: tree, Task: c.id}
		}
		return at[tree]
	}
	if t, is := c.self.(*boltTask); is {
		queued := func(tree int) { place(tree).Queued++ }
		for _, p := range t.queue[t.head:] {
			each(of, p, 0, p.Len(), queued)
		}
		for _, p := range t.parts {
			if tree, is := of[p.tree]; is {
				place(tree).Held += int(p.left)
			}
		}
		if p := t.hand; p != nil && len(p.Slots) > 0 {
			each(of, p, t.row, p.Len(), queued)
			t.restOfHand(of, func(tree int) { place(tree).Held-- })
		}
	}
	c.out.waiting(func(p *tuple.Parcel) {
		each(of, p, 0, p.Len(), func(tree int) { place(tree).Unsent++ })
	})
	for _, p := range at {
		if p.Queued+p.Held+p.Unsent > 0 {
			all = append(all, *p)
		}
	}
	return all
}

// restOfHand calls f for the trees of the tuples in hand that are not executed and are
// counted in a part, with those that are retained.
func (t *boltTask) restOfHand(of map[tuple.TreeID]int, f func(tree int)) {
	count := func(r tuple.Ref) {
		if tree, is := of[t.hand.Slots[r.Slot].Tree]; is && t.accounts[r.Slot].part != nil {
			f(tree)
		}
	}
	for i := t.row; i < t.hand.Len(); i++ {
		if r := t.hand.Refs[i]; r.Slot != tuple.Several {
			count(r)
		} else {
			for _, r := range t.hand.Lists[r.Index] {
				count(r)
			}
		}
	}
}

// oldest returns up to n of the open messages, those first that were emitted first.
func (o *origin) oldest(n int) []OpenTree {
	type candidate struct {
		since time.Duration
		acker.Open[run]
	}
	var found []candidate // in order, at most n
	add := func(since time.Duration, x acker.Open[run]) {
		if len(found) == n && (n == 0 || since >= found[n-1].since) {
			return
		}
		at, _ := slices.BinarySearchFunc(found, since, func(c candidate, since time.Duration) int {
			if c.since <= since { // behind those of the same time
				return -1
			}
			return 1
		})
		found = slices.Insert(found[:min(len(found), n-1)], at, candidate{since, x})
	}
	o.ledger.Trees(func(x acker.Open[run]) { add(x.Message.at, x) })
	for _, a := range o.waiting {
		x := acker.Open[run]{Message: run{batch: a.batch, first: a.index, n: 1, again: a, at: a.first}, Heard: o.c.now}
		if k := len(a.tries); k > 0 {
			x.Seq = a.tries[k-1].seq
		}
		add(x.Message.at, x)
	}
	all := make([]OpenTree, len(found))
	for i, x := range found {
		r := &x.Message
		t := &all[i]
		t.Task, t.ID, t.Mask = o.c.id, tuple.TreeID{Task: o.c.id, Incarnation: o.c.life, Seq: x.Seq}, x.Mask
		t.Messages, t.Age, t.Silent = int(r.n), o.c.now-x.since, o.c.now-x.Heard
		if !o.c.plan.NoTaps {
			s, cells := r.batch.Message(int(r.first))
			values := tuple.CloneRow(cells, s.Kinds)
			t.Message = describeValues(o.c.node.Streams[s.Stream], func(i int) tuple.Value { return values[i] })
		}
		if a := r.again; a != nil {
			t.Replay = true
			if k := len(a.history); k > 0 {
				t.Err = a.history[k-1]
			}
			if a.at >= 0 {
				t.Between, t.Waits = true, max(0, a.due-o.c.now)
			}
		}
	}
	return all
}
