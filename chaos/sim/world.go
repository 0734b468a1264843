package sim

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/egretstream/egret/actor"
)

// A Config sets up a World. Its zero value is an ordinarily bad one.
type Config struct {
	Seed  uint64
	Links Links
	// Cost is the most that one Receive or Turn takes, besides what it spends.
	// It is drawn from 1 us up. Default 50 us; negative: 1 ns always.
	Cost time.Duration
	// Block is the most that passes before the function of a Block runs, beside what a
	// message takes, and in which its actor may have ended. Default 0.
	Block time.Duration
	// Hangs lets the code of actors hang in a call. Each call costs more then.
	Hangs bool
	// OnSend, if given, rules over each message that an actor or the outside
	// sends, and over each Terminated, when it is sent. Timers and results of
	// Block do not travel and are not asked about. A nil from is the outside.
	// It may call the World's faults; a message whose sender it kills is not said.
	OnSend func(from, to actor.Ref, msg any) Verdict
	// OnTimer, if given, says how much later than it is due a timer comes that an
	// actor sets.
	OnTimer func(of actor.Ref, msg any) time.Duration
	// OnBlock, if given, says how much longer than that it takes until the function of a
	// Block runs.
	OnBlock func(of actor.Ref) time.Duration
	// Log, if given, gets a line for each event.
	Log io.Writer
}

// A World is a host of actors whose time, network and chance are made up.
type World struct {
	seed    uint64
	links   Links
	cost    time.Duration
	hangs   bool
	wait    time.Duration // before a Block
	onSend  func(from, to actor.Ref, msg any) Verdict
	timer   func(of actor.Ref, msg any) time.Duration
	blocked func(of actor.Ref) time.Duration
	chance  *rand.Rand // for delays, costs and cuts

	now     time.Duration
	events  events
	free    []*event // to be used again
	seq     uint64
	count   int
	procs   []*proc // by number; 0 is the outside
	outside *proc
	left    Left

	// What runs now: running is nil between calls. spent is what the call has
	// spent of its own time, zero outside.
	running  *proc
	blocking bool
	spent    time.Duration

	failures []error
	log      io.Writer
	describe func(msg any) string                   // for the written log
	hears    func(p *proc, msg any, receive func()) // is asked to have a message received; nil: nobody is
	content  func(dst []byte, msg any) []byte       // appends what is in a message, for the hash; nil: its class is all
	hash     uint64
	trace    *trace // nil: none is kept
	look     *look  // nil: nobody looks
	line     []byte // kept for its room
	classes  map[reflect.Type]string
}

// New returns an empty world at time zero.
func New(c Config) *World {
	w := &World{
		seed:     c.Seed,
		links:    c.Links,
		cost:     c.Cost,
		hangs:    c.Hangs,
		wait:     c.Block,
		onSend:   c.OnSend,
		timer:    c.OnTimer,
		blocked:  c.OnBlock,
		chance:   rand.New(rand.NewPCG(c.Seed, 0)),
		log:      c.Log,
		classes:  make(map[reflect.Type]string),
		describe: inWords,
	}
	w.links.setDefaults()
	def(&w.cost, 50*time.Microsecond)
	w.outside = &proc{world: w, label: "outside", slow: 1, silent: math.MaxInt64, left: math.MaxInt64}
	w.procs = append(w.procs, w.outside)
	return w
}

// Spawn starts an actor without a parent.
func (w *World) Spawn(name string, b actor.Behavior) actor.Ref { return w.spawn(nil, name, b).ref }

// Send sends a message from outside. What the outside sends to one actor arrives
// in order.
func (w *World) Send(to actor.Ref, msg any) { w.post(w.outside, w.find(to), msg) }

// Stop stops an actor in good order, as Context.Stop does.
func (w *World) Stop(ref actor.Ref) { w.stop(w.find(ref)) }

// Alive says whether an actor has not yet ended.
func (w *World) Alive(ref actor.Ref) bool { return w.find(ref).state != ended }

// At has fn called at time t, between events; at once if t has passed. The name
// is for the log.
func (w *World) At(t time.Duration, name string, fn func()) {
	w.left.Plans++
	w.push(event{at: max(t, w.now), kind: atPlan, fn: func() any {
		w.note("at "+name, nil, nil, nil)
		fn()
		return nil
	}})
}

// schedule has fn called at time t, between events, if the world has not come to its
// end by then. Nothing waits for it.
func (w *World) schedule(t time.Duration, fn func()) {
	w.push(event{at: max(t, w.now), kind: atFault, fn: func() any { fn(); return nil }})
}

// Now is the time since the world began: inside a call, that of the actor's own
// clock, which its spending moves.
func (w *World) Now() time.Duration { return w.now + w.spent }

// Spend makes d pass for the actor whose code is running, or for the function of
// a Block: the rest of the call is later by d, and the actor is busy until then.
func (w *World) Spend(d time.Duration) {
	if w.running == nil {
		w.misuse("Spend outside a call: only an actor's code has time to spend")
	}
	w.did(spends, nil, nil, d)
	w.spent += w.stretch(w.running, max(d, 0))
}

// Events is how many events there have been.
func (w *World) Events() int { return w.count }

// Hash is a hash of the log so far and of what actors have done: sent, to whom, how
// long they took, and so on. Two runs with equal hashes were the same run.
func (w *World) Hash() uint64 { return w.hash }

// Err returns what went wrong in the code of actors: their panics, joined, with
// their stacks. Nil if nothing did.
func (w *World) Err() error { return errors.Join(w.failures...) }

func (w *World) fail(err error) { w.failures = append(w.failures, err) }

// Left is what is still to be done in a world.
type Left struct {
	Messages int // on their way or in mailboxes, and orders to stop
	Turns    int // actors that want a turn, or have yet to start
	Blocks   int // functions that have not run or whose results are on their way
	Timers   int // those of ended actors included
	Plans    int // of World.At
}

func (l Left) String() string {
	return fmt.Sprintf("%d messages, %d turns, %d blocks, %d timers, %d plans", l.Messages, l.Turns, l.Blocks, l.Timers, l.Plans)
}

// Left says what is still to be done. A world whose actors keep a ticking timer
// is never at rest; its Left shows when nothing but timers is left.
func (w *World) Left() Left { return w.left }

// find returns the actor with an address.
func (w *World) find(ref actor.Ref) *proc {
	if a, ok := ref.(address); ok && a.number > 0 && a.number < len(w.procs) && w.procs[a.number].ref == ref {
		return w.procs[a.number]
	}
	w.misuse("%v is no actor of this world: use what Spawn or Self returned", ref)
	return nil
}

// misuse panics, and sees to it that the run has failed even if that panic is
// somebody's result.
func (w *World) misuse(format string, args ...any) {
	err := fmt.Errorf("sim: "+format, args...)
	if w.blocking {
		w.fail(err)
	}
	panic(err)
}
