package task

import (
	"math"
	"time"

	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/tuple"
)

// A call shows the supervisor in which call of user code a life is.
type call = metrics.Call[tuple.Parcel]

// A callKind says which call of user code it is.
type callKind uint8

const (
	inPrepare callKind = 1 + iota
	inExecute
	inTick
	inFinish
	inFlush
	inRound
	inBatch
	inComplete
	inReturn // what Async does with a call that has come back
	inClose
	inNext // of a prompt reader, on the task's turn
	inAck
	inFail
	inLook // of a tap at what is sent
)

var callNames = [...]string{"", "Prepare", "Execute", "Tick", "Finish", "Flush", "Round", "Batch", "Complete", "a call of Async", "Close", "Next", "Ack", "Fail", "a tap"}

func (k callKind) String() string { return callNames[k] }

// cameBack tells the supervisor that a call has returned that it had noticed.
type cameBack struct {
	task tuple.TaskID
	life tuple.Incarnation
	at   time.Duration
}

// enterCall says that user code is called now.
func (c *core) enterCall(k callKind) {
	c.kind = k
	since := c.now
	if k >= inNext {
		since = math.MaxInt64 // now may be many calls old, and none of them is worth a look at the clock
	}
	c.call.Begin(uint8(k), since, 0, 0)
}

// leaveCall says that user code has come back. It returns false if this life has
// been replaced meanwhile: then it is over, its counters belong to another one,
// and all that is left to do is to close what it has opened.
func (c *core) leaveCall() bool {
	s := c.call.End()
	if s.Pinned() {
		c.seen = true
		c.ctx.Send(c.sup, cameBack{c.id, c.life, c.ctx.Now()})
	}
	if s.Taken() {
		c.replaced, c.dead = true, true
		c.m = metrics.NewTask(c.m.Name, len(c.m.Streams), len(c.m.Inputs)) // what it still counts is for nobody
	}
	return !c.replaced
}

// over reports whether this life has been replaced, also while its user code goes
// on: what that emits is for nobody.
func (c *core) over() bool { return c.replaced || c.call.Taken() }
