// Package metrics counts what tasks do.
//
//	task (the one writer) --Add--> Counter <--Load-- anybody, at any time
//
// Every number has one writer, so counting needs no locked instruction per
// tuple; writers add up locally and publish once a parcel or turn. A number
// belongs to a task and goes on through the task's incarnations.
package metrics

import "sync/atomic"

// A Counter is a number with one writer and any number of readers.
type Counter struct{ n atomic.Int64 }

// Add adds d, which is less than zero for a gauge alone. Only the owner calls it.
func (c *Counter) Add(d int64) {
	if d != 0 {
		c.n.Store(c.n.Load() + d)
	}
}

// Set makes c a gauge. Only the owner calls it.
func (c *Counter) Set(v int64) {
	if c.n.Load() != v {
		c.n.Store(v)
	}
}

// Load returns the number as it was a moment ago.
func (c *Counter) Load() int64 { return c.n.Load() }

// A Stream counts what went out on one stream of a task.
type Stream struct {
	Emitted     Counter // tuples that the component emitted
	Transferred Counter // tuples that were sent to tasks: one for each task that gets a copy
}

// An Input counts what came in by one input of a task.
type Input struct {
	Executed Counter // tuples that Execute returned from, or panicked on
	Acked    Counter // of those, without an error
	Failed   Counter // of those, with an error, a misuse or a panic
}

// A Task is all that is counted of one task. The counts of messages are those of
// a spout, and of what a bolt emits in Tick and Finish.
//
// Two laws hold whenever the task is at rest, and are checked at the end of a run:
//
//	Messages = Acked + Dead + HandedBack + Abandoned + Open()
//	Attempts = Acked + Failed + Lost + TimedOut + Trying
type Task struct {
	Name    string // "count/2"
	Streams []Stream
	Inputs  []Input

	Messages Counter // emitted for the first time
	Acked    Counter // everything that came of them is done
	Dead     Counter // given up: rejected, or failed more than MaxReplays times
	// HandedBack are a queue's messages that it was told the failure of, whatever the
	// reason. What a call of Next brings when its incarnation has ended is failed as
	// well, and counted nowhere.
	HandedBack Counter
	// Abandoned were open when their incarnation ended. A spout's successor reads
	// them again, as new messages; what a bolt said in Tick or Finish is gone.
	Abandoned Counter

	// Letters are those of Messages that are dead letters: on their stream, or
	// replayed because people asked for it.
	Letters Counter

	Attempts Counter // emissions of messages, replays included
	Failed   Counter // attempts that ended in a failure
	Lost     Counter // attempts given back because a task or the incarnation died
	TimedOut Counter // attempts without progress for the message timeout
	Trying   Counter // gauge: attempts without a verdict

	MaxPending Counter // gauge: messages that may be open

	ReplayedFailed  Counter // replays, by what ended the attempt before
	ReplayedLost    Counter
	ReplayedTimeout Counter

	Untracked Counter // messages emitted under at-most-once, of which nothing else is known, or in batches
	Queued    Counter // gauge: tuples received and not executed
	Held      Counter // gauge: tuples retained
	Kept      Counter // gauge: bytes of open messages that are kept for replay
	Room      Counter // gauge: tuples that may be sent before a receiver must give more room
	// WaitsFor is a gauge: the number of a task without room that holds this one up now, and
	// 1 more; 0: none. Its owner writes it when that changes.
	WaitsFor  Counter
	Throttled Counter // nanoseconds in which a receiver without room held this task up
	Restarts  Counter // incarnations after the first
	Refused   Shared  // what has come of or for dead incarnations, or of an attempt that is over
	Stuck     Shared  // calls of user code that lasted longer than Config.StuckAfter
	// AbandonedCalls are calls of the source that did not return, as a rule soon after their
	// context had ended, and were left behind.
	AbandonedCalls Counter
	Stale          Counter // positions of dead incarnations that were refused; the supervisor's

	Execute  Histogram // a parcel's time divided by its tuples; of a tuple above 100 us its own time
	Complete Histogram // from the first emission of a message to the last ack of what came of it, replays and their pauses included

	Batches Batches // of the coordinator of an exactly-once topology
	// StaleBatches are of all tasks of one. A call that the task has left counts, too.
	StaleBatches [StaleKinds]Shared

	Own Own // what the bolt counts for itself
}

// Batches count what the coordinator of an exactly-once topology has done. The time from
// when a batch began until it was committed is in Task.Complete, once for each of its
// messages.
type Batches struct {
	Last      Counter                   // gauge: the number of the last batch that is committed
	Committed Counter                   // batches
	Messages  Counter                   // in them
	Tuples    Counter                   // that came to tasks in them
	Keys      Counter                   // that were written in them
	Rounds    Counter                   // that began because something went wrong, or tasks were moved
	Failed    Counter                   // attempts at batches in which user code has failed
	Begun     Counter                   // gauge: the number of the last batch that has ever begun
	Replayed  Counter                   // batches that have begun again
	Causes    [len(RoundCauses)]Counter // rounds, by why they have begun
	Now       Board
}

// NewTask returns the counters of a task.
func NewTask(name string, streams, inputs int) *Task {
	return &Task{Name: name, Streams: make([]Stream, streams), Inputs: make([]Input, inputs)}
}

// Open returns the messages of which it is not known what becomes of them. It is
// never less than zero: what is done is read first.
func (t *Task) Open() int64 {
	done := t.Acked.Load() + t.Dead.Load() + t.HandedBack.Load() + t.Abandoned.Load()
	return t.Messages.Load() - done
}

// Abandon accounts for the end of an incarnation: what it had open will be read
// again by the next, as new messages. Its owner, the task, must have ended.
func (t *Task) Abandon() {
	t.Abandoned.Add(t.Open())
	t.Lost.Add(t.Trying.Load())
	t.Trying.Set(0)
	t.Queued.Set(0)
	t.Held.Set(0)
	t.Kept.Set(0)
	t.Room.Set(0)
	t.WaitsFor.Set(0)
}
