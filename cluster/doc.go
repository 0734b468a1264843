// Package cluster decides what runs where. It is not for use outside Egret.
//
//	membership --Members--+
//	                      v
//	node reports ---> Coordinator ---entries--> log --> State.Apply --> every node
//	                      ^                                   |
//	                      +-----------------------------------+
//
// [State] is what all nodes agree on: it changes only by the entries of one log,
// each of which says what it was made for, so that one that comes too late changes
// nothing. [Place] says which task belongs on which node. A [Coordinator] is what the
// node that leads the log thinks with. Nothing here has a clock, a socket or a file:
// package cluster/gossip finds the members, cluster/consensus keeps the log, and
// package node acts on what is decided.
package cluster
