package acker

import "time"

// An Open is a tree that has no verdict yet, as it is at the moment.
type Open[M any] struct {
	Seq     uint64
	Mask    uint64        // of Bit of the tasks that an edge of it has gone to so far
	Heard   time.Duration // when something was last said of it
	Message M
}

// Trees calls f for each open tree, the oldest first. f must not change the ledger. It
// takes as long as Expire, and is for people who want to know.
func (l *Ledger[M]) Trees(f func(Open[M])) {
	l.each(func(n *line[M]) { f(Open[M]{n.seq, n.mask, n.deadline - l.Timeout, n.message}) })
}
