// Package fleet does harm to a cluster of real processes: it starts nodes, runs a
// topology of numbers on them, kills, freezes and restarts nodes as a plan says, and
// tells what became of each number. Like the whole of chaos/live it is not for use
// outside Egret; its face is the command "chaos live --nodes".
//
//	Recorder <--- which number was executed, by whom --- sink tasks, in the nodes
//	   ^                                                  (wait for its answer, then ack)
//	   |
//	Run ---> Fleet: kill -9, SIGSTOP, SIGCONT, interrupt, start
//	   \---> control service of any node: submit, rebalance, drain, who leads, what is where
//
// The record is kept in the process that started the nodes and by nobody else, so what it
// knows does not depend on what a node remembers. A number counts as executed when the
// Recorder has it; a sink acks only then.
package fleet
