package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/chaos/sim"
)

// A member of a ring hands a token on to the next.
type member struct {
	next actor.Ref
	seen *int
}

// join closes the ring: the last member is spawned before the first.
type join struct{ next actor.Ref }

type token struct{ hops int }

func (m *member) Start(actor.Context)     {}
func (m *member) Turn(actor.Context) bool { return false }
func (m *member) Stopped(actor.Context)   {}

func (m *member) Receive(ctx actor.Context, msg any) {
	switch msg := msg.(type) {
	case join:
		m.next = msg.next
	case token:
		*m.seen++
		if msg.hops > 0 {
			ctx.Send(m.next, token{msg.hops - 1})
		}
	}
}

// ring spawns n members; the token goes to the first.
func ring(w *sim.World, n int, seen *int) (first actor.Ref) {
	last := w.Spawn("last", &member{seen: seen})
	first = last
	for range n - 1 {
		first = w.Spawn("member", &member{next: first, seen: seen})
	}
	w.Send(last, join{first})
	return first
}

func ExampleWorld() {
	seen := 0
	w := sim.New(sim.Config{Seed: 7})
	first := ring(w, 5, &seen)
	w.Send(first, token{hops: 99})
	fmt.Println(w.Run(nil, sim.Limit{Time: time.Minute}), seen, w.Left())

	// A lost token is not found again.
	w.Send(first, token{hops: 99})
	w.Kill(first)
	fmt.Println(w.Run(func() bool { return seen == 200 }, sim.Limit{Time: time.Minute}) != nil, seen)
	// Output:
	// <nil> 100 0 messages, 0 turns, 0 blocks, 0 timers, 0 plans
	// true 100
}

// One op is one event.
func BenchmarkEvents(b *testing.B) {
	b.ReportAllocs()
	seen := 0
	w := sim.New(sim.Config{Seed: 1})
	for range 20 {
		first := ring(w, 10, &seen)
		for range 5 {
			w.Send(first, token{hops: 1 << 60})
		}
	}
	b.ResetTimer()
	for b.Loop() {
		w.Step()
	}
}
