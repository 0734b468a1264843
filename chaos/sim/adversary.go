package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

const (
	// healAfter is when everything is healed: what lasts and has no end of its own
	// ends then, and so does what is done every so often.
	healAfter = 30 * time.Second
	// drainFor is how long a drain may take that has no deadline of its own.
	drainFor = 30 * time.Minute
	// mostSlow is how slow a task may be and say in time what waits in it.
	mostSlow = 10
	// mostTimes is how often something is done that is to be done every so often, to
	// all whom it is done to together.
	mostTimes = 1000
	// mostAgain is how many next lives of a task may be doomed.
	mostAgain = 100
)

// A witness is told what an adversary does, before it is done. What is nil is not
// told. It may look at the world and must not change it.
type witness struct {
	// born: the adversary has heard of a life of a task, its nth.
	born func(id tuple.TaskID, n uint32)
	// dies: a living task is about to be killed.
	dies func(id tuple.TaskID, crash bool)
	// silent: a task, a link or a message will keep somebody waiting for so long.
	silent func(d time.Duration)
	// lost: n pieces of news of what is done, failed, queued or held are lost.
	lost func(n int)
	// jumps: the clock of a task jumps forward.
	jumps func(id tuple.TaskID, d time.Duration)
	// ending: the run is asked to end, in good order if drain.
	ending func(f chaos.Fault, drain bool)
}

// An adversary does a plan to a world in which a supervisor and its tasks run. It
// knows nothing of what they do.
//
//	times --------------------> do --kill, freeze, slow, jump--> World
//	counts (rule, event) ------^ |
//	                             +--armed--> strikes <-- user code
//	rule <-- each message        lasting --> hits    <-- user code
//
// Each fault draws from numbers of its own, so that a plan without one of its
// faults does the others as it did them with it, as far as the run is the same.
type adversary struct {
	w      *World
	topo   *topology.Plan
	sup    actor.Ref
	tell   witness
	faults []*harm
	tasks  map[string]tuple.TaskID // by name
	known  map[actor.Ref]tuple.TaskID
	now    []actor.Ref // the present life of each task; nil before it was heard of
	lives  []uint32    // of each task, that were heard of
	again  []int       // how many next lives of a task to kill when they are first heard of
	armed  [][]*armed  // by task: what the next call of user code gets
	slow   []float64   // by task
	counts [4]counter  // by clock, without Time
	links  []*harm     // what is done to messages
	timers []*harm     // and to timers
	code   []*harm     // and to user code, so long
	early  []*harm     // what was to be done before all tasks were there
	unborn int         // tasks that were not heard of yet
	over   bool        // all is healed: nothing is done any more but to end the run
	ended  bool        // which has ended
	done   map[string]int
}

// A harm is a fault and its numbers.
type harm struct {
	chaos.Fault
	chance *rand.Rand
	on     []tuple.TaskID // whom a lasting fault is done to just now
	times  int            // that it was done, of one that is done every so often
}

// A counter does the faults that wait for a count.
type counter struct {
	n    int64
	wait []*harm // those that are still to be done, the next one first
}

func newAdversary(w *World, topo *topology.Plan, plan chaos.Plan, tell witness) *adversary {
	n := len(topo.Tasks)
	a := &adversary{
		w: w, topo: topo, tell: tell, tasks: map[string]tuple.TaskID{}, known: map[actor.Ref]tuple.TaskID{},
		now: make([]actor.Ref, n), lives: make([]uint32, n), again: make([]int, n), armed: make([][]*armed, n), slow: make([]float64, n),
		unborn: n, done: map[string]int{},
	}
	for id := range topo.Tasks {
		a.tasks[topo.TaskName(tuple.TaskID(id))] = tuple.TaskID(id)
		a.slow[id] = 1
	}
	same := map[string]uint64{}
	for _, f := range plan {
		key := f // what a smaller fault in its place would have in common with it
		key.When, key.Rate, key.Least, key.Most, key.Factor, key.Times = chaos.When{}, 0, 0, 0, 0, 0
		k := key.String()
		same[k]++
		h := &harm{Fault: f, chance: rand.New(rand.NewPCG(w.seed^hashOf(k), same[k]))}
		a.faults = append(a.faults, h)
		a.prepare(h)
	}
	for c := range a.counts {
		slices.SortStableFunc(a.counts[c].wait, func(x, y *harm) int { return cmp.Compare(x.When.From.At, y.When.From.At) })
	}
	return a
}

