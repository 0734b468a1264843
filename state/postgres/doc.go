// Package postgres keeps states in a PostgreSQL database, of version 12 or later, by
// github.com/jackc/pgx. All processes can reach them, so tasks may move, and others can
// read what a topology counts, with SQL.
//
// What Egret needs is in the schema egret, which the first Open makes if it is not there:
// for that the user needs the right to create in the database, later only to use what is
// there.
//
//	egret.version    of this layout: 2
//	egret.states     id, topology, name; not to be deleted while there are fences
//	egret.fences     state, grp, epoch, round, life: who may write to a key group;
//	                 txid, txid_epoch, txid_round: the last batch that has, and its attempt;
//	                 committed: what its task has last said of all batches; undo: whether
//	                 its rows have prev
//	egret.rows       state, key, grp, txid, value, prev: NULL is absent
//	egret.progress   a view: topology, committed
//	egret.committed  a view: topology, state, key, txid, value
//
// egret.committed is for others to read: it has the values as they are after the last
// batch that the database knows to be committed, of all states of a topology the same.
// It knows that of batch n when batch n+1 has written, when a task has joined, or by
// Settle, so it may be a batch behind, and never ahead: what a crash takes back nobody has
// seen there. States without undo show their last value, which the batch gives again.
// The other tables are no promise.
//
// Keys and values of trident are fields, each with its kind, as docs/trident-rules.md says.
// egret.fields has them as an array of text, in the order of the Go type: times as in
// 2026-11-30T07:00:00.000000000Z, durations in nanoseconds, bytes in hex, NULL for nil; text
// that is not UTF-8 is an error. egret.text_key and egret.int_key make a field of a key, of
// a Go string and a signed whole number, so that a row is found by its index.
//
//	SELECT 'whale' AS word, (egret.fields(value))[1]::bigint AS n FROM egret.committed
//	WHERE topology = 'wordcount' AND state = 'counts' AND key = egret.text_key('whale')
//
//	SELECT (egret.fields(key))[1] AS airport, (egret.fields(key))[2]::bigint AS gate, (egret.fields(value))[1]::bigint AS n FROM egret.committed
//	WHERE topology = 'wordcount' AND state = 'places' AND key = egret.text_key('VIE') || egret.int_key(-12)
//
// A Write is one transaction, which begins by locking the fences of its groups, in their
// order, and comparing them. A connection that dies, or does nothing for ten seconds in a
// transaction, is rolled back by the server, so a process that was stopped does not hold
// up who takes its place for long. A COMMIT that is not answered is not said again.
//
// To start a topology anew, delete its states while it does not run:
//
//	DELETE FROM egret.rows WHERE state IN (SELECT id FROM egret.states WHERE topology = 'wordcount');
//	DELETE FROM egret.fences WHERE state IN (SELECT id FROM egret.states WHERE topology = 'wordcount');
package postgres
