// Package host runs actors on protoactor, and is the only package that imports
// it. It is not for use outside Egret.
//
//	Host --Spawn--> protoactor system
//	                     |  Started, Stop: system messages, they overtake
//	Send --> address --> mailbox --> runner --> Behavior
//	           ^                       |
//	           +-- After, Block, Terminated
//
// What protoactor does: names, children, the order of starting and stopping. What
// it does not do here: restart an actor, watch one, queue its messages, or speak
// of dead letters. An actor that panics is stopped for good.
package host

import (
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	protoactor "github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"

	"github.com/egretstream/egret/actor"
)

// A Config sets up a Host. Its zero value will do.
type Config struct {
	// Seed is what every actor's generator is derived from; 0 takes one from the
	// operating system.
	Seed uint64
	// Logger gets the panics of actors that nobody watches. Default: nowhere.
	Logger *slog.Logger
}

// A Host runs actors. Its methods may be called from anywhere but from inside an
// actor, which has its context for that.
type Host struct {
	system *protoactor.ActorSystem
	logger *slog.Logger
	start  time.Time

	// running counts what Close waits for: an actor from Spawn until its mailbox
	// has ended or it was abandoned, a timer until it has fired or was stopped.
	//
	// Invariant: it is raised from zero only under mu and while open; every other
	// raise is made by an actor, which is counted itself.
	running sync.WaitGroup
	dropped atomic.Uint64

	mu    sync.Mutex
	open  bool
	roots map[*address]struct{} // living actors without a parent
	rand  *mathrand.Rand
	// strays are what Close waits for, but not for ever; noStrays, if somebody waits,
	// is closed when there is none.
	strays   map[*stray]struct{}
	noStrays chan struct{}
}

// New returns a host without actors.
func New(c Config) *Host {
	if c.Seed == 0 {
		var b [8]byte
		rand.Read(b[:])
		c.Seed = binary.LittleEndian.Uint64(b[:])
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	logger := func(*protoactor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }
	system := protoactor.NewActorSystem(protoactor.WithLoggerFactory(logger))
	// protoactor's own subscribers log dead letters, through a throttle that starts
	// a goroutine nobody can wait for. Dead letters are no news here: what is sent
	// to an actor that has ended is counted by its mailbox.
	system.EventStream = eventstream.NewEventStream()
	return &Host{
		system: system,
		logger: c.Logger,
		start:  time.Now(),
		open:   true,
		roots:  map[*address]struct{}{},
		strays: map[*stray]struct{}{},
		rand:   mathrand.New(mathrand.NewPCG(c.Seed, 0)),
	}
}

// Spawn starts an actor. The name is for people and need not be unique. After
// Close it returns a Ref to an actor that has ended.
func (h *Host) Spawn(name string, b actor.Behavior) actor.Ref {
	// Close must not find an actor that protoactor does not know yet, so the lock is
	// held until it does. Nothing in here waits for an actor.
	h.mu.Lock()
	defer h.mu.Unlock()
	a := newAddress(h, nil, name)
	if !h.open {
		a.end()
		return a
	}
	h.roots[a] = struct{}{}
	h.running.Add(1)
	h.system.Root.SpawnPrefix(newRunner(a, b, h.rand).props(), name)
	return a
}

// Send puts a message into an actor's mailbox. What one goroutine sends to an
// actor arrives in that order.
func (h *Host) Send(to actor.Ref, msg any) { addressOf(to).send(msg) }

// Stop asks an actor to end after the call that it is in, and returns at once.
// What is in its mailbox is lost, its children are stopped before it.
func (h *Host) Stop(ref actor.Ref) { addressOf(ref).stop() }

// Kill is Stop without a call of Stopped, for the actor and for its children, as
// if their process had died.
func (h *Host) Kill(ref actor.Ref) {
	a := addressOf(ref)
	a.killed.Store(true)
	a.stop()
}

// Now is the time since New, monotonic.
func (h *Host) Now() time.Duration { return time.Since(h.start) }

// Dropped returns how many messages were lost because their actor ended before
// they were received.
func (h *Host) Dropped() uint64 { return h.dropped.Load() }

// Close stops all actors and waits until they have ended, and with them their
// timers; an actor that does not return from a call holds it up, unless its parent
// has abandoned it. Then it waits for another second for the abandoned and for
// what was given to Block, and returns what is left.
func (h *Host) Close() []Left {
	h.mu.Lock()
	h.open = false
	roots := make([]*address, 0, len(h.roots))
	for a := range h.roots {
		roots = append(roots, a)
	}
	h.mu.Unlock()
	for _, a := range roots {
		a.stop()
	}
	h.running.Wait()
	return h.waitForStrays()
}

// forget is called when an actor has ended.
func (h *Host) forget(a *address) {
	if a.parent == nil {
		h.mu.Lock()
		delete(h.roots, a)
		h.mu.Unlock()
	}
}
