package task

import "github.com/egretstream/egret/tuple"

// How a run comes to rest without ending, so that tasks can be moved.

// Halt tells a supervisor that its tasks are to emit no new messages until a Halt with
// N 0 comes. It answers with AtRest when they have none open and hold none, which may
// be never. Between two that are to be told apart N is another one.
type Halt struct{ N uint64 }

// AtRest tells who is over a supervisor that its tasks are halted and have nothing
// left to do, as far as it knows: a message that another node's task has open may
// still come by.
type AtRest struct {
	Run uint32
	N   uint64
}

// Between a supervisor and its tasks.
type (
	halt   struct{ n uint64 }
	rested struct {
		task tuple.TaskID
		life tuple.Incarnation
		n    uint64
	}
)

// sayRest tells the supervisor once that there is nothing left to do.
func (c *core) sayRest() {
	if c.rested != c.halt {
		c.rested = c.halt
		c.ctx.Send(c.sup, rested{c.id, c.life, c.halt})
	}
}

// idle reports whether nothing is open and all positions are told. In a topology with
// batches the coordinator knows.
func (t *spoutTask) idle() bool {
	if t.round != nil {
		return true
	}
	if t.cur != nil || t.out.kept > 0 || t.origin != nil && !t.origin.atRest() {
		return false
	}
	for _, r := range t.splits {
		r.toldAt = 0
		t.tell(r)
		if r.told != r.position {
			return false // Commit is under way
		}
	}
	return true
}

func (t *queueTask) idle() bool {
	return t.cur == nil && t.out.kept == 0 && (t.origin == nil || t.origin.atRest())
}

func (t *boltTask) idle() bool {
	if t.round != nil {
		return true
	}
	return t.hand == nil && t.head == len(t.queue) && t.out.kept == 0 && t.away == 0 && len(t.parts) == 0 &&
		(t.origin == nil || t.origin.atRest())
}
