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
		lives: make([]tuple.Incarnation, len(p.Tasks)), first: map[acquaintance]time.Duration{},
	}
}

// born books that there is a life of a task.
func (b *edgeBook) born(t tuple.TaskID, life tuple.Incarnation) {
	b.lives[t] = max(b.lives[t], life)
}

func (b *edgeBook) parcel(now time.Duration, p *tuple.Parcel) {
	pair := acquaintance{p.From, p.To, p.FromLife, p.ToLife}
	b.born(p.From, p.FromLife)
	b.born(p.To, p.ToLife)
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

func (b *edgeBook) opened(id tuple.TreeID) time.Duration {
	if t := b.trees[id]; t != nil {
		return t.opened
	}
	return 0
}

// mayBeLost reports whether a tuple of a tree was sent to a life that is over, or
// may have been kept for one: by a task that got a tuple of the tree before it is
// known to have heard of the death.
func (b *edgeBook) mayBeLost(id tuple.TreeID) bool {
	t := b.trees[id]
	if t == nil {
		return true // nothing of it was sent before its receiver died
	}
	if len(b.plan.Tasks) > 64 {
		return true // tasks share bits
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
