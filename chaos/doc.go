// Package chaos has the words for harm: faults, the plans that they make up, and
// the checkers that say what must hold all the same. Each has a text of one line,
// which it parses and prints.
//
//	at 1.2s kill count/2; from 2s to 3s delay report 0..400ms
//
// A plan is a list of faults with semicolons or newlines between them; # begins a
// comment that goes on to the end of the line. A fault says when, what, and to whom:
//
//	at 3s                     once
//	every 200ms [from] [to]   again and again, first when it may, and then so long after
//	from 2s to 3s             all that time; without "to" until everything is healed
//	                          (no word of time) from the beginning until then
//	at 1s panic a in tick     the next call of that kind: also of hang and break
//	at message 120            by a count of what was sent: simulated runs only, which
//	                          also know "event 120" and "end 2"
//
//	count/2    a task         count/*    all tasks of a component
//	count      one of them    * and */*  the same of the whole topology
//
// What can be done is in [Kinds]. The same words are for simulated and for live runs;
// some only for one of them, see [Plan.Live].
//
// Package chaos/sim does it in a simulation, package chaos/live to a running topology.
package chaos
