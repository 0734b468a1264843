package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// A severed is lives of a run on two nodes when what was between them was given up: those
// of one end must not live on.
type severed struct {
	run  *clusterRunBook
	at   time.Duration
	ends [2][]*taskLife
}

func (x *severed) lives() bool {
	for _, end := range x.ends {
		if !slices.ContainsFunc(end, (*taskLife).living) {
			return false
		}
	}
	return true
}

func (b *clusterBook) severs(p *process, peer cluster.Home) {
	b.living()
	for _, r := range b.order {
		x := severed{run: r, at: b.c.w.Now()}
		for _, l := range b.all {
			if l.run == r && l.in == p {
				x.ends[0] = append(x.ends[0], l)
			} else if l.run == r && l.in.home == peer {
				x.ends[1] = append(x.ends[1], l)
			}
		}
		if x.lives() {
			b.severed = append(b.severed, x)
		}
	}
}

// A linkBook checks that parcels between two lives on different nodes arrive once and in
// order.
type linkBook struct {
	lines map[lineOf]*clusterLine
}

// A lineOf is what one life sends to a task of a node.
type lineOf struct {
	run  uint32
	from tuple.TaskID
	life tuple.Incarnation
	to   tuple.TaskID
	node cluster.NodeID
}

type clusterLine struct {
	sent map[string]int
	last int
}

func newLinkBook() linkBook { return linkBook{map[lineOf]*clusterLine{}} }

func (b *clusterBook) seen(from, to actor.Ref, msg any) {
	switch m := msg.(type) {
	case *task.Lives:
		for _, peer := range m.Peers {
			b.spawned(b.c.members[b.c.w.find(to)], b.runs[cluster.Run(m.Run)], peer)
		}
	case *task.Far:
		p, is := m.Msg.(*task.Encoded)
		if !is {
			return
		}
		b.saw("parcels between nodes")
		l := b.lives[b.c.w.find(from)]
		for id, k := range l.in.keeps {
			if k.link == to {
				b.links.send(lineOf{m.Run, p.From, p.FromLife, p.To, id}, p.Bytes)
			}
		}
	case *task.Encoded:
		l := b.lives[b.c.w.find(to)]
		b.check(chaos.Links)
		if why := b.links.arrive(lineOf{uint32(l.run.run), m.From, m.FromLife, m.To, l.in.id}, m.Bytes, b.c.s.exact()); why != "" {
			b.violate(chaos.Links, "%s gets from task %d life %v %s", l, m.From, m.FromLife, why)
		}
	case node.LinkReset:
		b.c.resets++
		p := b.c.members[b.c.w.find(to)]
		for _, x := range b.c.machines {
			if x.id == m.Peer.Node && x.run != nil && x.run.home == m.Peer {
				b.saw("link reset between living processes")
			}
		}
		b.severs(p, m.Peer)
		if b.c.s.exact() || b.c.s.mood == "breaking" {
			b.violate(chaos.Links, "%s hears that the link to %v is reset (%s), and all processes live", p.name, m.Peer, m.Why)
		}
	}
}

func (b *linkBook) send(at lineOf, bytes []byte) {
	l := b.lines[at]
	if l == nil {
		l = &clusterLine{sent: map[string]int{}}
		b.lines[at] = l
	}
	l.sent[string(bytes)] = len(l.sent) + 1
}

func (b *linkBook) arrive(at lineOf, bytes []byte, all bool) string {
	l := b.lines[at]
	if l == nil {
		return "a parcel, and it has sent none"
	}
	n, known := l.sent[string(bytes)]
	last := l.last
	l.last = max(l.last, n)
	switch {
	case !known:
		return "a parcel that it has not sent"
	case n <= last:
		return fmt.Sprintf("parcel %d after parcel %d", n, last)
	case n > last+1 && all:
		return fmt.Sprintf("parcel %d after parcel %d, and nothing was wrong", n, last)
	}
	return ""
}

func (b *linkBook) atEnd(book *clusterBook) {
	for _, l := range b.lines {
		book.twin(chaos.Links)
		if l.last < len(l.sent) && book.c.s.exact() {
			book.violate(chaos.Links, "of %d parcels the last to arrive is %d, and nothing was wrong", len(l.sent), l.last)
		}
	}
}
