package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// faults are what a scene's network and machines do wrong. All of it is over when
// until messages were sent or heal has passed, so that every run must come to
// rest.
type faults struct {
	plan []fault // in order

	limits  int // of 1,000 messages of a class, how many are lost: limits,
	asks    int // questions for one,
	notes   int // still-queued notes
	copies  int // limits that come twice
	loose   int // reports that come out of order
	late    int // news of deaths that come late and out of order
	forget  int // of 10,000 entries of reports, how many are lost
	until   int
	heal    time.Duration
	timeout bool // so much stands still that a message may time out
}

func (f *faults) String() string {
	kinds := map[string]int{}
	text := ""
	for _, x := range f.plan {
		if kinds[x.kind]++; kinds[x.kind] == 1 {
			text += x.kind + " "
		}
	}
	return fmt.Sprintf("%d faults (%s)", len(f.plan), text)
}

// A clock says what a fault waits for.
type clock uint8

const (
	byMessages clock = iota // sent, so maybe in the middle of a call
	byEvents
	byTime // in microseconds
	byEnds // end-of-input messages sent, also in the middle of a call
)

// A fault is done to a task when its clock shows so much.
type fault struct {
	kind   string
	clock  clock
	at     int
	task   int // modulo the number of tasks
	other  int
	d      time.Duration
	factor float64
}

func (s *scene) drawFaults(r *rand.Rand) {
	f := &s.faults
	span := one(r, 50, 300, 1000, 3000, 10_000) // of messages, in which it all happens
	f.until, f.heal = 2*span, 30*time.Second
	some := func(p, most int) int {
		if chance(r, p) {
			return 1 + r.IntN(most)
		}
		return 0
	}
	f.limits, f.asks, f.copies = some(40, 400), some(50, 500), some(30, 300)
	f.loose, f.late = some(40, 300), some(40, 600)
	f.timeout = chance(r, 10)
	if f.timeout {
		f.notes = some(50, 500)
	}
	if s.mood == forgetful {
		f.forget = one(r, 1, 10, 100)
		if chance(r, 50) {
			return // forgetting is all
		}
	}
	kinds := []string{"kill", "kill", "crash"}
	if chance(r, 40) {
		kinds = append(kinds, "kill again", "kill many")
	}
	if chance(r, 40) {
		kinds = append(kinds, "freeze", "freeze link", "slow")
	}
	if chance(r, 25) {
		kinds = append(kinds, "stall", "stall")
	}
	if chance(r, 15) {
		return // bolts and sources do it
	}
	for range 1 + r.IntN(one(r, 4, 12, 30)) {
		x := fault{
			kind: one(r, kinds...), at: 1 + r.IntN(span), clock: one(r, byMessages, byEvents, byTime, byTime),
			task: r.IntN(1000), other: r.IntN(1000), factor: 1 + 9*r.Float64(),
			d: around(r, 100*time.Microsecond, s.set.MessageTimeout/8),
		}
		if x.clock == byTime {
			x.at = int(around(r, 100*time.Microsecond, 20*time.Second) / time.Microsecond)
		}
		f.plan = append(f.plan, x)
	}
	if chance(r, 30) { // just when the input ends
		for range 1 + r.IntN(3) {
			f.plan = append(f.plan, fault{kind: one(r, "kill", "crash"), clock: byEnds, at: 1 + r.IntN(12), task: r.IntN(1000)})
		}
	}
}

// An adversary does a scene's faults to its world and watches the credit of all
// pairs.
type adversary struct {
	run    *run
	f      *faults
	chance *rand.Rand
	tasks  map[string]tuple.TaskID // by name
	known  map[actor.Ref]tuple.TaskID
	now    []actor.Ref // present incarnation of each task, nil before it was sent anything
	lives  []uint32    // of each task, that were heard of
	again  []bool      // kill the next incarnation when it is first heard of
	fired  []bool      // by fault
	slowed []actor.Ref
	sent   int
	ends   int
	healed bool
	pairs  map[acquaintance]*pairBook
	done   map[string]int // faults, by kind
}

// A pairBook is what a pair has sent and may send. The limit that was said counts,
// whether it has arrived or not.
type pairBook struct{ sent, limit uint64 }

