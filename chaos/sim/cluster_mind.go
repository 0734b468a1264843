package sim

import (
	"fmt"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/tuple"
)

// oneMind says what is not yet as it should be when all is healed; "" if nothing.
func (b *clusterBook) oneMind() string {
	c := b.c
	b.check(chaos.Convergence)
	if c.log.leader == nil {
		return "nobody leads"
	}
	for _, p := range c.processes() {
		switch {
		case p.told != c.log.known(p):
			return p.name + " does not know who leads"
		case p.applied < len(c.log.entries):
			return p.name + " has not applied everything"
		}
		for _, m := range c.machines {
			if v := p.views[m.id]; m.run != nil && (v == nil || !v.alive || v.boot != m.boot) || m.run == nil && v != nil && v.alive {
				return fmt.Sprintf("%s does not see %s as it is", p.name, m.name)
			}
		}
	}
	for _, a := range c.asks {
		if a.settle && a.request() != nil {
			return "there is still to be done: " + a.what
		}
	}
	b.living()
	have := map[lifeKey]*taskLife{}
	for _, l := range b.all {
		key := lifeKey{l.run.run, l.task, 0}
		if other := have[key]; other != nil {
			return fmt.Sprintf("there are both %s and %s", other, l)
		}
		have[key] = l
	}
	for _, x := range b.severed {
		if sub := c.log.state().Submission(x.run.top.name); sub != nil && sub.Run == x.run.run && sub.Status.Runs() && x.lives() {
			return fmt.Sprintf("there are lives of run %d on both ends of what was given up at %v", x.run.run, x.at)
		}
	}
	for _, sub := range c.log.state().Submissions {
		if !sub.Status.Runs() {
			continue
		}
		switch {
		case sub.Plan == nil:
			return sub.Topology + " has no plan"
		case sub.Next != nil:
			return sub.Topology + " is being changed: " + sub.Why
		}
		for id, t := range sub.Plan.Tasks {
			l := have[lifeKey{sub.Run, tuple.TaskID(id), 0}]
			delete(have, lifeKey{sub.Run, tuple.TaskID(id), 0})
			switch {
			case t.Home.Node == 0 && l == nil:
			case t.Home.Node == 0:
				return fmt.Sprintf("%s is retired and lives", l)
			case l == nil:
				return fmt.Sprintf("task %d of run %d has no life, and should be on %v", id, sub.Run, t.Home)
			case l.in.home != t.Home || l.life.Epoch() != t.Epoch:
				return fmt.Sprintf("there is %s, which should be on %v in epoch %d", l, t.Home, t.Epoch)
			}
		}
	}
	for _, l := range b.c.book.all {
		if have[lifeKey{l.run.run, l.task, 0}] == l {
			return fmt.Sprintf("%s is of a run that has ended", l)
		}
	}
	return ""
}

// clusterFeatures are what there is to be among many seeds.
var clusterFeatures = []string{
	"run done", "run stopped", "quiet switch", "switch cancelled", "tasks moved at once", "tasks killed", "leader killed", "leader killed while a switch waits", "leader hangs",
	"leader deposed", "unsure proposal", "late apply", "zombie whose tasks have moved", "link reset between living processes", "position refused",
	"drain", "left", "task panics", "inactive", "lost", "timed out", "failing tuple", "parcels between nodes",
}

func (b *clusterBook) featuresAtEnd() (all []string) {
	for _, f := range clusterFeatures {
		if b.features[f] {
			all = append(all, f)
		}
	}
	return all
}

func (b *clusterBook) atEnd() {
	b.links.atEnd(b)
	for _, sub := range b.c.log.state().Submissions {
		if r := b.runs[sub.Run]; r != nil && sub.Status == cluster.Done {
			r.saved()
		}
	}
}
