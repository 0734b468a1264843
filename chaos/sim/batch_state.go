package sim

import (
	gocontext "context"
	"errors"
	"slices"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/mutation"
	batchstate "github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// A batchState is a bolt.Stateful: a list of entries for each key, in a simState.
type batchState struct {
	batchBolt
	store  *simState
	fence  tuple.Fence
	last   []tuple.BatchID // by group: what it has left there, or found
	groups tuple.Groups
	come   map[tuple.TxID]*batchChanges
	wrote  map[tuple.TxID]*batchChanges
}

// batchChanges are the entries that have come in a batch, by key in their order, and how
// many there are of the key behind it.
type batchChanges struct {
	keys    []string
	entries map[string][]batchEntry
	sums    map[string]uint64
}

func (b *batchState) plain() bool { return b.run.s.parts[b.part].plain }

func (b *batchState) Prepare(ctx gocontext.Context, t *bolt.Task) error {
	for g := range tuple.KeyGroups {
		if tuple.Owner(g, t.Parallel) == t.Index {
			b.groups.Add(uint16(g))
		}
	}
	return b.batchBolt.Prepare(ctx, t)
}

// Round implements bolt.Batched.
func (b *batchState) Round() {
	b.come, b.wrote = map[tuple.TxID]*batchChanges{}, map[tuple.TxID]*batchChanges{}
	b.batchBolt.Round()
}

// Execute implements bolt.Bolt.
func (b *batchState) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	key, entries, err := b.begin(in)
	if err != nil {
		return err
	}
	c := b.come[b.at]
	if c == nil {
		c = &batchChanges{entries: map[string][]batchEntry{}, sums: map[string]uint64{}}
		b.come[b.at] = c
	}
	if c.entries[key] == nil {
		c.keys = append(c.keys, key)
	}
	c.entries[key] = append(c.entries[key], entries...)
	return nil
}

// Join implements bolt.Stateful.
func (b *batchState) Join(ctx gocontext.Context, j *bolt.Join) error {
	if err := b.run.hit("join"); err != nil {
		return err
	}
	b.fence = j.Fence
	ahead, err := b.store.Join(ctx, &batchstate.Join{Fence: j.Fence, Groups: b.groups, Committed: j.Committed, Last: j.Last, Undo: !b.plain(), Fixed: b.plain() && j.Fixed})
	if err != nil {
		if fenced, is := errors.AsType[*batchstate.FencedError](err); is {
			return &bolt.FencedError{By: fenced.By, Err: err}
		}
		return final(err)
	}
	b.last = make([]tuple.BatchID, tuple.KeyGroups)
	copy(b.last, j.Last)
	for g := range ahead.All() {
		b.last[g] = tuple.BatchID{Attempt: j.Fence.Attempt, Tx: j.Committed + 1}
	}
	return b.run.hit("joined")
}

// final has the run end when a store has lost something, as states of package trident do.
func final(err error) error {
	if errors.Is(err, batchstate.ErrLost) {
		return bolt.Reject(err)
	}
	return err
}

// Commit implements bolt.Stateful.
func (b *batchState) Commit(ctx gocontext.Context, id tuple.BatchID) (w bolt.Written, err error) {
	if err := b.run.hit("write"); err != nil {
		return w, err
	}
	c := b.come[id.Tx]
	if c == nil {
		return w, nil // a batch without tuples does not touch the store
	}
	delete(b.come, id.Tx)
	c.keys = slices.Clone(c.keys)
	keys := make([]batchstate.Key, len(c.keys))
	for i, key := range c.keys {
		keys[i] = stateKey(key)
	}
	rows, err := b.store.Get(ctx, keys)
	if err != nil {
		return w, err
	}
	change := &batchstate.Write{Fence: b.fence, Tx: id.Tx, Last: b.last, Again: b.plain()}
	for i, key := range c.keys {
		w.Groups.Add(keys[i].Group)
		w.Keys++
		if b.plain() && rows[i].Tx == id.Tx { // it has that (T13)
			b.run.book.saw("batch found again")
			c.sums[key] = uint64(len(rows[i].Value) / 16)
			continue
		}
		base := rows[i].Value
		value := slices.Clone(base)
		for _, e := range c.entries[key] {
			if mutation.Is(mutation.UpdateFromRow) {
				value = slices.Clone(base)
			}
			value = appendEntry(value, e)
		}
		c.sums[key] = uint64(len(value) / 16)
		row := batchstate.Row{Tx: id.Tx, Value: value}
		if !b.plain() {
			row.Prev = base
		}
		change.Rows = append(change.Rows, batchstate.Change{Key: keys[i], Row: row})
	}
	if len(change.Rows) > 0 {
		if err := b.store.Write(ctx, change); err != nil {
			if errors.Is(err, batchstate.ErrFenced) {
				err = &bolt.FencedError{Err: err}
			}
			return w, final(err)
		}
		for _, row := range change.Rows {
			b.last[row.Group] = id
		}
	}
	b.wrote[id.Tx] = c
	return w, b.run.hit("written")
}

// Complete implements bolt.Batched.
func (b *batchState) Complete(tx tuple.TxID, out *bolt.Collector) error {
	if err := b.completes(tx); err != nil {
		return err
	}
	c := b.wrote[tx]
	if c == nil {
		return nil
	}
	delete(b.wrote, tx)
	for _, key := range c.keys {
		var all []byte
		for _, e := range c.entries[key] {
			all = appendEntry(all, batchEntry{b.run.s.next(b.part, e.id, 0), c.sums[key]})
		}
		out.Emit(key, all)
	}
	return nil
}
