package batch

import (
	"time"

	"github.com/egretstream/egret/tuple"
)

// An OrderKind says what an Order wants.
type OrderKind uint8

const (
	// Join: a round begins. The task throws away what belongs to earlier ones, and answers
	// Joined (T3).
	Join OrderKind = iota + 1
	// Begin: a spout task emits its part of a batch and then its markers, and answers
	// Emitted (T5).
	Begin
	// Write: all have processed the batch; a stateful task writes it when it is complete
	// and answers Wrote (T10).
	Write
	// Settled: all batches up to this one are committed; what reads a state may go on (T17).
	Settled
	// Finish: the input has ended and everything is committed: the task ends. A life that
	// has not joined the round takes it too, for nothing is left to join for.
	Finish
)

// An Order is what the coordinator tells a task. Saying one again does no harm, and is
// answered again.
type Order struct {
	Kind OrderKind
	// BatchID names the attempt, and in Tx the batch; for Join, Settled and Finish the last
	// one that is committed.
	tuple.BatchID
	// View are the lives of all tasks in this round, by TaskID; of Join (T4).
	View []tuple.Incarnation
	// Positions are those of the component's splits; of Join, for spouts. Not to be changed.
	Positions Positions
	// Last is as in bolt.Join; of Join, for stateful tasks. Nil: nothing was ever written.
	Last []tuple.BatchID
	// Fixed, if not nil, is what the batch has of the component's splits; of Begin, for
	// transactional spouts. Of Join, for stateful tasks, it is empty, and not nil if the
	// record has the ranges of the batch behind the last committed one.
	Fixed Ranges
}

// An AnswerKind says what an Answer is about.
type AnswerKind uint8

const (
	Joined  AnswerKind = iota + 1
	Input              // a spout task has input, or has come to the end of it
	Emitted            // a spout task's part of the batch and its markers are sent
	Ready              // the batch is complete at a task, which has no state, or one that is about to write
	Wrote              // a stateful task has written the batch, durably, and has sent its markers; at a task behind a state: the batch is complete
	Failed             // user code has failed in the batch, or a rule is broken
	Fenced             // a stateful task could not join: its store has the fence of a later attempt
)

// An Answer is what a task tells the coordinator. Saying one again does no harm.
type Answer struct {
	Kind AnswerKind
	// BatchID is what it is about; of Joined with the last batch that is committed, of Input
	// with the last one that the task has emitted in the round, or that one.
	tuple.BatchID
	// Ranges are the task's part; of Emitted.
	Ranges Ranges
	// More and Ended say whether there is input now, and whether there will never be any;
	// of Emitted and Input. After it has joined a spout task says Input when one of them is
	// true; nobody asks it.
	More, Ended bool
	// Groups and Keys are what was written, and Took how long that took; of Wrote.
	Groups tuple.Groups
	Keys   int
	Took   time.Duration
	// Tuples are those of the batch that have come to the task, or were emitted by a spout
	// task; of Ready, Wrote and Emitted.
	Tuples int
	// Err is why, and Broken says that no other try can help; of Failed. Err is of Fenced
	// as well.
	Err    string
	Broken bool
	// Fence is the epoch of the fence; of Fenced.
	Fence uint32
}
