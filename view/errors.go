package view

import "slices"

// mostErrors are kept of a component; the same one again takes no place.
const mostErrors = 50

// Errors keeps the last errors of a run. It has one owner.
type Errors struct{ all []Error }

// Add takes an error that has just happened. If the component has had it before, in all but
// its task and its tuple, that is counted; else the component's oldest makes room.
func (b *Errors) Add(e Error) {
	e.Count = max(1, e.Count)
	e.First = e.Last
	same := func(o Error) bool { return o.Component == e.Component && o.Kind == e.Kind && o.Text == e.Text }
	if at := slices.IndexFunc(b.all, same); at >= 0 {
		old := b.all[at]
		e.First, e.Count = old.First, old.Count+e.Count
		if e.Stack == "" {
			e.Stack = old.Stack
		}
		b.all = slices.Delete(b.all, at, at+1)
	} else {
		n, oldest := 0, -1
		for i := range b.all {
			if b.all[i].Component == e.Component {
				if n++; oldest < 0 {
					oldest = i
				}
			}
		}
		if n >= mostErrors {
			b.all = slices.Delete(b.all, oldest, oldest+1)
		}
	}
	b.all = append(b.all, e)
}

// All returns them, the latest first.
func (b *Errors) All() []Error {
	all := slices.Clone(b.all)
	slices.Reverse(all)
	return all
}
