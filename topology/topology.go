package topology

import (
	"errors"
	"slices"
	"strconv"

	"github.com/egretstream/egret/tuple"
)

// A Topology is a named definition of spouts and bolts. It holds no state, so
// it may be used by several goroutines if its definition may.
type Topology struct {
	name   string
	define func(*Builder)
}

// New returns the topology that define describes. define is called anew by each
// call of Params and Build, and should do nothing but describe. Mistakes, the
// name's too, are reported by Build.
func New(name string, define func(*Builder)) *Topology { return &Topology{name, define} }

// Name returns the name given to New.
func (t *Topology) Name() string { return t.name }

// Options are what is decided when a topology is started. The zero value takes
// everything from the definition.
type Options struct {
	// Params are values of parameters as text: one each, any number for a
	// parameter of several strings. Those not named have their default.
	Params map[string][]string
	// Parallel replaces the number of tasks of the components it names.
	Parallel map[string]int
	// Guarantee, if not nil, replaces that of the definition.
	Guarantee *Guarantee
	// Epoch numbers the plans of a topology; a later plan has a greater one.
	Epoch uint32
	// Tasks, if not nil, are the tasks by their number, and First the first one of each
	// component, in the plan's order: where numbers were given elsewhere, and some of
	// them belong to nobody any more.
	Tasks []Task
	First []tuple.TaskID
}

// Params runs the definition with the default of every parameter and returns the
// parameters that it declares, in that order. One that is declared only under
// other values of the others is not among them. The error joins a [*BuildError]
// for each mistake in a declaration; other mistakes are left to Build, since
// defaults need not be good for a run.
func (t *Topology) Params() ([]Param, error) {
	b := t.run(nil)
	return b.params, errors.Join(b.paramErrs...)
}

// Build runs the definition and returns its plan. The error joins a
// [*BuildError] for every mistake in the definition and in o, always in the same
// order; then there is no plan. A panic of the definition is not recovered.
func (t *Topology) Build(o Options) (*Plan, error) {
	b := t.run(o.Params)
	if errs := b.check(t, &o); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return b.compile(t.name, &o), nil
}

func (t *Topology) run(given map[string][]string) *Builder {
	b := &Builder{given: given, handles: map[string]*Component{}}
	if t.define != nil {
		t.define(b)
	}
	return b
}

// compile turns components without mistakes into a plan.
func (b *Builder) compile(name string, o *Options) *Plan {
	order := b.order()
	p := &Plan{Topology: name, Guarantee: b.guarantee, NoTaps: b.noTaps, Epoch: o.Epoch, Components: make([]Node, len(order)), Dropped: b.dropped}
	if o.Guarantee != nil {
		p.Guarantee = *o.Guarantee
	}
	at := make(map[*Component]int, len(order))
	for i, c := range order {
		at[c] = i
		c.maskBad()
		n := &p.Components[i]
		*n = Node{Name: c.name, Source: c.source, Queue: c.queue, Bolt: c.factory, Parallel: c.parallel, Every: c.every, Holds: c.holds, Streams: c.streams,
			Stateful: c.stateful, Local: c.local, FromHere: c.fromHere, Batches: c.replay}
		if n.Dead = c.dead && len(c.streams) > 0; n.Dead {
			n.Streams = append(slices.Clone(c.streams), c.deadLetters())
		}
		if k, ok := o.Parallel[c.name]; ok {
			n.Parallel = k
		}
		n.First = tuple.TaskID(len(p.Tasks))
		for k := range n.Parallel {
			p.Tasks = append(p.Tasks, Task{Component: i, Index: k})
		}
	}
	if p.Guarantee == ExactlyOnce {
		p.coordinate()
	}
	if o.Tasks != nil {
		p.Tasks = o.Tasks
		for i := range p.Components {
			p.Components[i].First = o.First[i]
		}
	}
	for _, c := range b.components { // as declared, which is the order of routes
		to := at[c]
		for i, s := range c.inputs {
			from := at[s.from]
			n := &p.Components[from]
			k := slices.IndexFunc(n.Streams, func(x *tuple.Schema) bool { return x.Stream == s.stream })
			r := Route{Stream: k, To: to, Input: i, Grouping: s.grouping, Custom: s.custom, Choose: s.choose}
			if s.grouping == Direct {
				n.Streams[k].Direct = p.Components[to].Parallel
			}
			for _, f := range s.fields {
				r.Fields = append(r.Fields, n.Streams[k].Index(f))
			}
			n.Outputs = append(n.Outputs, r)
			p.Components[to].Inputs = append(p.Components[to].Inputs, Input{From: from, Stream: n.Streams[k], Settled: s.settled})
		}
	}
	for i := range p.Components {
		slices.SortStableFunc(p.Components[i].Outputs, func(x, y Route) int { return x.Stream - y.Stream })
	}
	return p
}

// order returns the components so that senders come before receivers: spouts
// and queues first, then always the one declared first among those that can come next.
func (b *Builder) order() []*Component {
	placed := make(map[*Component]bool, len(b.components))
	order := make([]*Component, 0, len(b.components))
	for _, c := range b.components {
		if c.kind.reads() {
			placed[c] = true
			order = append(order, c)
		}
	}
	for len(order) < len(b.components) {
		i := slices.IndexFunc(b.components, func(c *Component) bool {
			return !placed[c] && !slices.ContainsFunc(c.inputs, func(s Subscription) bool { return !placed[s.from] })
		})
		c := b.components[i] // there is one: check has refused cycles
		placed[c] = true
		order = append(order, c)
	}
	return order
}

func parallelism(n int) string {
	return strconv.Itoa(n) + " is not between 1 and " + strconv.Itoa(maxParallel)
}
