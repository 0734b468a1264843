package batch

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/tuple"
)

// A world is a topology around coordinators that keeps to the rules: three spout tasks
// with a split each, two bolt tasks, of which one waits until batches are settled, two
// tasks of a state, a state behind that, and a bolt behind both. Messages between them
// and the coordinators come in any order, come twice or are lost, tasks die, batches
// fail, entries are lost or come late, and coordinators are replaced and go on.
//
// The truth of it is kept beside: what each attempt has emitted, who has done what in
// it, and what each state has. What must never happen is a panic with a broken.
type world struct {
	pick   func(n int) int
	fixed  bool // spouts are transactional, and the states cannot be undone
	faulty bool
	deaths int // of 100 steps
	now    time.Duration

	record    Record
	committed map[message]bool // in it
	requests  []request
	late      []*Entry // on their way to the record, and nobody waits for them

	roles  []Role
	tasks  []*worldTask
	leads  []*Coordinator
	lives  map[*Coordinator]tuple.Incarnation
	orders []worldOrder
	says   []worldAnswer
	news   []int // coordinators that do not know the lives

	joined  map[tuple.Attempt]map[tuple.TaskID]bool
	deeds   map[deed]bool
	content map[tuple.BatchID]map[message]bool
	ranges  map[tuple.BatchID]map[string]Ranges
	done    bool
	fatal   bool
}

type broken string

type message struct {
	split string
	n     int
}

// A deed is what a task has truly done for a batch.
type deed struct {
	tuple.BatchID
	task tuple.TaskID
	kind AnswerKind
}

type worldTask struct {
	id    tuple.TaskID
	life  tuple.Incarnation
	split string
	at    tuple.Attempt

	committed, last, done, write tuple.TxID
	pos                          int
	begins                       map[tuple.TxID]Ranges
	said                         map[deed]*Answer
	stuck                        bool // a batch has failed here, and the round is over for it

	// Of a state. It outlives lives.
	fence tuple.Attempt // T11
	has   map[message]int
	stamp tuple.BatchID    // T15
	wrote map[message]bool // in stamp
}

type worldOrder struct {
	from *Coordinator
	Letter
}

type worldAnswer struct {
	to   *Coordinator
	from tuple.TaskID
	life tuple.Incarnation
	a    *Answer
}

type request struct {
	from *Coordinator
	Request
	attempt tuple.Attempt
	life    tuple.Incarnation
}

const (
	worldMessages = 8 // of each split
	worldReplays  = 2
)

func newWorld(pick func(n int) int) *world {
	w := &world{
		pick: pick, fixed: pick(2) == 0, faulty: true, deaths: []int{0, 1, 2, 8}[pick(4)], lives: map[*Coordinator]tuple.Incarnation{}, committed: map[message]bool{},
		joined: map[tuple.Attempt]map[tuple.TaskID]bool{}, deeds: map[deed]bool{},
		content: map[tuple.BatchID]map[message]bool{}, ranges: map[tuple.BatchID]map[string]Ranges{},
	}
	w.roles = []Role{
		{Component: "in", Kind: Spout, Transactional: w.fixed}, {Component: "in", Kind: Spout, Transactional: w.fixed},
		{Component: "also", Kind: Spout, Transactional: w.fixed},
		{Component: "mid", Kind: Bolt}, {Component: "mid", Kind: Bolt, Settled: pick(2) == 0},
		{Component: "sum", Kind: Stateful}, {Component: "sum", Kind: Stateful},
		{Component: "all", Kind: Stateful, Behind: true},
		{Component: "tell", Kind: Bolt, Behind: true},
		{Component: "lead"},
	}
	for i := range w.roles {
		t := &worldTask{id: tuple.TaskID(i), life: 1, has: map[message]int{}}
		t.split = string(rune('a' + i))
		w.tasks = append(w.tasks, t)
	}
	w.lead()
	return w
}

func (w *world) lead() {
	c := NewCoordinator(w.roles, Settings{Ahead: 1 + w.pick(3), MaxReplays: worldReplays})
	w.leads = append(w.leads, c)
	w.lives[c] = tuple.Incarnation(len(w.lives) + 1)
	w.news = append(w.news, len(w.leads)-1)
	w.does(c)
}

func (w *world) must(ok bool, format string, args ...any) {
	if !ok {
		panic(broken(fmt.Sprintf(format, args...)))
	}
}

func (w *world) chance(percent int) bool { return w.faulty && w.pick(100) < percent }

// play runs the world, first with faults and then without, and returns what is broken.
func (w *world) play(steps int) (err error) {
	defer func() {
		if b, is := recover().(broken); is {
			err = errors.New(string(b))
		}
	}()
	for range steps {
		if w.step(); w.fatal {
			return nil
		}
	}
	w.faulty = false
	w.pick = rand.New(rand.NewPCG(1, 1)).IntN // fair: rapid draws small numbers more often
	for w.late = nil; len(w.leads) > 1; {
		w.leads = w.leads[1:] // they have gone in the end
	}
	w.news = []int{0}
	w.must(w.leads[0].phase != Stopped, "the last life is replaced")
	w.done = w.leads[0].phase == Finishing
	for range 100_000 { // one patience, at its longest, is some thousand steps of saying again
		if w.step(); w.done || w.fatal {
			break
		}
	}
	if w.fatal {
		return nil
	}
	w.must(w.done, "it does not come to an end: %+v", w.leads[0].Status())
	w.must(len(w.committed) == 3*worldMessages, "%d of %d messages are committed", len(w.committed), 3*worldMessages)
	return nil
}