func hashOf(s string) uint64 {
	x := uint64(0)
	for _, b := range []byte(s) {
		x = mix(x, uint64(b), 0)
	}
	return x
}

// prepare has a fault done when it is time.
func (a *adversary) prepare(h *harm) {
	w := &h.When
	from := time.Duration(w.From.At)
	switch {
	case w.Once && w.From.Clock != chaos.Time:
		c := &a.counts[w.From.Clock]
		c.wait = append(c.wait, h)
	case w.Once:
		a.w.schedule(from, func() { a.do(h) })
	case w.Every > 0:
		a.w.schedule(from, func() { a.every(h) })
	case h.Kind == chaos.Slow:
		a.w.schedule(from, func() { a.begin(h) })
		a.w.schedule(h.end(), func() { a.finish(h) })
	case onLinks(h.Kind) && (h.Class == chaos.Tick || h.Class == chaos.Timer):
		a.timers = append(a.timers, h)
	case onLinks(h.Kind):
		a.links = append(a.links, h)
	default:
		a.code = append(a.code, h)
	}
}

// arms reports whether a kind, done at a time, is for a call to come.
func arms(k chaos.Kind) bool { return k == chaos.Panic || k == chaos.Hang || k == chaos.Break }

func onLinks(k chaos.Kind) bool {
	return k == chaos.Lose || k == chaos.Repeat || k == chaos.Delay || k == chaos.Reorder
}

// end is when a fault that lasts, or is done every so often, ends.
func (h *harm) end() time.Duration {
	if h.When.To != (chaos.Point{}) {
		return time.Duration(h.When.To.At)
	}
	return healAfter
}

// holds reports whether a lasting fault is there now.
func (a *adversary) holds(h *harm) bool {
	now := a.w.Now()
	return !a.over && h.When.Holds(now) && now < h.end()
}

func (a *adversary) every(h *harm) {
	if a.over || a.w.now >= h.end() || h.times >= mostTimes {
		return
	}
	a.do(h)
	a.w.schedule(a.w.now+h.When.Every, func() { a.every(h) })
}

// event is called after each event of the world.
func (a *adversary) event() {
	a.count(chaos.Events, int64(a.w.Events()))
	if a.unborn == 0 && len(a.early) > 0 {
		for _, h := range a.early {
			if h.Kind == chaos.Slow {
				a.begin(h)
			} else {
				a.do(h)
			}
		}
		a.early = nil
	}
}

// count says how far a clock has come.
func (a *adversary) count(clock chaos.Clock, n int64) {
	c := &a.counts[clock]
	c.n = n
	for len(c.wait) > 0 && c.wait[0].When.From.At <= n {
		h := c.wait[0]
		c.wait = c.wait[1:]
		a.do(h)
	}
}

// meet learns which actor is the present life of a task.
func (a *adversary) meet(ref actor.Ref) {
	if _, met := a.known[ref]; met {
		return
	}
	at, _ := ref.(address)
	id, is := a.tasks[at.name]
	if !is {
		return
	}
	a.known[ref] = id
	if a.now[id] == nil {
		a.unborn--
	}
	a.now[id] = ref
	a.lives[id]++
	if a.tell.born != nil {
		a.tell.born(id, a.lives[id])
	}
	if a.slow[id] != 1 {
		a.w.Slow(ref, a.slow[id])
	}
	if a.again[id] > 0 {
		a.again[id]--
		a.kill(id, false)
		a.did(chaos.Kill, "")
	}
}

// did counts what was done.
func (a *adversary) did(k chaos.Kind, c chaos.Class) {
	if c == "" {
		a.done[string(k)]++
	} else {
		a.done[string(k)+" "+string(c)]++
	}
}

// who returns the tasks that are meant: all of them or one. Those that are dead just
// now are not killed again and the like, but what is armed waits for their next life.
func (a *adversary) who(h *harm, w chaos.Who) (ids []tuple.TaskID) {
	for id := range a.now {
		t := a.topo.Tasks[id]
		ref := a.now[id]
		if (a.w.Alive(ref) || arms(h.Kind)) && w.Is(a.topo.Components[t.Component].Name, t.Index) {
			ids = append(ids, tuple.TaskID(id))
		}
	}
	if w.Task == chaos.One && len(ids) > 1 {
		ids = []tuple.TaskID{ids[h.chance.IntN(len(ids))]}
	}
	return ids
}

