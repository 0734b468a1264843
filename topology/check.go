package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/egretstream/egret/tuple"
)

// A checker collects the mistakes of one topology.
type checker struct {
	b    *Builder
	errs []error
}

// check returns every mistake in b and o: the topology's own and its parameters'
// first, then the components' in the order of their declaration, then the
// graph's, then those of the overrides.
func (b *Builder) check(t *Topology, o *Options) []error {
	k := &checker{b: b}
	if what := badName(t.name); what != "" {
		k.add(BuildError{Detail: fmt.Sprintf("topology %q: the name %s", t.name, what), Err: ErrName})
	}
	if t.define == nil {
		k.add(BuildError{Detail: fmt.Sprintf("topology %s: its definition is nil", shown(t.name)), Err: ErrNil})
		return k.errs
	}
	k.params(o.Params)
	k.errs = append(k.errs, b.userErrs...)
	k.guarantee(b.guarantee)
	for _, c := range b.components {
		k.component(c)
	}
	k.batches(o)
	k.unused()
	k.reach(t.name)
	k.cycles()
	k.overrides(o)
	return k.errs
}

func (k *checker) add(e BuildError) { k.errs = append(k.errs, &e) }

// at adds a mistake of component c.
func (k *checker) at(c *Component, err error, stream, field, format string, args ...any) {
	k.add(BuildError{Component: c.name, Stream: stream, Field: field, Detail: fmt.Sprintf(format, args...), Err: err, kind: c.kind})
}

