package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
)

// MostNodes is how many nodes a simulated cluster may have at the beginning.
const MostNodes = 9

// ClusterOptions are how [Cluster] and [ClusterSeeds] run. The zero value will do.
type ClusterOptions struct {
	// Nodes is how many nodes there are at the beginning, at most MostNodes. 0: the seed
	// draws 1 to 5.
	Nodes int
	// Log, if given, gets what a seed has drawn and a line for each event.
	Log io.Writer
	// Unshrunk does not look for fewer deeds when a seed fails.
	Unshrunk bool
	// Once does not run a seed a second time to see that it gives the same run.
	Once bool

	deeds []clusterDeed // in place of those that the seed draws, if only is set
	only  bool
}

// How a run of a cluster passes: deeds are done until healAt, then everything is healed
// and the cluster has so long to be of one mind, and after that the sources give the rest,
// for which they have so long.
const (
	healAt      = 12 * time.Second
	mostSettle  = 3 * time.Minute
	mostFinish  = 10 * time.Minute
	settledFor  = time.Second
	mostCluster = 2_000_000 // events
)

// A clusterRun is one run of a cluster: agents, links, supervisors and tasks are those
// that ship; what is below [node.Log] and [node.Network], and who tells agents of members
// and leaders, are models.
//
//	deeds --> machines, cuts --> log, views, wires --> agents
//	                                                     |
//	          books <-- sources, bolts, verdicts <-- supervisors
type clusterRun struct {
	w        *World
	s        *clusterScene
	chance   *rand.Rand // of the models
	machines []*machine // by slot
	log      agreed
	cuts     map[[2]int]int // how many deeds hold up what goes from one slot to another
	slow     int            // deeds that make connections slow
	wires    []*wireEnd     // open ones, both ends
	book     *clusterBook
	asks     []*asking
	members  map[*proc]*process

	healed  bool
	opened  bool // the gates of the sources
	over    bool // models do nothing more
	settled time.Duration
	deeds   map[string]int // that were done, by kind
	resets  int
	kills   int
	took    time.Duration
}

func newCluster(s *clusterScene, log io.Writer) *clusterRun {
	c := &clusterRun{s: s, chance: rand.New(rand.NewPCG(s.seed, 0x6d6f64656c73)), cuts: map[[2]int]int{}, deeds: map[string]int{}, members: map[*proc]*process{}}
	c.w = New(Config{Seed: s.seed, Links: s.net, Cost: s.cost, Log: log, OnSend: c.onSend})
	c.w.describe = describeFar
	c.book = newClusterBook(c)
	c.log.start(c)
	if log != nil {
		_, _ = io.WriteString(log, s.String())
	}
	return c
}

// at has fn called at a time, unless everything is over by then.
func (c *clusterRun) at(t time.Duration, fn func()) {
	c.w.schedule(t, func() {
		if !c.over {
			fn()
		}
	})
}

// after is at, a drawn time from now.
func (c *clusterRun) after(least, most time.Duration, fn func()) {
	c.at(c.w.Now()+c.draw(least, most), fn)
}

func (c *clusterRun) draw(least, most time.Duration) time.Duration {
	return least + time.Duration(c.chance.Int64N(int64(most-least)+1))
}

func (c *clusterRun) oneIn(n int) bool { return c.chance.IntN(n) == 0 }

func (c *clusterRun) play() {
	for range c.s.nodes {
		c.join()
	}
	for i := range c.s.deeds {
		d := &c.s.deeds[i]
		c.at(d.at, func() { c.do(d) })
	}
	for i := range c.s.tops {
		c.at(c.s.tops[i].at, func() { c.submit(i) })
	}
	c.at(healAt, c.heal)
	c.at(tickEvery, c.tick)
	defer c.w.Release()
	if !c.wait("to be of one mind", healAt+mostSettle, func() bool { return c.opened }) {
		return
	}
	if !c.wait("to come to an end", mostFinish, c.finished) {
		return
	}
	// What has ended is let go of.
	if !c.wait("to let go of what has ended", time.Minute, func() bool { return c.supervisors() == 0 }) {
		return
	}
	c.took = c.w.Now()
	c.over = true
	for _, p := range c.processes() {
		c.w.Stop(p.agent)
	}
	if !c.wait("to stop", mostFinish, nil) {
		return
	}
	c.book.check(chaos.Rest)
	c.book.twin(chaos.Rest)
	if left := c.w.Left(); left != (Left{}) {
		c.book.violate(chaos.Rest, "left when everything has stopped: %v", left)
	}
	c.book.atEnd()
}

