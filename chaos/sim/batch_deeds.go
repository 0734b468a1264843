package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/task"
)

// A batchDeed is something that is done to an exactly-once topology.
type batchDeed struct {
	kind  string
	class string        // of messages, or a place in user code
	at    time.Duration // not before
	lasts time.Duration // and for so long; of what waits for a message or a call: until it comes
	n     int           // whom, or the nth message or call
	m     int           // whom of those that a message is about
}

func (d batchDeed) String() string {
	text := fmt.Sprintf("at %v %s", d.at, d.kind)
	if d.class != "" {
		text += " " + d.class
	}
	text += fmt.Sprintf(" %d %d", d.n, d.m)
	if d.lasts > 0 {
		text += fmt.Sprintf(" for %v", d.lasts)
	}
	return text
}

// batchMoods are which deeds a seed draws of. Without any nothing goes wrong.
var batchMoods = []struct {
	name  string
	kinds []string
}{
	{"peaceful", nil},
	{"failing", []string{"panic", "panic", "error", "error", "break"}},
	{"deadly", []string{"kill", "kill on", "kill on", "kill on", "die", "die", "linger", "linger"}},
	{"crashing", []string{"crash", "crash on", "crash in", "crash in", "stop", "drain", "kill on"}},
	{"forgetful", []string{"record lost", "record fails", "record late", "kill on", "kill lead"}},
	{"disorderly", []string{"delay", "delay", "reorder", "reorder", "repeat", "lose", "stall", "jump", "kill on"}},
	{"hanging", []string{"hang", "hang", "kill"}},
	{"everything", []string{
		"panic", "error", "break", "kill", "kill on", "kill on", "die", "linger", "linger", "crash", "crash on", "crash in", "stop", "drain", "record lost", "record fails", "record late",
		"kill lead", "delay", "reorder", "repeat", "lose", "lose", "stall", "jump", "hang",
	}},
	{losing, []string{"forget", "put back", "unfix"}},
}

// losing is the mood of stores that break their word. It is drawn beside the others.
const losing = "losing"

// drawLosses draws the deeds of that: one, and attempts that end when they have written.
func (s *batchScene) drawLosses(r *rand.Rand) {
	s.mood, s.faults = losing, true
	s.deeds = []batchDeed{s.drawDeed(r, one(r, "forget", "forget", "put back"))}
	for range 1 + r.IntN(6) {
		s.deeds = append(s.deeds, batchDeed{kind: one(r, "error", "die"), class: "written", n: 1 + r.IntN(20)})
	}
	if slices.ContainsFunc(s.parts, func(p batchPart) bool { return p.plain }) && chance(r, 70) {
		s.deeds[0].kind = "unfix"
	}
}

// Classes of messages at which something is done, as task.Class names them.
var (
	batchTalk    = []string{"join", "begin", "write", "settled", "finish", "joined", "input", "emitted", "ready", "wrote", "failed"}
	batchClasses = append([]string{"marker", "parcel", "limit"}, batchTalk...)
	// What may be lost between two lives that go on: all that is said again, or whose want
	// ends the round (T7). Input is neither, and markers are what shows that a tuple is lost:
	// a link that has lost one of them has lost a life too.
	batchLost = []string{"join", "begin", "write", "settled", "finish", "joined", "emitted", "ready", "wrote", "failed"}
)

// Places in user code where something is done.
var batchPlaces = []string{"prepare", "round", "batch", "execute", "complete", "join", "joined", "read", "write", "written"}

