package topology

import "github.com/egretstream/egret/tuple"

// A Chooser is a grouping of the user's own: it says which tasks of a component
// get a tuple, by appending their indices, from 0 to Sender.Tasks-1, to the empty
// slice that it is given, and returns that. A task that is named twice gets the
// tuple twice; without any nobody gets it, and for this subscription the tuple is
// done.
//
// A Chooser belongs to one incarnation of one task that sends, which calls it for
// each tuple when that is emitted, and again when it is replayed. So it needs no
// lock and may keep state, which dies with the incarnation. It should not wait,
// and should decide by the tuple and that state alone. The tuple is good until it
// returns; what is kept of it is cloned.
//
// An index that is not there, or a panic, rejects the tuple: its message is dead.
// The other subscriptions to the stream may have got it all the same.
type Chooser func(t tuple.Tuple, to []int) []int

// A Sender is the task that a [Chooser] is made for, and what it sends to.
type Sender struct {
	Stream *tuple.Schema // of the tuples
	Index  int           // of the task in its component, from 0
	To     string        // the component that subscribes
	Tasks  int           // of To
}

// Custom gives each tuple to the tasks that a [Chooser] says, which choose makes
// for every task that sends. The name stands for it wherever the topology is
// shown or compared; two groupings that decide differently should not share one. A
// choose that panics or returns nil ends the run.
func (s *Stream) Custom(name string, choose func(Sender) Chooser) Subscription {
	sub := s.subscribe(Custom)
	sub.custom, sub.choose = name, choose
	return sub
}

// Custom gives each tuple of the default stream to the tasks that a [Chooser]
// says: see [Stream.Custom].
func (c *Component) Custom(name string, choose func(Sender) Chooser) Subscription {
	return c.Stream(defaultStream).Custom(name, choose)
}

func (k *checker) custom(c *Component, s Subscription, full string) {
	if what := badName(s.custom); what != "" {
		k.at(c, ErrName, full, "", "the name %q of the custom grouping of stream %s %s", s.custom, full, what)
	}
	if s.choose == nil {
		k.at(c, ErrNil, full, "", "the custom grouping %s of stream %s is nil", shown(s.custom), full)
	}
}

// direct reports other subscriptions to the stream of a direct one. They would
// all get what is meant for the one task, or none would.
func (k *checker) direct(c *Component, i int, full string) {
	s := c.inputs[i]
	before := true
	for _, other := range k.b.components {
		for j, o := range other.inputs {
			if other == c && j == i {
				before = false
				continue
			}
			if o.from != s.from || o.stream != s.stream || other == c && o.same(s) {
				continue
			}
			if before && o.grouping == Direct {
				return // told there
			}
			k.at(c, ErrSubscription, full, "", "it subscribes to stream %s direct, so nobody else can (%s does, %s): declare another stream for one of them",
				full, shown(other.name), o.how())
			return
		}
	}
}

// label is a grouping for people, with the key's fields or the name.
func (g Grouping) label(key []string) string {
	switch g {
	case Fields:
		return "by " + list(key)
	case PartialKey:
		return "partial by " + list(key)
	case Custom:
		return "custom " + list(key)
	}
	return g.String()
}

// Label returns how input k of component c is grouped, for people: "by word".
func (p *Plan) Label(c, k int) string {
	g, key := p.grouping(c, k)
	return g.label(key)
}

// how is the grouping of s for people.
func (s Subscription) how() string {
	if s.grouping == Custom {
		return s.grouping.label([]string{shown(s.custom)})
	}
	return s.grouping.label(s.fields)
}
