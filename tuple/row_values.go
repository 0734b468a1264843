package tuple

// SetValues is Set for values that are values already.
func (r *Row) SetValues(s *Schema, values []Value) {
	n := len(values)
	if n != len(s.Fields) {
		wrongArity(s, n)
	}
	if cap(r.Cells) < n || cap(r.Kinds) < n {
		r.grow(n)
	}
	r.Cells, r.Kinds = r.Cells[:n], r.Kinds[:n]
	r.Text = 0
	for i, v := range values {
		r.Cells[i], r.Kinds[i] = v.cell, v.kind
		r.Text += v.cell.size(v.kind)
	}
	r.shape = shapeOf(r.Kinds)
}
