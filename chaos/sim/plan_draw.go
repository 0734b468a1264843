package sim

import (
	"math/rand/v2"
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/topology"
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
	if chance(p.r, 65) {
		return w
	}
	from := p.time(time.Millisecond, time.Second)
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
	add := func(percent int, k chaos.Kind, c chaos.Class, most time.Duration) {
		if !chance(r, percent) {
			return
		}
		f := chaos.Fault{When: p.window(), Kind: k, Class: c, Rate: p.some(60)}
		if c == chaos.Lost { // which are few
			f.Rate, f.When = 1_000_000, chaos.When{}
		}
		if most > 0 {
			f.Most = p.time(10*time.Microsecond, most)
		}
		if c != chaos.Save && chance(r, 15) {
			f.Who, f.To = p.task(), p.task()
		}
		p.add(f)
	}
	add(40, chaos.Lose, chaos.Limit, 0)
	add(40, chaos.Lose, chaos.Ask, 0)
	for _, c := range repeated {
		add(20, chaos.Repeat, c, 0)
	}
	late := min(p.s.set.MessageTimeout/8, 200*time.Millisecond)
	for _, c := range disordered {
		add(20, chaos.Reorder, c, late)
	}
	for _, c := range chaos.Classes() {
		switch c {
		case chaos.Verdict:
		case chaos.Save:
			if p.s.stores() {
				add(40, chaos.Delay, c, 3*time.Second)
			}
		default:
			add(12, chaos.Delay, c, late)
		}
	}
	if p.s.stores() && chance(r, 40) {
		p.add(chaos.Fault{When: p.window(), Kind: chaos.Lose, Class: chaos.Save, Rate: one(r, chaos.Percent(10), chaos.Percent(60), chaos.Percent(100))})
	}
}

// failures draws which tuples bolts do not like.
func (p *planner) failures() {
	r := p.r
	for i := range p.s.parts {
		x := &p.s.parts[i]
		all := chaos.Who{Component: x.name, Task: chaos.All}
		switch {
		case x.mourns != nil:
			if chance(r, 50) {
				p.add(chaos.Fault{Kind: one(r, chaos.Refuse, chaos.Reject), Who: all, Rate: p.some(100)})
			}
		case !x.spout():
			if chance(r, 35) {
				p.add(chaos.Fault{Kind: one(r, chaos.Refuse, chaos.Refuse, chaos.Reject), Who: all, Rate: p.some(20)})
			}
			if x.chooses() && chance(r, 50) {
				p.add(chaos.Fault{Kind: chaos.Misroute, Who: all, Rate: p.some(20)})
			}
		}
	}
}

// code draws what else is wrong with user code.
func (p *planner) code() {
	r := p.r
	hang := chance(r, 35)
	for i := range p.s.parts {
		x := &p.s.parts[i]
		all := chaos.Who{Component: x.name, Task: chaos.All}
		if x.spout() {
			p.source(x, all)
		} else {
			if chance(r, 25) {
				k := one(r, chaos.Panic, chaos.Poison)
				if k == chaos.Poison && p.s.set.MaxReplays < 0 {
					k = chaos.Panic
				}
				p.add(chaos.Fault{Kind: k, Who: all, Rate: p.some(1)})
			}
			if chance(r, 10) {
				p.add(chaos.Fault{Kind: chaos.Panic, When: p.once(), Who: p.of(x), Times: 1 + r.IntN(50)})
			}
			if chance(r, 15) {
				p.add(chaos.Fault{Kind: chaos.Panic, When: p.once(), Who: p.of(x), Call: one(r, chaos.InPrepare, chaos.InTick, chaos.InFinish)})
			}
		}
		if hang {
			p.hang(x, all)
		}
	}
}

// of is one of the tasks of a part.
func (p *planner) of(x *part) chaos.Who { return chaos.Task(x.name, p.r.IntN(x.parallel)) }

