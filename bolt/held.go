package bolt

import (
	"context"

	"github.com/egretstream/egret/tuple"
)

// A Held is a tuple that a bolt has retained: Execute has returned, and the tuple
// is neither acked nor failed. Its fields are read like those of any tuple, and
// stay valid.
//
// Exactly one of Ack and Fail is to be called, once, from any goroutine; the engine
// reports a second one and otherwise takes no notice of it. What is never let go
// of is replayed, at the latest when nothing was heard of its message for the
// topology's message timeout beyond what the component Holds.
type Held struct {
	tuple.Tuple
	owner Owner
}

// An Owner is what the engine keeps of a retained tuple. It is part of the engine
// and not for users.
type Owner interface {
	// Settle acks the tuple, or fails it if err is not nil. It may be called from any
	// goroutine.
	Settle(err error)
}

// NewHeld returns a retained tuple; the engine calls it.
func NewHeld(in tuple.Tuple, owner Owner) Held { return Held{in, owner} }

// Owner returns what the engine keeps of the tuple.
func (h *Held) Owner() Owner { return h.owner }

// Ack says that everything is done that was to be done with the tuple.
func (h *Held) Ack() { h.owner.Settle(nil) }

// Fail fails the tuple, and with it its message, as if Execute had returned err;
// so [Reject] works here too.
func (h *Held) Fail(err error) {
	if err == nil {
		err = errNoReason
	}
	h.owner.Settle(err)
}

type noReason struct{}

func (noReason) Error() string { return "failed without a reason" }

var errNoReason error = noReason{}

// A Keeper is a Sink that can also keep what comes in. It is part of the engine
// and not for users.
type Keeper interface {
	Sink
	// Retain takes in, the tuple in hand, out of Execute's hands.
	Retain(in tuple.Tuple) *Held
	// Anchored returns a sink whose tuples are anchored to hs.
	Anchored(hs []*Held) Sink
	// Block calls fn elsewhere, and then with its result on the task's own turn.
	Block(fn func() any, then func(result any))
	// Pause says whether Execute is to be left alone until further notice.
	Pause(yes bool)
}

func (c *Collector) keeper(method string) Keeper {
	k, is := c.sink.(Keeper)
	if !is {
		tuple.Misuse(method + " is called of a collector that comes of Anchor")
	}
	return k
}

// Retain keeps the tuple that Execute was called with: when Execute returns nil,
// it is not acked, and a copy of it goes on living in what Retain returns. Say with
// topology.Component.Holds how long the component may keep one. If Execute returns
// an error the tuple has failed, and what Retain returned is void.
//
// A tuple can be retained in its own Execute only; retaining it twice is the same
// as once.
func (c *Collector) Retain(in tuple.Tuple) *Held { return c.keeper("Retain").Retain(in) }

// Anchor returns a collector whose tuples are anchored to retained tuples, and not
// to the one in hand: the messages that they come of are done when everything is
// that comes of the new tuple, too. It may be called in any method that was given
// a collector, for the same call, with tuples that are neither acked nor failed,
// and at most 4,096 messages may stand behind them.
func (c *Collector) Anchor(to ...*Held) *Collector {
	return &Collector{schemas: c.schemas, sink: c.keeper("Anchor").Anchored(to), ctx: c.ctx, output: c.output}
}

// block calls fn, which may wait, where it does not hold up the task, and then then
// with what it has returned, on the task's turn.
func (c *Collector) block(fn func(ctx context.Context) any, then func(result any)) {
	ctx := c.ctx
	c.keeper("Block").Block(func() any { return fn(ctx) }, then)
}
