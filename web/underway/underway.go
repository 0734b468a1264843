// Package underway counts the answers that an HTTP server is giving, so that whoever closes it
// can wait for them: http.Server waits only for those whose connections it does not cut off. It
// is not for use outside Egret.
package underway

import (
	"net/http"
	"sync"
)

// Answers are those under way. The zero value is ready; it must not be copied.
type Answers struct {
	mu     sync.Mutex
	closed bool
	wait   sync.WaitGroup // added to under mu, before closed
}

// Counted returns h, whose answers are counted. After Close it is not asked any more.
func (a *Answers) Counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.begin() {
			defer a.wait.Done()
			h.ServeHTTP(w, r)
		}
	})
}

func (a *Answers) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.wait.Add(1)
	}
	return !a.closed
}

// Close lets no other answer begin and waits for those under way.
func (a *Answers) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.wait.Wait()
}
