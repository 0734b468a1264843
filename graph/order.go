package graph

import (
	"cmp"
	"slices"
)

const (
	sweeps = 24 // through the columns, forth or back
	levels = 60
)

// order chooses the order in each column so that few lines cross: each spot goes
// to the mean place of its neighbours, column by column, forth and back; the best
// that was seen is kept, and neighbours that are better the other way round are
// exchanged.
func (l *layout) order() {
	best, least := l.places(), l.crossings()
	for i := range sweeps {
		if least == 0 {
			break
		}
		for k := range l.column {
			if i%2 == 1 {
				k = len(l.column) - 1 - k
			}
			slices.SortStableFunc(l.column[k], func(a, b *spot) int {
				sa, na := a.wanted(i%2 == 1)
				sb, nb := b.wanted(i%2 == 1)
				return cmp.Compare(sa*nb, sb*na)
			})
			l.number(k)
		}
		l.exchange()
		if n := l.crossings(); n < least {
			best, least = l.places(), n
		}
	}
	for k, col := range best {
		l.column[k] = col
		l.number(k)
	}
}

// wanted returns the sum of the places of a spot's neighbours on one side, and how
// many there are.
func (s *spot) wanted(right bool) (sum, n int) {
	if right {
		for _, h := range s.out {
			sum += h.to.place
		}
		n = len(s.out)
	} else {
		for _, h := range s.in {
			sum += h.from.place
		}
		n = len(s.in)
	}
	if n == 0 {
		return s.place, 1
	}
	return sum, n
}

func (l *layout) number(k int) {
	for i, s := range l.column[k] {
		s.place = i
	}
}

func (l *layout) places() (all [][]*spot) {
	for _, col := range l.column {
		all = append(all, slices.Clone(col))
	}
	return all
}

// crossings counts the pairs of hops that cross.
func (l *layout) crossings() (n int) {
	for _, col := range l.column {
		for i, a := range col {
			for _, b := range col[i+1:] {
				n += crossing(a.out, b.out, right)
			}
		}
	}
	return n
}

func right(h *hop) int { return h.to.place }
func left(h *hop) int  { return h.from.place }

// crossing counts the pairs of hops of a spot and of one below it that cross.
func crossing(above, below []*hop, end func(*hop) int) (n int) {
	for _, a := range above {
		for _, b := range below {
			if end(a) > end(b) {
				n++
			}
		}
	}
	return n
}

// exchange exchanges neighbours in a column as long as that saves crossings.
func (l *layout) exchange() {
	for again := true; again; {
		again = false
		for _, col := range l.column {
			for i := 0; i+1 < len(col); i++ {
				a, b := col[i], col[i+1]
				now := crossing(a.out, b.out, right) + crossing(a.in, b.in, left)
				then := crossing(b.out, a.out, right) + crossing(b.in, a.in, left)
				if then < now {
					col[i], col[i+1] = b, a
					a.place, b.place = b.place, a.place
					again = true
				}
			}
		}
	}
}

// level chooses the heights so that lines are as level as the order allows.
func (l *layout) level() {
	for _, col := range l.column {
		y := 0
		for i, s := range col {
			if i > 0 {
				y += between(col[i-1], s)
			}
			s.y = y
		}
	}
	for i := range levels {
		for k := range l.column {
			if i%2 == 1 {
				k = len(l.column) - 1 - k
			}
			// At first from one side only, which moves whole groups; in the end from both.
			settle(l.column[k], i%2 == 0 || i > levels/2, i%2 == 1 || i > levels/2)
		}
	}
}

// straighten makes a line level all the way from one of its boxes to just before
// the other, or at least between them, where there is room for it.
func (l *layout) straighten() {
	for _, ln := range l.lines {
		first, last := ln.hops[0], ln.hops[len(ln.hops)-1]
		for _, y := range []int{first.from.y + first.fromY, last.to.y + last.toY, ln.label.y, first.to.y} {
			if l.fits(ln, y) {
				for _, h := range ln.hops[1:] {
					h.from.y = y
				}
				break
			}
		}
	}
}

// fits reports whether a line would be far enough from everything at a height.
func (l *layout) fits(ln *line, y int) bool {
	for _, h := range ln.hops[1:] {
		s := h.from
		col := l.column[s.col]
		if i := s.place - 1; i >= 0 && y-col[i].y < between(col[i], s) {
			return false
		}
		if i := s.place + 1; i < len(col) && col[i].y-y < between(s, col[i]) {
			return false
		}
	}
	return true
}

// between is the least distance of the middles of two neighbours.
func between(a, b *spot) int {
	gap := near
	if a.component >= 0 && b.component >= 0 {
		gap = apart
	}
	return (a.h+b.h)/2 + gap
}

// settle moves the spots of a column to the mean height of their neighbours on the
// given sides, as near as their order and distance allow: those that would come
// too close are moved together, to the mean of what they want.
func settle(col []*spot, in, out bool) {
	type block struct{ sum, n int }
	var blocks []block
	offset := 0 // from the first to the present one if all were close
	offsets := make([]int, len(col))
	for i, s := range col {
		if i > 0 {
			offset += between(col[i-1], s)
		}
		offsets[i] = offset
		want, n := 0, 0
		if in {
			for _, h := range s.in {
				want += h.from.y + h.fromY - h.toY
				n++
			}
		}
		if out {
			for _, h := range s.out {
				want += h.to.y + h.toY - h.fromY
				n++
			}
		}
		if n == 0 {
			want, n = s.y, 1
		}
		b := block{want/n - offset, 1}
		for len(blocks) > 0 && blocks[len(blocks)-1].sum*b.n >= b.sum*blocks[len(blocks)-1].n {
			b.sum += blocks[len(blocks)-1].sum
			b.n += blocks[len(blocks)-1].n
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	i := 0
	for _, b := range blocks {
		for range b.n {
			col[i].y = floor(b.sum, b.n) + offsets[i]
			i++
		}
	}
}

func floor(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
