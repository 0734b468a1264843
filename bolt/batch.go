package bolt

import (
	"context"

	"github.com/egretstream/egret/tuple"
)

// MaxAhead is the most batches that are under way at a time: the numbers of those that a
// Batched bolt has to do with are less than this apart.
const MaxAhead = 64

// A Batched is a bolt of an exactly-once topology. Its input comes in batches, and
// tuples of a few batches may come interleaved:
//
//	Prepare
//	Round                             what belongs to batches is forgotten
//	  Batch(1) Execute Execute ...    tuples of batch 1
//	  Batch(2) Execute ...            tuples of batch 2, while 1 goes on
//	  Batch(1) Execute
//	  Complete(1)                     nothing more of batch 1 will come
//	  Complete(2)
//	Close
//
// An error of Execute or Complete fails the batch: all batches that are not committed
// come again, from the first one on, in a new round. Tick, Flush, Finish, retained tuples
// and calls of Async are not for Batched bolts.
type Batched interface {
	Bolt
	// Round begins a new round: everything that belongs to batches is to be thrown away.
	Round()
	// Batch says which batch the tuples are of that Execute gets from now on.
	Batch(tx tuple.TxID)
	// Complete is called once for each batch, in their order, when all its tuples have
	// come; also for one of no tuples. What it emits belongs to the batch. tx need not be
	// that of the last call of Batch.
	Complete(tx tuple.TxID, out *Collector) error
}

// A Stateful is a Batched bolt with state that outlives its task: what a batch changes
// is written when all of the topology has processed it. Its component is declared with
// Component.Stateful.
//
// Join and Commit may wait: they are called elsewhere than the other methods, and
// Commit while Execute is called with tuples of later batches. One call of Join and
// Commit is under way at a time.
type Stateful interface {
	Batched
	// Join fences the store for a new round (T11) and brings it to where the
	// coordinator's record is (T12, T15). It is called before Round. An error ends this
	// life of the task; if [Reject] has made it, the run. A [FencedError] ends neither: the
	// coordinator finds out who has the store.
	Join(ctx context.Context, j *Join) error
	// Commit writes the batch, which is complete, in one transaction of the store, and
	// returns when that is durable. A batch that changes nothing does not touch the
	// store. An error ends this life of the task, and not the run, however often it comes,
	// for the store may be away; but one that [Reject] has made does. Complete is called after it, on the
	// task's turn.
	Commit(ctx context.Context, b tuple.BatchID) (Written, error)
}

// A FencedError is the error of a Join or a Commit that another attempt has fenced the store
// against.
type FencedError struct {
	By  tuple.Attempt // whose fence the store has; of a Join
	Err error
}

func (e *FencedError) Error() string { return e.Err.Error() }
func (e *FencedError) Unwrap() error { return e.Err }

// A Settler is a Stateful bolt whose store shows others what is committed. Settle says
// that the batches up to committed are, when for a while no later one is to be written,
// and before the task ends. It is called as Join and Commit are. That it fails is told, and
// changes nothing for this topology.
type Settler interface {
	Settle(ctx context.Context, committed tuple.TxID) error
}

// A Join is what a stateful task is told when a round begins.
type Join struct {
	Fence     tuple.Fence
	Committed tuple.TxID // the last batch that is committed; 0: none
	// Last are the stamps of the key groups of this component's state: the last batch that
	// has written to each, all at most Committed, and the attempt that has committed it, as
	// the record has it. It is tuple.KeyGroups long, or nil if nothing was ever written. Not
	// to be changed.
	Last []tuple.BatchID
	// Fixed: the record says what batch Committed+1 has of transactional spouts. Before it
	// says so, none of the batch is written (T13).
	Fixed bool
}

// Written is what Commit has written.
type Written struct {
	Groups tuple.Groups // of the keys
	Keys   int
}
