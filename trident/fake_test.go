package trident_test

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// fake is a backend in memory that keeps the rules of a store.
type fake struct {
	mu     sync.Mutex
	states map[state.Name]*fakeStore
	gets   int // keys that were asked for
}

func newFake() *fake { return &fake{states: map[state.Name]*fakeStore{}} }

func (f *fake) String() string { return "a fake" }

func (f *fake) Open(_ context.Context, name state.Name) (state.Store, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.states[name] == nil {
		f.states[name] = &fakeStore{of: f, rows: map[state.Key]state.Row{}}
	}
	return f.states[name], nil
}

type fakeStore struct {
	of     *fake
	rows   map[state.Key]state.Row
	fences [tuple.KeyGroups]tuple.Fence
	last   [tuple.KeyGroups]tuple.TxID
}

func (s *fakeStore) Close() error { return nil }

func (s *fakeStore) Join(_ context.Context, j *state.Join) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for g := range uint16(tuple.KeyGroups) {
		if !j.Groups.Has(g) {
			continue
		}
		want := tuple.TxID(0)
		if j.Last != nil {
			want = j.Last[g]
		}
		if j.Fence.Less(s.fences[g]) {
			return state.ErrFenced
		}
		if s.last[g] != want && s.last[g] != j.Committed+1 {
			return fmt.Errorf("group %d has batch %d, the record %d of %d: %w", g, s.last[g], want, j.Committed, state.ErrLost)
		}
	}
	for g := range uint16(tuple.KeyGroups) {
		if !j.Groups.Has(g) {
			continue
		}
		s.fences[g] = j.Fence
		if j.Undo && s.last[g] == j.Committed+1 {
			s.last[g] = 0
			if j.Last != nil {
				s.last[g] = j.Last[g]
			}
		}
	}
	if j.Undo {
		for k, r := range s.rows {
			if j.Groups.Has(k.Group) && r.Tx == j.Committed+1 {
				s.rows[k] = state.Row{Tx: j.Committed, Value: r.Prev}
				if r.Prev == nil {
					delete(s.rows, k)
				}
			}
		}
	}
	return nil
}

func (s *fakeStore) Get(_ context.Context, keys []state.Key) ([]state.Row, error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	rows := make([]state.Row, len(keys))
	for i, k := range keys {
		rows[i] = s.rows[k]
	}
	s.of.gets += len(keys)
	return rows, nil
}

func (s *fakeStore) Write(_ context.Context, w *state.Write) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for _, c := range w.Rows {
		if s.fences[c.Group] != w.Fence {
			return state.ErrFenced
		}
		if s.last[c.Group] > w.Tx || s.last[c.Group] == w.Tx && !w.Again {
			return fmt.Errorf("group %d has batch %d, and this is %d", c.Group, s.last[c.Group], w.Tx)
		}
		if c.Tx != w.Tx || c.Value == nil {
			return fmt.Errorf("a bad row: %v", c)
		}
	}
	for _, c := range w.Rows {
		s.rows[c.Key], s.last[c.Group] = c.Row, w.Tx
	}
	return nil
}

func (s *fakeStore) Scan(_ context.Context, groups *tuple.Groups, f func(state.Key, state.Row) bool) error {
	s.of.mu.Lock()
	rows := maps.Clone(s.rows)
	s.of.mu.Unlock()
	for k, r := range rows {
		if groups.Has(k.Group) && !f(k, r) {
			break
		}
	}
	return nil
}
