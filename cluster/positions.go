package cluster

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"strings"

	"github.com/egretstream/egret/mutation"
)

// Positions are the committed positions of a topology, by component and split. They
// are a value that never changes: a commit makes another one, which shares with it all
// that the commit does not touch. There may be 100,000 of them.
//
// Invariant: the chunks are sorted within and among each other, none is empty or longer
// than longest, and none is ever written to.
type Positions struct {
	chunks [][]Position
	count  int
}

const longest = 64

// Len returns how many there are.
func (p Positions) Len() int { return p.count }

// At returns the position of a split of a component, if it has one.
func (p Positions) At(component, split string) (Position, bool) {
	at := Position{Component: component, Split: split}
	if i := p.chunk(at); i < len(p.chunks) {
		if k, ok := slices.BinarySearchFunc(p.chunks[i], at, Position.compare); ok {
			return p.chunks[i][k], true
		}
	}
	return Position{}, false
}

// All yields all of them, by component and split.
func (p Positions) All() iter.Seq[Position] {
	return func(yield func(Position) bool) {
		for _, c := range p.chunks {
			for _, q := range c {
				if !yield(q) {
					return
				}
			}
		}
	}
}

// Of yields those of a component, by split.
func (p Positions) Of(component string) iter.Seq[Position] {
	return func(yield func(Position) bool) {
		from := Position{Component: component}
		for _, c := range p.chunks[p.chunk(from):] {
			k, _ := slices.BinarySearchFunc(c, from, Position.compare)
			for _, q := range c[k:] {
				if q.Component != component || !yield(q) {
					return
				}
			}
		}
	}
}

// only returns the positions of components that are wanted; p itself if these are all.
func (p Positions) only(wanted func(component string) bool) Positions {
	var some []Position
	for at := range p.All() {
		if wanted(at.Component) {
			some = append(some, at)
		}
	}
	if len(some) == p.Len() {
		return p
	}
	next, _ := Positions{}.with(some)
	return next
}

// with returns p with others, which it sorts. One by an earlier life than that which
// committed last is passed over (R12), and old counts these.
func (p Positions) with(others []Position) (next Positions, old int) {
	slices.SortStableFunc(others, Position.compare)
	have := p.chunks
	next.chunks = make([][]Position, 0, len(have)+1+len(others)/longest)
	next.count = p.count
	for len(others) > 0 {
		// The others before the end of a chunk belong in it; those behind all, in the last.
		k, n := p.chunk(others[0])-(len(p.chunks)-len(have)), len(others)
		if k = min(k, len(have)-1); k < 0 {
			have, k = [][]Position{nil}, 0 // the first of all
		} else if end := have[k][len(have[k])-1]; k < len(have)-1 {
			n = sort.Search(n, func(i int) bool { return others[i].compare(end) > 0 })
		}
		all, stale := merged(have[k], others[:n])
		next.count += len(all) - len(have[k])
		old += stale
		next.chunks = append(next.chunks, have[:k]...)
		for ; len(all) > longest; all = all[longest*3/4:] {
			next.chunks = append(next.chunks, slices.Clone(all[:longest*3/4]))
		}
		next.chunks = append(next.chunks, slices.Clone(all))
		have, others = have[k+1:], others[n:]
	}
	next.chunks = append(next.chunks, have...)
	return next, old
}

func merged(have, others []Position) (all []Position, old int) {
	all = make([]Position, 0, len(have)+len(others))
	for _, q := range others {
		for len(have) > 0 && have[0].compare(q) <= 0 {
			all = append(all, have[0])
			have = have[1:]
		}
		switch last := len(all) - 1; {
		case last < 0 || all[last].compare(q) != 0:
			all = append(all, q)
		case q.Life < all[last].Life && !mutation.Is(mutation.LateCommit):
			old++
		default:
			all[last] = q
		}
	}
	return append(all, have...), old
}

// chunk returns which chunk the position of a split is in, or would be.
func (p Positions) chunk(at Position) int {
	return sort.Search(len(p.chunks), func(i int) bool {
		c := p.chunks[i]
		return c[len(c)-1].compare(at) >= 0
	})
}

// compare orders positions by component and split.
func (p Position) compare(other Position) int {
	return cmp.Or(strings.Compare(p.Component, other.Component), strings.Compare(p.Split, other.Split))
}
