package sim

import (
	"time"

	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// An edgeBook knows which lives the tuples of open trees were sent to, from the
// parcels on the network, and so whether a tree may be lost at all.
type edgeBook struct {
	plan  *topology.Plan
	trees map[tuple.TreeID]*treeBook
	lives []tuple.Incarnation // the newest life of each task that was heard of
	since []time.Duration     // and when
	// first is when a life of a task first sent something to the newest life of
	// another: from then on at the latest it knew of the deaths before.
	first map[acquaintance]time.Duration
}

type treeBook struct {
	opened time.Duration // when the first parcel was sent
	sent   []acquaintance
	at     []time.Duration
}

// An acquaintance is a life of a task that has sent something to a life of another.
type acquaintance struct {
	from, to         tuple.TaskID
	fromLife, toLife tuple.Incarnation
}

func newEdgeBook(p *topology.Plan) *edgeBook {
	return &edgeBook{
		plan: p, trees: map[tuple.TreeID]*treeBook{},
		lives: make([]tuple.Incarnation, len(p.Tasks)), since: make([]time.Duration, len(p.Tasks)), first: map[acquaintance]time.Duration{},
	}
}

// born books that there is a life of a task.
func (b *edgeBook) born(now time.Duration, t tuple.TaskID, life tuple.Incarnation) {
	if life > b.lives[t] {
		b.lives[t], b.since[t] = life, now
	}
}

func (b *edgeBook) parcel(now time.Duration, p *tuple.Parcel) {
	pair := acquaintance{p.From, p.To, p.FromLife, p.ToLife}
	b.born(now, p.From, p.FromLife)
	b.born(now, p.To, p.ToLife)
	if _, known := b.first[pair]; !known {
		b.first[pair] = now
	}
	for i := range p.Slots {
		id := p.Slots[i].Tree
		t := b.trees[id]
		if t == nil {
			t = &treeBook{opened: now}
			b.trees[id] = t
		}
		t.sent = append(t.sent, pair)
		t.at = append(t.at, now)
	}
}

func (b *edgeBook) forget(id tuple.TreeID) { delete(b.trees, id) }

// mayBeLost reports whether a tuple of a tree was sent to a life that is over, or
// may have been kept for one: by a task that got a tuple of the tree before it is
// known to have heard of the death.
func (b *edgeBook) mayBeLost(id tuple.TreeID) bool {
	t := b.trees[id]
	if t == nil || len(b.plan.Tasks) > 64 {
		return b.sharesBit(id, t)
	}
	if b.ignorant(id.Task, id.Incarnation, t.opened) {
		return true
	}
	for i, s := range t.sent {
		if s.toLife < b.lives[s.to] || b.ignorant(s.to, s.toLife, t.at[i]) {
			return true
		}
	}
	return false
}

// sharesBit reports whether a tuple of a tree can have been meant for a task that has
// died, or for one that has the same bit in the masks of a ledger. With 64 tasks or
// fewer no two have.
func (b *edgeBook) sharesBit(id tuple.TreeID, t *treeBook) bool {
	var dead uint64
	for x, life := range b.lives {
		if life.Restart() > 1 {
			dead |= 1 << (x % 64)
		}
	}
	mask := b.reach(id.Task)
	if t != nil {
		for _, s := range t.sent {
			mask |= b.reach(s.to)
		}
	}
	return mask&dead != 0
}

// reach returns the bits of the tasks that a task sends to.
func (b *edgeBook) reach(task tuple.TaskID) (mask uint64) {
	for _, r := range b.plan.Node(task).Outputs {
		n := &b.plan.Components[r.To]
		for k := range n.Parallel {
			mask |= 1 << ((int(n.First) + k) % 64)
		}
	}
	return mask
}

// overdue reports whether a tuple of a tree went to a life that has ended long before:
// the tree should have been given back then.
func (b *edgeBook) overdue(id tuple.TreeID, before time.Duration) bool {
	t := b.trees[id]
	for i := 0; t != nil && i < len(t.sent); i++ {
		if s := t.sent[i]; s.toLife < b.lives[s.to] && b.since[s.to] < before && t.at[i] < b.since[s.to] {
			return true
		}
	}
	return false
}

// ignorant reports whether a task, at a time, may not have known a death among
// those that it sends to.
func (b *edgeBook) ignorant(task tuple.TaskID, life tuple.Incarnation, at time.Duration) bool {
	for _, r := range b.plan.Node(task).Outputs {
		n := &b.plan.Components[r.To]
		for k := range n.Parallel {
			x := n.First + tuple.TaskID(k)
			if b.lives[x].Restart() <= 1 {
				continue
			}
			if first, known := b.first[acquaintance{task, x, life, b.lives[x]}]; !known || at < first {
				return true
			}
		}
	}
	return false
}
