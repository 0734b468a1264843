package view

import (
	"cmp"
	"slices"
)

const (
	mostErrors     = 50   // are kept of a component; the same one again takes no place
	mostComponents = 1000 // of which errors are kept
)

// Errors keeps the last errors of a run. It has one owner.
type Errors struct{ of map[string][]Error } // by component, the latest last

// Add takes an error that has just happened. If the component has had it before, in all but
// its task, its tuple and its stack, that is counted; else the component's oldest makes room.
func (b *Errors) Add(e Error) {
	e.Count = max(1, e.Count)
	e.First = e.Last
	mine, known := b.of[e.Component]
	if !known && len(b.of) >= mostComponents {
		return
	}
	same := func(o Error) bool { return o.Kind == e.Kind && o.Text == e.Text }
	if at := slices.IndexFunc(mine, same); at >= 0 {
		old := mine[at]
		e.First, e.Count = old.First, old.Count+e.Count
		e.Stack = cmp.Or(e.Stack, old.Stack)
		e.Tuple = cmp.Or(e.Tuple, old.Tuple)
		mine = slices.Delete(mine, at, at+1)
	} else if len(mine) >= mostErrors {
		mine = slices.Delete(mine, 0, 1)
	}
	if b.of == nil {
		b.of = map[string][]Error{}
	}
	b.of[e.Component] = append(mine, e)
}

// All returns them, the latest first.
func (b *Errors) All() []Error {
	all := []Error{}
	for _, mine := range b.of {
		all = append(all, mine...)
	}
	slices.SortFunc(all, func(x, y Error) int {
		return cmp.Or(y.Last.Compare(x.Last), cmp.Compare(x.Component, y.Component), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Text, y.Text))
	})
	return all
}
