// Package model is an executable model of Trident's rules, T1 to T19: one seed is
// one run of a small batch group under faults, and each rule can be left out, to
// see what goes wrong without it. It is all tests. It is not for use outside Egret.
//
//	record <--entries-- coordinators --round, begin, commit--> all tasks
//	                         ^                                     |
//	                         +----- joined, ready, wrote, ... -----+
//
//	spouts ==tuples, markers==> bolts ==> [readers] ==> state A ==> [state B]
//
// The world is one goroutine and one generator. A step is one thing that happens
// somewhere: a message is delivered, a store does a write, an entry is applied,
// a task dies. Links are FIFO between two incarnations, control messages come in
// any order, late, twice or never. Who is replaced may go on as a zombie.
//
// docs/trident-rules.md says what the rules are, and has the figures.
//
//	go test ./trident/model -run TestStory -seed 17 -off noBarrier -v
//
// tells the story of a seed.
package model
