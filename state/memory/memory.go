// Package memory keeps states in memory. They live as long as the Backend that made
// them: a task that dies finds its state again, a process that dies does not. Then the
// run stops with state.ErrLost, unless it begins anew.
//
// Each key group has a lock of its own, so tasks do not wait for each other. A row costs
// about 150 bytes besides its key and its values.
package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// A Backend keeps states in memory. Its methods may be called by several goroutines.
type Backend struct {
	mu     sync.Mutex
	states map[state.Name]*table
}

// New returns a place without states.
func New() *Backend { return &Backend{states: map[state.Name]*table{}} }

// Open returns a state, which is there from the first Open on, whether it is closed or not.
func (b *Backend) Open(_ context.Context, name state.Name) (state.Store, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.states[name] == nil {
		b.states[name] = &table{name: name}
	}
	return b.states[name], nil
}

// Find returns a state that somebody has opened before.
func (b *Backend) Find(_ context.Context, name state.Name) (state.Store, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.states[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("state %v in memory: %w", name, state.ErrNone)
}

func (b *Backend) String() string { return "memory" }

// Local says that only one process has the states.
func (b *Backend) Local() {}

// A table is one state: a state.Store for all who have it open.
type table struct {
	name   state.Name
	groups [tuple.KeyGroups]group
}

type group struct {
	mu    sync.Mutex // of one before that of a greater one
	fence tuple.Fence
	last  tuple.BatchID // that has written
	rows  map[string]*row
	// written are the rows that last has written, for the undo. Empty after one.
	written []*row
}

type row struct {
	key string
	state.Row
}

func (t *table) Join(_ context.Context, j *state.Join) (ahead tuple.Groups, err error) {
	defer t.unlock(&j.Groups)
	t.lock(&j.Groups)
	for g := range j.Groups.All() {
		yes, err := j.Check(g, t.groups[g].fence, t.groups[g].last)
		if errors.Is(err, state.ErrLost) && t.groups[g].last.Tx == 0 {
			return tuple.Groups{}, fmt.Errorf("state %v in memory, which cannot outlive its process (keep it in another store, or begin anew, with --reset or in a cluster by kill): %w", t.name, err)
		}
		if err != nil {
			return tuple.Groups{}, state.Advise(fmt.Errorf("state %v in memory: %w", t.name, err), "start the process again or give the topology another memory.New()")
		}
		if yes {
			ahead.Add(g)
		}
	}
	for n := range j.Groups.All() {
		g, left := &t.groups[n], j.Leaves(n, ahead.Has(n))
		if ahead.Has(n) && j.Undo && !mutation.Is(mutation.MemoryKeepsUndone) {
			g.undo(left.Tx)
		}
		g.fence, g.last = j.Fence, left
	}
	if j.Undo {
		ahead = tuple.Groups{}
	}
	return ahead, nil
}

// undo takes back what the last batch has written; then before is the one of its rows.
func (g *group) undo(before tuple.TxID) {
	for _, r := range g.written {
		if r.Tx != g.last.Tx {
			continue // written twice, and taken back already
		}
		if r.Row = (state.Row{Tx: before, Value: r.Prev}); r.Value == nil {
			delete(g.rows, r.key)
		}
	}
	clear(g.written)
	g.written = g.written[:0]
}

func (t *table) Get(_ context.Context, keys []state.Key) ([]state.Row, error) {
	rows := make([]state.Row, len(keys))
	for i, k := range keys {
		g := &t.groups[k.Group]
		g.mu.Lock()
		if r := g.rows[k.Bytes]; r != nil {
			rows[i] = r.Row
		}
		g.mu.Unlock()
	}
	return rows, nil
}

func (t *table) Write(_ context.Context, w *state.Write) error {
	groups := w.Groups()
	defer t.unlock(&groups)
	t.lock(&groups)
	for n := range groups.All() {
		if err := w.Check(n, t.groups[n].fence, t.groups[n].last); err != nil {
			return fmt.Errorf("state %v in memory: %w", t.name, err)
		}
	}
	for n := range groups.All() {
		g := &t.groups[n]
		if g.last.Tx != w.Tx {
			g.written = g.written[:0]
		}
		g.last = w.Stamp()
	}
	for i := range w.Rows {
		c := &w.Rows[i]
		t.groups[c.Group].put(c, w.Tx)
	}
	return nil
}

// put copies: the key is a part of some parcel's text, and the values are parts of a
// buffer for the whole batch, which a single rare key would keep alive.
func (g *group) put(c *state.Change, tx tuple.TxID) {
	r := g.rows[c.Bytes]
	if r == nil {
		if g.rows == nil {
			g.rows = map[string]*row{}
		}
		r = &row{key: strings.Clone(c.Bytes)}
		g.rows[r.key] = r
	}
	prev := r.Value // what it mostly is
	if (prev == nil) != (c.Prev == nil) || !bytes.Equal(prev, c.Prev) {
		prev = bytes.Clone(c.Prev)
	}
	r.Row = state.Row{Tx: tx, Value: bytes.Clone(c.Value), Prev: prev}
	g.written = append(g.written, r)
}

func (t *table) Scan(ctx context.Context, groups *tuple.Groups, f func(state.Key, state.Row) bool) error {
	var rows []row // of a group: f is called without its lock
	for n := range groups.All() {
		if err := ctx.Err(); err != nil {
			return err
		}
		g := &t.groups[n]
		rows = rows[:0]
		g.mu.Lock()
		for _, r := range g.rows {
			rows = append(rows, *r)
		}
		g.mu.Unlock()
		for i := range rows {
			if !f(state.Key{Group: n, Bytes: rows[i].key}, rows[i].Row) {
				return nil
			}
		}
	}
	return nil
}

func (t *table) Close() error { return nil }

func (t *table) lock(groups *tuple.Groups) {
	for n := range groups.All() {
		t.groups[n].mu.Lock()
	}
}

func (t *table) unlock(groups *tuple.Groups) {
	for n := range groups.All() {
		t.groups[n].mu.Unlock()
	}
}
