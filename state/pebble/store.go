package pebble

import (
	"context"
	"errors"
	"sync"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/tuple"
)

// A store is a state that somebody has open.
//
// Invariant: the table is one user's for as long as the store is not closed, or a call is
// under way. So a call beside Close, or behind it, does not meet a closed database.
type store struct {
	*table
	mu     sync.Mutex
	calls  int // under way
	closed bool
}

// enter begins a call, which leave ends.
func (s *store) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.fault(errors.New("it was closed by who asks it now"))
	}
	s.calls++
	return nil
}

func (s *store) leave() {
	s.mu.Lock()
	s.calls--
	last := s.closed && s.calls == 0
	s.mu.Unlock()
	if last {
		if err := s.release(); err != nil {
			s.Errorf("close: %v", err)
		}
	}
}

// Join implements state.Store, and so do the others.
func (s *store) Join(ctx context.Context, j *state.Join) (tuple.Groups, error) {
	if err := s.enter(); err != nil {
		return tuple.Groups{}, err
	}
	defer s.leave()
	return s.table.Join(ctx, j)
}

func (s *store) Get(ctx context.Context, keys []state.Key) ([]state.Row, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.table.Get(ctx, keys)
}

func (s *store) Write(ctx context.Context, w *state.Write) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	return s.table.Write(ctx, w)
}

func (s *store) Scan(ctx context.Context, groups *tuple.Groups, f func(state.Key, state.Row) bool) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	return s.table.Scan(ctx, groups, f)
}

// Close closes the database when nobody else in this process uses it. Calls that are under
// way come to their end first, and Close does not wait for them.
func (s *store) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	now := first && s.calls == 0
	s.mu.Unlock()
	if !now {
		return nil
	}
	return s.release()
}

// release gives up a user's part of the table.
func (t *table) release() error {
	opened.Lock()
	defer opened.Unlock()
	if t.users--; t.users > 0 {
		return nil
	}
	delete(opened.tables, t.at)
	if err := errors.Join(t.db.Close(), t.lock.Close()); err != nil {
		return t.fault(err)
	}
	return nil
}
