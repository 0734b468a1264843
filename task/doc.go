// Package task is the code of the actors that run a topology: spout tasks, bolt
// tasks, and the supervisor that starts them again. It is not for use outside
// Egret.
//
//	            parcels -->            parcels -->
//	spout task ------------ bolt task ------------ bolt task
//	    |      <-- limits       |      <-- limits      |
//	    |                       |                      |
//	 ledger  <----- reports ----+-------- reports -----+
//
// Tuples travel in parcels. A task that has worked on a parcel raises the limit
// of its sender and reports to the tasks whose messages the parcel came of; a
// spout task keeps the ledger of its own messages, so its verdicts are not sent
// at all.
//
// Nothing in here starts a goroutine, reads a clock or takes a lock: a host does
// that (actor/host on a machine, chaos/sim in a simulation).
package task
