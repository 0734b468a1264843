package sim

import (
	"time"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
)

// A view is what one process takes another machine for: a membership by gossip, which is
// late, and for some time may differ between processes.
type view struct {
	boot  cluster.Boot
	alive bool
	left  bool
	due   time.Duration // when it changes; 0: it is as it should be
	wrong time.Duration // until then it is taken for dead, whatever it is
}

func (p *process) view(m *machine) *view {
	v := p.views[m.id]
	if v == nil {
		v = &view{boot: m.boot}
		p.views[m.id] = v
	}
	return v
}

// look has the views of a process follow what is the case.
func (p *process) look() {
	c, now := p.c, p.c.w.Now()
	if p.hung > now {
		return
	}
	for _, m := range c.machines {
		if m == p.machine {
			continue
		}
		v := p.views[m.id]
		alive := m.run != nil && m.run.awake() && p.hears(m)
		if v == nil && !alive {
			continue
		}
		v = p.view(m)
		if !c.healed && v.wrong > now {
			alive = false
		}
		same := v.alive == alive && (!alive || v.boot == m.boot) && v.left == m.left
		switch {
		case same:
			v.due = 0
		case v.due == 0 && alive:
			v.due = now + c.draw(0, time.Second)
		case v.due == 0:
			v.due = now + c.draw(700*time.Millisecond, 3*time.Second)
		}
		if !same && now >= v.due {
			v.alive, v.left, v.due = alive, m.left, 0
			if alive {
				v.boot = m.boot
			}
			p.changed = true
		}
	}
	if p.changed {
		p.changed = false
		p.send(p.agent, node.Members{All: p.membership()})
	}
}

// hears reports whether a process hears of a machine that lives: directly, or by another
// one.
func (p *process) hears(m *machine) bool {
	c := p.c
	if c.joined(p.machine, m) {
		return true
	}
	for _, q := range c.processes() {
		if q.awake() && c.joined(p.machine, q.machine) && c.joined(q.machine, m) {
			return true
		}
	}
	return false
}

func (p *process) membership() (all []cluster.Member) {
	for _, m := range p.c.machines {
		v := p.views[m.id]
		if v == nil {
			continue
		}
		all = append(all, cluster.Member{Home: cluster.Home{Node: m.id, Boot: v.boot}, Name: m.name, Addr: m.addr(), Keeps: true, Alive: v.alive, Left: v.left})
	}
	return all
}
