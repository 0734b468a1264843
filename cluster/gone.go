package cluster

import (
	"cmp"
	"slices"
	"time"
)

// gone reports whether a process is over, or must be taken for it. One that nobody has
// spoken of yet may still be found: who begins to lead may have been started just now.
func (c *Coordinator) gone(h Home) bool {
	_, alive := c.since[h]
	n, _ := c.s.Node(h.Node)
	switch {
	case h == c.self:
		return false
	case c.boots[h.Node] > h.Boot || n.Boot > h.Boot || slices.Contains(c.Lost, h):
		return true
	case alive:
		return false
	case c.boots[h.Node] == h.Boot:
		return true
	}
	return c.past(c.began + c.Settle)
}

// look finds the processes that are taken for gone although the membership does not
// know it yet: nobody listens there, or a link stays down between nodes that are alive.
// Whoever was taken for gone and is not any more has to settle again.
func (c *Coordinator) look() {
	lost := c.refused()
	for _, h := range lost {
		delete(c.reports, h) // what it said is over; if it lives it says it again
	}
	lost = append(lost, c.cutOff(lost)...)
	slices.SortFunc(lost, compareHomes)
	for _, h := range c.Lost {
		if _, alive := c.since[h]; alive && !slices.Contains(lost, h) {
			c.since[h] = c.now
		}
	}
	c.Lost = lost
}

// fresh reports whether what a living process complains of still holds, as far as
// anybody can know: it is said again all the time.
func (c *Coordinator) fresh(r heard) bool {
	_, alive := c.since[r.Home]
	return (alive || r.Home == c.self) && !c.past(r.at+c.stale())
}

// stale is after how long what a process complained of is not believed any more.
func (c *Coordinator) stale() time.Duration { return 3 * c.Begin }

// refused returns the processes at whose address nobody listens. This node says so
// itself, or it has no connection to it and more than half of the others say so: one
// that it does hear lives.
func (c *Coordinator) refused() (lost []Home) {
	own := c.reports[c.self]
	if own.Report == nil {
		return nil
	}
	for _, l := range own.Links {
		_, alive := c.since[l.To]
		if !alive || !l.ill() {
			continue
		}
		n := 0
		if !l.Refused {
			for h, r := range c.reports {
				if h != l.To && len(r.Links) > 0 && c.fresh(r) &&
					slices.ContainsFunc(r.Links, func(x LinkReport) bool { return x.To == l.To && x.Refused }) {
					n++
				}
			}
		}
		if l.Refused || 2*n > len(c.since)-1 {
			lost = append(lost, l.To)
		}
	}
	return lost
}

// A pair is two processes, the lesser first, between which something is amiss.
type pair struct {
	a, b Home
	must bool // one of them has to go
}

// cutOff returns processes that are alive and have links which stay down: of each pair
// one end. By the time when one end has to go, both have complained for long.
func (c *Coordinator) cutOff(lost []Home) []Home {
	lives := func(h Home) bool {
		_, alive := c.since[h]
		return h == c.self || alive && !slices.Contains(lost, h)
	}
	pairs := map[[2]Home]bool{}
	for _, r := range c.reports {
		if len(r.Links) == 0 || !c.fresh(r) || !lives(r.Home) {
			continue
		}
		for _, l := range r.Links {
			if 2*l.Down >= c.Down && lives(l.To) && l.To != r.Home {
				p := ends(r.Home, l.To)
				pairs[p] = pairs[p] || l.Down >= c.Down
			}
		}
	}
	var all []pair
	for p, must := range pairs {
		all = append(all, pair{p[0], p[1], must})
	}
	return cover(all, c.self, func(h Home) int { return c.total[h] })
}

func ends(a, b Home) [2]Home {
	if compareHomes(b, a) < 0 {
		a, b = b, a
	}
	return [2]Home{a, b}
}

// cover returns one end of each pair of which one must go, and as few as can be found
// quickly: first who is in most pairs, then who has the fewest tasks. spared is none of
// them.
func cover(pairs []pair, spared Home, tasks func(Home) int) (chosen []Home) {
	for {
		degree, must := map[Home]int{}, map[Home]bool{}
		for _, p := range pairs {
			degree[p.a]++
			degree[p.b]++
			must[p.a], must[p.b] = must[p.a] || p.must, must[p.b] || p.must
		}
		var worst Home
		for h := range must {
			if must[h] && h != spared && (worst == Home{} ||
				cmp.Or(cmp.Compare(degree[h], degree[worst]), cmp.Compare(tasks(worst), tasks(h)), compareHomes(h, worst)) > 0) {
				worst = h
			}
		}
		if worst == (Home{}) {
			return chosen
		}
		chosen = append(chosen, worst)
		pairs = slices.DeleteFunc(pairs, func(p pair) bool { return p.a == worst || p.b == worst })
	}
}

// reset returns processes whose tasks of a run need other lives, since a link between
// living ones was given up, and the last epoch that is concerned. One end of each link
// is enough, for then the other hears of it as of any death.
func (c *Coordinator) reset(b *book) map[Home]uint32 {
	pairs := map[[2]Home]uint32{}
	for _, r := range c.reports {
		for _, l := range r.Links {
			for _, e := range l.Reset {
				if e.Run != b.Run || c.renewed(b, r.Home, e.Epoch) || c.renewed(b, l.To, e.Epoch) {
					continue
				}
				p := ends(r.Home, l.To)
				pairs[p] = max(pairs[p], e.Epoch)
			}
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	var all []pair
	for p := range pairs {
		all = append(all, pair{p[0], p[1], true})
	}
	renew := map[Home]uint32{}
	for _, h := range cover(all, Home{}, func(h Home) int { x, _ := of(b.homes, h); return x.tasks }) {
		for p, epoch := range pairs {
			if p[0] == h || p[1] == h {
				renew[h] = max(renew[h], epoch)
			}
		}
	}
	return renew
}

// renewed reports whether nothing that a process has of a run, and that it goes on
// with, has lived in a plan.
func (c *Coordinator) renewed(b *book, h Home, epoch uint32) bool {
	x, has := of(b.homes, h)
	r, _ := c.reports[h].of(b.Run)
	return !has || x.oldest > epoch || r.Over || !c.serves(b, h)
}
