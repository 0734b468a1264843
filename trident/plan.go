package trident

import (
	"slices"
	"strconv"
	"strings"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/topology"
)

// A component is the operators that run in one task, one after the other, without a
// tuple between them.
//
// Invariant: components and their edges have no cycle.
type component struct {
	name     string
	nodes    []*node // inputs before who reads them
	inputs   []consumer
	outputs  []*edge
	parallel int
	into     *component // it has become part of that one
}

// home returns the component that c has become part of.
func (c *component) home() *component {
	for c.into != nil {
		c = c.into
	}
	return c
}

// compile makes components of the nodes and declares them.
func (b *Builder) compile() {
	b.drop()
	for _, n := range b.nodes {
		n.component = b.place(n)
	}
	var all []*component
	for _, n := range b.nodes {
		c := n.component.home()
		n.component = c
		if len(c.nodes) == 0 {
			all = append(all, c)
		}
		c.nodes = append(c.nodes, n)
		for i, in := range n.inputs {
			in.from.consumers = append(in.from.consumers, consumer{n, i})
			if in.edge != nil {
				c.inputs = append(c.inputs, consumer{n, i})
			}
		}
	}
	b.sound()
	b.name(all)
	for _, c := range all {
		b.size(c)
		b.outputs(c)
	}
	b.declare(all)
}

// drop forgets places where elements come in and nobody reads them.
func (b *Builder) drop() {
	read := map[*node]bool{}
	for _, n := range slices.Backward(b.nodes) {
		if n.kind != "" || read[n] {
			read[n] = true
			for _, in := range n.inputs {
				read[in.from] = true
			}
		}
	}
	b.nodes = slices.DeleteFunc(b.nodes, func(n *node) bool { return !read[n] })
}

// place returns the component that n runs in. It is called in the order of the nodes.
func (b *Builder) place(n *node) *component {
	var from []*component // direct inputs
	for _, in := range n.inputs {
		if in.edge == nil {
			if c := in.from.component.home(); !slices.Contains(from, c) {
				from = append(from, c)
			}
		}
	}
	switch {
	case len(from) == 0:
		return &component{}
	case len(from) == 1:
		return from[0]
	case b.join(from):
		for _, c := range from[1:] {
			c.into = from[0]
		}
		return from[0]
	}
	for i := range n.inputs {
		n.inputs[i].edge = b.edge(n.inputs[i].from, topology.LocalOrShuffle, 0)
	}
	return &component{}
}

// join reports whether components can become one: no elements go from one of them to
// another by other components, or the one would wait for itself; none has a state, which
// would hold up what does not need it; and they have not been given different sizes.
func (b *Builder) join(all []*component) bool {
	size := 0
	for _, n := range b.nodes {
		if n.component == nil {
			break // not placed yet
		}
		c := n.component.home()
		if !slices.Contains(all, c) {
			continue
		}
		if n.state != nil || n.reads != nil {
			return false
		}
		if n.sized {
			if size != 0 && size != n.parallel {
				return false
			}
			size = n.parallel
		}
		for _, in := range n.inputs {
			if in.edge != nil && b.reaches(all, in.from.component.home()) {
				return false
			}
		}
	}
	return true
}

// reaches reports whether c is one of all, or gets elements of them.
func (b *Builder) reaches(all []*component, c *component) bool {
	if slices.Contains(all, c) {
		return true
	}
	for _, n := range b.nodes {
		if n.component == nil {
			return false
		}
		if n.component.home() != c {
			continue
		}
		for _, in := range n.inputs {
			if in.edge != nil && b.reaches(all, in.from.component.home()) {
				return true
			}
		}
	}
	return false
}

