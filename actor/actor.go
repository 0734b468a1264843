// Package actor is the contract between the code of an actor and what runs it.
// It is not for use outside Egret.
//
//	                 +---------------- host ----------------+
//	Send ---------->  mailbox --> Receive(ctx, msg)         |
//	After, Block -->     | dry                              |
//	                 |   +------> Turn(ctx) more? -----+    |
//	                 |            ^--------------------+    |
//	                 +--------------------------------------+
//
// A [Behavior] is the code; a host calls it from one goroutine at a time. Every
// message is received before a turn of work begins, so nothing that is said to
// an actor waits behind its work for longer than one turn.
package actor

import (
	"math/rand/v2"
	"time"
)

// A Ref is an address: what a message is sent to. Refs are compared with ==.
// A Ref to an actor that has stopped swallows what is sent to it.
type Ref interface{}

// A Behavior is the code of one actor. It owns its state: nobody else holds a
// pointer to it, and it needs no lock. It starts no goroutine and reads no clock.
type Behavior interface {
	// Start is called once, before anything else.
	Start(ctx Context)
	// Receive handles one message.
	Receive(ctx Context, msg any)
	// Turn works for a bounded time on what the actor has queued for itself. It is
	// called when the mailbox has run dry, and again, after a look at the mailbox,
	// as long as it returns true.
	Turn(ctx Context) (more bool)
	// Stopped is called once, as the last thing, on an orderly stop. It is not
	// called when the actor is killed.
	Stopped(ctx Context)
}

// A Context is what an actor can do to the world. It is valid only inside the
// call that it was given to; all its methods return at once.
type Context interface {
	Self() Ref
	// Now is the time since the host began, monotonic.
	Now() time.Duration
	// Rand is the actor's own generator.
	Rand() *rand.Rand
	// Send puts a message into an actor's mailbox. Messages from one actor to
	// another arrive in the order in which they were sent.
	Send(to Ref, msg any)
	// After sends msg to the actor itself when d has passed. A timer is not
	// cancelled: the actor must know by the message whether it is still wanted.
	After(d time.Duration, msg any)
	// Spawn starts an actor as a child of this one. The name is for people.
	Spawn(name string, b Behavior) Ref
	// Watch asks for a Terminated message when the actor ends, however it ends.
	Watch(ref Ref)
	// Stop ends an actor after the call or message it is in. What is in its
	// mailbox is lost.
	Stop(ref Ref)
	// Poster returns a function that sends the actor a message from any goroutine, at
	// any time; when the actor has ended, it does nothing.
	Poster() func(msg any)
	// Abandon stops a child without children that may never come back from the call
	// that it is in: neither this actor nor the host waits for its end. If it does
	// come back, it is stopped as by Stop, and its watchers hear of it.
	Abandon(ref Ref)
	// Inspect asks for a Stack message: where an actor is in its code.
	Inspect(ref Ref)
	// Block runs fn, which may wait, where it does not hold up this actor, and
	// sends the actor what fn returns, or a Panicked. When all actors have ended, the
	// host waits for fn for another second.
	Block(fn func() any)
}

// Terminated says that a watched actor has ended: none of its code runs any
// more. It comes behind everything that the actor has sent to the watcher.
type Terminated struct {
	Ref Ref
	// Err is why it ended if it was by a panic in its own code, else nil.
	Err error
}

// Panicked is what an actor gets instead of a result when a function that it gave
// to Block panics.
type Panicked struct {
	Value any
	Stack []byte
}

// A Stack says where an actor was in its code a moment ago: the call that it is in,
// or one of its functions under Block. Text is for people, and empty if the actor
// was in none.
type Stack struct {
	Ref  Ref
	Text string
}
