package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
)

// do does a deed, and undoes it when it is over.
func (c *clusterRun) do(d *clusterDeed) {
	m := c.machines[d.a%len(c.machines)]
	other := c.machines[d.b%len(c.machines)]
	done := c.doTo(d, m, other)
	if done {
		c.deeds[d.kind]++
		c.w.note("deed "+d.kind, nil, nil, nil)
	}
}

func (c *clusterRun) doTo(d *clusterDeed, m, other *machine) (done bool) {
	if d.kind == "kill leader" || d.kind == "hang leader" {
		if c.log.leader == nil {
			return false
		}
		m = c.log.leader.machine
	}
	switch d.kind {
	case "kill", "kill leader", "lose":
		if m.run == nil {
			return false
		}
		m.kill(d.kind == "lose")
		c.after(d.lasts, d.lasts, func() {
			if m.run == nil && !m.gone {
				m.boots()
			}
		})
	case "blackout": // all are off, and come back one after the other
		for _, m := range c.machines {
			m.kill(true)
			c.after(d.lasts, d.lasts+2*time.Second, func() {
				if m.run == nil && !m.gone && !c.healed {
					m.boots()
				}
			})
		}
	case "wipe": // it never comes back, and a new node does
		if m.run == nil || len(c.machines) > c.s.nodes+3 || !c.spare(m) {
			return false
		}
		m.gone = true
		m.kill(d.n%2 == 0)
		c.after(d.lasts, d.lasts, func() {
			m.votes = false
			c.join()
		})
	case "hang", "hang leader":
		if m.run == nil || !m.run.awake() {
			return false
		}
		m.run.hang(d.lasts)
	case "jump":
		if m.run == nil {
			return false
		}
		m.run.jump(time.Duration(d.n) * 10 * time.Millisecond)
	case "split", "isolate", "ring", "bridge", "one way", "single":
		return c.part(d, m, other)
	case "flap":
		if m.run == nil || m == other {
			return false
		}
		m.run.view(other).wrong = c.w.Now() + d.lasts
	case "break":
		if len(c.wires) == 0 {
			return false
		}
		c.wires[d.n%len(c.wires)].breaks()
	case "slow":
		c.slow++
		c.after(d.lasts, d.lasts, func() { c.slow = max(0, c.slow-1) })
	case "transfer":
		if c.log.leader == nil || c.log.voters() == 1 {
			return false
		}
		c.log.depose()
	default:
		return c.order(d, m)
	}
	return true
}

// spare reports whether the log goes on without a machine, however it comes.
func (c *clusterRun) spare(m *machine) bool {
	if !m.votes {
		return true
	}
	living := 0
	for _, x := range c.machines {
		if x != m && x.votes && !x.gone {
			living++
		}
	}
	return 2*living > c.log.voters()
}

// part holds up what goes between some machines.
func (c *clusterRun) part(d *clusterDeed, m, other *machine) bool {
	n := len(c.machines)
	if n < 2 {
		return false
	}
	type pair = [2]int
	var pairs []pair
	each := func(cut func(a, b int) bool) {
		for a := range n {
			for b := range n {
				if a != b && cut(a, b) {
					pairs = append(pairs, pair{a, b})
				}
			}
		}
	}
	side := func(slot, sides int) int { return int(mix(uint64(d.n), uint64(slot), 7) % uint64(sides)) }
	switch d.kind {
	case "split":
		sides := 2 + d.n%2
		each(func(a, b int) bool { return side(a, sides) != side(b, sides) })
	case "isolate":
		each(func(a, b int) bool { return a == m.slot || b == m.slot })
	case "ring": // each reaches its two neighbours
		each(func(a, b int) bool { return (a+1)%n != b && (b+1)%n != a })
	case "bridge": // m alone reaches both sides
		each(func(a, b int) bool { return a != m.slot && b != m.slot && side(a, 2) != side(b, 2) })
	case "one way":
		each(func(a, b int) bool { return a == m.slot && (d.n%2 == 0 || b == other.slot) })
	case "single":
		each(func(a, b int) bool { return a == m.slot && b == other.slot || b == m.slot && a == other.slot })
	}
	for _, p := range pairs {
		c.cut(c.machines[p[0]], c.machines[p[1]], 1)
	}
	c.after(d.lasts, d.lasts, func() {
		for _, p := range pairs {
			c.cut(c.machines[p[0]], c.machines[p[1]], -1)
		}
	})
	return len(pairs) > 0
}

