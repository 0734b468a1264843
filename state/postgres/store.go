package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// What one statement takes: so many rows, or so many bytes and one row.
const (
	maxRows  = 5_000
	maxBytes = 4 << 20
)

// maxKey is what an index of PostgreSQL takes, with room for the other columns.
const maxKey = 2_600

// A store is a state that a task has open.
type store struct {
	pool *pgxpool.Pool
	wrap func(error) error // says which state it is, and where
	id   int32             // in egret.states
}

// A fence is what the database has of a key group.
type fence struct {
	tuple.Fence
	last tuple.BatchID
}

// lock locks the fences of some groups for a transaction, in their order, so that who
// locks others waits and nobody waits for each other. It waits for who has them, and then
// returns what they have left. A transaction that begins so is durable when its COMMIT is
// answered, also where a role or a database has that off.
func (s *store) lock(ctx context.Context, tx pgx.Tx, groups []int16) (map[int16]fence, error) {
	rows, err := tx.Query(ctx, `SELECT grp, epoch, round, life, txid, txid_epoch, txid_round,
			(SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off')
		FROM egret.fences
		WHERE state = $1 AND grp = ANY($2) ORDER BY grp FOR UPDATE`, s.id, groups)
	if err != nil {
		return nil, err
	}
	all := make(map[int16]fence, len(groups))
	var g int16
	var epoch, round, life, txid, lastEpoch, lastRound int64
	var set *string
	_, err = pgx.ForEachRow(rows, []any{&g, &epoch, &round, &life, &txid, &lastEpoch, &lastRound, &set}, func() error {
		all[g] = fence{
			tuple.Fence{Attempt: tuple.Attempt{Epoch: uint32(epoch), Round: uint32(round)}, Life: tuple.Incarnation(life)},
			tuple.BatchID{Attempt: tuple.Attempt{Epoch: uint32(lastEpoch), Round: uint32(lastRound)}, Tx: tuple.TxID(txid)},
		}
		return nil
	})
	return all, err
}

func list(groups *tuple.Groups) (all []int16) {
	for g := range groups.All() {
		all = append(all, int16(g))
	}
	return all
}

// transact runs f in a transaction, and commits it unless that returns an error. Reading
// what is committed, not a snapshot of when it began, is what lock rests on.
func (s *store) transact(ctx context.Context, f func(pgx.Tx) error) error {
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return s.wrap(err)
	}
	defer tx.Rollback(ctx) // nothing after a commit; if it fails the server does it, when it sees that
	if err := f(tx); err != nil {
		return s.wrap(err)
	}
	if err := tx.Commit(ctx); err != nil {
		return s.wrap(fmt.Errorf("commit, which may have happened or not: %w", err))
	}
	return nil
}

