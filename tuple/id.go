package tuple

import "fmt"

// A TaskID names one task of a plan: one instance of one component. The tasks
// of a component have consecutive numbers.
type TaskID uint32

// An Incarnation numbers the lives of a task. It is a pair of the plan's epoch
// and the restarts within it, compared in that order, so a later life is always
// the greater number. Zero is no life at all: it is less than the first.
type Incarnation uint64

// NewIncarnation returns the incarnation of a restart within an epoch. The
// first life has restart 1.
func NewIncarnation(epoch, restart uint32) Incarnation {
	return Incarnation(epoch)<<32 | Incarnation(restart)
}

// Epoch returns the epoch of the plan that i belongs to.
func (i Incarnation) Epoch() uint32 { return uint32(i >> 32) }

// Restart returns how many lives of the task its node has counted in this
// epoch, i included.
func (i Incarnation) Restart() uint32 { return uint32(i) }

func (i Incarnation) String() string { return fmt.Sprintf("%d.%d", i.Epoch(), i.Restart()) }

// A TreeID names one line of a ledger: the messages that one task emitted in
// one turn, and all that came of them.
type TreeID struct {
	Task        TaskID // the task that keeps the ledger
	Incarnation Incarnation
	Seq         uint64 // consecutive within the incarnation
}

func (t TreeID) String() string { return fmt.Sprintf("%d/%v/%d", t.Task, t.Incarnation, t.Seq) }

// An EdgeID is the random number of one parcel's part in one tree. Zero is no
// edge.
type EdgeID uint64