// order asks for what people ask for.
func (c *clusterRun) order(d *clusterDeed, m *machine) bool {
	top := c.s.tops[d.n%len(c.s.tops)]
	switch d.kind {
	case "rebalance":
		parallel := map[string]int{}
		i := (d.n / 7) % len(top.parts)
		if d.n%5 > 0 {
			parallel[top.parts[i].name] = 1 + (d.n/11)%5
		}
		c.ask(&asking{what: fmt.Sprintf("rebalance %s %v", top.name, parallel), until: healAt, request: func() *node.Request {
			return &node.Request{Op: node.OpRebalance, Topology: top.name, Parallel: parallel}
		}})
	case "deactivate":
		status := func(s cluster.Status) func() *node.Request {
			return func() *node.Request {
				return &node.Request{Op: node.OpSetStatus, Topology: top.name, Status: s}
			}
		}
		c.ask(&asking{what: "deactivate " + top.name, until: healAt, request: status(cluster.Inactive)})
		c.after(d.lasts, d.lasts, func() { c.ask(&asking{what: "activate " + top.name, until: healAt, request: status(cluster.Active)}) })
	case "drain":
		drain := func(on bool) func() *node.Request {
			return func() *node.Request { return &node.Request{Op: node.OpDrain, Node: m.id, On: on} }
		}
		c.book.saw("drain")
		c.ask(&asking{what: "drain " + m.name, until: healAt, request: drain(true)})
		c.after(d.lasts, d.lasts, func() { c.ask(&asking{what: "undrain " + m.name, until: healAt, request: drain(false)}) })
	case "join":
		if len(c.machines) > c.s.nodes+3 {
			return false
		}
		c.join()
	case "leave":
		return c.leave(m)
	case "kill topology", "stop topology":
		if top.killed {
			return false
		}
		what, status := "kill", cluster.Ending
		top.killed, top.stops, top.again = true, d.kind == "stop topology", d.n%2 == 0
		if top.stops {
			what, status, top.again = "stop", cluster.Stopping, true
		}
		c.ask(&asking{what: what + " " + top.name, settle: true, request: func() *node.Request {
			sub := c.log.state().Submission(top.name)
			if sub == nil && top.doomed == 0 {
				top.killed = false // it was not there yet
			}
			if !top.killed || sub == nil || sub.Status == status || top.doomed != 0 && sub.Run != top.doomed || top.stops && !sub.Status.Runs() {
				return nil
			}
			top.doomed = sub.Run
			return &node.Request{Op: node.OpSetStatus, Topology: top.name, Status: status}
		}})
		if top.stops {
			c.submit(slices.Index(c.s.tops, top))
		}
	default:
		panic("no deed: " + d.kind)
	}
	return true
}

// leave drains a node, and ends its process when it has no task any more.
func (c *clusterRun) leave(m *machine) bool {
	alive := 0
	for _, x := range c.machines {
		if x != m && !x.gone && !x.left {
			alive++
		}
	}
	if alive == 0 || !c.spare(m) || m.run == nil || m.left {
		return false
	}
	c.ask(&asking{what: "drain to leave " + m.name, until: healAt, request: func() *node.Request {
		return &node.Request{Op: node.OpDrain, Node: m.id, On: true}
	}})
	var look func()
	look = func() {
		n, known := c.log.state().Node(m.id)
		switch {
		case c.healed || m.gone || m.run == nil || !c.spare(m):
		case !known || !n.Draining || c.book.has(m):
			c.after(tickEvery, tickEvery, look)
		default:
			m.gone, m.left, m.votes = true, true, false
			m.kill(false)
			c.kills--
			c.book.saw("left")
		}
	}
	look()
	return true
}

// submit asks for a topology.
func (c *clusterRun) submit(i int) {
	top := c.s.tops[i]
	c.ask(&asking{what: "submit " + top.name, settle: true, request: func() *node.Request {
		sub := c.log.state().Submission(top.name)
		if sub != nil && top.stops && sub.Status != cluster.Stopped {
			return nil
		}
		if sub != nil && (!top.killed || top.doomed != 0 && sub.Run != top.doomed) || top.killed && !top.again {
			return nil
		}
		return &node.Request{Op: node.OpSubmit, Topology: top.name, Spec: top.spec(c)}
	}})
}

// An asking is a request that is asked again until it is granted, or need not be.
type asking struct {
	what    string
	request func() *node.Request // nil: there is no need any more
	settle  bool                 // until there is no need any more, whatever the answers are
	until   time.Duration        // and not later
	next    time.Duration
	asked   int
	done    bool
}

func (c *clusterRun) ask(a *asking) { c.asks = append(c.asks, a) }

// tickAsks asks what is due, any node.
func (c *clusterRun) tickAsks() {
	now := c.w.Now()
	all := c.processes()
	for _, a := range c.asks {
		if a.done || now < a.next || len(all) == 0 {
			continue
		}
		r := a.request()
		if r == nil || a.until > 0 && now > a.until {
			a.done = !a.settle // there may be need again
			continue
		}
		p := all[c.chance.IntN(len(all))]
		a.asked++
		n := a.asked
		a.next = now + 4*time.Second // an answer may be lost with who was asked
		p.send(p.agent, node.Ask{Request: r, Reply: func(answer *node.Answer) { c.answered(a, n, r, answer) }})
	}
}

func (c *clusterRun) answered(a *asking, n int, r *node.Request, answer *node.Answer) {
	c.book.check(chaos.Convergence)
	if n != a.asked {
		return
	}
	a.next = c.w.Now() + 500*time.Millisecond
	e := answer.Error
	switch {
	case e == nil && !a.settle:
		a.done = true
	case e == nil || e.Reason == node.ErrNoQuorum || e.Reason == node.ErrUnsure:
	case !a.settle && (e.Reason == cluster.ErrStale || e.Reason == cluster.ErrRunning || e.Reason == cluster.ErrNoNode || e.Reason == node.ErrNotPlaced || e.Reason == cluster.ErrUnknown || e.Reason == cluster.ErrEnded):
	case a.settle && (e.Reason == cluster.ErrRunning || e.Reason == cluster.ErrUnknown || e.Reason == cluster.ErrEnded || e.Reason == cluster.ErrStale):
	default:
		c.book.violate(chaos.Convergence, "%s is refused: %v", a.what, e)
	}
}
