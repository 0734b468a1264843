// Package live does harm to a topology that really runs, and reads off a record of its
// own what became of each message. It is not for use outside Egret.
//
//	reader --Next--> component, split, ordinal       what a message is, whoever reads it
//	                         |
//	spout task --tree--> attempt: outstanding = copies that are sent
//	                         |
//	bolt task --Execute----> outstanding + copies it emits - the one it had
//	                         |
//	                     0, and nothing failed: executed to the end
//
// The record hears of emissions and executions from wrappers around the sources and
// bolts and from a task.Probe. Egret's ledgers, counters and verdicts have no part in it:
// when Egret says that a message is done, by a verdict or by the position that it
// commits, the record is asked whether it is. A position that a reader gives carries the
// ordinal, so a message that is read again after the death of its spout is the same one.
//
// Beside the counts the record compares: each tuple with the row of its parcel whose turn
// it is, what is executed of a message by those who get it first with the values that it
// had, those with the ones of its next emission, each answer of a queue with what was
// executed, and what a bolt has emitted of its own with what was sent. It does not look at
// routes, nor at values of kind any.
//
// Memory: 20 bytes for each message between the position that is committed of a split
// and the last one that was read of it, 12 for each that is on its way, and the values of
// some that have failed. The rest is folded into histograms.
package live
