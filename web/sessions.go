package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"sync"
)

// mostSessions are remembered; the oldest makes room.
const mostSessions = 1000

// sessions are who has logged in, by what his cookie is. They are kept by a sum of it, so
// that how long a search takes says nothing of what is known. The zero value is ready.
type sessions struct {
	mu    sync.Mutex
	by    map[[sha256.Size]byte]*session
	order [][sha256.Size]byte // the oldest first
}

// A session lasts until its cookie is forgotten, or the process ends.
type session struct {
	access access
	lasts  context.Context
	end    context.CancelFunc
}

// begin begins a session, and returns its cookie.
func (s *sessions) begin(a access) (cookie string) {
	cookie = rand.Text()
	sum := sha256.Sum256([]byte(cookie))
	x := &session{access: a}
	x.lasts, x.end = context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[[sha256.Size]byte]*session{}
	}
	s.by[sum] = x
	if s.order = append(s.order, sum); len(s.order) > mostSessions {
		s.forget(s.order[0])
	}
	return cookie
}

// of returns the session of a cookie; nil: there is none, or none any more.
func (s *sessions) of(cookie string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[sha256.Sum256([]byte(cookie))]
}

// end ends the session of a cookie, if there is one, and what it still listens to.
func (s *sessions) end(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(sha256.Sum256([]byte(cookie)))
}

// forget ends a session. Caller must hold mu.
func (s *sessions) forget(sum [sha256.Size]byte) {
	x := s.by[sum]
	if x == nil {
		return
	}
	x.end()
	delete(s.by, sum)
	for i := range s.order {
		if s.order[i] == sum {
			s.order = append(s.order[:i], s.order[i+1:]...)
			return
		}
	}
}
