package trident

import "github.com/egretstream/egret/topology"

// A Kind says how a source gives a batch again, or how a state knows that it has
// already taken one. The names are Storm's. These pairs are exactly-once:
//
//	                source
//	state           Transactional   Opaque    NonTransactional
//	Opaque          exact           exact     no
//	Transactional   exact           no        no
//	NonTransactional  no            no        no
//
// Build refuses the others, unless the state says [State.Inexact].
//
// Of a source: Opaque gives, from where the last committed batch ends, batches that are
// cut anew; every spout.Source can do that. Transactional gives the same messages in the
// same batch: it is for sources that give the same messages behind a position each
// time. NonTransactional goes on with what follows, so that messages of a batch that has
// failed are lost.
//
// Of a state: Opaque keeps for each key the value before the last batch as well, so that
// a batch can be undone. Transactional keeps the batch that has changed the key, and
// passes over one that comes again: half the bytes of Opaque. NonTransactional keeps the
// value alone: what comes again counts again.
type Kind uint8

const (
	Opaque Kind = iota
	Transactional
	NonTransactional
)

func (k Kind) String() string { return topology.Replay(k).String() }