// name gives the components their names: those that were given, or what they do, with a
// number if that is taken.
func (b *Builder) name(all []*component) {
	taken := map[string]bool{}
	for _, c := range all {
		var names []string
		for _, n := range c.nodes {
			if n.name == "" {
				continue
			}
			if n.state == nil && slices.ContainsFunc(c.nodes, func(n *node) bool { return n.state != nil }) {
				b.mistake(ErrName, "Name(%q): the operator runs in the component of a state, which has the state's name", n.name)
				continue
			}
			names = append(names, n.name)
		}
		c.name = strings.Join(names, "-")
		taken[c.name] = true
	}
	taken["coordinator"] = true
	for _, c := range all {
		if c.name != "" {
			continue
		}
		kind := "merge" // of nothing but streams that come in
		for _, n := range c.nodes {
			if n.kind != "" {
				kind = n.kind
				break
			}
		}
		c.name = unique(kind, taken)
	}
}

// unique returns name, or name with a number, and takes it.
func unique(name string, taken map[string]bool) string {
	free := name
	for i := 2; taken[free]; i++ {
		free = name + "-" + strconv.Itoa(i)
	}
	taken[free] = true
	return free
}

// size finds the number of tasks of c.
func (b *Builder) size(c *component) {
	c.parallel = 1
	sized := false
	for _, n := range c.nodes {
		switch {
		case !n.sized:
		case sized && n.parallel != c.parallel:
			b.mistake(ErrParallel, "component %s: its operators are given %d tasks and %d: they run in the same tasks; to have them apart, put Shuffle between them", c.name, c.parallel, n.parallel)
		default:
			c.parallel, sized = n.parallel, true
		}
	}
}

// outputs names the streams of c: after who reads them, or "default" if there is one.
func (b *Builder) outputs(c *component) {
	taken := map[string]bool{}
	for _, n := range c.nodes {
		for _, to := range n.consumers {
			e := to.node.inputs[to.input].edge
			if e == nil {
				continue
			}
			e.output, e.stream = bolt.Output(len(c.outputs)), "default"
			if !n.isSource {
				e.stream = unique(to.node.component.name, taken)
			}
			c.outputs = append(c.outputs, e)
		}
	}
	if len(c.outputs) == 1 {
		c.outputs[0].stream = "default"
	}
}

// declare tells the topology's builder.
func (b *Builder) declare(all []*component) {
	b.b.Guarantee(topology.ExactlyOnce)
	var have []string // fields
	for _, c := range all {
		if n := c.nodes[0]; n.isSource {
			fields := []string{whole}
			if n.carrier != nil {
				fields = n.carrier.fields
			} else if of, err := n.carry(); err == nil {
				fields = of.fields
			}
			have = append(have, fields...)
			b.b.Spout(c.name, n.source).Emits(fields...).Mask(b.masked(fields)...).Parallel(c.parallel).Batches(topology.Replay(n.replay))
			continue
		}
		d := b.b.Bolt(c.name, c.factory(), b.subscriptions(c)...).Parallel(c.parallel)
		for _, e := range c.outputs {
			have = append(have, e.carrier.fields...)
			d.EmitsTo(e.stream, e.carrier.fields...).Mask(b.masked(e.carrier.fields)...)
		}
		if slices.ContainsFunc(c.nodes, func(n *node) bool { return n.state != nil }) {
			d.Stateful()
		}
		if slices.ContainsFunc(c.nodes, func(n *node) bool { return n.state != nil && n.state.here }) {
			d.FromHere()
		}
		if slices.ContainsFunc(c.nodes, func(n *node) bool { return n.state != nil && n.state.local }) {
			d.Local()
		}
	}
	b.unknownMasks(have)
}

func (b *Builder) subscriptions(c *component) (subs []topology.Subscription) {
	for _, in := range c.inputs {
		e := in.node.inputs[in.input].edge
		from := b.b.Component(in.node.inputs[in.input].from.component.name).Stream(e.stream)
		var s topology.Subscription
		switch {
		case e.grouping == topology.Global || e.grouping == topology.Fields && e.keys == 0:
			s = from.Global()
		case e.grouping == topology.Fields:
			s = from.By(e.carrier.fields[:e.keys]...)
		case e.grouping == topology.All:
			s = from.All()
		case e.grouping == topology.LocalOrShuffle:
			s = from.LocalOrShuffle()
		default:
			s = from.Shuffle()
		}
		if e.settled {
			s = s.Settled()
		}
		subs = append(subs, s)
	}
	return subs
}
