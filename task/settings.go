package task

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

// Settings are the numbers that a run is made with; see egret.Config, which
// fills them in and checks them.
type Settings struct {
	ParcelSize     int
	Linger         time.Duration
	MaxPending     int // messages a task
	PendingBytes   int // kept for replay, a task
	QueuedBytes    int // of text, waiting for a bolt task
	TreeSize       int // most messages a tree
	MessageTimeout time.Duration
	MaxReplays     int // -1: for ever
	AlwaysEncode   bool
	StuckAfter     time.Duration // in one call of user code, then it is told; 0: nobody looks
	Replace        bool          // and a new life takes the place of the stuck one
	Logger         *slog.Logger  // for bolts

	// Store keeps what is to survive the run; nil: nothing does. Positions are what it
	// had when the run began, by component and split.
	Store     Store
	Positions map[string]map[string]string
	Continued bool      // this run goes on where an earlier one was; for bolts
	Began     time.Time // when the host's clock showed 0

	// Of exactly-once topologies:
	BatchSize     int           // messages that a spout task puts into a batch, about
	BatchInterval time.Duration // after which it is cut
	MaxBatches    int           // under way
	Records       batch.Records // keeps the record

	// Event is told what people should hear of. It is called from the actors and
	// must not wait.
	Event func(Event)

	// Verdict, if not nil, is told how each tree has ended, before anything is done
	// about it. It is called from the actors, must not wait, and keeps nothing of what
	// it is given. It is for tests and simulations.
	Verdict func(*Verdict)

	// Tree, if not nil, is told that messages first to first+n-1 of a batch are about to
	// be emitted as one tree, for the first time or again. The rest is as with Verdict.
	Tree func(tree tuple.TreeID, b *spout.Batch, first, n int)

	// Probe, if not nil, is told everything; see there.
	Probe *Probe

	// Share is what this node has of the run; nil: all of it.
	Share *Share
}

// A Verdict says what became of the messages First to First+N-1 of a batch, which
// were one tree of a task.
type Verdict struct {
	Tree     tuple.TreeID
	Batch    *spout.Batch
	First, N int
	Outcome  acker.Outcome
	Fails    []acker.Fail // by index in the tree
}

const (
	parcelText   = 256 << 10              // bytes of text after which a parcel is closed
	turnTuples   = 4096                   // tuples a turn, then a look at the mailbox
	turnTime     = 5 * time.Millisecond   // the same as a time
	slowTuple    = 100 * time.Microsecond // from here on a tuple is timed by itself
	askAfter     = 100 * time.Millisecond // without room, then the sender asks
	promptBatch  = 256                    // messages a call of Next on the turn: one tree
	readBatch    = 1024                   // and elsewhere, where a call costs a switch
	failureText  = 300                    // bytes of an error that are kept of each failure
	failureEvery = 10 * time.Second
	emptyParcels = 32 // small ones go home before the limit has risen by much
	reportSize   = 64 // entries a report
	backoffFirst = 50 * time.Millisecond
	backoffMost  = 10 * time.Second
	heldAfter    = 100 * time.Millisecond // of rest, then a bolt says what it holds
	pressAfter   = time.Second            // of nothing but what is held, then MaxPending doubles
	pressAgain   = 200 * time.Millisecond // the same when it has just doubled
	flushAfter   = 200 * time.Millisecond // of dryness: a failure behind it may bring replays
	leaveAfter   = time.Second            // user code may go on after its context has ended
	carefulFor   = 8                      // times StuckAfter, tuple by tuple after a hang
	stopLook     = 250 * time.Millisecond // between looks for stuck tasks while the run is being stopped
	maxHangs     = 2                      // of a message, then it is dead
	commitEvery  = 100 * time.Millisecond // at most so often for a split
	emptyPause   = time.Millisecond       // after a Next that appended nothing
	openSplits   = 16                     // that a task reads at the same time
	sameErrors   = 5                      // the same error at the same position, then the run ends
	maxStrikes   = 5                      // deaths in a row outside Execute, then the run ends
	maxDeaths    = 20                     // beyond MaxReplays: deaths of any kind without a tuple executed between them
	keptTries    = 32                     // of an open message, by which a late fail finds it; in a backlog many are on their way
)

