package acker

import (
	"fmt"

	"github.com/egretstream/egret/tuple"
)

// A Report is what a task tells one ledger about its trees. Reports may arrive
// in any order, and what is in one is read in a fixed one: the view, the fails,
// the lost trees, the entries, then the signs of life.
type Report struct {
	From     tuple.TaskID
	FromLife tuple.Incarnation
	To       tuple.TaskID // the spout task that keeps the ledger
	ToLife   tuple.Incarnation

	// View names every task that From sends to and that ever died, with the last
	// life that From knows to be dead. The edges in Entries were made for later
	// lives than these. The slice is shared between reports and never changed.
	View []Death

	Entries []Entry
	Fails   []Fail
	Lost    []uint64 // trees with an edge that never came to a report and goes to a dead life
	Queued  []uint64 // trees with tuples that wait in one of From's queues
	Held    []Held   // trees with tuples that From has retained
}

// An Entry is what one input parcel's part in one tree adds up to: the edge
// that was consumed and all that were made for it.
type Entry struct {
	Seq  uint64 // of the tree
	Xor  tuple.EdgeID
	Mask uint64 // [Bit] of each task that an edge of the entry goes to
}

// Bit returns the place of a task in a mask. Tasks whose numbers are equal
// modulo 64 share theirs: a death then gives back more trees than it must.
func Bit(t tuple.TaskID) uint64 { return 1 << (t % 64) }

// A Death says that all lives of a task up to Life are over.
type Death struct {
	Task tuple.TaskID
	Life tuple.Incarnation
}

func (d Death) String() string { return fmt.Sprintf("%d/%v", d.Task, d.Life) }

// A Fail is the failure of one message of a tree. It travels in the report
// that has the entry of the failed tuple's parcel, or in an earlier one of the
// same task; it may come twice.
type Fail struct {
	Seq   uint64
	Index uint16 // of the message in its tree
	Class FailClass
	Err   string // for people
	// Suspects is, of a hang, how many messages were in hand: 1 if it was this one.
	Suspects int
}

// A FailClass says what a failure means for the message. When a message fails
// in several places, the greater class counts.
type FailClass uint8

const (
	Failed   FailClass = iota // Execute returned an error
	Panicked                  // Execute panicked: honoured even if the tree is not open any more
	Hung                      // Execute did not come back with it, or with one of its Suspects: honoured likewise
	Rejected                  // it will never get better
)

var classNames = [...]string{"failed", "panicked", "hung", "rejected"}

func (c FailClass) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class %d", uint8(c))
}

// A Held says that a component has retained tuples of a tree. It moves the
// deadline only if it is Within what the component may hold.
type Held struct {
	Seq       uint64
	Component int
	Within    bool
	Waits     bool // for other tuples, and not for a call that is under way
}

// A Verdict ends a tree. There is exactly one for each tree that was opened.
type Verdict[M any] struct {
	Seq     uint64
	Outcome Outcome
	Message M      // what Open was given
	Fails   []Fail // by index, at most one each; also of a tree that is not done
	Holder  int    // the component that last said that it holds a tuple of the tree, or -1
}

// An Outcome is how a tree ended.
type Outcome uint8

const (
	Done     Outcome = iota // all that came of it was acked or failed
	Lost                    // an edge of it may have gone to a life that is over
	TimedOut                // for Timeout nobody said anything about it
)

var outcomeNames = [...]string{"done", "lost", "timed out"}

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome %d", uint8(o))
}
