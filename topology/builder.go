package topology

import (
	"slices"
	"time"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

// A Builder takes the description of a topology. It collects mistakes instead of
// returning them, so that a definition reads without error handling; Build
// reports them.
//
// Owner: the run of the definition that it was given to. It is of no use after
// that, and not safe for concurrent use.
type Builder struct {
	given      map[string][]string // texts of parameters
	params     []Param
	paramErrs  []error
	userErrs   []error
	guarantee  Guarantee
	noTaps     bool
	dropped    []string
	components []*Component          // declared, in that order
	handles    map[string]*Component // of the first of each name, or not declared yet
}

const (
	defaultStream = "default"
	maxParallel   = 4096 // tasks of a component
)

// kind is what a component is, as it is called in errors.
type kind string

const (
	none       kind = ""
	undeclared kind = "component"
	spoutKind  kind = "spout"
	queueKind  kind = "queue"
	boltKind   kind = "bolt"
	coordKind  kind = "coordinator"
)

// reads reports whether components of the kind bring messages in.
func (k kind) reads() bool { return k == spoutKind || k == queueKind }

// Check adds a mistake of the definition's own, such as a parameter that is out
// of range, to those that Build reports. A nil error is no mistake.
func (b *Builder) Check(err error) {
	if err != nil {
		b.userErrs = append(b.userErrs, &BuildError{Detail: err.Error(), Err: err})
	}
}

// Guarantee sets what happens to messages that fail or are lost. Without it a
// topology is AtLeastOnce.
func (b *Builder) Guarantee(g Guarantee) { b.guarantee = g }

// Spout declares a component that reads from source.
func (b *Builder) Spout(name string, source spout.Source) *Component {
	c := b.declare(name, spoutKind)
	c.source = source
	return c
}

// Queue declares a component that reads from a queue, which is told of each
// message what became of it. Its tasks are made by factory; otherwise it is a spout.
func (b *Builder) Queue(name string, factory spout.QueueFactory) *Component {
	c := b.declare(name, queueKind)
	c.queue = factory
	return c
}

// Bolt declares a component whose tasks are made by factory and get what inputs
// say.
func (b *Builder) Bolt(name string, factory bolt.Factory, inputs ...Subscription) *Component {
	c := b.declare(name, boltKind)
	c.factory = factory
	c.inputs = slices.Clone(inputs)
	return c
}

// Component returns the component with the given name, which may be declared
// later. If it never is, that is a mistake.
func (b *Builder) Component(name string) *Component {
	c := b.handles[name]
	if c == nil {
		c = &Component{b: b, name: name, kind: undeclared, parallel: 1}
		b.handles[name] = c
	}
	return c
}

func (b *Builder) declare(name string, k kind) *Component {
	c := b.Component(name)
	if c.kind != undeclared { // taken: check tells
		c = &Component{b: b, name: name, parallel: 1}
	}
	c.kind = k
	b.components = append(b.components, c)
	return c
}

// A Component is a spout, a queue or a bolt of a topology. Its methods add to it and
// return it, or make subscriptions to its streams.
type Component struct {
	b        *Builder
	name     string
	kind     kind
	source   spout.Source
	queue    spout.QueueFactory
	factory  bolt.Factory
	streams  []*tuple.Schema
	masks    [][]string // what Mask was given before there was a stream
	parallel int
	every    time.Duration
	ticks    bool // Every was called
	holds    time.Duration
	keeps    bool // Holds was called
	dead     bool // somebody subscribes to its dead letters
	inputs   []Subscription
	stateful bool
	local    bool
	fromHere bool
	replay   Replay
}

// Emits declares the stream "default" with the given fields.
func (c *Component) Emits(fields ...string) *Component { return c.EmitsTo(defaultStream, fields...) }

// EmitsTo declares another stream. Emit without a choice of stream goes to the
// one that was declared first.
func (c *Component) EmitsTo(stream string, fields ...string) *Component {
	c.streams = append(c.streams, &tuple.Schema{Component: c.name, Stream: stream, Fields: slices.Clone(fields)})
	return c
}

// Parallel sets the number of tasks, from 1 to 4,096; without it there is one.
func (c *Component) Parallel(n int) *Component {
	c.parallel = n
	return c
}

// Every sets the interval at which the tasks of a bolt are ticked. It must be
// greater than zero.
func (c *Component) Every(d time.Duration) *Component {
	c.every, c.ticks = d, true
	return c
}

// Holds says for how long the tasks of a bolt may keep a tuple that they retain;
// until then its message does not time out, however long nothing happens to it.
// Without it only the topology's message timeout holds. It must be greater than
// zero.
func (c *Component) Holds(d time.Duration) *Component {
	c.holds, c.keeps = d, true
	return c
}

// Stream returns a declared stream, to subscribe to it. The groupings of the
// component itself are those of the stream "default".
func (c *Component) Stream(name string) *Stream { return &Stream{c, name} }

// Shuffle gives each tuple of the default stream to any one task.
func (c *Component) Shuffle() Subscription { return c.Stream(defaultStream).Shuffle() }

// LocalOrShuffle gives each tuple of the default stream to a task of the same
// node if there is one, else to any.
func (c *Component) LocalOrShuffle() Subscription { return c.Stream(defaultStream).LocalOrShuffle() }

// By gives tuples of the default stream with equal values of the fields to the
// same task.
func (c *Component) By(fields ...string) Subscription { return c.Stream(defaultStream).By(fields...) }

// Global gives all tuples of the default stream to the first task.
func (c *Component) Global() Subscription { return c.Stream(defaultStream).Global() }

// All gives each tuple of the default stream to every task.
func (c *Component) All() Subscription { return c.Stream(defaultStream).All() }

// PartialBy gives tuples of the default stream with equal values of the fields to
// two tasks, more or less half each: see [Stream.PartialBy].
func (c *Component) PartialBy(fields ...string) Subscription {
	return c.Stream(defaultStream).PartialBy(fields...)
}

// None gives each tuple of the default stream to any one task, as Shuffle does.
func (c *Component) None() Subscription { return c.Stream(defaultStream).None() }

// Direct gives each tuple of the default stream to the task that its emitter
// chooses: see [Stream.Direct].
func (c *Component) Direct() Subscription { return c.Stream(defaultStream).Direct() }

// A Stream is one output of a component. Its groupings are those of [Component].
type Stream struct {
	from *Component
	name string
}

// Shuffle gives each tuple to any one task.
func (s *Stream) Shuffle() Subscription { return s.subscribe(Shuffle) }

// LocalOrShuffle gives each tuple to a task of the same node if there is one,
// else to any.
func (s *Stream) LocalOrShuffle() Subscription { return s.subscribe(LocalOrShuffle) }

// By gives tuples with equal values of the fields to the same task. The order of
// the fields matters: two bolts that are to agree on the task's number name them
// in the same order.
func (s *Stream) By(fields ...string) Subscription { return s.subscribe(Fields, fields...) }

// Global gives all tuples to the first task.
func (s *Stream) Global() Subscription { return s.subscribe(Global) }

// All gives each tuple to every task.
func (s *Stream) All() Subscription { return s.subscribe(All) }

// PartialBy gives tuples with equal values of the fields to one of two tasks, which
// the values decide, the same two for all who send: to the one that this sender
// has given fewer tuples. So a key that is very frequent loads two tasks and not
// one, and all tasks get about the same. What is kept for a key is then in two
// places; a bolt behind, grouped by the key, puts it together. A replayed tuple
// may come to the other of the two.
func (s *Stream) PartialBy(fields ...string) Subscription { return s.subscribe(PartialKey, fields...) }

// None gives each tuple to any one task, for it does not matter which. At present
// that is what Shuffle does.
func (s *Stream) None() Subscription { return s.subscribe(None) }

// Direct gives each tuple to the task that its emitter chooses, with EmitDirect of
// bolt.Collector, spout.Out or spout.QueueOut. The stream is then direct: it has no other
// subscription, and a tuple cannot be emitted on it without a task.
func (s *Stream) Direct() Subscription { return s.subscribe(Direct) }

func (s *Stream) subscribe(g Grouping, fields ...string) Subscription {
	if s.name == DeadLetterStream && s.from != nil {
		s.from.dead = true
	}
	return Subscription{from: s.from, stream: s.name, grouping: g, fields: slices.Clone(fields)}
}

// A Subscription is an input for [Builder.Bolt]: a stream and which task gets
// which of its tuples. The groupings of a component and of a [Stream] make it.
type Subscription struct {
	from     *Component
	stream   string
	grouping Grouping
	fields   []string
	custom   string // the name of a Custom
	choose   func(Sender) Chooser
	settled  bool
}
