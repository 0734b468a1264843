package host

import (
	"slices"
	"strings"
	"time"

	protoactor "github.com/asynkron/protoactor-go/actor"
)

// A Left is what had not come back when Close gave up waiting: its goroutine is
// left behind. It does no harm to other actors, and may come back yet.
type Left struct {
	Name  string // of the actor, with those of its parents: "run/count/2"
	Call  bool   // a function that the actor gave to Block, and not the actor itself
	Stack string // where it is, for people
}

// Close waits so long for strays when all else has ended.
const strayGrace = time.Second

// A stray is what Close waits for, but not for ever: an abandoned actor until it
// ends, a function of Block until its result is posted.
type stray struct {
	of   *address
	call bool
}

func (h *Host) addStray(s *stray) {
	h.mu.Lock()
	h.strays[s] = struct{}{}
	h.mu.Unlock()
}

func (h *Host) removeStray(s *stray) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.strays, s)
	if len(h.strays) == 0 && h.noStrays != nil {
		close(h.noStrays)
		h.noStrays = nil
	}
}

// waitForStrays is called when no actor is left that could abandon another.
func (h *Host) waitForStrays() []Left {
	h.mu.Lock()
	if len(h.strays) == 0 {
		h.mu.Unlock()
		return nil
	}
	if h.noStrays == nil {
		h.noStrays = make(chan struct{})
	}
	none := h.noStrays
	h.mu.Unlock()
	patience := time.NewTimer(strayGrace)
	defer patience.Stop()
	select {
	case <-none:
		return nil
	case <-patience.C:
	}
	h.mu.Lock()
	var left []Left
	for s := range h.strays {
		left = append(left, Left{Name: s.of.String(), Call: s.call, Stack: s.of.label})
	}
	h.mu.Unlock()
	if len(left) == 0 {
		return nil
	}
	all := readStacks()
	for i := range left {
		left[i].Stack = all[left[i].Stack]
	}
	slices.SortFunc(left, func(a, b Left) int { return strings.Compare(a.Name, b.Name) })
	return left
}

// abandon stops a without anybody waiting for it from now on. Only its parent calls
// it.
//
// Invariant: an abandoned actor is no longer counted in host.running, and raises
// it no more.
func (a *address) abandon() {
	a.stop()
	s := &stray{of: a}
	a.host.addStray(s) // before its end could remove it
	a.mu.Lock()
	if a.ended || a.stray != nil {
		a.mu.Unlock()
		a.host.removeStray(s)
		return
	}
	a.stray = s
	a.stopTimers()
	a.mu.Unlock()
	if a.parent != nil {
		// The parent would wait for it when it is stopped itself.
		a.parent.process.SendSystemMessage(nil, &protoactor.Terminated{Who: a.pid})
	}
	a.host.running.Done()
}

// gone says that the last call of a has returned.
func (a *address) gone() {
	a.mu.Lock()
	s := a.stray
	a.mu.Unlock()
	if s != nil {
		a.host.removeStray(s)
		return
	}
	a.host.running.Done()
}
