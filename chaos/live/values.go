package live

import (
	"slices"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

// The values of a message are known by a hash of 32 bits, of all but those of kind any,
// whose bytes only their codec knows.

// positions are what tuple.Hash is given for a row without an any.
var positions = func() (all [64]int) {
	for i := range all {
		all[i] = i
	}
	return all
}()

func hashRow(cells []tuple.Cell, kinds []tuple.Kind) uint32 {
	fields := positions[:min(len(kinds), len(positions))]
	if len(kinds) > len(positions) || slices.Contains(kinds, tuple.KindAny) {
		fields = nil
		for i, k := range kinds {
			if k != tuple.KindAny {
				fields = append(fields, i)
			}
		}
	}
	h := tuple.Hash(cells, kinds, fields)
	return uint32(h) ^ uint32(h>>32)
}

// valuesOf returns the hashes of n messages of a batch.
func valuesOf(b *spout.Batch, from, n int) []uint32 {
	all := make([]uint32, n)
	for i := range all {
		s, cells := b.Message(from + i)
		all[i] = hashRow(cells, s.Kinds)
	}
	return all
}

// A check of the tuple that is about to be executed: it is the one whose turn it is, and
// if it comes from the task whose message it is, it has that message's values.
func (s *seat) check(r *record, in tuple.Tuple) {
	p := s.hand
	if p == nil || s.row > len(p.Refs) {
		of := Message{}
		if p != nil {
			of.Component = p.Schema.Component
		}
		r.violated(of, "more tuples were executed than its parcel had")
		return
	}
	if !in.In(p, s.row-1) {
		r.violated(s.named(r), "another tuple was executed in its place, or again")
		for i := range p.Refs {
			if in.In(p, i) {
				s.row = i + 1
			}
		}
	}
	ref := p.Refs[s.row-1]
	if ref.Slot == tuple.Several {
		return // no message is
	}
	t := s.trees[ref.Slot]
	if t == nil || t.id.Task != p.From || int(ref.Index) >= len(t.values) {
		return
	}
	if hashRow(p.Row(s.row-1), p.Kinds) != t.values[ref.Index] {
		r.violated(s.named(r), "a tuple was executed as this message that has not its values")
	}
}

// named returns the message that the tuple in hand comes of, or the first one.
func (s *seat) named(r *record) (m Message) {
	m.Component = s.hand.Schema.Component
	named := false
	s.units(func(u unit) {
		if u.tree != nil && !named {
			b := r.books[u.tree.id.Task]
			b.mu.Lock()
			defer b.mu.Unlock()
			m, named = b.placed(u.tree, int(u.index)), true
		}
	})
	return m
}

// emptied is told that a task is done with a parcel.
func (r *record) emptied(p *tuple.Parcel) {
	s := r.seats[p.To]
	if s.hand != p || s.row >= len(p.Refs) {
		return
	}
	s.row++
	r.violated(s.named(r), "its tuple was put away without being executed")
}
