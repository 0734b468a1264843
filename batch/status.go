package batch

import (
	"time"

	"github.com/egretstream/egret/tuple"
)

// Effects are what a Coordinator wants done.
type Effects struct {
	Orders  []Letter
	Request Request // zero for none
	Events  []Event
}

// A Letter is an order and who it is for.
type Letter struct {
	To    tuple.TaskID
	Order *Order // not to be changed
}

// A Request is a call of Records: Begin, or Append of an entry.
type Request struct {
	Begin  bool
	Append *Entry
}

// A Phase is what a Coordinator does.
type Phase uint8

const (
	Recovering Phase = iota // waits for the record
	Waiting                 // for the lives of tasks, or the outcome of an Append, to begin a round
	Joining                 // waits for all tasks to join the round
	Running
	Finishing // everything is committed, and the tasks are told to end
	Stopped   // it does nothing any more
)

var phaseNames = [...]string{"recovering", "waiting", "joining", "running", "finishing", "stopped"}

func (p Phase) String() string { return phaseNames[p] }

// A Stage is how far a batch is.
type Stage uint8

const (
	Emitting   Stage = iota // spout tasks emit their parts
	Processing              // it is not complete at all tasks that are not behind a state
	Queued                  // it is, and one before it is not committed
	Fixing                  // its ranges are on their way to the record
	Writing                 // stateful tasks write it, and it is on its way to what is behind them
	Committing              // it is on its way to the record
	Doomed                  // it has failed, and waits for those before it
)

var stageNames = [...]string{"emitting", "processing", "queued", "fixing", "writing", "committing", "failed"}

func (s Stage) String() string { return stageNames[s] }

// A Cause says why a round has begun.
type Cause uint8

const (
	Start   Cause = iota // a coordinator is new
	Death                // a task has another life, or none
	Moved                // a task has a life of a later plan
	Failure              // a batch has failed
	Timeout              // nothing has happened for too long
	Unknown              // nobody knows whether the record has an entry, so there is a new epoch
	causes
)

var causeNames = [...]string{"start", "death", "moved", "failure", "timeout", "unknown entry"}

func (c Cause) String() string { return causeNames[c] }

// An EventKind says what an Event is about.
type EventKind uint8

const (
	RoundBegan   EventKind = iota + 1 // Cause, and Tasks: who died, failed or has not answered
	BatchFailed                       // Tasks, Err, Failures; it comes again
	Committed                         // Messages, Tuples, Keys, Took
	RecordFailed                      // Err; it is asked again
	Replaced                          // Err; a later life coordinates, and this one does nothing any more
	Fatal                             // Tasks, Err, Failures; the topology has to stop
	Finished                          // everything is committed, and the input has ended or a drain is over
)

var eventNames = [...]string{"", "round began", "batch failed", "committed", "record failed", "replaced", "fatal", "finished"}

func (k EventKind) String() string { return eventNames[k] }

// An Event is something that people or counters want to know.
type Event struct {
	Kind EventKind
	tuple.BatchID
	Cause    Cause
	Tasks    []tuple.TaskID
	Err      error
	Failures int // of the batch, by user code, with this one
	// Messages were emitted in the batch, Tuples have come to tasks, and Keys were written.
	Messages, Tuples, Keys int
	Began                  time.Duration // when the order to begin was given
	Took                   time.Duration // from then until it was committed
}

// A Status is how a Coordinator is, for people and counters.
type Status struct {
	Phase     Phase
	Attempt   tuple.Attempt
	Committed tuple.TxID
	Batches   []BatchStatus
	Missing   []tuple.TaskID // whose life or answer is waited for
	Asked     bool           // the record is waited for
	Held      bool
	Rounds    map[Cause]int
	Stale     int // answers that were dropped: they were late, or said again
}

// A BatchStatus is how a batch is that is under way.
type BatchStatus struct {
	Tx       tuple.TxID
	Stage    Stage
	Began    time.Duration
	Messages int // so far
}

// Status returns how c is. It is the caller's.
func (c *Coordinator) Status() Status {
	s := Status{Phase: c.phase, Attempt: c.attempt, Missing: c.missing(), Asked: c.asked != Request{}, Held: c.held, Rounds: map[Cause]int{}, Stale: c.stale}
	if c.record != nil {
		s.Committed = c.record.Committed
	}
	for cause, n := range c.rounds {
		if n > 0 {
			s.Rounds[Cause(cause)] = n
		}
	}
	for i, w := range c.batches {
		b := BatchStatus{w.tx, w.stage, w.began, w.messages}
		switch {
		case w.failed != nil:
			b.Stage = Doomed
		case w.stage != Emitting || w.unemitted > 0:
		case w.unready > 0:
			b.Stage = Processing
		case i > 0:
			b.Stage = Queued
		}
		s.Batches = append(s.Batches, b)
	}
	return s
}
