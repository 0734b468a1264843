// Package node is the code of the actors that make one cluster of many processes. It is
// not for use outside Egret.
//
//	tasks --Far--> Link ==Conn==> network ==Conn==> Link --> tasks
//	agent --Note-->  |                                |  --Note--> agent
//	                 +--- LinkUp, LinkDown, LinkReset --- each to its own agent
//
// There is a [Link] for each other node. It owns one end of what is between two
// processes, for which it decides nothing itself: see broker.Link.
package node
