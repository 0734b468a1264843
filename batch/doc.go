// Package batch is who decides about the batches of an exactly-once topology: the
// coordinator, and the record of what is committed. It is a machine: time is an
// argument, effects are return values.
//
//	           Begin            Emitted              Ready            Commit      Wrote
//	coordinator --> spout tasks --> coordinator, and --> coordinator --> stateful --> coordinator
//	                     |                            ^                   tasks           |
//	                     +--tuples, marker--> tasks --+                                Entry
//	                                                                                      v
//	                                                                                   record
//
// A batch is complete for a task when the marker of it has come from every sender.
// When all tasks that are not behind a state have said so, and all batches before are
// committed, the stateful tasks write; when they have, the record says so, and then the
// batch is committed. Whatever goes wrong begins a new round at the first batch that is
// not committed. The rules are T1 to T19 in docs/trident-rules.md.
//
// It is not for use outside Egret.
package batch
