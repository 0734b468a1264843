package sim

import (
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/chaos"
)

// What shrinking a plan may cost, in runs and in events of all of them. Both are
// counted, not timed, so that the same failure shrinks to the same plan everywhere.
const (
	mostRuns   = 200
	mostShrink = 5_000_000
)

// A shrinker makes the plan of a run that has failed smaller, as long as the same
// invariant is broken: first fewer faults, then simpler ones.
type shrinker struct {
	// play runs a plan, and returns what was broken and how many events it took.
	play   func(chaos.Plan) (*Violation, int)
	all    []target
	plan   chaos.Plan // the smallest that has failed
	bad    *Violation // by it
	runs   int        // that are left
	events int        // that are left
}

// shrink returns a smaller plan that breaks what plan has broken, and how; plan
// itself if it finds none.
func shrink(plan chaos.Plan, bad *Violation, all []target, play func(chaos.Plan) (*Violation, int)) (chaos.Plan, *Violation) {
	s := &shrinker{play: play, all: all, plan: plan, bad: bad, runs: mostRuns, events: mostShrink}
	if len(plan) == 0 || s.fails(chaos.Plan{}) {
		return s.plan, s.bad
	}
	s.fewer()
	for s.simpler() {
		s.fewer()
	}
	return s.plan, s.bad
}

// fails runs a plan and takes it if the same is broken.
func (s *shrinker) fails(p chaos.Plan) bool {
	if s.runs <= 0 || s.events <= 0 {
		return false
	}
	bad, events := s.play(p)
	s.runs--
	s.events -= events
	if bad == nil || bad.Invariant != s.bad.Invariant {
		return false
	}
	s.plan, s.bad = p, bad
	return true
}

// fewer leaves out halves, quarters and so on of the faults, at last one after the
// other, until each that is left is needed.
func (s *shrinker) fewer() {
	for n := (len(s.plan) + 1) / 2; n > 0; n /= 2 {
		for at := 0; at < len(s.plan); {
			end := min(at+n, len(s.plan))
			rest := append(append(chaos.Plan{}, s.plan[:at]...), s.plan[end:]...)
			if len(rest) == 0 || !s.fails(rest) { // without any it has not failed
				at = end
			}
		}
	}
}

// simpler makes the faults that are left simpler, and reports whether it has.
func (s *shrinker) simpler() (any bool) {
	for i := range s.plan {
		for again := true; again; {
			again = false
			for _, f := range s.candidates(s.plan[i]) {
				p := append(chaos.Plan{}, s.plan...)
				p[i] = f
				if again = s.fails(p); again {
					any = true
					break
				}
			}
		}
	}
	return any
}

// candidates are faults that do less than f, or are shorter to say; those that do
// much less come first. Each is smaller than f by one measure and larger by none, so
// that taking them comes to an end.
func (s *shrinker) candidates(f chaos.Fault) (all []chaos.Fault) {
	add := func(change func(*chaos.Fault)) {
		g := f
		change(&g)
		if g != f {
			all = append(all, g)
		}
	}
	for _, w := range s.narrower(f.Who) {
		add(func(g *chaos.Fault) { g.Who = w })
	}
	if f.To != (chaos.Who{}) {
		for _, w := range s.narrower(f.To) {
			add(func(g *chaos.Fault) { g.To = w })
		}
	}
	if f.When.Every > 0 {
		add(func(g *chaos.Fault) { g.When = chaos.When{Once: true, From: f.When.From} })
	}
	if lasts := !f.When.Once && f.When.Every == 0; lasts {
		add(func(g *chaos.Fault) { g.When = chaos.When{} })
	}
	switch {
	case f.Kind == chaos.Kill && f.Times > 0:
		add(func(g *chaos.Fault) { g.Times = 0 })
		add(func(g *chaos.Fault) { g.Times /= 2 })
	case f.Times > 1:
		add(func(g *chaos.Fault) { g.Times = 1 })
		add(func(g *chaos.Fault) { g.Times = int(less(int64(g.Times))) })
	}
	add(func(g *chaos.Fault) { g.Least = 0 })
	if f.Most > time.Microsecond {
		add(func(g *chaos.Fault) { g.Most = max(time.Duration(less(int64(g.Most))), g.Least) })
	}
	if f.Rate > 1 {
		add(func(g *chaos.Fault) { g.Rate = chaos.Rate(less(int64(g.Rate) / 10)) })
		add(func(g *chaos.Fault) { g.Rate = chaos.Rate(less(int64(g.Rate))) })
	}
	if f.Factor > 2 {
		add(func(g *chaos.Fault) { g.Factor = 2 })
	}
	for digits := 1; digits <= 2; digits++ {
		add(func(g *chaos.Fault) { round(&g.When.From, digits) })
		add(func(g *chaos.Fault) { round(&g.When.To, digits) })
	}
	kept := all[:0]
	for _, g := range all {
		if _, err := chaos.ParseFault(g.String()); err == nil { // not ending before it begins, and the like
			kept = append(kept, g)
		}
	}
	return kept
}

// narrower are those of who one at a time, if that is several.
func (s *shrinker) narrower(w chaos.Who) (all []chaos.Who) {
	if w.Task >= 0 {
		return nil
	}
	for _, t := range s.all {
		switch {
		case w.Component == "*":
			all = append(all, chaos.Who{Component: t.name, Task: w.Task})
		case w.Component == t.name:
			for k := range t.tasks {
				all = append(all, chaos.Task(t.name, k))
			}
		}
	}
	return all
}

// less is the next smaller number that is short to say: 1, 2 or 5 and zeros. It is at
// least 1.
func less(n int64) int64 {
	for unit := int64(1_000_000_000_000_000_000); unit > 0; unit /= 10 {
		for _, k := range [...]int64{5, 2, 1} {
			if k*unit < n {
				return k * unit
			}
		}
	}
	return 1
}

// round rounds a time or count to so many digits, if it has more.
func round(p *chaos.Point, digits int) {
	text := strconv.FormatInt(p.At, 10)
	if len(strings.TrimRight(text, "0")) <= digits {
		return
	}
	unit := int64(1)
	for range len(text) - digits {
		unit *= 10
	}
	p.At = (p.At + unit/2) / unit * unit
}