func newAdversary(r *run) *adversary {
	a := &adversary{
		run: r, f: &r.scene.faults, chance: rand.New(rand.NewPCG(r.scene.seed, 0x616476)),
		tasks: map[string]tuple.TaskID{}, known: map[actor.Ref]tuple.TaskID{},
		now: make([]actor.Ref, len(r.plan.Tasks)), again: make([]bool, len(r.plan.Tasks)), lives: make([]uint32, len(r.plan.Tasks)),
		fired: make([]bool, len(r.scene.faults.plan)),
		pairs: map[acquaintance]*pairBook{}, done: map[string]int{},
	}
	for id := range r.plan.Tasks {
		a.tasks[r.plan.TaskName(tuple.TaskID(id))] = tuple.TaskID(id)
	}
	r.rec.timeouts = a.f.timeout || a.f.forget > 0
	a.healed = r.scene.mood < deadly
	return a
}

// meet learns which actor is the present incarnation of a task.
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
	a.now[id] = ref
	a.lives[id]++
	a.run.rec.edges.born(id, tuple.NewIncarnation(1, a.lives[id]))
	if a.again[id] {
		a.again[id] = false
		a.kill(id, false, "kill again")
	}
}

// event is called after each event of the world.
func (a *adversary) event() {
	if a.healed {
		return
	}
	a.fire(byEvents, a.run.w.Events())
	a.fire(byTime, int(a.run.w.now/time.Microsecond))
	if a.run.w.now > a.f.heal || a.sent > a.f.until && !slices.Contains(a.fired, false) {
		a.heal()
	}
}

func (a *adversary) heal() {
	a.healed = true
	for _, ref := range a.slowed {
		a.run.w.Slow(ref, 1)
	}
}

// rule is asked about each message.
func (a *adversary) rule(from, to actor.Ref, msg any) (v Verdict) {
	a.meet(to)
	a.sent++
	if !a.healed {
		a.fire(byMessages, a.sent)
		if _, is := msg.(*task.End); is {
			a.ends++
			a.fire(byEnds, a.ends)
		}
		v = a.interfere(msg)
	}
	a.credit(msg)
	return v
}

func (a *adversary) fire(c clock, n int) {
	for i := range a.f.plan {
		if x := &a.f.plan[i]; !a.fired[i] && x.clock == c && x.at <= n {
			a.fired[i] = true
			a.do(x)
		}
	}
}

func (a *adversary) do(x *fault) {
	id := tuple.TaskID(x.task % len(a.now))
	other := tuple.TaskID(x.other % len(a.now))
	w, ref := a.run.w, a.now[id]
	if ref == nil || a.now[other] == nil || !w.Alive(ref) {
		return
	}
	switch x.kind {
	case "kill", "crash":
		a.kill(id, x.kind == "crash", x.kind)
	case "kill again":
		a.again[id] = true
		a.kill(id, false, "kill")
	case "kill many":
		for k := range a.now {
			if mix(uint64(x.other), uint64(k), 0)%2 == 0 {
				a.kill(tuple.TaskID(k), x.other%2 == 0, x.kind)
			}
		}
	case "freeze":
		w.Freeze(ref, x.d)
		a.done[x.kind]++
	case "freeze link":
		w.FreezeLink(ref, a.now[other], x.d)
		a.done[x.kind]++
	case "slow":
		w.Slow(ref, x.factor)
		a.slowed = append(a.slowed, ref)
		a.done[x.kind]++
	case "stall": // of a ledger, for longer than anything may be silent
		spouts := 0
		for spouts < len(a.now) && a.run.plan.Node(tuple.TaskID(spouts)).Reads() {
			spouts++
		}
		if ref = a.now[x.task%spouts]; ref != nil && w.Alive(ref) {
			w.Freeze(ref, time.Duration(float64(a.run.scene.set.MessageTimeout)*x.factor/2))
			a.done[x.kind]++
		}
	}
}

func (a *adversary) kill(id tuple.TaskID, crash bool, kind string) {
	ref := a.now[id]
	if ref == nil || !a.run.w.Alive(ref) {
		return
	}
	rec := a.run.rec
	rec.kills++
	rec.died()
	for _, b := range rec.splits[a.run.plan.Tasks[id].Component] {
		for _, m := range b.roots { // will be read again
			if !m.acked && m.dead == nil {
				m.death = len(rec.deaths) - 1
			}
		}
	}
	if b := rec.queues[a.run.plan.Tasks[id].Component]; b != nil {
		for _, d := range b.open {
			d.m.death = len(rec.deaths) - 1
		}
	}
	a.done[kind]++
	if crash {
		rec.crashes++
		a.run.w.Crash(ref)
	} else {
		a.run.w.Kill(ref)
	}
}

