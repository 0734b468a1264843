package view

import (
	"cmp"
	"slices"
)

const (
	mostErrors     = 50   // texts are kept of a component; the same one again takes no place
	mostComponents = 1000 // of which errors are kept
)

// OtherErrors is the text of the entry that counts, of a component and a kind, those whose
// text is kept no more.
const OtherErrors = "other errors, whose texts were too many to be kept"

// Errors keeps the last errors of a run, and the count of all. It has one owner.
type Errors struct {
	of   map[string][]Error  // by component, the latest last
	rest map[[2]string]Error // by component and kind: what had to make room
}

// Add takes an error that has just happened, Count times; 0: it was counted before, and goes
// on. If the component has had it before, in all but its task, its tuple and its stack, that
// is one entry; else the component's oldest makes room, and is counted as one of the others.
func (b *Errors) Add(e Error) {
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
		b.drop(&mine[0])
		mine = slices.Delete(mine, 0, 1)
	}
	if b.of == nil {
		b.of = map[string][]Error{}
	}
	b.of[e.Component] = append(mine, e)
}

// drop counts an entry that makes room.
func (b *Errors) drop(e *Error) {
	of := [2]string{e.Component, e.Kind}
	o, known := b.rest[of]
	if !known {
		o = Error{Topology: e.Topology, Component: e.Component, Node: e.Node, Kind: e.Kind, Text: OtherErrors, First: e.First}
	}
	if e.First.Before(o.First) {
		o.First = e.First
	}
	o.Task, o.Last, o.Count = e.Task, e.Last, o.Count+e.Count
	if b.rest == nil {
		b.rest = map[[2]string]Error{}
	}
	b.rest[of] = o
}

// All returns them, the latest first.
func (b *Errors) All() []Error {
	all := []Error{}
	for _, mine := range b.of {
		all = append(all, mine...)
	}
	for _, o := range b.rest {
		all = append(all, o)
	}
	slices.SortFunc(all, func(x, y Error) int {
		return cmp.Or(y.Last.Compare(x.Last), cmp.Compare(x.Component, y.Component), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Text, y.Text))
	})
	return all
}
