package live

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A record is what a run has done, as it is seen from outside the tasks. Its methods are
// called from all of them.
//
// Invariant: a book is touched under its lock, a seat by its own task alone.
type record struct {
	plan     *topology.Plan
	began    time.Time
	copies   [][]int64  // by component and stream: tasks that get a copy, without custom groupings
	books    []*book    // by TaskID, as the next two
	seats    []*seat    // each the present life's
	troubles []*trouble // each the same for all lives
	harms    harms
	lives    lives
	enough   atomic.Bool   // sources give nothing new any more
	healed   chan struct{} // closed when nothing is to do harm any more

	seen, done, dead atomic.Int64 // messages of sources
	letters          atomic.Int64 // of all

	mu         sync.Mutex
	violations []Violation
	more       int // of them
}

// Violations that are kept with their values.
const mostViolations = 100

// A Violation is something that Egret has said of a message and the record has not.
type Violation struct {
	Message Message `json:"message"`
	What    string  `json:"what"`
}

// A Message names one: the ordinal counts those of its split, from 0. Of what a bolt or a
// queue emits the split is "".
type Message struct {
	Component string   `json:"component"`
	Split     string   `json:"split"`
	Ordinal   int64    `json:"ordinal"`
	Values    []string `json:"values,omitempty"` // the first ones, if they are known
}

func (m Message) String() string {
	text := fmt.Sprintf("%s, split %s, message %d", m.Component, m.Split, m.Ordinal)
	if m.Split == "" {
		text = "a message of " + m.Component
	}
	for i, v := range m.Values {
		if i == 0 {
			text += ":"
		}
		text += " " + v
	}
	return text
}

func newRecord() *record {
	return &record{began: time.Now(), healed: make(chan struct{})}
}

// install puts r around a run that is about to begin.
func (r *record) install(plan *topology.Plan, set *task.Settings) {
	r.plan = plan
	r.lives.of = make([]living, len(plan.Tasks))
	for id := range plan.Tasks {
		n := plan.Node(tuple.TaskID(id))
		r.books = append(r.books, newBook(r, tuple.TaskID(id), n))
		r.troubles = append(r.troubles, new(trouble))
		r.seats = append(r.seats, r.newSeat(tuple.TaskID(id)))
	}
	for c := range plan.Components {
		n := &plan.Components[c]
		copies := make([]int64, len(n.Streams))
		for i := range n.Outputs {
			out := &n.Outputs[i]
			switch out.Grouping {
			case topology.All:
				copies[out.Stream] += int64(plan.Components[out.To].Parallel)
			case topology.Custom:
				out.Choose = r.countChosen(n, out.Choose)
			default:
				copies[out.Stream]++
			}
		}
		r.copies = append(r.copies, copies)
		switch {
		case n.Source != nil:
			n.Source = r.watchSource(n)
		case n.Bolt != nil:
			n.Bolt = r.watchBolt(n.Bolt)
		case n.Queue != nil:
			n.Queue = r.watchQueue(n)
		}
	}
	event, verdict := set.Event, set.Verdict
	set.Event = func(e task.Event) {
		if r.event(e) {
			event(e)
		}
	}
	set.Verdict = func(v *task.Verdict) {
		r.books[v.Tree.Task].verdict(v)
		if verdict != nil {
			verdict(v)
		}
	}
	set.Probe = &task.Probe{
		Tree: r.tree, Emit: r.emit, Take: r.take, Failed: r.failed, Spawned: r.lives.born,
		Retain: r.retain, Settled: r.settled, Void: r.void, Anchored: r.anchored,
		Executed: r.emptied, Own: r.during, Collected: r.collected,
		Send: func(*tuple.Parcel) {}, Recode: func(_, _ *tuple.Parcel) {},
		Learned: func(tuple.TaskID, task.Peer) {}, Away: func(tuple.TaskID, int) {},
	}
}

func (r *record) now() time.Duration { return time.Since(r.began) }

// tree is told on the turn of the task whose messages these are.
func (r *record) tree(id tuple.TreeID, b *spout.Batch, first, n int) {
	s := r.seats[id.Task]
	if s.trouble.any.Load() && r.plan.Node(id.Task).Reads() {
		s.trouble.wait(r)
	}
	segment, _ := b.Message(first)
	copies := r.copies[r.plan.Tasks[id.Task].Component][segment.Stream]
	t, own := r.books[id.Task].tree(id, b, first, n, copies)
	s.collected -= own
	s.sends(t)
}

// event is told what happens to the run. It returns false for what is no news: a death
// that was meant.
func (r *record) event(e task.Event) bool {
	switch e := e.(type) {
	case *task.Died:
		id := r.taskOf(e.Task)
		r.books[id].died(e.Life)
		return !r.lives.died(id, e.Life)
	case *task.DeadLetter:
		r.books[r.taskOf(e.Task)].letter(e)
	}
	return true
}

func (r *record) taskOf(name string) tuple.TaskID {
	for id := range r.plan.Tasks {
		if r.plan.TaskName(tuple.TaskID(id)) == name {
			return tuple.TaskID(id)
		}
	}
	return 0
}

func (r *record) violated(m Message, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.violations) == mostViolations {
		r.more++
		return
	}
	r.violations = append(r.violations, Violation{m, what})
}

// open is how many messages of sources were emitted and are neither done nor dead.
func (r *record) open() int64 { return r.seen.Load() - r.done.Load() - r.dead.Load() }

// sweep lets go of attempts that have ended a while ago, or of all.
func (r *record) sweep(all bool) {
	for _, b := range r.books {
		b.sweep(all)
	}
}

// abandoned is how many messages were open when their task died and were not read again.
func (r *record) abandoned() (n int64) {
	for _, b := range r.books {
		b.mu.Lock()
		n += b.abandoned
		b.mu.Unlock()
	}
	return n
}

// lives are who lives where.
type lives struct {
	mu   sync.Mutex
	kill func(actor.Ref)
	of   []living // by TaskID
}

type living struct {
	life  tuple.Incarnation
	ref   actor.Ref         // nil: it has ended
	meant tuple.Incarnation // the last life that was killed
	again int               // next lives that are to be killed at once
	next  func(tuple.Incarnation)
}

func (l *lives) born(p task.Peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &l.of[p.Task]
	t.life, t.ref = p.Life, p.Ref
	if t.again > 0 {
		t.again--
		l.end(t)
	}
}

// died reports whether it was meant.
func (l *lives) died(id tuple.TaskID, life tuple.Incarnation) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &l.of[id]
	t.ref = nil
	return life == t.meant
}

// end kills a life; l.mu is held.
func (l *lives) end(t *living) {
	t.meant = t.life
	t.next(t.life)
	l.kill(t.ref)
	t.ref = nil
}

// put ends the present life of a task, or its next one if it has none, and again more
// behind it. told is called for each, before it is killed.
func (l *lives) put(id tuple.TaskID, again int, told func(tuple.Incarnation)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &l.of[id]
	t.next = told
	if t.ref == nil {
		t.again = max(t.again, again+1)
		return
	}
	t.again = max(t.again, again)
	l.end(t)
}

// all reports whether everybody lives: nobody who was killed is still to end, or to be
// followed by another life.
func (l *lives) all() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !slices.ContainsFunc(l.of, func(t living) bool { return t.ref == nil })
}

// spare lets everybody live who has not been killed yet.
func (l *lives) spare() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.of {
		l.of[i].again = 0
	}
}
