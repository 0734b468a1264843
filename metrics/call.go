package metrics

import (
	"sync/atomic"
	"time"
)

// A Shared is a counter with several writers. Each Add is a locked instruction, so
// it is for what is rare.
type Shared struct{ n atomic.Int64 }

// Add adds d. Anybody may call it.
func (s *Shared) Add(d int64) { s.n.Add(d) }

// Load returns the number as it was a moment ago.
func (s *Shared) Load() int64 { return s.n.Load() }

// A Call shows in which call of user code one life of a task is, to one observer.
// It is part of the engine and not for users.
//
//	         Begin               Take, by the observer
//	outside -------> inside --------------------------> taken
//	   ^               |
//	   +------ End ----+
//
// Who comes back from a call learns by End whether it was taken meanwhile: then
// its life was declared over, and it touches nothing any more that others look
// at. So there is one owner of the task's counters at any time, without a lock.
//
// P is what is worked on. Invariant: what Hand last got is not changed as long as
// a call is inside, nor ever after one that was pinned.
type Call[P any] struct {
	_     [64]byte // what lies before is written for each tuple
	word  atomic.Uint64
	since atomic.Int64
	hand  atomic.Pointer[P]
	next  uint64 // number of the next call; the owner's
	_     [64]byte
}

// A Sight is a call as it was seen; zero is none.
type Sight uint64

// A Sight has, from the lowest bit, three flags, the kind, the first row in hand,
// the row behind the last, and a number that no other call has for hours.
const (
	asked Sight = 1 << iota
	pinned
	taken
	flags = asked | pinned | taken

	kindAt, rowAt, endAt, numberAt = 3, 7, 18, 29
	rowMask                        = 1<<11 - 1
)

// Kind returns what Begin was given.
func (s Sight) Kind() uint8 { return uint8(s>>kindAt) & 15 }

// Rows returns the rows in hand, from first up to end.
func (s Sight) Rows() (first, end int) { return int(s>>rowAt) & rowMask, int(s>>endAt) & rowMask }

// Same reports whether both are the same call.
func (s Sight) Same(o Sight) bool { return s&^flags == o&^flags }

// Pinned reports whether the observer has looked at what is in hand.
func (s Sight) Pinned() bool { return s&pinned != 0 }

// Taken reports whether the life was declared over during the call.
func (s Sight) Taken() bool { return s&taken != 0 }

// Hand says what the calls that follow work on. Only the owner calls it, outside.
func (c *Call[P]) Hand(p *P) { c.hand.Store(p) }

// Begin enters a call of a kind, from 1 to 15, that works on the rows from first up
// to end, at most 1,024. Only the owner calls it.
func (c *Call[P]) Begin(kind uint8, now time.Duration, first, end int) {
	c.next++
	c.since.Store(int64(now))
	c.word.Store(c.next<<numberAt | uint64(end)<<endAt | uint64(first)<<rowAt | uint64(kind)<<kindAt)
}

// End leaves the call, and returns what the observer has done to it. Outside it
// changes nothing and returns zero. Only the owner calls it.
func (c *Call[P]) End() Sight { return Sight(c.word.Swap(0)) }

// Asked reports whether the observer would like to see a new call: the rows of
// this one may be many and slow.
func (c *Call[P]) Asked() bool { return Sight(c.word.Load())&asked != 0 }

// Taken reports whether the life was declared over in this call. Only the owner
// calls it.
func (c *Call[P]) Taken() bool { return Sight(c.word.Load()).Taken() }

// Look returns the call that the owner is in and since when, or zero.
func (c *Call[P]) Look() (s Sight, since time.Duration) {
	s = Sight(c.word.Load())
	since = time.Duration(c.since.Load())
	if Sight(c.word.Load()) != s {
		return 0, 0 // it has just moved on, so all is well
	}
	return s, since
}

// Ask asks for a new call, if s still goes on.
func (c *Call[P]) Ask(s Sight) { c.mark(s, asked) }

// Pin returns what is in hand, and reports whether s still goes on. The observer
// may read it from then on.
func (c *Call[P]) Pin(s Sight) (*P, bool) { return c.mark(s, pinned) }

// Take declares the owner's life over, if s still goes on.
func (c *Call[P]) Take(s Sight) (*P, bool) { return c.mark(s, pinned|taken) }

func (c *Call[P]) mark(s, with Sight) (*P, bool) {
	p := c.hand.Load() // before: if the call is the same then, so is what was in hand
	for {
		now := Sight(c.word.Load())
		if !now.Same(s) {
			return nil, false
		}
		if c.word.CompareAndSwap(uint64(now), uint64(now|with)) {
			return p, true
		}
	}
}