func (p *planner) source(x *part, all chaos.Who) {
	r := p.r
	calls := []chaos.Call{chaos.InOpen, chaos.InNext}
	if x.queue != nil {
		calls = append(calls, chaos.InAck, chaos.InFail)
	}
	if chance(r, 30) {
		p.add(chaos.Fault{Kind: chaos.Break, When: p.window(), Who: all, Rate: p.some(10)})
	}
	for range r.IntN(3) {
		p.add(chaos.Fault{Kind: one(r, chaos.Break, chaos.Panic), When: p.once(), Who: p.of(x), Call: one(r, calls...)})
	}
	if chance(r, 20) {
		p.add(chaos.Fault{Kind: chaos.Redeliver, When: p.window(), Who: all, Rate: p.some(20)})
	}
	if chance(r, 35) {
		from := p.time(10*time.Microsecond, 500*time.Millisecond)
		p.add(chaos.Fault{Kind: chaos.Pause, When: chaos.Between(from, from+p.time(time.Millisecond, 5*time.Second)), Who: p.of(x)})
	}
}

// hang draws calls of a part that do not come back for long.
func (p *planner) hang(x *part, all chaos.Who) {
	r := p.r
	most := time.Duration(one(r, 2, 3, 10)) * max(p.s.set.StuckAfter, 50*time.Millisecond)
	if !x.spout() && chance(r, 60) {
		p.add(chaos.Fault{Kind: chaos.Hang, Who: all, Rate: p.some(1), Most: most})
	}
	if !chance(r, 40) {
		return
	}
	f := chaos.Fault{Kind: chaos.Hang, When: p.once(), Who: p.of(x), Most: p.time(most/8, most)}
	switch {
	case !x.spout():
		f.Call = one(r, chaos.InPrepare, chaos.InTick, chaos.InFinish, "")
	case x.queue != nil:
		f.Call = one(r, chaos.InAck, chaos.InFail)
	case x.prompt:
		f.Call = chaos.InNext
	default:
		return
	}
	if f.Call == "" {
		f.Times = 1 + r.IntN(50)
	}
	p.add(f)
}

// forgetting draws what is lost so that trees time out.
func (p *planner) forgetting() {
	p.add(chaos.Fault{Kind: chaos.Lose, Class: chaos.Report, Rate: one(p.r, chaos.Percent(0.1), chaos.Percent(1), chaos.Percent(4))})
	for i := range p.s.parts {
		if x := &p.s.parts[i]; x.act == holding && x.every > 0 && !x.spout() && chance(p.r, 50) {
			p.add(chaos.Fault{Kind: chaos.Forget, Who: chaos.Who{Component: x.name, Task: chaos.All}, Rate: p.some(20)})
		}
	}
}

// drawPlan draws what goes wrong in a scene: in a third of them nothing, and in each
// other one only some of what can. It has numbers of its own, so that the scene does not
// depend on it.
func (s *scene) drawPlan() {
	p := &planner{s: s, r: rand.New(rand.NewPCG(s.seed, 0x706c616e))}
	p.span = one(p.r, 50, 300, 1000, 3000, 10_000)
	x := p.r.IntN(100)
	peaceful, failing, forgetful := x < 32, x < 40, x >= 88 && s.guarantee == topology.AtLeastOnce
	if !peaceful && (failing || chance(p.r, 60)) {
		p.failures()
	}
	if forgetful {
		p.forgetting()
	}
	if !failing && (!forgetful || chance(p.r, 50)) {
		if chance(p.r, 80) {
			p.messages()
		}
		for _, c := range []chaos.Class{chaos.StillQueued, chaos.Held, chaos.Lost} {
			if chance(p.r, 8) {
				p.add(chaos.Fault{When: p.window(), Kind: chaos.Lose, Class: c, Rate: one(p.r, p.some(50), 1_000_000)})
			}
		}
		if chance(p.r, 60) {
			p.code()
		}
		if len(p.plan) == 0 || chance(p.r, 85) {
			p.actors()
		}
	}
	if chance(p.r, 25) {
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
