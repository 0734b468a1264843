package host

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	protoactor "github.com/asynkron/protoactor-go/actor"

	"github.com/egretstream/egret/actor"
)

// An address is what others may touch of an actor: the actor.Ref of this host.
type address struct {
	host   *Host
	parent *address // nil for one that the host spawned; outlives its children
	name   string
	// process is protoactor's way to the mailbox. It is kept here, and not looked
	// up by PID, because the look-up of an actor that has ended makes dead letters.
	process *protoactor.ActorProcess
	pid     *protoactor.PID // its name in protoactor; the parent's
	box     mailbox
	killed  atomic.Bool
	label   string // of its goroutines; see stack.go
	labels  context.Context

	mu       sync.Mutex
	ended    bool
	stray    *stray              // nil: not abandoned
	timers   map[*timer]struct{} // those whose message was not received yet
	err      error               // why, if by a panic; does not change once ended
	watchers []*address
}

func newAddress(h *Host, parent *address, name string) *address {
	a := &address{host: h, parent: parent, name: name, timers: map[*timer]struct{}{}}
	a.setLabels()
	a.box.host = h
	a.process = protoactor.NewActorProcess(&a.box)
	return a
}

func addressOf(ref actor.Ref) *address {
	a, ok := ref.(*address)
	if !ok {
		panicForeign(ref)
	}
	return a
}

func panicForeign(ref actor.Ref) {
	panic(fmt.Sprintf("host: %T is not a Ref that this package has made", ref))
}

// String returns the name with those of the parents: "run/count/2".
func (a *address) String() string {
	if a.parent == nil {
		return a.name
	}
	return a.parent.String() + "/" + a.name
}

func (a *address) send(msg any) { a.process.SendUserMessage(nil, msg) }
func (a *address) stop()        { a.process.Stop(nil) }

// dead reports whether the actor or one of those above it was killed.
func (a *address) dead() bool {
	for ; a != nil; a = a.parent {
		if a.killed.Load() {
			return true
		}
	}
	return false
}

// watch sends w a Terminated when a ends; if it has, then now.
func (a *address) watch(w *address) {
	a.mu.Lock()
	ended := a.ended
	if !ended && !slices.Contains(a.watchers, w) {
		a.watchers = append(a.watchers, w)
	}
	a.mu.Unlock()
	if ended {
		w.send(actor.Terminated{Ref: a, Err: a.err})
	}
}

// end is called once, by the last call of the actor.
func (a *address) end() {
	a.box.end()
	a.mu.Lock()
	a.ended = true
	watchers := a.watchers
	a.watchers = nil
	a.mu.Unlock()
	if a.err != nil && len(watchers) == 0 {
		a.host.logger.Error("an actor that nobody watches has ended by a panic", "actor", a.String(), "error", a.err)
	}
	for _, w := range watchers {
		w.send(actor.Terminated{Ref: a, Err: a.err})
	}
}