// interfere loses, repeats and disorders what may be lost, repeated or come in
// any order.
func (a *adversary) interfere(msg any) (v Verdict) {
	happens := func(per1000 int, what string) bool {
		if per1000 == 0 || a.chance.IntN(1000) >= per1000 {
			return false
		}
		a.done[what]++
		return true
	}
	switch m := msg.(type) {
	case *task.Limit:
		v.Drop = happens(a.f.limits, "limit lost")
		if !v.Drop && happens(a.f.copies, "limit repeated") {
			m.Parcels = nil // they can have only one owner
			v.Copies, v.Loose = 1, true
			v.Delay = around(a.chance, 10*time.Microsecond, 100*time.Millisecond)
		}
	case *task.Ask:
		v.Drop = happens(a.f.asks, "ask lost")
	case *task.Peers:
		if v.Loose = happens(a.f.late, "news late"); v.Loose {
			v.Delay = around(a.chance, 10*time.Microsecond, 200*time.Millisecond)
		}
	case *acker.Report:
		if task.Class(msg) != "report" {
			v.Drop = happens(a.f.notes, "still-queued lost")
			break
		}
		a.forget(m)
		if v.Loose = happens(a.f.loose, "report out of order"); v.Loose {
			v.Delay = around(a.chance, 10*time.Microsecond, 10*time.Millisecond)
		}
	}
	return v
}

// forget loses entries of a report: the tuples were executed, but nobody says so.
func (a *adversary) forget(m *acker.Report) {
	if a.f.forget == 0 {
		return
	}
	kept := m.Entries[:0]
	for _, e := range m.Entries {
		if a.chance.IntN(10_000) < a.f.forget {
			a.done["entry lost"]++
			a.run.rec.forgot++
			continue
		}
		kept = append(kept, e)
	}
	m.Entries = kept
}

// credit checks that nobody sends more than it may: nothing while the total is at
// the limit. So a queue is bounded by the limits.
func (a *adversary) credit(msg any) {
	switch m := msg.(type) {
	case *tuple.Parcel:
		a.run.rec.checks++
		p := a.pair(acquaintance{m.From, m.To, m.FromLife, m.ToLife})
		if p.sent >= p.limit {
			a.run.rec.violate("credit", "%s sends %d tuples to %s, and has sent %d of %d", a.run.plan.TaskName(m.From), m.Len(), a.run.plan.TaskName(m.To), p.sent, p.limit)
		}
		if m.Len() == 0 || m.Len() > a.run.scene.set.ParcelSize {
			a.run.rec.violate("parcels", "%s sends a parcel of %d tuples", a.run.plan.TaskName(m.From), m.Len())
		}
		p.sent += uint64(m.Len())
		a.run.rec.edges.parcel(a.run.w.Now(), m)
		a.tracked(m)
	case *task.Limit:
		p := a.pair(acquaintance{m.To, m.From, m.ToLife, m.FromLife})
		if most := p.sent + 8192; m.Total > most {
			a.run.rec.violate("credit", "%s is told %d, and has sent %d", a.run.plan.TaskName(m.To), m.Total, p.sent)
		}
		p.limit = max(p.limit, m.Total)
	}
}

func (a *adversary) pair(k acquaintance) *pairBook {
	p := a.pairs[k]
	if p == nil {
		p = &pairBook{limit: broker.FirstLimit}
		a.pairs[k] = p
	}
	return p
}

// tracked checks that each tuple of a tracked parcel belongs to a tree.
func (a *adversary) tracked(p *tuple.Parcel) {
	if a.run.plan.Guarantee != topology.AtLeastOnce {
		return
	}
	n := uint32(0)
	for _, s := range p.Slots {
		n += s.Count
	}
	refs := p.Len() - len(p.Lists)
	for _, list := range p.Lists {
		refs += len(list)
	}
	if int(n) != refs || len(p.Refs) != p.Len() {
		a.run.rec.violate("parcels", "%d tuples of %d messages, but the trees count %d", p.Len(), refs, n)
	}
}
