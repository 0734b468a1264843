package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// A table is a database that is open, for all in this process who use it.
type table struct {
	at    place
	name  state.Name
	log   *slog.Logger
	db    *pebble.DB
	lock  *pebble.Lock
	users int // guarded by opened

	groups [tuple.KeyGroups]group
	// broken is what has gone wrong so that nobody knows what is in memory and what on disk.
	broken atomic.Pointer[error]
}

// A group is what the database has of it under g. It is locked from when it is compared
// until what follows from that is durable.
type group struct {
	mu    sync.Mutex // of one before that of a greater one
	fence tuple.Fence
	last  tuple.BatchID
}

func (t *table) Join(_ context.Context, j *state.Join) (ahead tuple.Groups, err error) {
	defer t.free(&j.Groups)
	t.hold(&j.Groups)
	b := t.db.NewBatch()
	defer b.Close()
	var behind tuple.Groups // that have the batch behind the committed one
	for g := range j.Groups.All() {
		yes, err := j.Check(g, t.groups[g].fence, t.groups[g].last)
		if err != nil {
			return ahead, t.fault(err)
		}
		last := j.Leaves(g, yes)
		if yes {
			behind.Add(g)
			if j.Undo {
				err = t.undo(b, g, t.groups[g].last.Tx, last.Tx)
			}
		}
		if err = errors.Join(err, b.Set(appendKey(nil, groupKey, g, ""), appendGroup(nil, j.Fence, last), nil)); err != nil {
			return ahead, t.fault(err)
		}
	}
	if err := t.commit(b); err != nil {
		return ahead, err
	}
	for g := range j.Groups.All() {
		t.groups[g].fence, t.groups[g].last = j.Fence, j.Leaves(g, behind.Has(g))
	}
	if !j.Undo {
		ahead = behind
	}
	return ahead, nil
}

// undo puts into b what takes a group back from batch tx to an earlier one.
func (t *table) undo(b *pebble.Batch, g uint16, tx, before tuple.TxID) error {
	list := appendKey(nil, writtenKey, g, "")
	written, closer, err := t.db.Get(list)
	if err != nil {
		return fmt.Errorf("what batch %d has written to key group %d: %w", tx, g, err)
	}
	defer closer.Close()
	of, keys, err := readWritten(written)
	if err == nil && of != tx {
		err = errLayout
	}
	if err != nil {
		return fmt.Errorf("what batch %d has written to key group %d: %w", tx, g, err)
	}
	for _, key := range keys {
		k := appendKey(nil, rowKey, g, string(key))
		r, err := t.row(k)
		if err != nil {
			return err
		}
		if r.Prev == nil {
			err = b.Delete(k, nil)
		} else {
			err = b.Set(k, appendRow(nil, before, &state.Row{Value: r.Prev}), nil)
		}
		if err != nil {
			return err
		}
	}
	return b.Delete(list, nil)
}

// row returns the row under a key of the database; the zero row if there is none.
func (t *table) row(k []byte) (state.Row, error) {
	b, closer, err := t.db.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return state.Row{}, nil
	}
	if err != nil {
		return state.Row{}, err
	}
	r, err := readRow(bytes.Clone(b))
	if err != nil {
		err = fmt.Errorf("row %q: %w", k[keyHead:], err)
	}
	return r, errors.Join(err, closer.Close())
}

func (t *table) Get(_ context.Context, keys []state.Key) ([]state.Row, error) {
	if err := t.broken.Load(); err != nil {
		return nil, *err
	}
	rows := make([]state.Row, len(keys))
	var k []byte
	for i, key := range keys {
		k = appendKey(k[:0], rowKey, key.Group, key.Bytes)
		r, err := t.row(k)
		if err != nil {
			return nil, t.fault(err)
		}
		rows[i] = r
	}
	return rows, nil
}

func (t *table) Write(_ context.Context, w *state.Write) error {
	if len(w.Rows) == 0 {
		return nil
	}
	b := t.db.NewBatch()
	defer b.Close()
	var k, v []byte
	var written [tuple.KeyGroups][]byte
	for i := range w.Rows {
		c := &w.Rows[i]
		k, v = appendKey(k[:0], rowKey, c.Group, c.Bytes), appendRow(v[:0], w.Tx, &c.Row)
		if err := b.Set(k, v, nil); err != nil {
			return t.fault(err)
		}
		if written[c.Group] == nil {
			written[c.Group] = appendWritten(nil, w.Tx)
		}
		written[c.Group] = appendWrittenKey(written[c.Group], c.Bytes)
	}

	groups := w.Groups()
	defer t.free(&groups)
	t.hold(&groups)
	for g := range groups.All() {
		if err := w.Check(g, t.groups[g].fence, t.groups[g].last); err != nil {
			return t.fault(err)
		}
		list := appendKey(nil, writtenKey, g, "")
		if t.groups[g].last.Tx == w.Tx { // Again
			was, closer, err := t.db.Get(list)
			if err != nil {
				return t.fault(err)
			}
			written[g] = append(bytes.Clone(was), written[g][len(appendWritten(nil, 0)):]...)
			closer.Close()
		}
		if err := errors.Join(b.Set(list, written[g], nil),
			b.Set(appendKey(nil, groupKey, g, ""), appendGroup(nil, w.Fence, w.Stamp()), nil)); err != nil {
			return t.fault(err)
		}
	}
	if err := t.commit(b); err != nil {
		return err
	}
	for g := range groups.All() {
		t.groups[g].last = w.Stamp()
	}
	return nil
}