// drawDeed draws when a deed is done, and to whom.
func (s *batchScene) drawDeed(r *rand.Rand, kind string) batchDeed {
	most := max(s.span, one(r, 500*time.Millisecond, 3*time.Second)) // most of it while there is work
	if chance(r, 20) {
		most = batchHeal * 2 / 3
	}
	d := batchDeed{kind: kind, at: time.Duration(r.Int64N(int64(most))).Round(time.Millisecond), n: r.IntN(20), m: r.IntN(4)}
	switch kind {
	case "kill on", "crash on":
		d.class, d.n = one(r, batchClasses...), 1+r.IntN(one(r, 3, 20))
	case "delay", "repeat":
		d.class = one(r, append([]string{"peers", "marker", "parcel"}, batchClasses...)...)
		if kind == "repeat" {
			d.class = one(r, batchTalk...)
		}
		d.lasts = around(r, time.Second, 6*time.Second)
	case "lose":
		d.class = one(r, batchLost...)
		if chance(r, 60) {
			d.class = "talk"
		}
		d.lasts = around(r, time.Second, 6*time.Second)
	case "reorder":
		d.class = one(r, append([]string{"limit", "ask", "peers"}, batchTalk...)...)
		if chance(r, 30) {
			d.class = "talk" // all of it
		}
		d.lasts = around(r, time.Second, 6*time.Second)
	case "linger":
		d.class, d.n = one(r, "state", "state", "coordinator"), 1+r.IntN(10)
	case "panic", "error", "die", "crash in":
		d.class, d.n = one(r, batchPlaces...), 1+r.IntN(one(r, 3, 30))
		if kind == "error" && (d.class == "round" || d.class == "batch") {
			d.class = "execute" // they have none
		}
	case "hang":
		d.class, d.n = one(r, "round", "batch", "execute", "execute", "complete"), 1+r.IntN(20)
		d.lasts = around(r, 50*time.Millisecond, 3*time.Second)
	case "break":
		d.class, d.n = one(r, "open", "next", "splits"), 1+r.IntN(30)
		if d.class == "splits" {
			d.class = "next"
		}
	case "record lost", "record fails", "record late":
		d.lasts = around(r, time.Second, 5*time.Second)
	case "stall", "jump":
		d.lasts = around(r, 10*time.Millisecond, 3*time.Second)
	}
	d.lasts = min(d.lasts, batchHeal-d.at-100*time.Millisecond).Round(time.Millisecond)
	return d
}

// A pendingDeed waits for a message or a call.
type pendingDeed struct {
	batchDeed
	left int // so many more until it is done; 0: it was
}

// prepare has the deeds done when it is time.
func (r *batchRun) prepare() {
	for _, d := range r.s.deeds {
		switch d.kind {
		case "kill on", "crash on", "panic", "error", "die", "crash in", "hang", "break", "linger", "put back", "unfix":
			r.waiting = append(r.waiting, &pendingDeed{d, max(d.n, 1)})
		case "delay", "reorder", "repeat", "lose", "record lost", "record fails", "record late":
			// they are looked for
		default:
			r.w.schedule(d.at, func() { r.do(d) })
		}
	}
	r.w.schedule(batchHeal, func() { r.healed = true })
}

func (r *batchRun) did(kind string) { r.deeds[kind]++ }

// do does what is done at a time.
func (r *batchRun) do(d batchDeed) {
	if r.healed || r.sup == nil || !r.w.Alive(r.sup) || len(r.now) == 0 {
		return
	}
	switch d.kind {
	case "kill", "stall", "jump":
		l := r.now[d.n%len(r.now)]
		if l == nil || !r.w.Alive(l.proc.ref) {
			return
		}
		switch d.kind {
		case "kill":
			r.kill(l.proc)
		case "stall":
			r.w.Freeze(l.proc.ref, d.lasts)
		case "jump":
			r.w.Jump(l.proc.ref, d.lasts)
		}
	case "kill lead":
		if l := r.now[len(r.now)-1]; l != nil && r.w.Alive(l.proc.ref) {
			r.kill(l.proc)
		}
	case "crash":
		r.crash()
	case "forget":
		if !r.forget(d.n) {
			return
		}
	case "stop":
		r.asked = true
		r.w.Send(r.sup, task.Stop{})
	case "drain":
		r.asked = true
		r.w.Send(r.sup, task.DrainBy{Deadline: time.Duration(d.n) * 100 * time.Millisecond})
	}
	r.did(d.kind)
}

// kill ends a life of a task, with or without what is on its way from it.
func (r *batchRun) kill(p *proc) {
	if p.state == ended {
		return
	}
	r.kills++
	if r.oneIn(2) {
		r.w.Kill(p.ref)
	} else {
		r.w.Crash(p.ref)
	}
}