// wait runs the world and says whether all is well.
func (c *clusterRun) wait(what string, within time.Duration, until func() bool) bool {
	stop := until
	if until != nil {
		stop = func() bool { return c.book.bad != nil || until() }
	}
	if err := c.w.Run(stop, Limit{Time: within, Events: mostCluster}); err != nil {
		c.book.violate(chaos.Rest, "%s: %v%s", what, err, c.stuck())
	}
	return c.book.bad == nil
}

// supervisors counts those that have not ended: what agents have spawned beside links.
func (c *clusterRun) supervisors() (n int) {
	for _, p := range c.processes() {
		for _, child := range p.proc.children {
			if !strings.HasPrefix(child.label, "link ") {
				n++
			}
		}
	}
	return n
}

// processes returns the living ones, by slot.
func (c *clusterRun) processes() (all []*process) {
	for _, m := range c.machines {
		if m.run != nil {
			all = append(all, m.run)
		}
	}
	return all
}

const tickEvery = 100 * time.Millisecond

// tick lets everything that looks around look.
func (c *clusterRun) tick() {
	c.log.tick()
	for _, p := range c.processes() {
		p.look()
		p.dial()
	}
	c.tickWires()
	c.tickAsks()
	if c.healed && !c.opened {
		if c.book.oneMind() != "" {
			c.settled = 0
		} else if c.settled == 0 {
			c.settled = c.w.Now()
		} else if c.w.Now()-c.settled >= settledFor {
			c.opened = true
			c.book.twin(chaos.Convergence)
		}
	}
	c.after(tickEvery, tickEvery, c.tick)
}

// heal ends everything that goes wrong.
func (c *clusterRun) heal() {
	c.healed = true
	c.slow = 0
	clear(c.cuts)
	for _, m := range c.machines {
		m.silent = false
		if m.run == nil && !m.gone {
			m.boots()
		}
	}
	for i, top := range c.s.tops {
		if top.killed && top.again {
			c.submit(i)
		}
		// Somebody may have deactivated the one that was submitted again as well.
		c.ask(&asking{what: "activate " + top.name, settle: true, request: func() *node.Request {
			sub := c.log.state().Submission(top.name)
			if sub == nil || sub.Status != cluster.Inactive || top.killed && (top.doomed == 0 || sub.Run == top.doomed) {
				return nil
			}
			return &node.Request{Op: node.OpSetStatus, Topology: top.name, Status: cluster.Active}
		}})
	}
	for _, m := range c.machines {
		c.ask(&asking{what: "undrain " + m.name, settle: true, request: func() *node.Request {
			if n, known := c.log.state().Node(m.id); !known || !n.Draining {
				return nil
			}
			return &node.Request{Op: node.OpDrain, Node: m.id}
		}})
	}
}

// finished reports whether all that was submitted has come to an end.
func (c *clusterRun) finished() bool {
	s := c.log.state()
	for _, top := range c.s.tops {
		sub := s.Submission(top.name)
		if sub == nil && top.killed && !top.again {
			continue
		}
		if sub == nil || sub.Status.Runs() || sub.Status == cluster.Stopped {
			return false
		}
	}
	return true
}

func (c *clusterRun) stuck() string {
	text := "; " + c.book.oneMind()
	if c.over {
		for _, p := range c.w.procs[1:] {
			if p.state != ended {
				text += "; " + p.label + " has not ended"
			}
		}
	}
	for _, sub := range c.log.state().Submissions {
		text += fmt.Sprintf("; %s run %d is %s", sub.Topology, sub.Run, sub.Status)
		if r := c.book.runs[sub.Run]; r != nil {
			text += r.stuck(c.w.Now())
		}
	}
	return text
}

// onSend is told of each message that an actor sends.
func (c *clusterRun) onSend(from, to actor.Ref, msg any) (v Verdict) {
	if from == nil {
		return v
	}
	c.book.seen(from, to, msg)
	return v
}

func (c *clusterRun) broken() *Violation { return c.book.bad }

func (c *clusterRun) report() Report {
	r := Report{
		Seed: c.s.seed, Mood: c.s.mood, Hash: c.w.Hash(), Events: c.w.Events(), Time: c.took, Faults: c.deeds,
		Features: slices.Clone(c.book.featuresAtEnd()),
	}
	r.Checks, r.Twins = c.book.counted()
	for _, run := range c.book.order {
		r.Messages += len(run.all)
		for _, m := range run.all {
			for _, e := range m.all {
				r.Executions += len(e.oks)
			}
		}
	}
	return r
}
