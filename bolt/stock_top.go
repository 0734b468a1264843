package bolt

import (
	"container/heap"
	"context"
	"fmt"
	"slices"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/tuple"
)

// Top returns a factory of bolts that keep the n tuples with the largest values of
// the field by, which must be integers or floats, and emit them when all input has
// ended, the largest first. Tuples of equal value are ordered by their other
// fields, ascending. With an n of 0 they keep and order all tuples; otherwise the
// memory is that of n tuples.
//
// The component's first stream must have as many fields as the input. Each task
// has a top of its own, so give it all tuples with the global grouping. Tuples
// that are equal in every field are different tuples. A tuple whose field by is
// no number is rejected. NaN is smaller than every other number.
func Top(n int, by string) Factory {
	return func() Bolt { return &top{n: n, by: by} }
}

// Invariant: with n > 0, rows is a heap whose root is the row that leaves first.
type top struct {
	n      int
	by     string
	rows   []topRow
	values []tuple.Value // room
}

type topRow struct {
	by     tuple.Value
	values []tuple.Value
}

func (t *top) Prepare(_ context.Context, task *Task) error {
	if t.n < 0 {
		return Reject(fmt.Errorf("component %s keeps the top %s: it must be at least 0, which is all", task.Component, amount.Of(t.n, "tuple")))
	}
	if len(task.Streams) == 0 {
		return Reject(fmt.Errorf("component %s keeps the top tuples and declares no stream: add .Emits(...) with the fields of its input", task.Component))
	}
	return nil
}

func (t *top) Execute(in tuple.Tuple, out *Collector) error {
	by := in.Value(t.by)
	if !isNumber(by) {
		return Reject(fmt.Errorf("field %q of stream %s.%s is %v, not a number, by which Top could order", t.by, in.Component(), in.Stream(), by.Kind()))
	}
	if s := out.schemas[0]; len(s.Fields) != in.Len() {
		return Reject(fmt.Errorf("stream %s.%s has %s and stream %s.%s, to which Top passes its tuples, has %d: give it as many", in.Component(), in.Stream(), amount.Of(in.Len(), "field"), s.Component, s.Stream, len(s.Fields)))
	}
	t.values = in.AppendValues(t.values[:0])
	row := topRow{by, t.values}
	switch {
	case t.n == 0:
		t.rows = append(t.rows, row.clone(nil))
	case len(t.rows) < t.n:
		heap.Push(t, row.clone(nil))
	case row.compare(t.rows[0]) < 0:
		t.rows[0] = row.clone(t.rows[0].values[:0])
		heap.Fix(t, 0)
	}
	return nil
}

func (t *top) Finish(out *Collector) error {
	slices.SortFunc(t.rows, topRow.compare)
	for _, r := range t.rows {
		out.emitValues(r.values)
	}
	return nil
}

func (r topRow) clone(room []tuple.Value) topRow {
	return topRow{r.by, appendClones(room, r.values)}
}

// compare orders rows as they are emitted. The field by may be compared twice,
// which changes nothing: then it is equal.
func (r topRow) compare(other topRow) int {
	if c := compare(other.by, r.by); c != 0 {
		return c
	}
	return slices.CompareFunc(r.values, other.values, compare)
}

// Len, Less, Swap, Push and Pop are for package heap.

func (t *top) Len() int           { return len(t.rows) }
func (t *top) Less(i, j int) bool { return t.rows[i].compare(t.rows[j]) > 0 }
func (t *top) Swap(i, j int)      { t.rows[i], t.rows[j] = t.rows[j], t.rows[i] }
func (t *top) Push(row any)       { t.rows = append(t.rows, row.(topRow)) }
func (t *top) Pop() any           { panic("a row of a top is replaced, not popped") }