// crash ends the process, and with it what stores have not made durable.
func (r *batchRun) crash() {
	if !r.w.Alive(r.sup) {
		return
	}
	r.w.Crash(r.sup)
	r.crashed = true
	for _, s := range r.states {
		if s != nil {
			s.crash()
		}
	}
}

// onSend is told of each message, and says what becomes of it.
func (r *batchRun) onSend(from, to actor.Ref, msg any) (v Verdict) {
	r.meet()
	if from == nil {
		return v
	}
	r.book.said(r.w.find(from), r.w.find(to), msg)
	if r.healed {
		return v
	}
	class := task.Class(msg)
	talk := slices.Contains(batchTalk, class)
	for _, d := range r.s.deeds {
		if d.class != class && !(d.class == "talk" && talk) || !r.lasting(d) || r.oneIn(2) {
			continue
		}
		switch d.kind {
		case "delay":
			v.Delay += r.draw(0, r.upTo(d))
		case "reorder":
			v.Delay += r.draw(0, r.upTo(d))
			v.Loose = true
			if m, is := msg.(*task.Limit); is {
				m.Parcels = nil
			}
		case "repeat":
			v.Copies++
		case "lose":
			if !slices.Contains(batchLost, class) {
				continue
			}
			v.Drop = true
			r.book.saw(class + " lost")
		default:
			continue
		}
		r.did(d.kind)
	}
	for _, d := range r.waiting {
		if d.class != class || d.left == 0 || r.w.Now() < d.at || !strings.HasSuffix(d.kind, " on") {
			continue
		}
		if d.left--; d.left > 0 {
			continue
		}
		r.did(d.kind)
		if d.kind == "crash on" {
			r.crash()
			continue
		}
		victims := []*proc{r.w.find(to), r.w.find(from)}
		for _, l := range []*batchLife{r.now[len(r.now)-1], r.now[d.n*7%len(r.now)]} {
			if l != nil {
				victims = append(victims, l.proc)
			}
		}
		if p := victims[d.m%len(victims)]; r.lives[p] != nil {
			r.kill(p)
		}
	}
	return v
}

// upTo is how late a message is at most by a deed.
func (r *batchRun) upTo(d batchDeed) time.Duration {
	return []time.Duration{2 * time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond, time.Second}[d.m]
}

// lasting reports whether a deed is done just now.
func (r *batchRun) lasting(d batchDeed) bool {
	now := r.w.Now()
	return !r.healed && now >= d.at && now < d.at+d.lasts
}

// hit is called by user code at a place. It may die there, hang, panic, or return an
// error that it is to return.
func (r *batchRun) hit(place string) error {
	if r.healed {
		return nil
	}
	for _, d := range r.waiting {
		if d.class != place || d.left == 0 || r.w.Now() < d.at || strings.HasSuffix(d.kind, " on") {
			continue
		}
		if d.left--; d.left > 0 {
			continue
		}
		r.did(d.kind)
		p := r.w.running
		switch d.kind {
		case "panic":
			r.harmed[p] = true
			panic(errBroken)
		case "error", "break":
			r.harmed[p] = true
			return errBroken
		case "die":
			r.kill(p)
		case "crash in":
			r.crash()
		case "hang":
			r.harmed[p] = true
			r.w.Hang(d.lasts)
		}
	}
	return nil
}

// onBlock says how much longer a call waits before it is made.
func (r *batchRun) onBlock(of actor.Ref) time.Duration {
	p := r.w.find(of)
	l := r.lives[p]
	if l == nil || r.healed || !r.s.faults {
		return 0
	}
	for _, d := range r.waiting {
		n := &r.plan.Components[r.plan.Tasks[l.task].Component]
		if d.kind != "linger" || d.left == 0 || r.w.Now() < d.at || !(d.class == "state" && n.Stateful || d.class == "coordinator" && n.Coordinates) {
			continue
		}
		if d.left--; d.left == 0 { // it is killed, and what it has asked for is done when the next life is at work
			r.did(d.kind)
			r.w.schedule(r.w.Now()+r.draw(0, 5*time.Millisecond), func() { r.kill(p) })
			return r.draw(5*time.Millisecond, 2*time.Second)
		}
	}
	if r.s.late == 0 || !r.oneIn(4) {
		return 0
	}
	return r.draw(0, r.s.late)
}
