package tuple

import (
	"fmt"
	"slices"

	"github.com/egretstream/egret/amount"
)

// A Row is one tuple being made: the cells that Emit fills before it is known
// which parcels they go to. It is used again for each.
type Row struct {
	Cells  []Cell
	Kinds  []Kind
	Text   int // bytes of text that the cells point at
	shape  shape
	Direct int // 1 + the task that the emitter has chosen; 0: it has not
}

// A shape is the kinds of a row in one number, if they are 1 to 16: whether two
// rows have the same kinds is then one comparison. 0 stands for any others.
type shape uint64

const mostShape = 16

func shapeOf(kinds []Kind) (s shape) {
	if len(kinds) > mostShape {
		return 0
	}
	for _, k := range kinds {
		s = s<<4 | shape(k+1)
	}
	return s
}

// RowOf returns a row of the given kinds without cells.
func RowOf(kinds []Kind) Row { return Row{Kinds: kinds, shape: shapeOf(kinds)} }

// Same reports whether r and o have the same kinds.
func (r *Row) Same(o *Row) bool {
	return r.shape == o.shape && (r.shape != 0 || slices.Equal(r.Kinds, o.Kinds))
}

// Set fills r with values for a stream of the given schema. It panics with a
// misuse when there are too few or too many, or one is of no kind.
func (r *Row) Set(s *Schema, values []any) {
	n := len(values)
	if n != len(s.Fields) {
		wrongArity(s, n)
	}
	if cap(r.Cells) < n || cap(r.Kinds) < n {
		r.grow(n)
	}
	r.Cells, r.Kinds = r.Cells[:n], r.Kinds[:n]
	if bad := r.fill(values); bad >= 0 {
		r.refuse(s, bad, values)
	}
}

// grow makes room for n values, in cache lines that r shares with nobody: a row
// is written for every tuple, and a line that two tasks write to goes back and
// forth between their cores each time.
func (r *Row) grow(n int) {
	r.Cells, r.Kinds = make([]Cell, n, max(n, 16)), make([]Kind, n, max(n, 64))
}

func wrongArity(s *Schema, n int) {
	panic(misuse{fmt.Sprintf("stream %s.%s has %s (%s), but got %s", s.Component, s.Stream, amount.Of(len(s.Fields), "field"), quoted(s.Fields), amount.Of(n, "value"))})
}

func (r *Row) refuse(s *Schema, bad int, values []any) {
	panic(misuse{fmt.Sprintf("field %q of stream %s.%s: %v", s.Fields[bad], s.Component, s.Stream, badValue(values[bad]))})
}