// commit makes a batch durable. After an error the table is broken.
func (t *table) commit(b *pebble.Batch) error {
	if err := t.broken.Load(); err != nil {
		return *err
	}
	if err := t.room(b.Len()); err != nil {
		return err
	}
	if err := t.db.Apply(b, pebble.Sync); err != nil {
		t.ends(err)
	}
	if err := t.broken.Load(); err != nil { // Apply says so to Fatalf only
		return *err
	}
	return nil
}

// minFree is what has to be free of a disk besides what is written to it: pebble ends the
// process if it cannot change from one log to the next.
const minFree = 64 << 20

// room says if there is none for n bytes more, which are written at least twice.
func (t *table) room(n int) error {
	usage, err := t.at.fs.GetDiskUsage(t.at.dir)
	if err != nil { // there are disks that do not tell
		return nil
	}
	if want := minFree + 3*uint64(n); usage.AvailBytes < want {
		return t.fault(fmt.Errorf("the disk has %d bytes left, and %d are needed: make room on it", usage.AvailBytes, want))
	}
	return nil
}

func (t *table) Scan(ctx context.Context, groups *tuple.Groups, f func(state.Key, state.Row) bool) (err error) {
	if err := t.broken.Load(); err != nil {
		return *err
	}
	all, err := t.db.NewIterWithContext(ctx, nil)
	if err != nil {
		return t.fault(err)
	}
	defer func() {
		if e := all.Close(); e != nil && err == nil {
			err = t.fault(e)
		}
	}()
	for g := range groups.All() {
		all.SetBounds(appendKey(nil, rowKey, g, ""), appendKey(nil, rowKey, g+1, ""))
		for ok := all.First(); ok; ok = all.Next() {
			if err := ctx.Err(); err != nil {
				return err
			}
			key := string(all.Key()[keyHead:])
			r, err := readRow(bytes.Clone(all.Value()))
			if err != nil {
				return t.fault(fmt.Errorf("row %q: %w", key, err))
			}
			if !f(state.Key{Group: g, Bytes: key}, r) {
				return nil
			}
		}
		if err := all.Error(); err != nil {
			return t.fault(err)
		}
	}
	return nil
}

// fault says where an error is from and, if files are damaged, what to do.
func (t *table) fault(err error) error {
	if errors.Is(err, errLayout) || pebble.IsCorruptionError(err) || errors.Is(err, pebble.ErrNotFound) {
		return &state.UnusableError{Err: fmt.Errorf("state %v in %s is damaged (put back a copy of the directory, or delete it and start the topology anew): %w", t.name, t.at.dir, err)}
	}
	return state.Advise(fmt.Errorf("state %v in %s: %w", t.name, t.at.dir, err), "delete that directory")
}

// ends marks the table as broken. What it has acknowledged is on disk; who opens it anew,
// when all have closed it, finds that.
func (t *table) ends(cause error) {
	err := t.fault(fmt.Errorf("writing has failed, so it has to be opened anew: %w", cause))
	t.broken.CompareAndSwap(nil, &err)
}

// Infof, Errorf and Fatalf are what pebble logs by.
func (t *table) Infof(string, ...any) {}

func (t *table) Errorf(format string, args ...any) {
	if t.log != nil {
		t.log.Error("state on disk", "state", t.name.String(), "path", t.at.dir, "err", fmt.Sprintf(format, args...))
	}
}

// fatalCommit is how Fatalf is called by Apply, in our own goroutine, when the log cannot
// be written. It may return then.
const fatalCommit = "pebble: fatal commit error"

// Fatalf is called when pebble does not know how to go on. What it would do next could
// damage what is on disk, so the process ends, as with pebble everywhere.
func (t *table) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	err := fmt.Errorf(format, args...)
	if !strings.HasPrefix(format, fatalCommit) {
		panic(t.fault(fmt.Errorf("the process ends, since what is on disk would be damaged otherwise: %w", err)))
	}
	t.ends(err)
}

func (t *table) hold(groups *tuple.Groups) {
	for n := range groups.All() {
		t.groups[n].mu.Lock()
	}
}

func (t *table) free(groups *tuple.Groups) {
	for n := range groups.All() {
		t.groups[n].mu.Unlock()
	}
}
