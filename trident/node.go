package trident

import (
	"reflect"
	"unsafe"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A node is one operator, source or state of a definition.
type node struct {
	kind     string // what a component is called that has no name; "": elements only come in here
	name     string // as it was given
	parallel int    // as it was given, if sized
	sized    bool
	inputs   []input
	carry    func() (*carrier, error) // for what it emits
	carrier  *carrier                 // once it was needed
	state    *stateNode
	reads    *stateUse // the state that it asks
	uneven   bool      // its results depend on which elements its task got

	source   spout.Source
	isSource bool
	replay   Kind

	// make makes the operator for one life of one task: for each input a func(T).
	make func(t *body, n *node) []any

	// Of the planner:

	component *component
	consumers []consumer // in the order of their making
}

// An input is where elements come from: the same component, or by an edge another one.
type input struct {
	from *node
	edge *edge
}

// An edge is a stream between two components.
type edge struct {
	grouping topology.Grouping
	keys     int // fields of the key, which are the first ones
	settled  bool
	carrier  *carrier

	// Of the planner:

	stream string
	output bolt.Output // of the sender
}

// A consumer is an input of a node, seen from where its elements come.
type consumer struct {
	node  *node
	input int
}

// ofSource returns the source if n is nothing but its elements coming in.
func (n *node) ofSource() *node {
	if n.kind == "" && len(n.inputs) == 1 && n.inputs[0].from.isSource && n.inputs[0].edge.grouping == topology.LocalOrShuffle {
		return n.inputs[0].from
	}
	return nil
}

// A carrier takes elements of one type from task to task.
type carrier struct {
	fields []string
	// send returns a func(T) that emits on an output of t.
	send func(t *body, to bolt.Output) any
	// receive returns what takes the element out of a tuple and gives it to next, a
	// func(T).
	receive func(next any) func(tuple.Tuple)
}

// carrierOf returns the carrier for T.
func carrierOf[T any]() (*carrier, error) {
	l, err := layoutOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	return &carrier{
		fields: l.fields,
		// An element is copied to one place for each task, or its way through encode would
		// move every element to the heap.
		send: func(t *body, to bolt.Output) any {
			var place T
			var values []tuple.Value
			return func(v T) {
				place = v
				values = l.encode(values[:0], unsafe.Pointer(&place))
				t.out.To(to).EmitValues(values)
			}
		},
		receive: func(next any) func(tuple.Tuple) {
			var place T
			give := next.(func(T))
			return func(in tuple.Tuple) {
				l.decode(in, 0, unsafe.Pointer(&place))
				give(place)
			}
		},
	}, nil
}

// added adds a node whose elements are of type T, and returns their stream.
func added[T any](b *Builder, n *node) *Stream[T] {
	n.carry = carrierOf[T]
	b.nodes = append(b.nodes, n)
	return &Stream[T]{b, n}
}

// derive adds a node with one input, in the same component.
func derive[U, T any](s *Stream[T], kind string, make func(t *body, n *node) func(T)) *Stream[U] {
	return added[U](s.b, &node{kind: kind, inputs: []input{{from: s.n}}, make: func(t *body, n *node) []any { return []any{make(t, n)} }})
}

// through sends the elements to another component, where the stream that it returns goes
// on.
func through[T any](s *Stream[T], g topology.Grouping, keys int) *Stream[T] {
	return across[T](s, g, keys, outOf[T])
}

// across is through, with what make makes of the elements there.
func across[U, T any](s *Stream[T], g topology.Grouping, keys int, make func(t *body, n *node) func(T)) *Stream[U] {
	from := s.n
	if source := from.ofSource(); source != nil {
		from = source
	}
	e := s.b.edge(from, g, keys)
	return added[U](s.b, &node{inputs: []input{{from, e}}, make: func(t *body, n *node) []any { return []any{make(t, n)} }})
}

// edge returns an edge for what from emits.
func (b *Builder) edge(from *node, g topology.Grouping, keys int) *edge {
	if from.carrier == nil {
		c, err := from.carry()
		if err != nil {
			b.mistake(ErrElement, "%v", err)
			c = &carrier{fields: []string{whole}}
		}
		from.carrier = c
	}
	return &edge{grouping: g, keys: keys, carrier: from.carrier}
}

func (b *Builder) owns(other *Builder, what string) bool {
	if other != b {
		b.mistake(ErrStream, "%s: its streams are of two definitions", what)
	}
	return other == b
}

// outOf returns what takes the elements that n emits to all who read them.
func outOf[T any](t *body, n *node) func(T) {
	var to []func(T)
	for _, c := range n.consumers {
		if e := c.node.inputs[c.input].edge; e != nil {
			to = append(to, e.carrier.send(t, e.output).(func(T)))
		} else {
			to = append(to, t.entries[c.node][c.input].(func(T)))
		}
	}
	switch len(to) {
	case 0:
		return func(T) {}
	case 1:
		return to[0]
	}
	return func(v T) {
		for _, f := range to {
			f(v)
		}
	}
}
