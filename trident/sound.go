package trident

import (
	"slices"

	"github.com/egretstream/egret/topology"
)

// sound tells of states that would not be exactly-once: the matrix of [Kind], and what
// T13 wants of states that keep no value before.
func (b *Builder) sound() {
	states := map[string]*node{}
	for _, n := range b.nodes {
		if n.state == nil {
			continue
		}
		if states[n.state.name] != nil {
			b.mistake(ErrState, "state %s: two operators change it: merge their streams, or give one of them another state", n.state.name)
			n.name = "" // or it would be told that it is taken, too
		}
		states[n.state.name] = n
		b.pairOf(n)
	}
	for _, n := range b.nodes {
		if n.reads == nil {
			continue
		}
		of := states[n.reads.name]
		switch {
		case of == nil:
			b.mistake(ErrState, "StateQuery of state %s: no operator of this topology changes it", n.reads.name)
		case of.state.is != n.reads.is || of.state.kind != n.reads.kind:
			b.mistake(ErrState, "StateQuery of state %s, which is %v and %s: it is changed as one that is %v and %s: use the same State for both", n.reads.name, n.reads.kind, n.reads.is, of.state.kind, of.state.is)
		case of.state.kind != Opaque && !of.state.inexact:
			b.mistake(ErrUnsound, "StateQuery of state %s, which is %v: a batch that comes again would see what it has written before: use a state that is Opaque, or let it through with Inexact()", n.reads.name, of.state.kind)
		}
	}
}

// pairOf looks at a state and the sources that it gets elements of.
func (b *Builder) pairOf(n *node) {
	s := n.state
	var refused bool
	told := func(format string, args ...any) {
		if !s.inexact && !refused {
			b.mistake(ErrUnsound, format, args...)
		}
		refused = true
	}
	for _, up := range above(n) {
		switch {
		case up.isSource && up.replay == NonTransactional && s.kind == NonTransactional:
			told("state %s, which is %v, with the source %s, which is %v: messages of a batch that fails would be lost, and what comes again would count again: make the source and the state Opaque, or let the pair through with Inexact()", s.name, s.kind, up.name, up.replay)
		case up.isSource && up.replay == NonTransactional && s.kind == Transactional:
			told("state %s, which is %v, with the source %s, which is %v: messages of a batch that fails would be lost: make the source and the state Opaque, or the source Transactional if it gives the same messages behind a position each time, or let the pair through with Inexact()", s.name, s.kind, up.name, up.replay)
		case up.isSource && s.kind == NonTransactional:
			told("state %s, which is %v, with the source %s, which is %v: what comes again would count again: make the state Opaque, or let the pair through with Inexact()", s.name, s.kind, up.name, up.replay)
		case up.isSource && up.replay == NonTransactional:
			told("state %s, which is %v, with the source %s, which is %v: messages of a batch that fails would be lost: make the source Opaque, or let the pair through with Inexact()", s.name, s.kind, up.name, up.replay)
		case up.isSource && up.replay == Opaque && s.kind == Transactional:
			told("state %s, which is %v, with the source %s, which is %v: a batch that comes again may have other messages: make the state Opaque, or the source Transactional if it gives the same messages behind a position each time, or let the pair through with Inexact()", s.name, s.kind, up.name, up.replay)
		case up.uneven && s.kind == Transactional && shuffled(up):
			told("state %s, which is %v, behind PartitionAggregate of a shuffled stream: a batch that comes again may be cut into other parts: make the state Opaque, or put By or Global before PartitionAggregate, or let it through with Inexact()", s.name, s.kind)
		}
	}
	s.again = refused && s.kind != Opaque
}

// above returns the nodes that n gets elements of, also through others.
func above(n *node) (all []*node) {
	var walk func(*node)
	walk = func(n *node) {
		for _, in := range n.inputs {
			if !slices.Contains(all, in.from) {
				all = append(all, in.from)
				walk(in.from)
			}
		}
	}
	walk(n)
	return all
}

// shuffled reports whether it is left to chance which elements the task of n gets.
func shuffled(n *node) bool {
	return slices.ContainsFunc(n.inputs, func(in input) bool {
		if in.edge == nil {
			return shuffled(in.from)
		}
		return in.edge.grouping == topology.Shuffle || in.edge.grouping == topology.LocalOrShuffle
	})
}