// step lets one thing happen, any one.
func (w *world) step() {
	var can []func()
	may := func(weight int, f func()) {
		for range weight {
			can = append(can, f)
		}
	}
	if len(w.orders) > 0 {
		may(4, w.obey)
	}
	if len(w.says) > 0 {
		may(6, w.hear)
	}
	if len(w.requests) > 0 {
		may(2, w.settle)
	}
	if len(w.news) > 0 {
		may(2, w.tellLives)
	}
	for _, t := range w.tasks {
		if w.ready(t) {
			may(1, func() { w.work(t) })
		}
	}
	if len(can) == 0 || w.chance(3) {
		w.tick()
		return
	}
	switch {
	case w.chance(w.deaths):
		w.kill()
		return
	case w.chance(1) && len(w.leads) < 4:
		w.lead()
		return
	case w.chance(10) && len(w.late) > 0:
		e := take(w, &w.late)
		_ = w.append(e, tuple.Attempt{})
		return
	}
	can[w.pick(len(can))]()
}

func take[T any](w *world, s *[]T) T {
	i := w.pick(len(*s))
	v := (*s)[i]
	*s = slices.Delete(*s, i, i+1)
	return v
}

func (w *world) tick() {
	for _, t := range w.tasks { // what was lost is said again, where nobody asks for it
		if w.roles[t.id].Kind == Spout && t.at != (tuple.Attempt{}) && t.begins[t.done+1] == nil {
			w.sayInput(t)
		}
	}
	first := true
	for _, c := range w.leads {
		if at, ok := c.Next(); ok && (first || at > w.now) {
			w.now = max(w.now, at)
			first = false
		}
	}
	for _, c := range w.leads {
		c.Tick(w.now)
		w.does(c)
	}
}

func (w *world) kill() {
	t := w.tasks[w.pick(len(w.tasks)-1)]
	*t = worldTask{id: t.id, life: t.life + 1, split: t.split, fence: t.fence, has: t.has, stamp: t.stamp, wrote: t.wrote}
	for i := range w.leads {
		w.news = append(w.news, i)
	}
}

func (w *world) tellLives() {
	c := w.leads[take(w, &w.news)%len(w.leads)]
	var lives []tuple.Incarnation
	for _, t := range w.tasks {
		lives = append(lives, t.life)
	}
	lives[len(lives)-1] = 0
	if w.chance(10) {
		lives[w.pick(len(lives))] = 0
		w.news = append(w.news, slices.Index(w.leads, c))
	}
	c.Lives(w.now, lives)
	w.does(c)
}

// does takes what a coordinator wants, and looks at whether it may want that.
func (w *world) does(c *Coordinator) {
	c.check(failer{})
	e := c.Take()
	if e.Request != (Request{}) {
		w.must(!slices.ContainsFunc(w.requests, func(r request) bool { return r.from == c }), "it asks twice")
		w.requests = append(w.requests, request{c, e.Request, c.attempt, w.lives[c]})
	}
	for _, l := range e.Orders {
		o := l.Order
		switch o.Kind {
		case Join:
			for _, r := range w.requests {
				w.must(r.from != c || r.Append == nil, "round %v begins while an entry is on its way", o.Attempt)
			}
			if w.record.Epoch == o.Epoch {
				w.must(o.Tx == w.record.Committed, "round %v begins behind %d, and %d is committed", o.Attempt, o.Tx, w.record.Committed)
				if w.roles[l.To].Kind == Spout {
					w.must(maps.Equal(o.Positions, w.record.Positions[w.roles[l.To].Component]), "round %v begins at other positions", o.Attempt)
				}
			}
		case Begin:
			for i := range w.roles[:len(w.roles)-1] {
				w.must(w.joined[o.Attempt][tuple.TaskID(i)], "batch %d begins in %v before task %d has joined", o.Tx, o.Attempt, i)
			}
			w.must(o.Tx > c.record.Committed && o.Tx <= c.record.Committed+tuple.TxID(c.set.Ahead), "batch %d begins, and %d is committed", o.Tx, c.record.Committed)
		case Write:
			w.must(w.record.Epoch > o.Epoch || o.Tx == w.record.Committed+1, "batch %d is written, and %d is committed", o.Tx, w.record.Committed)
			for i := range w.roles {
				r := &w.roles[i]
				w.must(r.Kind != Spout || w.deeds[deed{o.BatchID, tuple.TaskID(i), Emitted}], "batch %v is written before task %d has emitted", o.BatchID, i)
				w.must(!r.readies() || w.deeds[deed{o.BatchID, tuple.TaskID(i), Ready}], "batch %v is written before task %d is ready", o.BatchID, i)
			}
		}
		w.orders = append(w.orders, worldOrder{c, l})
	}
	for _, v := range e.Events {
		switch v.Kind {
		case RoundBegan:
			if v.Cause == Failure {
				is := false
				for d := range w.deeds {
					is = is || d.kind == Failed && d.Epoch == v.Epoch && d.Round < v.Round && d.Tx == v.Tx+1
				}
				w.must(is, "a round begins behind %d for a batch that is not the next", v.Tx)
			}
		case Fatal:
			tries := map[tuple.Attempt]bool{}
			for d := range w.deeds {
				if d.kind == Failed && d.Tx == v.Tx {
					tries[d.Attempt] = true
				}
			}
			w.must(len(tries) > worldReplays, "batch %d has failed %d times, and that is the end: %v", v.Tx, len(tries), v.Err)
			w.fatal = true
		case Replaced:
			w.must(w.record.Life > w.lives[c], "replaced by nobody: %v", v.Err)
		case Finished:
			w.done = w.done || !w.faulty
			if w.record.Epoch == v.Epoch {
				w.must(len(w.committed) == 3*worldMessages, "it is finished, and %d messages are committed", len(w.committed))
			}
		}
	}
}