// backoff returns the pause before the n-th replay of a message or restart of a
// task, n counted from 1.
func backoff(n int) time.Duration {
	d := backoffFirst
	for ; n > 1 && d < backoffMost; n-- {
		d *= 2
	}
	return min(d, backoffMost)
}

// An Event is something that happened to a run: *Died, *Stuck, *Failure, *TimedOut,
// *Notice, *DeadLetter, *SourceError, *QueueError or *StoreError.
type Event interface{ event() }

// Died says that an incarnation of a task has ended by a failure.
type Died struct {
	Task  string
	Life  tuple.Incarnation
	Err   error         // *PanicError, an error of Prepare, or that it was killed
	Again time.Duration // the pause before its successor begins
}

// Stuck says that a task has been in one call of user code, on its turn or under
// Block, for longer than StuckAfter. It comes again, each time after twice as long, while that lasts, and
// a Notice when the call has returned.
type Stuck struct {
	Task     string
	Life     tuple.Incarnation
	During   string // "Execute", "Prepare", "Next", "Commit of split x", ...
	For      time.Duration
	Tuple    string // the tuple in hand, of Execute
	Others   int    // and how many behind it may be meant as well
	Stack    string // empty if it was not found
	Replaced bool   // a new life has taken its place
	Again    bool   // it has come before, for the same call
}

// Failure says that an execution of a bolt has failed. It comes for each one, so that who
// counts them has what the metrics have; a panic is told as Died.
type Failure struct {
	Task   string
	Err    string
	Failed int64  // in this life, so far
	Tuple  string // cut short, if it is at hand
	Unsent bool   // what was emitted could not be sent, which is no failed execution
	Quiet  bool   // one of this life was told less than failureEvery ago: not worth a line
}

// TimedOut says that messages of a task are replayed because nothing was heard of
// them. It comes for each tree.
type TimedOut struct {
	Task     string
	Err      string // names who holds them, if somebody does
	Messages int64  // of the tree
	TimedOut int64  // messages in this life, so far
	Quiet    bool   // as of a Failure
}

// Notice is a mistake that the run goes on with.
type Notice struct {
	Task string
	Back bool // a call of which Stuck was told has come back
	Text string
}

// A SourceError says that a source has failed and will be opened again.
type SourceError struct {
	Task     string
	Split    string
	Position string
	Err      error
	Again    time.Duration
}

// A QueueError says that a call of a queue has failed.
type QueueError struct {
	Task  string
	Err   error         // of Open, Next, Ack or Fail
	Again time.Duration // Open or Next is called again after it; 0: it was an answer, which is not given again
	Lost  int64         // answers that could not be given, in this life so far
	Quiet bool          // as of a Failure
}

func (*Died) event()        {}
func (*Stuck) event()       {}
func (*Failure) event()     {}
func (*TimedOut) event()    {}
func (*Notice) event()      {}
func (*DeadLetter) event()  {}
func (*SourceError) event() {}
func (*QueueError) event()  {}
func (*StoreError) event()  {}

// A PanicError is a panic of a user's code.
type PanicError struct {
	Component string
	Task      int
	During    string // "Execute", "Prepare", "Tick", ...
	Misuse    bool   // of tuples or streams: another try would not help
	Value     any    // what was given to panic
	Tuple     string // the tuple in hand, for people
	Stack     []byte
}

func (p *PanicError) Error() string {
	if p.Misuse {
		return fmt.Sprintf("%s/%d: %s: %v", p.Component, p.Task, p.During, p.Value)
	}
	s := fmt.Sprintf("%s/%d: panic in %s: %v", p.Component, p.Task, p.During, p.Value)
	if p.Tuple != "" {
		s += "; tuple " + p.Tuple
	}
	return s
}
