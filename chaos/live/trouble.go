package live

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A trouble is the harm that is done to one task while it goes on, by the code of its
// source or bolt. any is the only thing that is looked at when there is none.
type trouble struct {
	any atomic.Bool

	mu    sync.Mutex
	until time.Time // stalled
	slow  []float64 // factors, by the faults that last
	crash []int     // tuples to the one that panics, by the faults
	pause int       // faults that pause the source
	errs  []string  // of the calls that come next
}

// set changes t.
func (t *trouble) set(change func(*trouble)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(t)
	t.any.Store(t.until.After(time.Now()) || len(t.slow)+len(t.crash)+t.pause+len(t.errs) > 0)
}

// heal ends it all.
func (t *trouble) heal() {
	t.set(func(t *trouble) {
		t.until, t.slow, t.crash, t.pause, t.errs = time.Time{}, nil, nil, 0, nil
	})
}

// wait waits as long as the task is stalled.
func (t *trouble) wait(r *record) {
	t.mu.Lock()
	d := time.Until(t.until)
	t.mu.Unlock()
	if d <= 0 {
		t.set(func(*trouble) {}) // which may be all there was
		return
	}
	nap(d, r.healed)
}

func nap(d time.Duration, healed <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-healed:
	}
}

// panics panics if it is the turn of one of the next n tuples.
func (t *trouble) panics(n int) {
	now := false
	t.set(func(t *trouble) {
		left := t.crash[:0]
		for _, at := range t.crash {
			if at <= n {
				now = true
			} else {
				left = append(left, at-n)
			}
		}
		t.crash = left
	})
	if now {
		panic("chaos: panic")
	}
}

// factor is how many times as long everything takes.
func (t *trouble) factor() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := 1.0
	for _, by := range t.slow {
		f *= by
	}
	return f
}

// paused reports whether the source has nothing to read, and the error of the next call.
func (t *trouble) paused() (yes bool, err error) {
	t.set(func(t *trouble) {
		yes = t.pause > 0
		if len(t.errs) > 0 {
			err = fmt.Errorf("chaos: %s", t.errs[0])
			t.errs = t.errs[1:]
		}
	})
	return yes, err
}

// A slowed is a bolt that takes longer. It owes time until that is worth a nap.
type slowed struct {
	began time.Time
	owes  time.Duration
}

func (s *slowed) begin() { s.began = time.Now() }

func (s *slowed) end(factor float64, healed <-chan struct{}) {
	s.owes += time.Duration(float64(time.Since(s.began)) * (factor - 1))
	if s.owes < time.Millisecond {
		return
	}
	began := time.Now()
	nap(s.owes, healed)
	s.owes -= time.Since(began) // a nap may last longer
}
