package sim

import (
	"math/rand/v2"
	"time"

	"github.com/egretstream/egret/chaos"
)

// A planner draws the faults of a scene: some kinds of them, at rates and times
// that are drawn as well.
type planner struct {
	s    *scene
	r    *rand.Rand
	plan chaos.Plan
	span int // of messages, in which most of it happens
}

// short is a time that is short to print.
func short(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Millisecond, 100 * time.Microsecond, 10 * time.Microsecond} {
		if d >= 100*unit {
			return d.Round(unit)
		}
	}
	return max(d.Round(time.Microsecond), time.Microsecond)
}

func (p *planner) time(least, most time.Duration) time.Duration {
	return short(around(p.r, least, most))
}

// task is one of the scene's tasks, now and then whichever of its component or of
// them all.
func (p *planner) task() chaos.Who {
	x := &p.s.parts[p.r.IntN(len(p.s.parts))]
	switch k := p.r.IntN(20); {
	case k == 0:
		return chaos.Anyone
	case k == 1:
		return chaos.Who{Component: x.name, Task: chaos.One}
	}
	return chaos.Task(x.name, p.r.IntN(x.parallel))
}

func (p *planner) add(fs ...chaos.Fault) { p.plan = append(p.plan, fs...) }

// some is a rate of up to most percent.
func (p *planner) some(most int) chaos.Rate { return chaos.Percent(float64(1+p.r.IntN(most*10)) / 10) }

// window is a time in which something lasts: mostly all the time, or a part of it.
func (p *planner) window() (w chaos.When) {
	if chance(p.r, 50) {
		return w
	}
	from := p.time(time.Millisecond, 3*time.Second)
	return chaos.Between(from, from+p.time(10*time.Millisecond, 10*time.Second))
}

// once is some time or count.
func (p *planner) once() chaos.When {
	switch p.r.IntN(4) {
	case 0:
		return chaos.AtCount(chaos.Messages, int64(1+p.r.IntN(p.span)))
	case 1:
		return chaos.AtCount(chaos.Events, int64(1+p.r.IntN(p.span)))
	}
	return chaos.At(p.time(100*time.Microsecond, 20*time.Second))
}

// actors draws what is done to actors and links.
func (p *planner) actors() {
	r, timeout := p.r, p.s.set.MessageTimeout
	kinds := []chaos.Kind{chaos.Kill, chaos.Kill, chaos.Crash}
	again := chance(r, 40)
	if chance(r, 40) {
		kinds = append(kinds, chaos.Stall, chaos.Hold, chaos.Slow)
	}
	if chance(r, 20) {
		kinds = append(kinds, chaos.Jump)
	}
	long := chance(r, 10) // for longer than anything may be silent
	for range 1 + r.IntN(one(r, 4, 12, 30)) {
		f := chaos.Fault{Kind: one(r, kinds...), When: p.once(), Who: p.task()}
		switch f.Kind {
		case chaos.Kill, chaos.Crash:
			switch {
			case again && f.Kind == chaos.Kill && chance(r, 30):
				f.Times = 1 + r.IntN(3)
			case again && chance(r, 20): // many at the same time
				for i := range p.s.parts {
					for k := range p.s.parts[i].parallel {
						if chance(r, 50) {
							f.Who = chaos.Task(p.s.parts[i].name, k)
							p.add(f)
						}
					}
				}
				continue
			case again && chance(r, 10):
				f.Who = chaos.Everyone
			}
		case chaos.Stall:
			f.Most = p.time(100*time.Microsecond, timeout/8)
			if long && chance(r, 40) {
				f.Most = p.time(timeout/2, 5*timeout)
			}
		case chaos.Hold:
			f.To = p.task()
			f.Most = p.time(100*time.Microsecond, timeout/8)
		case chaos.Slow:
			f.When = p.window()
			f.Factor = float64(10+r.IntN(90)) / 10
		case chaos.Jump:
			f.Most = p.time(time.Millisecond, 4*timeout)
			if chance(r, 60) {
				f.Who = chaos.Everyone
			}
		}
		p.add(f)
	}
	if chance(r, 30) { // just when the input ends
		for range 1 + r.IntN(3) {
			p.add(chaos.Fault{Kind: one(r, chaos.Kill, chaos.Crash), When: chaos.AtCount(chaos.Ends, int64(1+r.IntN(12))), Who: p.task()})
		}
	}
}

// messages draws what is lost, comes twice, late or out of order.
func (p *planner) messages() {
	r := p.r
	add := func(percent int, f chaos.Fault) {
		if chance(r, percent) {
			f.When = p.window()
			if chance(r, 15) {
				f.Who, f.To = p.task(), p.task()
			}
			p.add(f)
		}
	}
	late := func(most time.Duration) time.Duration { return p.time(10*time.Microsecond, most) }
	add(40, chaos.Fault{Kind: chaos.Lose, Class: chaos.Limit, Rate: p.some(40)})
	add(50, chaos.Fault{Kind: chaos.Lose, Class: chaos.Ask, Rate: p.some(50)})
	add(30, chaos.Fault{Kind: chaos.Repeat, Class: chaos.Limit, Rate: p.some(30)})
	add(40, chaos.Fault{Kind: chaos.Reorder, Class: chaos.Report, Rate: p.some(30), Most: late(10 * time.Millisecond)})
	add(40, chaos.Fault{Kind: chaos.Reorder, Class: chaos.Peers, Rate: p.some(60), Most: late(200 * time.Millisecond)})
}

// forgetting draws what is lost so that trees time out.
func (p *planner) forgetting() {
	p.add(chaos.Fault{Kind: chaos.Lose, Class: chaos.Report, Rate: one(p.r, chaos.Percent(0.01), chaos.Percent(0.1), chaos.Percent(1))})
}

func (s *scene) drawPlan(peace bool) {
	p := &planner{s: s, r: rand.New(rand.NewPCG(s.seed, 0x706c616e))}
	p.span = one(p.r, 50, 300, 1000, 3000, 10_000)
	if s.mood == forgetful {
		p.forgetting()
	}
	if s.mood >= deadly && (s.mood != forgetful || chance(p.r, 50)) {
		p.messages()
		if chance(p.r, 10) {
			p.add(chaos.Fault{Kind: chaos.Lose, Class: chaos.StillQueued, Rate: p.some(50)})
		}
		if chance(p.r, 85) {
			p.actors()
		}
	}
	if !peace && chance(p.r, 25) {
		p.ending()
	}
	s.plan = p.plan
}

// ending draws the end of the run in the middle of it.
func (p *planner) ending() {
	f := chaos.Fault{Kind: one(p.r, chaos.Drain, chaos.Drain, chaos.Drain, chaos.Stop)}
	f.When = chaos.AtCount(chaos.Events, int64(1+p.r.IntN(one(p.r, 50, 1000, 5000))))
	if f.Kind == chaos.Drain && chance(p.r, 33) {
		f.Most = p.time(time.Millisecond, time.Second)
	}
	p.add(f)
}
