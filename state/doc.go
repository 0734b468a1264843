// Package state is the contract of the stores that keep what an exactly-once topology
// counts, and the words they share. The stores are state/memory, state/pebble and
// state/postgres.
//
// A store holds rows: a key, the value that it has, the value that it had before, and
// the batch that changed it. What the rows mean is the affair of package trident. A row
// belongs to the key group of its key, and a group to one task at a time, which joins it
// with a fence before it writes. The store refuses everybody else, in the transaction
// that writes: a writer that was replaced, or thawed after a long stop, changes nothing
// (T11 in docs/trident-rules.md).
package state
