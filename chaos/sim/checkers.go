package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/egretstream/egret/chaos"
)

// Where each checker of package chaos is asked, for its safety and for its twin, the
// good thing that must come about. What they claim is there: see [chaos.Checkers]. A
// run counts both, so that one which is never asked is found out.
//
//	checker       safety                                twin
//	acks          verdict, Ack                          atLeastOnce, queuesAtEnd
//	one end       attempted, ended                      withoutEnd
//	replays       attempted: each has a cause           treesAtEnd: no cause is left
//	losses        verdict: mayBeLost                    notLost: it was no timeout
//	timeouts      timedOut: excused, not too early      timedOut: not too late
//	failures      refused                               twinsAtEnd
//	executions    atLeastOnce, atMostOnce, queueRoot    the same
//	pending       room, step, Next of a queue           room, spoutsAtEnd
//	credit        parcel, waits, limit, mayGoOn         creditAtEnd
//	routing       begin, checkRoute, tracked            arrivals
//	keys          checkKey                              arrivals
//	order         checkOrder                            ordersAtEnd
//	positions     passed, committed, opened             positionsAtEnd
//	sources       Next, Close, event                    spoutsAtEnd
//	answers       under, answer, checkWhy               queuesAtEnd
//	dead letters  event, mourn, letterDead              twinsAtEnd, lettersOf
//	finish        begin, Finish, mayEnd                 finishes
//	close         closes                                closes, queuesAtEnd
//	retained      letGo, still, event                   twinsAtEnd
//	hangs         verdict, hungDead, suspected          hangsAtEnd
//	zombies       checkLate, outs.parcel                twinsAtEnd
//	panics        event                                 deathsAtEnd
//	drained       reads, left                           drainedAtEnd
//	store         Save, Bury, atEnd                     atEnd
//	laws          laws                                  countsAtEnd
//	rest          play, wait, moves                     progressAtEnd
//	end           atEnd                                 atEnd
//	repeatable    play                                  differs
//
// Acked is what the record says, and never a counter of Egret's; only for the laws they
// are compared.

// A checked is how often a checker was asked: for the safety, and for the twin.
type checked struct{ safety, twin int }

// check books that a checker is asked whether nothing bad has happened.
func (rec *record) check(c chaos.Checker) { rec.tally(c).safety++ }

// twin books that a checker is asked whether the good thing has.
func (rec *record) twin(c chaos.Checker) { rec.tally(c).twin++ }

func (rec *record) tally(c chaos.Checker) *checked {
	n := rec.checks[c]
	if n == nil {
		n = &checked{}
		rec.checks[c] = n
	}
	return n
}

// violate keeps the first violation.
func (rec *record) violate(c chaos.Checker, format string, args ...any) {
	if rec.bad == nil {
		rec.bad = &Violation{c, fmt.Sprintf(format, args...), rec.w.Now()}
	}
}

// saw books that there was something in the run that seeds are to have.
func (rec *record) saw(feature string) { rec.features[feature] = true }

// counted returns how often each checker was asked, for safety and for the twins.
func (rec *record) counted() (safety, twins map[chaos.Checker]int) {
	safety, twins = map[chaos.Checker]int{}, map[chaos.Checker]int{}
	for c, n := range rec.checks {
		if n.safety > 0 {
			safety[c] = n.safety
		}
		if n.twin > 0 {
			twins[c] = n.twin
		}
	}
	return safety, twins
}

// Evaluations is how often checkers were asked in all.
func (s *Summary) Evaluations() (sum int) {
	for _, n := range []map[chaos.Checker]int{s.Checks, s.Twins} {
		for _, k := range n {
			sum += k
		}
	}
	return sum
}

func addTo[K comparable](all, n map[K]int) {
	for k := range n {
		all[k] += n[k]
	}
}

// FeatureNames returns what there was in the scenes, in order.
func (s *Summary) FeatureNames() []string { return slices.Sorted(maps.Keys(s.Features)) }
