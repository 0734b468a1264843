package model

import "strings"

// A rule is a part of T1 to T19 that can be left out. It is named by what
// happens then.
type rule uint8

const (
	roundOnly       rule = iota // T1: attempts are compared by their round
	readBeforeEpoch             // T1: a coordinator reads the record, then appends its epoch

	failAtOnce        // T2: a failed batch ends the round wherever it stands
	roundDuringAppend // T2: a round begins while an entry is on its way
	unknownIsRefused  // T2: an entry without an answer counts as refused

	noBarrier // T3: the first begin does not wait for joined
	noView    // T4: who lives is sent to, and joins a round by a message of it
	noSender  // T4: the sender's incarnation is not compared

	noOrder           // T5: begins in any order, several at a time
	markerWhereTuples // T5: no marker on a link without tuples
	firstMarker       // T6: one marker makes a batch complete

	dropSilently // T7: a tuple that cannot be read is thrown away, and that is all
	noBackstop   // T7: no round begins for want of progress

	staleKeepsCredit // T8: no credit for tuples of other rounds
	keepTotal        // T8: tuples thrown away at a join stay in the total
	heldKeepsCredit  // T8: no credit for tuples that a reader holds
	markerNotInOrder // T8: markers travel on the control lane

	noEpoch // T9: the record does not compare the epoch
	noTxid  // T9: the record does not compare the txid

	recordFirst        // T10: the record says committed before the states have written
	wroteBeforeDurable // T10: wrote is said before the store has synced
	commitAhead        // T10: commit of n+1 does not wait for the record of n
	noReady            // T10: commit does not wait for ready

	noFence            // T11: the store compares nothing
	fenceOutside       // T11: the comparison is before the transaction, not in it
	fenceNoIncarnation // T11: the incarnation is not compared
	joinedEarly        // T11: joined is said before fence and undoing are durable
	noChecksum         // T11: a torn entry of a store's log is taken as it is
	anyOlder           // T11: any older txid will do, also one that the task has not left there

	noUndo       // T12: Storm's opaque rule to the letter
	undoToTxid   // T12: the last write of a group that was undone is said to be the committed txid
	noFix        // T13: ranges are not recorded before commit
	fixChanges   // T13: recorded ranges may be changed
	fixNotKept   // T13: a spout does not keep to recorded ranges (an opaque one)
	readNewest   // T13: a state without previous values is read for a write
	aheadUnfixed // T13: a store may be ahead without recorded ranges
	fixedGoesOn  // T14: a batch with recorded ranges goes on without a split

	dirtyPositions // T14: a spout goes on from where it was
	forgetVanished // T14: a split that is not there loses its position
	positionsFirst // T14: positions are saved when the batch is complete

	noCheck     // T15: a join does not compare what the store has
	txidOnly    // T15: it compares the txid, but not the attempt
	fencedWaits // T15: nobody asks the record about a fence that is in the way of a join
	fencedStops // T15: it is not asked: the state is of another record

	idleSilent   // T16: a spout without input sends no markers
	equalsBefore // T16: a store takes n only after n-1

	readAhead       // T17: a read that feeds a write does not wait for committed n
	liveUncommitted // T17: a read for output shows what is not committed

	moveBusy          // T18: a store is copied while batches are in flight
	moveUnconditional // T18: the plan's entry does not say what was copied
	openAnyCopy       // T18: a task opens whatever copy it finds
	viewBehindPlan    // T18: a round may name lives of an earlier plan

	countDeaths // T19: deaths count as failures

	rules
)

var ruleNames = strings.Fields(`roundOnly readBeforeEpoch failAtOnce roundDuringAppend unknownIsRefused
	noBarrier noView noSender noOrder markerWhereTuples firstMarker dropSilently noBackstop
	staleKeepsCredit keepTotal heldKeepsCredit markerNotInOrder noEpoch noTxid
	recordFirst wroteBeforeDurable commitAhead noReady
	noFence fenceOutside fenceNoIncarnation joinedEarly noChecksum anyOlder
	noUndo undoToTxid noFix fixChanges fixNotKept readNewest aheadUnfixed fixedGoesOn
	dirtyPositions forgetVanished positionsFirst noCheck txidOnly fencedWaits fencedStops idleSilent equalsBefore
	readAhead liveUncommitted moveBusy moveUnconditional openAnyCopy viewBehindPlan countDeaths`)

func (r rule) String() string { return ruleNames[r] }

// A set of rules that are left out.
type set uint64

func without(all ...rule) (s set) {
	for _, r := range all {
		s |= 1 << r
	}
	return s
}

func (s set) has(r rule) bool { return s>>r&1 != 0 }

func (s set) String() string {
	var all []string
	for r := range rules {
		if s.has(r) {
			all = append(all, r.String())
		}
	}
	return strings.Join(all, ",")
}
