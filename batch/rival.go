package batch

import (
	"fmt"

	"github.com/egretstream/egret/tuple"
)

// A rival is who has fenced a store against the present attempt: the coordinator that has
// replaced this one, or one of another record, whose state it is (T15).
type rival struct {
	fence uint32 // its epoch
	task  tuple.TaskID
	why   string
}

// challenge asks the record who the rival is of a task that could not join. If it is a
// coordinator of this record it has begun its epoch there before it has fenced anything
// (T1): so the next epoch is refused, or is a later one.
func (c *Coordinator) challenge(from tuple.TaskID, a *Answer) {
	c.rival = rival{a.Fence, from, a.Err}
	c.end(Start, nil)
	c.phase, c.retry = Recovering, 0
}

// foreign stops the topology if nobody can have had the rival's epoch of the record r,
// which this one has just begun one of. An epoch that this one had before is its own, and
// it was in no later attempt.
func (c *Coordinator) foreign(r *Record) bool {
	v := c.rival
	c.rival = rival{}
	if v.fence < r.Epoch && v.fence != c.attempt.Epoch {
		return false
	}
	c.stop(Event{Kind: Fatal, Tasks: []tuple.TaskID{v.task}, Err: fmt.Errorf("the state does not fit the record, which has never had the attempt that has the state: %s", v.why)})
	return true
}
