package chaos

import (
	"fmt"
	"strings"
)

// A Checker is something that must hold, and its twin: that the good thing happens
// at all, so that an engine which does nothing does not pass.
type Checker string

const (
	Acks        Checker = "acks"
	OneEnd      Checker = "one end"
	Replays     Checker = "replays"
	Losses      Checker = "losses"
	Timeouts    Checker = "timeouts"
	Failures    Checker = "failures"
	Executions  Checker = "executions"
	Pending     Checker = "pending"
	Credit      Checker = "credit"
	Routing     Checker = "routing"
	Keys        Checker = "keys"
	Order       Checker = "order"
	Positions   Checker = "positions"
	Sources     Checker = "sources"
	Answers     Checker = "answers"
	DeadLetters Checker = "dead letters"
	Finishes    Checker = "finish"
	Closes      Checker = "close"
	Retained    Checker = "retained"
	Hangs       Checker = "hangs"
	Zombies     Checker = "zombies"
	Panics      Checker = "panics"
	Drained     Checker = "drained"
	Stored      Checker = "store"
	Laws        Checker = "laws"
	Rest        Checker = "rest"
	Ending      Checker = "end"
	Repeatable  Checker = "repeatable"
	Own         Checker = "own"

	// Of a cluster.

	Plans       Checker = "plans"
	Lives       Checker = "lives"
	Links       Checker = "links"
	Quiet       Checker = "quiet"
	Convergence Checker = "convergence"

	// Of exactly-once topologies.

	States  Checker = "states"
	Record  Checker = "record"
	Rounds  Checker = "rounds"
	Markers Checker = "markers"
	Reads   Checker = "reads"
)

// Cluster reports whether a checker is asked about clusters alone.
func (c Checker) Cluster() bool {
	switch c {
	case Plans, Lives, Links, Quiet, Convergence:
		return true
	}
	return false
}

// claims are what a checker stands for.
type claims struct {
	name        Checker
	claim, twin string
}

// Batches reports whether a checker is asked about exactly-once topologies alone.
func (c Checker) Batches() bool {
	switch c {
	case States, Record, Rounds, Markers, Reads:
		return true
	}
	return false
}

var checkers = []claims{
	{Acks, "no message is acked before all that comes of it was executed", "what was executed is acked in the end"},
	{OneEnd, "an attempt has one end: acked, failed, lost or timed out", "and it has one when the run is at rest"},
	{Replays, "an attempt follows a failure, a loss, a timeout or a death, and nothing else", "and each of them is followed by an attempt or a dead letter"},
	{Losses, "what is lost was sent to a life that is over", "what was sent to a dead life is known to be lost"},
	{Timeouts, "nothing times out while it is queued, executed or held", "what nobody will speak of times out"},
	{Failures, "what has failed was refused by somebody", "what was refused has failed"},
	{Executions, "a tuple is executed as often as its message was tried, and no more", "all that comes of a message is executed"},
	{Pending, "no more than MaxPending and one turn is open", "and with room there is more"},
	{Credit, "nobody sends more than it may, and no queue holds more than its limits", "and who waits is let go on"},
	{Routing, "a tuple comes where its grouping sends it, and from where it was emitted", "and everywhere it should"},
	{Keys, "a key goes to one task, which is the one that its hash says", "and it comes there"},
	{Order, "one task's tuples on a stream reach another in the order of emission", "and all do"},
	{Positions, "no position passes a message that is not done", "and at rest it is at the end"},
	{Sources, "a source is used as its contract says", "and read to its end"},
	{Answers, "a queue's message has at most one answer, and a true one", "and it has one when the run is at rest"},
	{DeadLetters, "only what was refused too often, rejected or hung is dead", "and whoever listens hears of it"},
	{Finishes, "Finish follows the last tuple, once", "and comes"},
	{Closes, "Close comes once, after everything else", "and to each life that was prepared"},
	{Retained, "a retained tuple is open until it is let go of", "and is done when it is"},
	{Hangs, "who dies of a hang has hung", "and what hangs is found"},
	{Zombies, "nothing of what is said after the end of a life is heard", "and what was said before is"},
	{Panics, "no code of the engine panics, and nobody dies without cause", "and the dead live again"},
	{Drained, "a drained run reads no more and leaves nothing half done", "and it ends"},
	{Stored, "what was stored is there, and no older life writes over it", "and everything is stored at the end"},
	{Laws, "the engine's books balance", "and are empty at rest"},
	{Rest, "when everything is healed, nothing is left: no message, timer, turn or actor", "and the run has come to its end"},
	{Ending, "a run ends without an error that nobody has caused", "and it ends"},
	{Repeatable, "the same seed gives the same run, event by event", "and another seed another one"},
	{Plans, "all nodes that act in an epoch have the same plan", "and several do"},
	{Lives, "a life of a task is on one node, and in one epoch all of them are on the same", "and they begin"},
	{Links, "a parcel between nodes arrives once and in order", "and arrives, if nothing goes wrong"},
	{Quiet, "without faults nothing is lost, replayed or started again, whatever is moved", "and what is moved goes on"},
	{Convergence, "all nodes have the same members, state and plan in the end, and each task has one life where the plan says", "and it comes to that in time"},
	{States, "when a batch is committed each state has all of it, durably and once, and nothing of another one that is not", "and in the end all messages"},
	{Record, "batches are committed one after the other, by the last coordinator", "and are committed"},
	{Rounds, "a round begins where the record is, and a batch when all have joined its round", "and rounds begin"},
	{Markers, "on a link markers follow each other, behind the tuples of their batch, and a task sends its own when all of its senders have", "and sends them"},
	{Reads, "what is read of a state for a batch is what the batch before has left there", "and is read"},
	{Own, "what the user's own check says", "and it was asked"},
}

// Checkers returns all checkers, in an order for people.
func Checkers() []Checker {
	var all []Checker
	for _, c := range checkers {
		all = append(all, c.name)
	}
	return all
}

// Claim says in a line what must hold.
func (c Checker) Claim() string { return c.find().claim }

// Twin says in a line what must come about.
func (c Checker) Twin() string { return c.find().twin }

func (c Checker) find() claims {
	for _, known := range checkers {
		if known.name == c {
			return known
		}
	}
	return claims{}
}

// ParseCheckers reads the names of checkers, with commas between them.
func ParseCheckers(text string) (all []Checker, err error) {
	for s := range strings.SplitSeq(text, ",") {
		c := Checker(strings.TrimSpace(s))
		if c.find().name == "" {
			return nil, fmt.Errorf("%q is no checker: the checkers are %s", c, list(Checkers()))
		}
		all = append(all, c)
	}
	return all, nil
}