// do does a fault that happens at a time.
func (a *adversary) do(h *harm) {
	if ends := h.Kind == chaos.Drain || h.Kind == chaos.Stop; a.ended || a.over && !ends {
		return
	}
	if a.unborn > 0 {
		a.early = append(a.early, h)
		return
	}
	switch h.Kind {
	case chaos.Hold:
		a.hold(h)
		return
	case chaos.Drain, chaos.Stop:
		a.endRun(h)
		return
	case chaos.Jump:
		if h.Who == chaos.Everyone { // a machine was suspended, and the supervisor with it
			a.w.jump(a.w.find(a.sup), h.Most)
		}
	}
	for _, id := range a.who(h, h.Who) {
		h.times++
		ref := a.now[id]
		switch h.Kind {
		case chaos.Kill, chaos.Crash:
			a.again[id] = min(a.again[id]+h.Times, mostAgain)
			a.kill(id, h.Kind == chaos.Crash)
		case chaos.Stall:
			// Stalls that overlap are one, though freezes add up.
			if d := a.w.Now() + h.Most - max(a.w.find(ref).busy, a.w.now); d > 0 {
				a.w.Freeze(ref, d)
			}
			if !a.topo.Node(id).Reads() { // a ledger that did not run has no evidence against a tree (R9)
				a.silent(h.Most)
			}
		case chaos.Jump:
			if a.tell.jumps != nil {
				a.tell.jumps(id, h.Most)
			}
			a.w.jump(a.w.find(ref), h.Most)
		default:
			a.arm(id, h)
			continue // counted when it is done
		}
		a.did(h.Kind, "")
	}
}

func (a *adversary) silent(d time.Duration) {
	if a.tell.silent != nil {
		a.tell.silent(d)
	}
}

func (a *adversary) kill(id tuple.TaskID, crash bool) {
	ref := a.now[id]
	if ref == nil || !a.w.Alive(ref) {
		return
	}
	if a.tell.dies != nil {
		a.tell.dies(id, crash)
	}
	if crash {
		a.w.Crash(ref)
	} else {
		a.w.Kill(ref)
	}
}

// hold holds up the links between those who are meant.
func (a *adversary) hold(h *harm) {
	to := a.who(h, h.To)
	for _, from := range a.who(h, h.Who) {
		for _, id := range to {
			if id != from {
				h.times++
				a.w.FreezeLink(a.now[from], a.now[id], h.Most)
				a.silent(h.Most)
				a.did(h.Kind, "")
			}
		}
	}
}

// begin makes slow, and the next lives too.
func (a *adversary) begin(h *harm) {
	if a.unborn > 0 {
		a.early = append(a.early, h)
		return
	}
	h.on = a.who(h, h.Who)
	for _, id := range h.on {
		a.changePace(id, h.Factor)
		a.did(h.Kind, "")
	}
}

func (a *adversary) finish(h *harm) {
	for _, id := range h.on {
		a.changePace(id, 1/h.Factor)
	}
	h.on = nil
}

func (a *adversary) changePace(id tuple.TaskID, factor float64) {
	if a.slow[id] *= factor; a.slow[id] > 0.999 && a.slow[id] < 1.001 {
		a.slow[id] = 1
	}
	if a.slow[id] > mostSlow {
		a.silent(never)
	}
	if ref := a.now[id]; a.w.Alive(ref) {
		a.w.Slow(ref, a.slow[id])
	}
}

// endRun asks the supervisor to end the run.
func (a *adversary) endRun(h *harm) {
	if a.tell.ending != nil {
		a.tell.ending(h.Fault, h.Kind == chaos.Drain)
	}
	a.did(h.Kind, "")
	if h.Kind == chaos.Stop {
		a.w.Send(a.sup, task.Stop{})
		return
	}
	d := h.Most
	if d == 0 {
		d = drainFor
	}
	a.w.Send(a.sup, task.DrainBy{Deadline: d})
}
