package graph

import (
	"slices"

	"github.com/egretstream/egret/topology"
)

// All lengths are whole pixels, so that a picture is the same on every machine.
const (
	margin    = 24
	header    = 64 // above the picture
	portGap   = 18 // between two lines at a box, as long as it is high enough
	apart     = 26 // between two boxes of a column
	near      = 10 // between a label or a line and what is next
	lineRoom  = 12 // that a line takes in a column
	labelRoom = 36 // that a label takes: a text above its line and one below
	leastGap  = 24 // between columns
	mostGap   = 110
)

// A least is what boxes and labels take at least.
type least struct{ boxWidth, boxHeight, labelWidth int }

var (
	still = least{boxWidth: 84, boxHeight: 54}
	live  = least{boxWidth: 180, boxHeight: 88, labelWidth: 76} // four rows with numbers, and a rate below a line
)

// A layout is where everything stands.
type layout struct {
	p      *topology.Plan
	least  least
	boxes  []*spot // by component
	lines  []*line
	column [][]*spot // from the left, each from above
	w, h   int
}

// A spot is what stands in a column: a box, a label, or a line that goes through.
type spot struct {
	component int   // of a box, else -1
	label     *line // whose label it is, or nil
	col       int
	place     int // in its column, from above
	x, y      int // of the middle of its left side
	w, h      int
	in, out   []*hop
}

// A hop is a part of a line, from one column to the next.
type hop struct {
	from, to     *spot
	fromY, toY   int // where it meets them, from their middle
	fromAt, toAt int // the same as a place among their hops
}

// A line is a subscription.
type line struct {
	component, input int
	from             int
	hops             []*hop
	label            *spot
	above, below     string
}

// arrange lays a plan out.
func arrange(p *topology.Plan, of least) *layout {
	l := &layout{p: p, least: of}
	l.stand()
	l.order()
	l.ports()
	l.level()
	l.straighten()
	l.spread()
	return l
}

// stand puts components and labels into columns: each component behind all that
// it subscribes to, and a spout just before its first subscriber.
func (l *layout) stand() {
	depth := make([]int, len(l.p.Components))
	for c := range l.p.Components {
		for _, in := range l.p.Components[c].Inputs {
			depth[c] = max(depth[c], depth[in.From]+1)
		}
	}
	last := 0
	for c := range l.p.Components {
		n := &l.p.Components[c]
		if len(n.Inputs) == 0 && len(n.Outputs) > 0 {
			depth[c] = depth[n.Outputs[0].To] - 1
			for _, r := range n.Outputs {
				depth[c] = min(depth[c], depth[r.To]-1)
			}
		}
		last = max(last, depth[c])
	}
	l.column = make([][]*spot, 2*last+1)
	for c := range l.p.Components {
		n := &l.p.Components[c]
		ins, outs := len(n.Inputs), len(n.Outputs)
		s := &spot{component: c, col: 2 * depth[c], w: max(l.least.boxWidth, boxWidth(n)), h: max(l.least.boxHeight, portGap*max(ins, outs)+8)}
		l.boxes = append(l.boxes, s)
		l.add(s)
		for k, in := range n.Inputs {
			ln := &line{component: c, input: k, from: in.From}
			ln.above, ln.below = labelOf(l.p, c, k)
			at := l.boxes[in.From]
			for col := at.col + 1; col < s.col; col++ {
				x := &spot{component: -1, col: col, h: lineRoom}
				if col == s.col-1 {
					x.label, ln.label = ln, x
					x.w, x.h = max(l.least.labelWidth, labelWidth(ln)), labelRoom
				}
				l.add(x)
				ln.hop(at, x)
				at = x
			}
			ln.hop(at, s)
			l.lines = append(l.lines, ln)
		}
	}
}

func (l *layout) add(s *spot) {
	s.place = len(l.column[s.col])
	l.column[s.col] = append(l.column[s.col], s)
}

func (ln *line) hop(from, to *spot) {
	h := &hop{from: from, to: to}
	from.out = append(from.out, h)
	to.in = append(to.in, h)
	ln.hops = append(ln.hops, h)
}

// ports gives each hop its place at the boxes, so that lines meet a box in the
// order in which they come.
func (l *layout) ports() {
	for _, col := range l.column {
		for _, s := range col {
			slices.SortStableFunc(s.out, func(a, b *hop) int { return a.to.place - b.to.place })
			slices.SortStableFunc(s.in, func(a, b *hop) int { return a.from.place - b.from.place })
			for i, h := range s.out {
				h.fromAt, h.fromY = i, port(i, len(s.out))
			}
			for i, h := range s.in {
				h.toAt, h.toY = i, port(i, len(s.in))
			}
		}
	}
}

func port(i, n int) int { return (2*i - n + 1) * portGap / 2 }

// spread gives columns their place from the left, the farther apart the steeper
// the lines between them, and moves everything into the picture.
func (l *layout) spread() {
	top := 0
	for i, col := range l.column {
		for k, s := range col {
			if i == 0 && k == 0 || s.y-s.h/2 < top {
				top = s.y - s.h/2
			}
		}
	}
	x := margin
	for _, col := range l.column {
		wide, steep := 0, 0
		for _, s := range col {
			wide = max(wide, s.w)
			s.x = x
			s.y += header + margin - top
			l.h = max(l.h, s.y+s.h/2)
			for _, h := range s.out { // h.to has not been moved yet
				steep = max(steep, distance(s.y+h.fromY, h.to.y+h.toY+header+margin-top))
			}
		}
		for _, s := range col {
			s.w = wide
		}
		x += wide
		l.w = x
		x += min(mostGap, max(leastGap, steep/2))
	}
	l.w = max(l.w, headerWidth(l.p)+margin) + margin
	l.h += margin
}

func distance(a, b int) int { return max(a-b, b-a) }
