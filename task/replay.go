package task

import (
	"time"

	"github.com/egretstream/egret/spout"
)

// An attempt is the story of a message that did not get through at once. From
// its first failure on it travels in trees of its own, so that no other message
// waits for it or dies with it.
type attempt struct {
	batch    *spout.Batch
	index    int32
	first    time.Duration // when it was first emitted
	failures int           // replays it has used up
	pass     uint64        // of the origin, in which a panic was counted last
	losses   int           // losses and timeouts, which are nobody's fault
	hangs    int           // of those, with it among the suspects
	rejected bool
	hung     bool   // it hangs, beyond doubt
	err      string // the last failure
	history  []string
	tries    []try // the last trees it was in, by which a late fail finds it
	due      time.Duration
	cause    cause
	at       int // in replays, or -1 while it is on its way
}

// A try is a message's place in a tree.
type try struct {
	seq   uint64
	index uint16
}

type cause uint8

const (
	byFailure cause = iota
	byLoss
	byTimeout
)

// Entries of a message's history that are kept.
const historySize = 4

func (a *attempt) note(s string) {
	if n := len(a.history); n > 0 && a.history[n-1] == s {
		s = a.history[n-1] // mostly it is the same each time, and is kept once
	}
	if len(a.history) == historySize {
		copy(a.history, a.history[1:])
		a.history = a.history[:historySize-1]
	}
	a.history = append(a.history, s)
}

// replays is a heap of waiting attempts: the earliest due first, of equal ones
// the one that was emitted first.
type replays []*attempt

func (r replays) Len() int { return len(r) }
func (r replays) Less(i, j int) bool {
	if r[i].due != r[j].due {
		return r[i].due < r[j].due
	}
	if r[i].batch != r[j].batch {
		return r[i].batch.Number < r[j].batch.Number
	}
	return r[i].index < r[j].index
}
func (r replays) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].at, r[j].at = i, j
}
func (r *replays) Push(x any) {
	a := x.(*attempt)
	a.at = len(*r)
	*r = append(*r, a)
}
func (r *replays) Pop() any {
	n := len(*r) - 1
	a := (*r)[n]
	(*r)[n] = nil
	*r = (*r)[:n]
	a.at = -1
	return a
}
