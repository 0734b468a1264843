package tuple

import "fmt"

// A Row is one tuple being made: the cells that Emit fills before it is known
// which parcels they go to. It is used again for each.
type Row struct {
	Cells []Cell
	Kinds []Kind
	Text  int // bytes of text that the cells point at
}

// Set fills r with values for a stream of the given schema. It panics with a
// misuse when there are too few or too many, or one is of no kind.
func (r *Row) Set(s *Schema, values []any) {
	n := len(values)
	if n != len(s.Fields) {
		wrongArity(s, n)
	}
	if cap(r.Cells) < n || cap(r.Kinds) < n {
		r.Cells, r.Kinds = make([]Cell, n), make([]Kind, n)
	}
	r.Cells, r.Kinds = r.Cells[:n], r.Kinds[:n]
	text, bad := setCells(r.Cells, r.Kinds, values)
	if bad >= 0 {
		r.refuse(s, bad, values)
	}
	r.Text = text
}

func wrongArity(s *Schema, n int) {
	panic(misuse{fmt.Sprintf("stream %s.%s has %d fields (%s), but %d values were emitted", s.Component, s.Stream, len(s.Fields), quoted(s.Fields), n)})
}

func (r *Row) refuse(s *Schema, bad int, values []any) {
	panic(misuse{fmt.Sprintf("field %q of stream %s.%s: %v", s.Fields[bad], s.Component, s.Stream, badValue(values[bad]))})
}