func (k *checker) params(given map[string][]string) {
	k.errs = append(k.errs, k.b.paramErrs...)
	var have []string
	for _, p := range k.b.params {
		have = append(have, p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(have, name) {
			k.add(BuildError{Detail: fmt.Sprintf("unknown parameter %q (have %s)", name, list(have)), Err: ErrParam})
		}
	}
}

func (k *checker) guarantee(g Guarantee) {
	if g > ExactlyOnce {
		k.add(BuildError{Detail: fmt.Sprintf("there is no guarantee %d", g), Err: ErrGuarantee})
	}
}

func (k *checker) component(c *Component) {
	if what := badName(c.name); what != "" {
		k.at(c, ErrName, "", "", "the name %s", what)
	}
	if k.b.handles[c.name] != c {
		k.at(c, ErrName, "", "", "the name is taken: another component has it")
	}
	switch {
	case c.kind == spoutKind && c.source == nil:
		k.at(c, ErrNil, "", "", "its source is nil")
	case c.kind == boltKind && c.factory == nil, c.kind == queueKind && c.queue == nil:
		k.at(c, ErrNil, "", "", "its factory is nil")
	}
	if c.parallel < 1 || c.parallel > maxParallel {
		k.at(c, ErrParallel, "", "", "parallelism %s", parallelism(c.parallel))
	}
	switch {
	case c.ticks && c.kind.reads():
		k.at(c, ErrInterval, "", "", "a %s is not ticked: Every is for bolts", c.kind)
	case c.ticks && c.every <= 0:
		k.at(c, ErrInterval, "", "", "the tick interval %v is not greater than zero", c.every)
	}
	switch {
	case c.keeps && c.kind.reads():
		k.at(c, ErrInterval, "", "", "a %s retains nothing: Holds is for bolts", c.kind)
	case c.keeps && c.holds <= 0:
		k.at(c, ErrInterval, "", "", "the time %v that it holds a tuple is not greater than zero", c.holds)
	}
	if c.kind.reads() && len(c.streams) == 0 {
		k.at(c, ErrStream, "", "", "it declares no stream: add .Emits(...)")
	}
	for i := range c.streams {
		k.stream(c, i)
	}
	for _, fields := range c.masks {
		k.at(c, ErrStream, "", "", "Mask(%s) stands before the stream that it is for: put it behind Emits or EmitsTo", quoted(fields))
	}
	if c.kind == boltKind && len(c.inputs) == 0 {
		k.at(c, ErrUnreachable, "", "", "it has no inputs")
	}
	for i := range c.inputs {
		k.input(c, i)
	}
}

func (k *checker) stream(c *Component, i int) {
	s := c.streams[i]
	full := c.name + "." + s.Stream
	if what := badName(s.Stream); what != "" {
		k.at(c, ErrName, full, "", "the stream name %q %s", s.Stream, what)
	}
	if s.Stream == DeadLetterStream {
		k.at(c, ErrName, full, "", "the stream name %q is that of the component's dead letters: choose another", s.Stream)
	}
	if slices.ContainsFunc(c.streams[:i], func(x *tuple.Schema) bool { return x.Stream == s.Stream }) {
		k.at(c, ErrStream, full, "", "stream %s is declared twice", s.Stream)
	}
	if len(s.Fields) == 0 {
		k.at(c, ErrField, full, "", "stream %s has no fields", s.Stream)
	}
	for j, f := range s.Fields {
		if what := badName(f); what != "" {
			k.at(c, ErrName, full, f, "the field name %q of stream %s %s", f, s.Stream, what)
		}
		if slices.Index(s.Fields, f) < j {
			k.at(c, ErrField, full, f, "stream %s has field %q twice", s.Stream, f)
		}
	}
	for _, f := range s.Masked {
		if s.Index(f) < 0 {
			k.at(c, ErrField, full, f, "Mask: stream %s has no field %q (it has %s)", s.Stream, f, quoted(s.Fields))
		}
	}
}

func (k *checker) input(c *Component, i int) {
	s := c.inputs[i]
	if s.from == nil {
		k.at(c, ErrSubscription, "", "", "input %d is of no component: it is a zero Subscription or one of a nil *Component; for what is declared later use Builder.Component", i+1)
		return
	}
	full := s.from.name + "." + s.stream
	if s.from.b != k.b {
		k.at(c, ErrSubscription, full, "", "input %d, stream %s, is of another Builder: use what this one returns", i+1, full)
		return
	}
	if s.from.kind == undeclared {
		k.at(c, ErrComponent, full, "", "there is no component %q (have %s)", s.from.name, list(k.names()))
		return
	}
	if slices.ContainsFunc(c.inputs[:i], s.same) {
		k.at(c, ErrSubscription, full, "", "it subscribes to stream %s twice with the same grouping (%s)", full, s.how())
	}
	if s.stream == DeadLetterStream && s.from.kind == queueKind {
		k.at(c, ErrStream, full, "", "queue %s has no dead letters: what is given up is handed back to it", s.from.name)
		return
	}
	schema := s.from.schema(s.stream)
	if schema == nil && s.stream == DeadLetterStream {
		k.at(c, ErrStream, full, "", "component %s emits nothing, so it has no dead letters: a message that dies belongs to the spout that emitted it, whichever bolt has refused it", s.from.name)
		return
	}
	if schema == nil {
		var have []string
		for _, x := range s.from.streams {
			have = append(have, x.Stream)
		}
		k.at(c, ErrStream, full, "", "component %s has no stream %q (it has %s)", s.from.name, s.stream, quoted(have))
		return
	}
	by := "By"
	switch s.grouping {
	case PartialKey:
		by = "PartialBy"
	case Direct:
		if s.stream == DeadLetterStream {
			k.at(c, ErrSubscription, full, "", "it subscribes to dead letters direct, but nobody chooses a task for them: use another grouping")
		}
		k.direct(c, i, full)
	case Custom:
		k.custom(c, s, full)
	}
	if (s.grouping == Fields || s.grouping == PartialKey) && len(s.fields) == 0 {
		k.at(c, ErrField, full, "", "%s names no field of stream %s (it has %s)", by, full, quoted(schema.Fields))
	}
	for j, f := range s.fields {
		if schema.Index(f) < 0 {
			k.at(c, ErrField, full, f, "stream %s has no field %q (it has %s)", full, f, quoted(schema.Fields))
		}
		if slices.Index(s.fields, f) < j {
			k.at(c, ErrField, full, f, "%s names field %q of stream %s twice", by, f, full)
		}
	}
}

func (c *Component) schema(stream string) *tuple.Schema {
	for _, s := range c.streams {
		if s.Stream == stream {
			return s
		}
	}
	if stream == DeadLetterStream && len(c.streams) > 0 {
		return c.deadLetters()
	}
	return nil
}

func (s Subscription) same(o Subscription) bool {
	return s.from == o.from && s.stream == o.stream && s.grouping == o.grouping && slices.Equal(s.fields, o.fields) && s.custom == o.custom
}

// names returns the names of the declared components.
func (k *checker) names() []string {
	var names []string
	for _, c := range k.b.components {
		if !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// unused reports handles of components that were never declared, unless a
// subscription has already led to the report.
func (k *checker) unused() {
	for _, name := range slices.Sorted(maps.Keys(k.b.handles)) {
		h := k.b.handles[name]
		if h.kind != undeclared {
			continue
		}
		told := slices.ContainsFunc(k.b.components, func(c *Component) bool {
			return slices.ContainsFunc(c.inputs, func(s Subscription) bool { return s.from == h })
		})
		if !told {
			k.at(h, ErrComponent, "", "", "it is asked for but not declared (have %s)", list(k.names()))
		}
	}
}

// reach reports bolts that no spout sends to, directly or through others. What
// comes from an input that is itself a mistake counts as reached, so that one
// mistake is not told twice.
func (k *checker) reach(topology string) {
	reached := map[*Component]bool{}
	for _, c := range k.b.components {
		reached[c] = c.kind.reads()
	}
	if !slices.ContainsFunc(k.b.components, func(c *Component) bool { return reached[c] }) {
		k.add(BuildError{Detail: fmt.Sprintf("topology %s has no spout", shown(topology)), Err: ErrNoSpout})
		return
	}
	for again := true; again; {
		again = false
		for _, c := range k.b.components {
			if !reached[c] && slices.ContainsFunc(c.inputs, func(s Subscription) bool { return !k.known(s) || reached[s.from] }) {
				reached[c], again = true, true
			}
		}
	}
	for _, c := range k.b.components {
		if reached[c] || len(c.inputs) == 0 {
			continue
		}
		var from []string
		for _, s := range c.inputs {
			if !slices.Contains(from, s.from.name) {
				from = append(from, s.from.name)
			}
		}
		k.at(c, ErrUnreachable, "", "", "no spout reaches it: its inputs come from %s", list(from))
	}
}

// known reports whether s leads to a component of this topology.
func (k *checker) known(s Subscription) bool {
	return s.from != nil && s.from.b == k.b && s.from.kind != undeclared
}

// cycles reports for every component on a cycle the shortest one through it,
// except when a cycle that was told before goes through it as well.
func (k *checker) cycles() {
	told := map[*Component]bool{}
	for _, c := range k.b.components {
		if told[c] {
			continue
		}
		path := k.back(c)
		if path == nil {
			continue
		}
		names := make([]string, len(path))
		for i, x := range path {
			told[x] = true
			names[i] = x.name
		}
		k.at(c, ErrCycle, "", "", "what it emits comes back to it: %s", strings.Join(names, " -> "))
	}
}

// back returns the components on a shortest way from c to itself, c at both
// ends, or nil. It searches against the flow, since inputs are what is at hand.
func (k *checker) back(c *Component) []*Component {
	next := map[*Component]*Component{} // where the way to c goes on
	queue := []*Component{c}
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		for _, s := range x.inputs {
			if !k.known(s) || next[s.from] != nil {
				continue
			}
			next[s.from] = x
			if s.from == c {
				path := []*Component{c}
				for y := next[c]; y != c; y = next[y] {
					path = append(path, y)
				}
				return append(path, c)
			}
			queue = append(queue, s.from)
		}
	}
	return nil
}

func (k *checker) overrides(o *Options) {
	for _, name := range slices.Sorted(maps.Keys(o.Parallel)) {
		n := o.Parallel[name]
		c := k.b.handles[name]
		switch {
		case name == coordinator && k.chosen(o) == ExactlyOnce:
			if n != 1 {
				k.add(BuildError{Component: name, Detail: "there is one coordinator, always", Err: ErrParallel, kind: coordKind})
			}
		case c == nil || c.kind == undeclared:
			k.add(BuildError{Detail: fmt.Sprintf("parallelism is given for an unknown component %q (have %s)", name, list(k.names())), Err: ErrComponent})
		case n < 1 || n > maxParallel:
			k.at(c, ErrParallel, "", "", "the given parallelism %s", parallelism(n))
		}
	}
	if g := o.Guarantee; g != nil && *g != k.b.guarantee && (*g == ExactlyOnce || k.b.guarantee == ExactlyOnce) {
		k.add(BuildError{Detail: fmt.Sprintf("the topology is %v and cannot be %v: its bolts are made for the one and not for the other", k.b.guarantee, *g), Err: ErrGuarantee})
	} else if g != nil {
		k.guarantee(*o.Guarantee)
	}
}
