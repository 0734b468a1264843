package egrettest

import (
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A recorder writes down what the tasks of a run do. Its methods are called from
// all of them.
//
//	message --attempt--> emission --link--> execution --> emission --> ...
//
// Invariants:
//
//   - links has the parcels that are on their way or in hand, each of one tuple
//   - an emission comes of an attempt, or of an execution, never of both
//   - a message waits when an attempt has ended, until it is dead or tried again
type recorder struct {
	mu         sync.Mutex
	plan       *topology.Plan
	script     *script
	stations   []station // by TaskID
	tasks      map[string]tuple.TaskID
	messages   []*message
	byKey      map[messageKey]*message
	trees      map[tuple.TreeID][]*attempt // without a verdict
	links      map[*tuple.Parcel]link
	emissions  []*emission
	executions []*execution
	letters    []Letter
	handed     int // rows that inputs have given
	emitted    int // of those, emitted by their spouts
	waiting    int // messages
	held       map[bolt.Owner]*execution
	busy       int                                   // attempts without a verdict of which nothing is retained
	away       int                                   // calls of Async
	trying     map[*attempt]bool                     // tracked, without a verdict
	news       map[[2]tuple.TaskID]tuple.Incarnation // who has to hear of whose next life
	changed    chan struct{}                         // nil: nobody waits
	hopeless   chan struct{}                         // closed when there is something in why
	why        string
}

// A station is what is known of one task.
type station struct {
	component, index int
	input            bool
	hand             *execution
	away             int        // calls of Async
	own              string     // Tick, Flush or Finish, if it is in there
	next             []*attempt // of the tree that is about to be emitted
	last             *emission
	messages         int
	wanted           int               // ticks
	dead             tuple.Incarnation // the last life that has ended
}

type messageKey struct {
	task   tuple.TaskID
	life   tuple.Incarnation
	batch  uint64
	number int
}

// A message is one of a spout, or of a bolt's Tick or Finish.
type message struct {
	epoch    int // messages of inputs before it, where they come one at a time
	task     tuple.TaskID
	ordinal  int // among those of its task
	attempts []*attempt
	first    *emission
	acked    bool
	letter   *Letter
	waits    bool
}

type attempt struct {
	message *message
	number  int
	held    int  // tuples that came of it and are retained
	lost    bool // with a task that died: all of it comes again
}

// An emission is one tuple, of an attempt or of an execution.
type emission struct {
	of        *attempt
	by        *execution
	seq       int
	component int
	stream    int
	values    []any
}

type execution struct {
	in               *emission
	component, index int
	input            int
	emitted          []*emission
	err              error
}

type link struct {
	of       *emission
	from, to tuple.TaskID
	fromLife tuple.Incarnation
	toLife   tuple.Incarnation
}

func newRecorder() *recorder {
	return &recorder{
		tasks: map[string]tuple.TaskID{}, byKey: map[messageKey]*message{}, trees: map[tuple.TreeID][]*attempt{},
		links: map[*tuple.Parcel]link{}, trying: map[*attempt]bool{}, held: map[bolt.Owner]*execution{},
		news: map[[2]tuple.TaskID]tuple.Incarnation{}, hopeless: make(chan struct{}),
	}
}

// install makes the run tell r what happens.
func (r *recorder) install(plan *topology.Plan, set *task.Settings, s *script) {
	r.plan, r.script = plan, s
	for id, t := range plan.Tasks {
		name := plan.Components[t.Component].Name
		r.stations = append(r.stations, station{component: t.Component, index: t.Index, input: slices.Contains(s.spouts, name)})
		r.tasks[plan.TaskName(tuple.TaskID(id))] = tuple.TaskID(id)
	}
	event := set.Event
	set.Event = func(e task.Event) {
		r.event(e)
		event(e)
	}
	set.Verdict = r.verdict
	set.Probe = &task.Probe{
		Tree: r.tree, Message: r.message, Emit: r.emit, Send: r.send, Recode: r.recode,
		Take: r.take, Executed: r.executed, Failed: r.failed, Own: r.own,
		Retain: r.retain, Settled: r.settled, Void: r.void, Anchored: r.anchored, Away: r.asAway, Learned: r.learned,
	}
	if slices.ContainsFunc(s.entries, func(e entry) bool { return e.kind == tick }) {
		set.Probe.Tick = r.wantsTick
	}
}

func (r *recorder) own(id tuple.TaskID, during string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.stations[id]
	if during == "" && s.own == "Tick" && s.wanted > 0 {
		s.wanted--
	}
	s.own = during
	r.change()
}

func (r *recorder) tree(tree tuple.TreeID, b *spout.Batch, first, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.stations[tree.Task]
	s.next = s.next[:0]
	for i := first; i < first+n; i++ {
		key := messageKey{tree.Task, tree.Incarnation, b.Number, i}
		m := r.byKey[key]
		if m == nil {
			m = r.newMessage(tree.Task, b.Split < 0)
			r.byKey[key] = m
		}
		r.waits(m, false)
		a := &attempt{message: m, number: len(m.attempts)}
		m.attempts = append(m.attempts, a)
		s.next = append(s.next, a)
		r.trying[a] = true
		r.busy++
	}
	r.trees[tree] = slices.Clone(s.next)
}

func (r *recorder) newMessage(id tuple.TaskID, letter bool) *message {
	s := &r.stations[id]
	m := &message{task: id, ordinal: s.messages}
	s.messages++
	switch {
	case s.input:
		if !letter {
			r.emitted++
		}
		m.epoch = r.emitted
	case s.own == "Finish":
		m.epoch = math.MaxInt
	case s.own != "":
		m.epoch = r.emitted
	}
	if r.script.atOnce && m.epoch < math.MaxInt {
		m.epoch = 0
	}
	r.messages = append(r.messages, m)
	return m
}

func (r *recorder) waits(m *message, yes bool) {
	if m.waits != yes {
		m.waits = yes
		if yes {
			r.waiting++
		} else {
			r.waiting--
		}
	}
}

func (r *recorder) message(id tuple.TaskID, stream int, row *tuple.Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.stations[id]
	var a *attempt
	if len(s.next) > 0 {
		a, s.next = s.next[0], s.next[1:]
	} else { // not tracked
		m := r.newMessage(id, false)
		a = &attempt{message: m}
		m.attempts = append(m.attempts, a)
	}
	e := r.emission(s, stream, row)
	e.of = a
	if a.message.first == nil {
		a.message.first = e
	}
	r.change()
}

func (r *recorder) emission(s *station, stream int, row *tuple.Row) *emission {
	e := &emission{component: s.component, stream: stream, values: values(tuple.CloneRow(row.Cells, row.Kinds))}
	r.emissions = append(r.emissions, e)
	s.last = e
	return e
}

func (r *recorder) emit(id tuple.TaskID, stream int, row *tuple.Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.stations[id]
	e := r.emission(s, stream, row)
	if x := s.hand; x != nil {
		e.by, e.seq = x, len(x.emitted)
		x.emitted = append(x.emitted, e)
	}
}

func (r *recorder) send(p *tuple.Parcel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := link{of: r.stations[p.From].last, from: p.From, to: p.To, fromLife: p.FromLife, toLife: p.ToLife}
	if !r.stale(l) { // else it is sent before the sender has heard of the death
		r.links[p] = l
	}
}

// stale reports whether l will not arrive: one of its ends is dead.
func (r *recorder) stale(l link) bool {
	return l.toLife <= r.stations[l.to].dead || l.fromLife <= r.stations[l.from].dead
}

func (r *recorder) recode(p, q *tuple.Parcel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, is := r.links[p]; is {
		r.links[q] = l
		delete(r.links, p)
	}
}

func (r *recorder) take(p *tuple.Parcel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.stations[p.To]
	x := &execution{component: s.component, index: s.index, input: p.Input, in: r.links[p].of}
	if x.in == nil { // of a task that has died since
		x.in = &emission{component: r.stations[p.From].component, stream: p.Stream, values: values(p.Tuple(0).AppendValues(nil))}
	}
	r.executions = append(r.executions, x)
	s.hand = x
}

func (r *recorder) executed(p *tuple.Parcel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stations[p.To].hand = nil
	delete(r.links, p)
	r.change()
}

func (r *recorder) failed(p *tuple.Parcel, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.stations[p.To].hand
	if panicked, is := errors.AsType[*task.PanicError](err); is {
		err = &PanicError{panicked.Value}
	}
	x.err = err
}

func (r *recorder) verdict(v *task.Verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, a := range r.trees[v.Tree] {
		m := a.message
		r.forget(a)
		failed := slices.ContainsFunc(v.Fails, func(f acker.Fail) bool { return int(f.Index) == i })
		switch {
		case r.queue(m.task):
			m.acked = !failed && v.Outcome == acker.Done // else it is the queue's again
		case failed:
			r.waits(m, true)
		case v.Outcome == acker.Done:
			m.acked = true
		default:
			a.lost = true
			r.waits(m, true)
		}
	}
	delete(r.trees, v.Tree)
	r.change()
}

// queue reports whether a task's messages come of a queue, which has no replays.
func (r *recorder) queue(id tuple.TaskID) bool {
	return r.plan.Node(id).Queue != nil
}

func (r *recorder) event(e task.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := e.(type) {
	case *task.DeadLetter:
		r.dead(e)
	case *task.Died:
		r.died(r.tasks[e.Task], e.Life)
	}
	r.change()
}

func (r *recorder) dead(e *task.DeadLetter) {
	id := r.tasks[e.Task]
	l := Letter{Err: errors.New(e.Err), Failures: e.Failures, Losses: e.Losses, History: e.History}
	l.Tuple = Tuple{Component: r.plan.Node(id).Name, Stream: e.Stream, Fields: e.Fields, Values: values(e.Values)}
	for _, m := range r.messages {
		if m.task != id || !m.waits || m.first == nil || m.first.tuple(r.plan).String() != l.String() || m.first.tuple(r.plan).Stream != l.Stream {
			continue
		}
		r.waits(m, false)
		m.letter = &l
		return
	}
	r.letters = append(r.letters, l) // of nobody: it is shown all the same
}

// died forgets what was on its way to or from a life that has ended.
func (r *recorder) died(id tuple.TaskID, life tuple.Incarnation) {
	s := &r.stations[id]
	s.dead = life
	for other := range r.stations {
		if o := tuple.TaskID(other); o != id {
			r.news[[2]tuple.TaskID{o, id}] = life + 1
			delete(r.news, [2]tuple.TaskID{id, o}) // its next life begins with what is known
		}
	}
	for p, l := range r.links {
		if r.stale(l) {
			delete(r.links, p)
		}
	}
	for a := range r.trying { // messages of its own, which it has forgotten
		if a.message.task == id {
			r.forget(a)
		}
	}
	r.away -= s.away
	s.away = 0
	s.hand, s.own, s.wanted = nil, "", 0
}
