package live

import (
	"slices"
	"sync"
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/tuple"
)

// A harm is one thing that was done, and what it has cost: the messages that were given
// back or forgotten after it, until each is done again.
type harm struct {
	Done
	id    tuple.TaskID
	life  tuple.Incarnation
	cost  int64
	open  int64         // of those, not done yet
	first time.Duration // when one of them was emitted again; 0: not yet
	last  time.Duration // when the last one of those done was done
}

// Done says that a fault was done.
type Done struct {
	At    time.Duration `json:"at_ns"` // since the run began
	Fault chaos.Fault   `json:"fault"`
	Task  string        `json:"task"`
	Life  uint32        `json:"life,omitempty"` // of a kill: how many lives the task has had
	Ends  bool          `json:"ends,omitempty"` // a fault that lasts is over
}

// harms are all of a run. A message has the number of the one it waits for, from 1 on: the
// last that was done when it was given back.
type harms struct {
	mu  sync.Mutex
	all []*harm
}

func (h *harms) add(n *harm) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, n)
}

func (h *harms) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// cost books a message that was given back, and returns which harm that is ascribed to;
// 0: none was done.
func (h *harms) cost() int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.all)
	if n > 0 {
		h.all[n-1].costs()
	}
	return int32(n)
}

func (h *harm) costs() {
	h.cost++
	h.open++
}

func (h *harms) costs(n int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[n-1].costs()
}

// leaves books that a message is not waited for any more; n may be 0.
func (h *harms) leaves(n int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n > 0 {
		h.all[n-1].open--
	}
}

// of returns the harm that has ended a life; 0: none.
func (h *harms) of(id tuple.TaskID, life tuple.Incarnation) int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, x := range slices.Backward(h.all) {
		if x.id == id && x.life == life {
			return int32(i + 1)
		}
	}
	return 0
}

// tried books that a message is emitted again, done that it is done.
func (h *harms) tried(n int32, at time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x := h.all[n-1]; x.first == 0 {
		x.first = at
	}
}

func (h *harms) done(n int32, at time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.all[n-1]
	x.open--
	x.last = max(x.last, at)
}
