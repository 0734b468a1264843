// Package sim runs actors in one goroutine, under a seed, with a made-up clock
// and a bad network. The same seed gives the same run, event by event.
//
//	Send --> OnSend? --> link, one a pair --> mailbox --> Receive, Turn
//	            |        (late, frozen)          ^        (busy for a while)
//	            +--> loose, in any order --------+
//	After --> exactly then ----------------------+
//	Block --> fn, some time later --> result ----+
//
// A [World] takes the place of the real host and runs the very same code: any
// [actor.Behavior]. It is as unfriendly as the contract of package actor
// permits. Messages of one actor to another keep their order, and nothing else
// does: messages of different senders, news of one death at two watchers, orders
// to stop and results of Block overtake each other as the seed likes. Time passes only
// between events and where the code says so with [World.Spend], so an hour of
// made-up time costs what its events cost.
//
// [Seed] puts the engine into a World: a topology, speeds, a network and faults
// are drawn from a seed, and what the simulated sources, queues and bolts have seen is
// compared with what Egret says of each message.
//
//	seed -> scene -> spouts, bolts, supervisor (the code that ships) -> verdicts
//	     |                      | execute, emit, commit                   |
//	     +-> plan --> adversary +--> record <--------- checks ------------+
//
// The scene of a seed is one thing, and the [chaos.Plan] of all that goes wrong in it is
// another: Options.Plan has the scene played with any plan. After 30 s of made-up time
// all is healed, so that each run must come to rest. When a seed fails, faults are left
// out of its plan and made simpler as long as the same invariant is broken:
// Failure.Plan is what is left.
//
// When the last fault is over, everything is healed, and what sources have held back
// until then must come through: so no run passes in which only nothing bad has happened.
// Each checker has such a twin; the table of both is in checkers.go. What scenes are
// to have in them is counted as well, see [Summary].
//
// Code that is not a function of what it is given, but of a clock, a goroutine or the
// order of a map, is found by running each seed twice: all that a call does is a part of
// a hash, and the first event after which it is another is named and put into words.
//
// A World is not safe for concurrent use. It starts no goroutine and reads no
// clock; what runs in it must do neither. Worlds share nothing, so [Seeds] has one on
// each core.
package sim
