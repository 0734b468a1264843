// Package process runs one node of a cluster: it opens its data directory and its
// port, finds the other nodes, keeps the log, and hosts the agent and its links. It is
// not for use outside Egret.
//
//	                 +----------- Process -----------+
//	gossip --Members-->                              |
//	log ----Logged--->   agent --- links --- Conns --|-- other nodes
//	commands --Ask--->     |                         |
//	                 |  supervisors of runs          |
//	                 +-------------------------------+
package process
