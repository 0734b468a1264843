package sim

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
)

// A machine is a node: processes of it come and go.
type machine struct {
	c       *clusterRun
	slot    int
	id      cluster.NodeID
	name    string
	boot    cluster.Boot // of the last process
	run     *process     // nil: none lives
	applied int          // of the log, on its disk
	gone    bool         // it never comes back
	left    bool         // it said so itself
	silent  bool         // it is off: nobody is there to refuse a connection
	votes   bool
}

// A process is one life of a node.
type process struct {
	*machine
	home     cluster.Home
	agent    actor.Ref
	proc     *proc
	born     time.Duration
	killed   time.Duration // never, while it lives
	hung     time.Duration // does nothing before
	applied  int
	waits    []*proposal // for their result, when they are applied here
	apply    bool        // it is under way
	told     node.Leads
	telling  bool
	views    map[cluster.NodeID]*view
	changed  bool // of views, not told yet
	keeps    map[cluster.NodeID]*keeping
	inactive map[cluster.Run]time.Duration // runs that it knows to be that, and since when
}

func (m *machine) addr() string { return m.name + ":1" }

// join adds a new machine, and starts it.
func (c *clusterRun) join() *machine {
	slot := len(c.machines)
	m := &machine{c: c, slot: slot, id: c.s.ids[slot], name: fmt.Sprintf("n%d", slot)}
	m.votes = c.s.voters == 0 || slot < c.s.voters
	c.machines = append(c.machines, m)
	m.boots()
	return m
}

// boots starts a process.
func (m *machine) boots() {
	c := m.c
	m.boot++
	p := &process{
		machine: m, home: cluster.Home{Node: m.id, Boot: m.boot}, born: c.w.Now(), killed: math.MaxInt64,
		views: map[cluster.NodeID]*view{}, keeps: map[cluster.NodeID]*keeping{}, inactive: map[cluster.Run]time.Duration{},
	}
	m.run, m.silent = p, false
	p.agent = c.w.Spawn(m.name, node.NewAgent(node.Config{
		Self:    cluster.Member{Home: p.home, Name: m.name, Addr: m.addr(), Alive: true, Keeps: true},
		Cluster: "sim", Version: "simulated", Log: p, Network: p, Patience: c.s.patience, Began: c.s.set.Began,
		Program: p.program(),
		Tell: func(text string, args ...any) {
			if c.w.log != nil {
				_, _ = fmt.Fprintf(c.w.log, "%d tell %s: %s %v\n", int64(c.w.Now()), m.name, text, args)
			}
		},
	}))
	p.proc = c.w.find(p.agent)
	p.proc.ahead = c.draw(0, time.Hour) // clocks of hosts begin at any time
	c.members[p.proc] = p
	// A process that starts again knows a part of the log, and not yet what was agreed on since.
	p.applied = m.applied
	if m.applied > 0 && c.oneIn(3) {
		p.applied = c.chance.IntN(m.applied + 1)
	}
	if p.applied > 0 {
		c.after(time.Millisecond, 50*time.Millisecond, func() { p.logged() })
	}
	p.view(p.machine).alive = true
	p.changed = true
	p.applies()
}

func (p *process) program() node.Program {
	c := p.c
	all := make([]*topology.Topology, len(c.s.tops))
	for i, t := range c.s.tops {
		all[i] = t.topology(c.book)
	}
	return node.Program{
		Topologies: all,
		Settings: func(run cluster.Run, spec *cluster.Spec) (*task.Settings, error) {
			set := c.s.set
			set.Logger = slog.New(slog.DiscardHandler)
			c.book.settings(p, run, spec, &set)
			return &set, nil
		},
		Started: func(run cluster.Run, plan *topology.Plan) { c.book.started(p, run, plan) },
	}
}

// lives reports whether a process runs and is not hung.
func (p *process) awake() bool { return p.killed == never && p.hung <= p.c.w.Now() }

// send sends to an actor of a living process.
func (p *process) send(to actor.Ref, msg any) {
	if p.killed == never && p.c.w.find(to).state != ended {
		p.c.w.Send(to, msg)
	}
}

// kill ends the process of a machine as kill -9 does, or the loss of its power.
func (m *machine) kill(silent bool) {
	p := m.run
	if p == nil {
		return
	}
	c := m.c
	if c.log.leader == p {
		c.book.saw("leader killed")
	}
	for _, sub := range c.log.state().Submissions {
		if sub.Next != nil && c.log.leader == p {
			c.book.saw("leader killed while a switch waits")
		}
	}
	c.kills++
	c.book.killed(p)
	p.killed = c.w.Now()
	m.run, m.silent = nil, silent
	m.applied = p.applied
	c.w.Kill(p.agent)
	for _, e := range slices.Clone(c.wires) {
		if e.own == p {
			e.died(silent)
		}
	}
}

// hang stops a process for a while, as SIGSTOP does.
func (p *process) hang(d time.Duration) {
	c := p.c
	p.hung = c.w.Now() + d
	if c.log.leader == p {
		c.book.saw("leader hangs")
	}
	var freeze func(a *proc)
	freeze = func(a *proc) {
		a.busy = max(a.busy, p.hung)
		for _, child := range a.children {
			freeze(child)
		}
	}
	c.w.note("hang", p.proc, nil, nil)
	freeze(p.proc)
	c.at(p.hung, func() {
		if p.killed == never {
			c.book.thawed(p)
		}
	})
}

func (p *process) jump(d time.Duration) {
	var jump func(a *proc)
	jump = func(a *proc) {
		p.c.w.jump(a, d)
		for _, child := range a.children {
			jump(child)
		}
	}
	jump(p.proc)
}

// reaches reports whether what one machine sends gets to another.
func (c *clusterRun) reaches(from, to *machine) bool { return c.cuts[[2]int{from.slot, to.slot}] == 0 }

// joined reports whether two machines reach each other.
func (c *clusterRun) joined(a, b *machine) bool { return c.reaches(a, b) && c.reaches(b, a) }

func (c *clusterRun) cut(from, to *machine, by int) {
	if from != to && !c.healed {
		c.cuts[[2]int{from.slot, to.slot}] += by
	}
}
