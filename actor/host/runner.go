package host

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	protoactor "github.com/asynkron/protoactor-go/actor"

	"github.com/egretstream/egret/actor"
)

// A runner is protoactor's actor and Egret's context: it calls the behaviour.
//
// Owner: the goroutine in the actor's mailbox.
type runner struct {
	*address
	behavior actor.Behavior     // nil when the actor has ended
	context  protoactor.Context // the same for the life of the actor
	rand     *rand.Rand
	over     bool // Stopped has begun
}

// A timer is also the message by which it says that it has fired.
type timer struct {
	*time.Timer
	msg any
}

// newRunner takes the seed of the actor's generator from that of its parent, so
// that it does not depend on what other actors do at the same time.
func newRunner(a *address, b actor.Behavior, from *rand.Rand) *runner {
	r := &runner{
		address:  a,
		behavior: b,
		rand:     rand.New(rand.NewPCG(from.Uint64(), from.Uint64())),
	}
	a.box.runner = r
	return r
}

func (r *runner) props() *protoactor.Props {
	return protoactor.PropsFromProducer(
		func() protoactor.Actor { return r },
		protoactor.WithMailbox(func() protoactor.Mailbox { return &r.box }),
	)
}

// Receive is called by protoactor.
func (r *runner) Receive(c protoactor.Context) {
	switch msg := c.Message().(type) {
	case *protoactor.Started:
		r.context = c
		r.behavior.Start(behaviorContext{r})
	case *protoactor.Stopped:
		r.stopped()
	case *protoactor.Stopping, *protoactor.Terminated:
		// of interest to protoactor alone
	case *timer:
		r.mu.Lock()
		delete(r.timers, msg)
		r.mu.Unlock()
		r.behavior.Receive(behaviorContext{r}, msg.msg)
	default:
		r.behavior.Receive(behaviorContext{r}, msg)
	}
}

func (r *runner) turn() bool { return r.behavior.Turn(behaviorContext{r}) }

// fail ends the actor after a panic in its code; nil stands for runtime.Goexit.
func (r *runner) fail(reason any) {
	r.err = panicError(reason)
	r.stop()
}

func panicError(reason any) error {
	switch v := reason.(type) {
	case nil:
		return errors.New("runtime.Goexit was called")
	case error:
		return fmt.Errorf("panic: %w\n\n%s", v, debug.Stack())
	default:
		return fmt.Errorf("panic: %v\n\n%s", v, debug.Stack())
	}
}

// stopped is the actor's last call. Its children have ended.
func (r *runner) stopped() {
	r.over = true
	if r.err == nil && !r.dead() {
		r.callStopped()
	}
	r.mu.Lock()
	r.stopTimers()
	r.mu.Unlock()
	r.host.forget(r.address)
	r.end()
	// Who keeps a Ref keeps the address, and no more: a behaviour may own megabytes.
	r.behavior, r.context = nil, nil
}

// stopTimers is called with mu held. The runtime keeps a stopped timer until it finds the
// time to drop it, so it lets go of its message here.
func (a *address) stopTimers() {
	for t := range a.timers {
		if t.Stop() {
			t.msg = nil
			a.host.running.Done()
		}
	}
	clear(a.timers)
}

// callStopped keeps a panic from protoactor, which would leave the actor stopping
// for ever; and a runtime.Goexit too, which only a goroutine of its own can.
func (r *runner) callStopped() {
	var run sync.WaitGroup
	run.Go(func() {
		returned := false
		defer func() {
			if !returned {
				r.err = panicError(recover())
			}
		}()
		r.behavior.Stopped(behaviorContext{r})
		returned = true
	})
	run.Wait()
}

// behaviorContext is an actor.Context. It is a type of its own, as big as a
// pointer, because protoactor and Egret both want methods with the same names.
type behaviorContext struct{ r *runner }

func (c behaviorContext) Self() actor.Ref            { return c.r.address }
func (c behaviorContext) Now() time.Duration         { return c.r.host.Now() }
func (c behaviorContext) Rand() *rand.Rand           { return c.r.rand }
func (c behaviorContext) Watch(ref actor.Ref)        { addressOf(ref).watch(c.r.address) }
func (c behaviorContext) Stop(ref actor.Ref)         { addressOf(ref).stop() }
func (c behaviorContext) Send(to actor.Ref, msg any) { addressOf(to).send(msg) }

func (c behaviorContext) Poster() func(any) {
	a := c.r.address
	return func(msg any) { a.send(msg) }
}

func (c behaviorContext) After(d time.Duration, msg any) {
	r := c.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stray != nil {
		return // nobody would wait for it
	}
	t := &timer{msg: msg}
	r.timers[t] = struct{}{}
	r.host.running.Add(1)
	t.Timer = time.AfterFunc(d, func() {
		defer r.host.running.Done()
		r.send(t)
	})
}

func (c behaviorContext) Spawn(name string, b actor.Behavior) actor.Ref {
	r := c.r
	a := newAddress(r.host, r.address, name)
	r.mu.Lock()
	if r.over || r.stray != nil {
		r.mu.Unlock()
		a.end() // nobody would stop it
		return a
	}
	r.host.running.Add(1)
	r.mu.Unlock()
	a.pid = r.context.SpawnPrefix(newRunner(a, b, r.rand).props(), name)
	return a
}

func (c behaviorContext) Abandon(ref actor.Ref) {
	if a := addressOf(ref); a.parent == c.r.address {
		a.abandon()
		return
	}
	panic(fmt.Sprintf("host: %v abandons %v, which is no child of it", c.r.address, ref))
}

func (c behaviorContext) Inspect(ref actor.Ref) {
	a := addressOf(ref)
	c.Block(func() any { return actor.Stack{Ref: a, Text: readStacks()[a.label]} })
}

func (c behaviorContext) Block(fn func() any) {
	r := c.r
	s := &stray{of: r.address, call: true}
	r.host.addStray(s)
	go func() { // Close waits for it for a while
		r.wear()
		defer r.host.removeStray(s)
		result := any(actor.Panicked{Value: "runtime.Goexit was called"})
		defer func() {
			if v := recover(); v != nil {
				result = actor.Panicked{Value: v, Stack: debug.Stack()}
			}
			r.send(result)
		}()
		result = fn()
	}()
}
