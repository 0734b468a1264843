// Package pebble keeps states on a local disk, each in a database of its own in
// PATH/TOPOLOGY/STATE, by github.com/cockroachdb/pebble. All tasks of a process share it,
// and no other process can open it meanwhile. A state takes up to 130 MB of memory
// besides what it has under way.
//
// A Write is one batch of the log and one fsync. What was acknowledged is there after the
// process was killed and after the power went, as far as the disk keeps what it has
// synced. Damage is an error when it is read, or state.ErrLost when a task joins. But
// pebble takes a manifest that is damaged for one whose end was not written, and then rows
// may be missing that nobody misses: the disk, or a file system with checksums, has to see
// to that.
//
// To start a state anew, delete its directory while nothing has it open.
//
// The keys of the database, numbers of fixed size being big-endian:
//
//	m                  the version of this layout: 2, one byte
//	g GROUP            of a key group: fence (epoch and round 4 bytes each, life 8) and the
//	                   stamp of the last write (epoch and round 4 bytes each, batch 8)
//	w GROUP            what that batch has written: its number, 8 bytes, then the keys, each
//	                   behind its length, a uvarint. Not there after an undo
//	r GROUP KEY        a row: its batch, a uvarint; a byte, 1 if there is a value plus 2 if
//	                   there is one before; if there are both the length of the first, a
//	                   uvarint; the value; the one before
//
// A GROUP has 2 bytes. A batch replaces g and w of each group that it writes to, so an
// undo reads what it has to take back and nothing else. pebble has checksums of all.
package pebble