// failer makes a panic of what require does not find in order.
type failer struct{}

func (failer) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	panic(broken("an invariant does not hold:" + text[strings.LastIndex(text, "Error:")+len("Error:"):]))
}
func (failer) FailNow() {}

// settle gives a request its outcome.
func (w *world) settle() {
	r := take(w, &w.requests)
	var err error
	switch {
	case w.chance(8): // it is lost, or comes late
		err = errors.New("no quorum")
		if r.Append != nil && w.pick(2) == 0 {
			w.late = append(w.late, r.Append)
		}
		if r.Begin && w.pick(2) == 0 {
			w.late = append(w.late, &Entry{Epoch: w.record.Epoch + 1, Begin: true, Life: r.life})
		}
	case r.Begin:
		err = w.append(&Entry{Epoch: w.record.Epoch + 1, Begin: true, Life: r.life}, r.attempt)
		w.must((err == nil) == (r.life >= w.record.Life), "life %v begins, and %v was the last: %v", r.life, w.record.Life, err)
	default:
		err = w.append(r.Append, r.attempt)
	}
	if err == nil && w.chance(8) {
		err = errors.New("no answer")
	}
	if r.Begin {
		var copied *Record
		if err == nil {
			copied = w.record.Clone()
		}
		r.from.Recovered(w.now, copied, err)
	} else {
		r.from.Appended(w.now, err)
	}
	w.does(r.from)
}

// append is what happens where the record is. The attempt is not known of entries that
// come late.
func (w *world) append(e *Entry, at tuple.Attempt) error {
	alone := e.Epoch == w.record.Epoch
	before := w.record.Clone()
	err := w.record.Apply(e)
	if e.Begin {
		return err
	}
	w.must(err == nil || !alone, "the record refuses its coordinator: %v", err)
	w.must(err == nil || before.Committed == w.record.Committed && before.Epoch == w.record.Epoch, "an entry is refused and taken")
	if err != nil || e.Commit == nil {
		return err
	}
	id := tuple.BatchID{Attempt: tuple.Attempt{Epoch: e.Epoch, Round: e.Commit.Round}, Tx: e.Commit.Tx}
	w.must(at == (tuple.Attempt{}) || at == id.Attempt, "attempt %v has batch %v committed", at, id)
	for i := range w.roles {
		w.must(!w.roles[i].writes() || w.deeds[deed{id, tuple.TaskID(i), Wrote}], "batch %v is committed before task %d has written it", id, i)
	}
	for component, ranges := range w.ranges[id] {
		for split, r := range ranges {
			w.must(r.From == before.Positions[component][split], "batch %v reads %s from %q, and it is at %q", id, split, r.From, before.Positions[component][split])
			w.must(e.Commit.Positions[component][split] == r.To, "batch %v commits another position of %s", id, split)
		}
	}
	for m := range w.content[id] {
		w.must(!w.committed[m], "message %v is committed twice", m)
		w.committed[m] = true
	}
	for _, t := range w.tasks {
		if w.roles[t.id].Kind != Stateful {
			continue
		}
		for m := range w.committed {
			w.must(!w.owns(t, m) || t.has[m] == 1, "batch %v is committed, and state %d has message %v %d times", id, t.id, m, t.has[m])
		}
		for m := range t.has {
			w.must(w.committed[m], "batch %v is committed, and state %d has message %v, which is not", id, t.id, m)
		}
	}
	return nil
}

// owns reports whether a message belongs to the state of a task.
func (w *world) owns(t *worldTask, m message) bool {
	return t.id == 7 || (t.id == 5) == (m.n%2 == 0) && (t.id == 5 || t.id == 6)
}
