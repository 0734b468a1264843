package cluster

import (
	"fmt"
	"strconv"
	"time"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/tuple"
)

// A NodeID names a node for ever: a random number that lies in its data directory.
// Zero is no node.
type NodeID uint64

// String returns the 16 hexadecimal digits of the id.
func (n NodeID) String() string { return fmt.Sprintf("%016x", uint64(n)) }

// MarshalText and UnmarshalText are the same text.
func (n NodeID) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads what MarshalText has written.
func (n *NodeID) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil || len(text) != 16 {
		return fmt.Errorf("%q is no node: it has 16 hexadecimal digits", text)
	}
	*n = NodeID(v)
	return nil
}

// A Boot counts the processes of a node, from 1. What ran in an earlier one is over.
type Boot uint32

// A Home is one process: a node and its boot.
type Home struct {
	Node NodeID `json:"node"`
	Boot Boot   `json:"boot"`
}

func (h Home) String() string { return fmt.Sprintf("%v.%d", h.Node, h.Boot) }

// A Member is a node as the membership sees it at the moment. What several nodes see
// at the same time may differ.
type Member struct {
	Home
	Name   string // for people; its address if it was given none
	Addr   string // host:port, for everything between nodes
	Keeps  bool   // it has a data directory, so it may vote
	Alive  bool   // false: it does not answer, or has left
	Left   bool   // it said so itself
	Weight int    // how many tasks it should have beside others; 0 is 1

	Departs bool // it is alive, and has begun to leave: it takes no tasks
}

// A Status is what a topology is meant to do.
type Status string

const (
	Active   Status = "active"
	Inactive Status = "inactive" // its spouts emit nothing
	Stopping Status = "stopping" // what is open is finished, and then it is stopped
	Ending   Status = "ending"   // it was killed: what is open is finished, and then it is forgotten
	Stopped  Status = "stopped"  // the next one of its name goes on where it was
	Done     Status = "done"     // all its input has ended
	Failed   Status = "failed"   // it has stopped with an error
)

// Runs reports whether there are tasks of a topology with this status.
func (s Status) Runs() bool { return s == Active || s == Inactive || s.Ends() }

// Ends reports whether its tasks do nothing more than finish what is open.
func (s Status) Ends() bool { return s == Stopping || s == Ending }

// Leaves reports whether positions, or the record of batches, are for the next run of the
// same name.
func (s Status) Leaves() bool { return s == Stopped || s == Failed }

// A Run is one submission of a topology: the epoch that was given to it.
type Run uint32

// A Spec is what a topology was submitted with.
type Spec struct {
	Topology    string              `json:"topology"`
	Fingerprint string              `json:"fingerprint"` // of the program that submitted it
	Params      map[string][]string `json:"params,omitempty"`
	Parallel    map[string]int      `json:"parallel,omitempty"`
	Guarantee   string              `json:"guarantee,omitempty"` // empty: that of the definition
	Flags       map[string]string   `json:"flags,omitempty"`     // of run: max-pending and so on
	Components  []Component         `json:"components"`          // in the order of the plan
	// Local: states of it are in the memory or on the disk of the node where its tasks are,
	// so all of them are on one node and stay there (T18).
	Local bool `json:"local,omitempty"`
	// Dropped are sources and states of earlier versions, which the record of batches may have.
	Dropped []string `json:"dropped,omitempty"`
}

// A Component is what placing has to know of one, and the record of batches.
type Component struct {
	Name     string `json:"name"`
	Parallel int    `json:"parallel"`
	Spout    bool   `json:"spout,omitempty"`     // a spout or a queue
	One      bool   `json:"one,omitempty"`       // it has one task, always
	To       []int  `json:"to,omitempty"`        // components that it sends to, all later ones
	State    bool   `json:"state,omitempty"`     // batches change its state,
	FromHere bool   `json:"from_here,omitempty"` // which may begin in the middle of the input
}

// A Plan says where the tasks of a topology are. It is never changed; a later one has
// a greater epoch. One that is not in force yet has epoch 0, and so has each task in it
// that is new, moves or is retired: the log gives all of them the next epoch. The other
// tasks are the same as in the plan before.
type Plan struct {
	Epoch      uint32   `json:"epoch"`
	Components []Layout `json:"components"`
	Tasks      []Task   `json:"tasks"` // by tuple.TaskID
}

// A Layout is which tasks a component has: First to First+Parallel-1.
type Layout struct {
	First    tuple.TaskID `json:"first"`
	Parallel int          `json:"parallel"`
}

// A Task is where one task is. Its lives there begin with tuple.NewIncarnation(Epoch,
// 1): the epoch of the plan that put it there, so that one that stays has no new life
// by a plan that is made for others. A task of a component that has others now is
// retired: it has the zero Home, and the epoch of the plan that retired it. So of every
// task it holds that lives before tuple.NewIncarnation(Epoch, 1) are over.
type Task struct {
	Component int    `json:"component"`
	Index     int    `json:"index"`
	Home      Home   `json:"home"`
	Epoch     uint32 `json:"epoch"`
}

// A Position says that everything before it in a split of a component is done.
type Position struct {
	Component string            `json:"component"`
	Split     string            `json:"split"`
	Position  string            `json:"position"`
	Life      tuple.Incarnation `json:"life"` // of the task that says it
}

// A Submission is a topology in the log. It is never changed: the log puts another one
// in its place.
type Submission struct {
	Spec
	Run       Run       `json:"run"`
	Status    Status    `json:"status"`
	Reason    string    `json:"reason,omitempty"`   // why it failed
	Since     time.Time `json:"since"`              // when the status changed, by the clock of who proposed it
	Submitted time.Time `json:"submitted,omitzero"` // by the same; see Began
	Plan      *Plan     `json:"plan,omitempty"`     // nil: not placed yet; of one that has ended, the last
	First     uint32    `json:"first,omitempty"`    // epoch of its first plan: no task has died in it yet
	Next      *Plan     `json:"next,omitempty"`     // takes effect when nothing is open, or at the latest when that takes too long
	NextAt    uint64    `json:"next_at,omitempty"`  // index of the entry that has proposed it
	Why       string    `json:"why,omitempty"`      // there is a Next
	Positions Positions `json:"-"`
	// Record is what is durable of the batches of an exactly-once topology; nil: none has
	// begun.
	Record *batch.Record `json:"-"`
	// Stays is the node that has the states of the run before, if the record is of that and
	// they are local; 0: none has.
	Stays NodeID `json:"stays,omitempty"`
}

// Began is when the run was submitted. A log of an earlier build knows of runs only since
// when they are what they are.
func (s *Submission) Began() time.Time {
	if s.Submitted.IsZero() {
		return s.Since
	}
	return s.Submitted
}

// A Node is what the log knows of a node, whether it lives or not.
type Node struct {
	ID       NodeID `json:"id"`
	Name     string `json:"name"`
	Addr     string `json:"addr"`
	Boot     Boot   `json:"boot"` // the last that was seen
	Draining bool   `json:"draining,omitempty"`
}
