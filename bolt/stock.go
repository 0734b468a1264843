package bolt

import "github.com/egretstream/egret/tuple"

// Each returns a factory of bolts that call f for every tuple. All tasks call the
// same f, at the same time, so it must not share anything without a lock; a bolt
// with a memory is a type of its own.
func Each(f func(in tuple.Tuple, out *Collector) error) Factory {
	return func() Bolt { return each(f) }
}

type each func(in tuple.Tuple, out *Collector) error

func (e each) Execute(in tuple.Tuple, out *Collector) error { return e(in, out) }

// Filter returns a factory of bolts that pass on the tuples for which keep
// returns true. The component's first stream must have as many fields as the
// input; their names may differ. All tasks call the same keep, at the same time.
func Filter(keep func(in tuple.Tuple) bool) Factory {
	return func() Bolt { return &filter{keep: keep} }
}

type filter struct {
	keep   func(tuple.Tuple) bool
	values []tuple.Value // room, used again for each tuple
}

func (f *filter) Execute(in tuple.Tuple, out *Collector) error {
	if f.keep(in) {
		f.values = in.AppendValues(f.values[:0])
		out.emitValues(f.values)
	}
	return nil
}

// FlatMap returns a factory of bolts that emit a tuple for each call of yield. f
// must not use yield after it has returned. All tasks call the same f, at the
// same time.
//
// The values given to yield cost an allocation or two a call, because yield is a
// function and not a method: where that matters use [Each] and out.Emit.
func FlatMap(f func(in tuple.Tuple, yield func(values ...any))) Factory {
	return func() Bolt {
		m := &flatMap{f: f}
		m.yield = func(values ...any) {
			if m.out == nil {
				tuple.Misuse("yield was called after the function of FlatMap has returned")
			}
			m.out.Emit(values...)
		}
		return m
	}
}

type flatMap struct {
	f     func(tuple.Tuple, func(...any))
	yield func(...any) // made once, not for each tuple
	out   *Collector   // of the tuple in hand, else nil
}

func (m *flatMap) Execute(in tuple.Tuple, out *Collector) error {
	m.out = out
	m.f(in, m.yield)
	m.out = nil
	return nil
}

// emitValues is Emit for values that are in a slice, without a box for each.
func (c *Collector) emitValues(values []tuple.Value) {
	o := c.output
	if o >= len(c.schemas) {
		tuple.Misuse("the component declares no stream: add .Emits(...)")
	}
	c.row.SetValues(c.schemas[o], values)
	c.sink.Put(o, &c.row)
}