func (s *store) Join(ctx context.Context, j *state.Join) (ahead tuple.Groups, err error) {
	groups := list(&j.Groups)
	if len(groups) == 0 {
		return ahead, nil
	}
	var behind tuple.Groups // that have the batch behind the committed one
	err = s.transact(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO egret.fences (state, grp) SELECT $1, unnest($2::smallint[])
			ON CONFLICT DO NOTHING`, s.id, groups); err != nil {
			return err
		}
		fences, err := s.lock(ctx, tx, groups)
		if err != nil {
			return err
		}
		var undo []int16
		var before []int64 // of undo
		txids, epochs, rounds := make([]int64, len(groups)), make([]int64, len(groups)), make([]int64, len(groups))
		for i, g := range groups {
			f := fences[g]
			yes, err := j.Check(uint16(g), f.Fence, f.last)
			if err != nil {
				return err
			}
			last := j.Leaves(uint16(g), yes)
			txids[i], epochs[i], rounds[i] = int64(last.Tx), int64(last.Epoch), int64(last.Round)
			if yes {
				behind.Add(uint16(g))
				undo, before = append(undo, g), append(before, txids[i])
			}
		}
		if j.Undo && len(undo) > 0 {
			if err := s.undo(ctx, tx, int64(j.Committed+1), undo, before); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `UPDATE egret.fences f SET txid = u.txid, txid_epoch = u.epoch, txid_round = u.round,
				epoch = $6, round = $7, life = $8, committed = $9, undo = $10
			FROM unnest($2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS u (grp, txid, epoch, round) WHERE f.state = $1 AND f.grp = u.grp`,
			s.id, groups, txids, epochs, rounds, int64(j.Fence.Epoch), int64(j.Fence.Round), int64(j.Fence.Life), int64(j.Committed), j.Undo)
		return err
	})
	if err == nil && !j.Undo {
		ahead = behind
	}
	return ahead, err
}

// undo takes back what a batch has written to some groups. before are the last batches
// that they have then.
func (s *store) undo(ctx context.Context, tx pgx.Tx, batch int64, groups []int16, before []int64) error {
	if _, err := tx.Exec(ctx, `DELETE FROM egret.rows WHERE state = $1 AND txid = $2 AND grp = ANY($3) AND prev IS NULL`,
		s.id, batch, groups); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE egret.rows r SET value = prev, prev = NULL, txid = u.txid
		FROM unnest($3::smallint[], $4::bigint[]) AS u (grp, txid) WHERE r.state = $1 AND r.txid = $2 AND r.grp = u.grp`,
		s.id, batch, groups, before)
	return err
}

func (s *store) Get(ctx context.Context, keys []state.Key) ([]state.Row, error) {
	all := make([]state.Row, len(keys))
	for from := 0; from < len(keys); from += maxRows {
		part := keys[from:min(from+maxRows, len(keys))]
		groups, names := make([]int16, len(part)), make([][]byte, len(part))
		for i, k := range part {
			groups[i], names[i] = int16(k.Group), []byte(k.Bytes)
		}
		rows, err := s.pool.Query(ctx, `SELECT u.i, r.txid, r.value, r.prev
			FROM unnest($2::smallint[], $3::bytea[]) WITH ORDINALITY AS u (grp, key, i)
			JOIN egret.rows r ON r.state = $1 AND r.key = u.key AND r.grp = u.grp`, s.id, groups, names)
		if err != nil {
			return nil, s.wrap(err)
		}
		var i, txid int64
		var value, prev []byte
		if _, err = pgx.ForEachRow(rows, []any{&i, &txid, &value, &prev}, func() error {
			all[from+int(i)-1] = state.Row{Tx: tuple.TxID(txid), Value: value, Prev: prev}
			return nil
		}); err != nil {
			return nil, s.wrap(err)
		}
	}
	return all, nil
}

func (s *store) Write(ctx context.Context, w *state.Write) error {
	if len(w.Rows) == 0 {
		return nil
	}
	for i := range w.Rows {
		if n := len(w.Rows[i].Bytes); n > maxKey {
			return s.wrap(&state.UnusableError{Err: fmt.Errorf("a key of %d bytes (%.20q...): PostgreSQL takes at most %d, so shorten it or use a hash of it", n, w.Rows[i].Bytes, maxKey)})
		}
	}
	set := w.Groups()
	groups := list(&set)
	return s.transact(ctx, func(tx pgx.Tx) error {
		fences, err := s.lock(ctx, tx, groups)
		if err != nil {
			return err
		}
		for _, g := range groups {
			if err := w.Check(uint16(g), fences[g].Fence, fences[g].last); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `UPDATE egret.fences SET txid = $3, txid_epoch = $4, txid_round = $5 WHERE state = $1 AND grp = ANY($2)`,
			s.id, groups, int64(w.Tx), int64(w.Fence.Epoch), int64(w.Fence.Round)); err != nil {
			return err
		}
		for rest := w.Rows; len(rest) > 0; {
			n := portion(rest)
			if err := s.put(ctx, tx, w.Tx, rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	})
}

// portion says how many of the rows go into one statement.
func portion(rows []state.Change) (n int) {
	for size := 0; n < len(rows) && n < maxRows; n++ {
		size += len(rows[n].Bytes) + len(rows[n].Value) + len(rows[n].Prev)
		if size > maxBytes && n > 0 {
			break
		}
	}
	return n
}

func (s *store) put(ctx context.Context, tx pgx.Tx, batch tuple.TxID, rows []state.Change) error {
	groups := make([]int16, len(rows))
	keys, values, prevs := make([][]byte, len(rows)), make([][]byte, len(rows)), make([][]byte, len(rows))
	for i := range rows {
		c := &rows[i]
		groups[i], keys[i], values[i], prevs[i] = int16(c.Group), []byte(c.Bytes), c.Value, c.Prev
	}
	_, err := tx.Exec(ctx, `INSERT INTO egret.rows (state, txid, grp, key, value, prev)
		SELECT $1, $2, * FROM unnest($3::smallint[], $4::bytea[], $5::bytea[], $6::bytea[])
		ON CONFLICT (state, key, grp) DO UPDATE SET txid = excluded.txid, value = excluded.value, prev = excluded.prev`,
		s.id, int64(batch), groups, keys, values, prevs)
	return err
}

func (s *store) Scan(ctx context.Context, groups *tuple.Groups, f func(state.Key, state.Row) bool) error {
	rows, err := s.pool.Query(ctx, `SELECT grp, key, txid, value, prev FROM egret.rows WHERE state = $1 AND grp = ANY($2)`, s.id, list(groups))
	if err != nil {
		return s.wrap(err)
	}
	defer rows.Close()
	for rows.Next() {
		var g int16
		var txid int64
		var key, value, prev []byte
		if err := rows.Scan(&g, &key, &txid, &value, &prev); err != nil {
			return s.wrap(err)
		}
		if !f(state.Key{Group: uint16(g), Bytes: string(key)}, state.Row{Tx: tuple.TxID(txid), Value: value, Prev: prev}) {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return s.wrap(err)
	}
	return nil
}

// Settle makes the view show what is committed. One group of those that have joined so is
// enough. It is not worth an fsync: if it is lost the view is a batch behind.
func (s *store) Settle(ctx context.Context, f tuple.Fence, committed tuple.TxID) error {
	return s.transact(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = off"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE egret.fences SET committed = greatest(committed, $5)
			WHERE state = $1 AND epoch = $2 AND round = $3 AND life = $4 AND grp =
				(SELECT min(grp) FROM egret.fences WHERE state = $1 AND epoch = $2 AND round = $3 AND life = $4)`,
			s.id, int64(f.Epoch), int64(f.Round), int64(f.Life), int64(committed))
		return err
	})
}

// Close closes the connections.
func (s *store) Close() error {
	s.pool.Close()
	return nil
}
