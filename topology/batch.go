package topology

import (
	"slices"

	"github.com/egretstream/egret/tuple"
)

// What a definition says of the batches of an exactly-once topology.

// coordinator is the name of the component that Build adds to an exactly-once topology.
const coordinator = "coordinator"

// A Replay says what a spout gives when a batch of an exactly-once topology comes again.
type Replay uint8

const (
	// Opaque: the messages from the committed position on, cut into batches anew. Every
	// Source can be read so.
	Opaque Replay = iota
	// Transactional: the same messages in the same batch. It is for sources which give the
	// same messages behind a position each time.
	Transactional
	// NonTransactional: what follows; messages of a batch that has failed are lost. Of a
	// source that is read anew from its beginning with each run some come twice.
	NonTransactional
)

var replayNames = [...]string{"opaque", "transactional", "non-transactional"}

func (r Replay) String() string { return nameOf(replayNames[:], r, "kind") }

// Batches sets how batches of the spout c come again, in an exactly-once topology.
// Without it they are Opaque.
func (c *Component) Batches(r Replay) *Component {
	c.replay = r
	return c
}

// Stateful declares that the bolts of c are bolt.Stateful: they write when a batch is
// committed, in an exactly-once topology.
func (c *Component) Stateful() *Component {
	c.stateful = true
	return c
}

// Local declares that what the stateful bolts of c write is in the memory or on the disk of
// their node, so that no other node has it. In a cluster such a topology has all its tasks
// on one node and keeps it: when that node is gone, the topology waits until it is back.
func (c *Component) Local() *Component {
	c.local = true
	return c
}

// FromHere declares that the state of c may begin in the middle of the input: where a run
// goes on with an earlier one's batches and positions, which know nothing of it. Without it
// such a run is refused, as a state may just have been given another name.
func (c *Component) FromHere() *Component {
	c.fromHere = true
	return c
}

// Dropped says that earlier versions of an exactly-once topology had components of these
// names, sources or states, that it has no more. Without it a run that goes on from them is
// refused, as a component may just have been given another name.
//
// The positions of a source that was dropped are kept: if it is back one day it is read on
// from there. What is known of a state is forgotten with the first run without it: it cannot
// come back, but as a new one with FromHere, when what its store has is removed.
func (b *Builder) Dropped(names ...string) { b.dropped = append(b.dropped, names...) }

// Settled makes s a subscription whose tuples are executed only when all batches before
// theirs are committed: what they read of a state then does not change any more. It is
// for exactly-once topologies.
func (s Subscription) Settled() Subscription {
	s.settled = true
	return s
}

// batches reports mistakes of an exactly-once topology, and what only that may have of
// another one.
func (k *checker) batches(o *Options) {
	g := k.chosen(o)
	for _, c := range k.b.components {
		if g != ExactlyOnce {
			switch {
			case c.local && !c.stateful:
				k.at(c, ErrGuarantee, "", "", "Local is for topologies that are %v, and this one is %v", ExactlyOnce, g)
			case c.fromHere && !c.stateful:
				k.at(c, ErrGuarantee, "", "", "FromHere is for topologies that are %v, and this one is %v", ExactlyOnce, g)
			case c.stateful:
				k.at(c, ErrGuarantee, "", "", "Stateful is for topologies that are %v, and this one is %v", ExactlyOnce, g)
			case slices.ContainsFunc(c.inputs, func(s Subscription) bool { return s.settled }):
				k.at(c, ErrGuarantee, "", "", "Settled is for topologies that are %v, and this one is %v", ExactlyOnce, g)
			}
			continue
		}
		switch {
		case c.name == coordinator:
			k.at(c, ErrName, "", "", "the name is that of the component which coordinates the batches: give it another one")
		case c.kind == queueKind:
			k.at(c, ErrGuarantee, "", "", "a queue cannot be read again, so nothing of it is %v: use a spout", ExactlyOnce)
		case c.ticks:
			k.at(c, ErrInterval, "", "", "an %v topology has batches and no ticks", ExactlyOnce)
		case c.dead:
			k.at(c, ErrStream, "", "", "an %v topology has no dead letters: a batch that fails comes again", ExactlyOnce)
		case c.stateful && c.kind != boltKind:
			k.at(c, ErrGuarantee, "", "", "Stateful is for bolts")
		case c.local && !c.stateful:
			k.at(c, ErrGuarantee, "", "", "Local is for bolts that are Stateful")
		case c.fromHere && !c.stateful:
			k.at(c, ErrGuarantee, "", "", "FromHere is for bolts that are Stateful")
		case slices.Contains(k.b.dropped, c.name):
			k.at(c, ErrName, "", "", "it is there, and among those that were Dropped")
		case c.replay > NonTransactional:
			k.at(c, ErrGuarantee, "", "", "there is no kind of batches %d", c.replay)
		case c.replay != Opaque && c.kind != spoutKind:
			k.at(c, ErrGuarantee, "", "", "Batches is for spouts")
		}
	}
}

// chosen returns the guarantee that the plan will have.
func (k *checker) chosen(o *Options) Guarantee {
	if o.Guarantee != nil {
		return *o.Guarantee
	}
	return k.b.guarantee
}

// coordinate adds the coordinator to a plan, as the last component.
func (p *Plan) coordinate() {
	p.Components = append(p.Components, Node{Name: coordinator, Parallel: 1, First: tuple.TaskID(len(p.Tasks)), Coordinates: true})
	p.Tasks = append(p.Tasks, Task{Component: len(p.Components) - 1})
}
