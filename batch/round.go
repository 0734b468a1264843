package batch

import (
	"maps"
	"slices"
	"time"

	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/tuple"
)

// pump does all that can be done now.
func (c *Coordinator) pump(now time.Duration) {
	if now >= c.resume {
		c.resume = 0
	}
	if c.phase == Recovering && c.asked == (Request{}) && now >= c.retry {
		c.ask(Request{Begin: true})
	}
	if c.phase == Waiting && c.mayJoin() {
		c.round(now)
	}
	if c.phase == Joining && (c.unjoined == 0 || mutation.Is(mutation.BeginUnjoined)) {
		c.phase = Running
	}
	if c.phase != Running {
		return
	}
	c.advance(now)
	if c.phase == Waiting { // a batch has failed
		c.pump(now)
		return
	}
	for c.phase == Running && c.wants(now) {
		c.begin(now)
	}
	if c.Idle() && !c.held && (c.draining || c.ended()) {
		c.phase = Finishing
		c.again = now + c.set.Again
		c.event(Event{Kind: Finished})
		c.repeat()
	}
}

func (c *Coordinator) ask(r Request) { c.asked, c.out.Request = r, r }

func (c *Coordinator) order(to tuple.TaskID, o Order) {
	o.Attempt = c.attempt
	c.out.Orders = append(c.out.Orders, Letter{to, &o})
}

// end ends the round. The next one begins when it may.
func (c *Coordinator) end(cause Cause, who []tuple.TaskID) {
	c.phase, c.batches, c.cause, c.who = Waiting, nil, cause, who
}

// mayJoin reports whether a round can begin: all lives are known, and so is what the
// record has. While an entry is on its way there it may be that a batch is committed
// which the round would undo (T2).
func (c *Coordinator) mayJoin() bool {
	if (c.asked != Request{}) && !mutation.Is(mutation.RoundUnawaited) {
		return false
	}
	for i, life := range c.lives {
		if life == 0 && c.roles[i].Kind != Bystander {
			return false
		}
	}
	return true
}

// round begins the next round where the record is (T3).
func (c *Coordinator) round(now time.Duration) {
	c.attempt.Round++
	c.phase, c.view = Joining, slices.Clone(c.lives)
	c.joined, c.unjoined = make([]bool, len(c.roles)), c.members
	c.inputs = make([]input, len(c.roles))
	c.positions, c.last = map[string]Positions{}, map[string][]tuple.BatchID{}
	for i := range c.roles {
		r := &c.roles[i]
		c.inputs[i].said = c.record.Committed
		if _, known := c.positions[r.Component]; !known && r.Kind == Spout {
			c.positions[r.Component] = maps.Clone(c.record.Positions[r.Component])
		}
		if _, known := c.last[r.Component]; !known && r.Kind == Stateful {
			c.last[r.Component] = c.record.Stamps(r.Component)
		}
	}
	c.rounds[c.cause]++
	c.event(Event{Kind: RoundBegan, BatchID: tuple.BatchID{Attempt: c.attempt, Tx: c.record.Committed}, Cause: c.cause, Tasks: c.who})
	c.who = nil
	c.progress(now)
	c.repeat()
}

// repeat says, again, what has no answer.
func (c *Coordinator) repeat() {
	for i := range c.roles {
		r, id := &c.roles[i], tuple.TaskID(i)
		if r.Kind == Bystander {
			continue
		}
		switch c.phase {
		case Joining:
			if !c.joined[i] {
				o := Order{Kind: Join, BatchID: tuple.BatchID{Tx: c.record.Committed}, View: c.view,
					Positions: c.positions[r.Component], Last: c.last[r.Component]}
				if r.Kind == Stateful && c.record.Fixed != nil {
					o.Fixed = Ranges{}
				}
				c.order(id, o)
			}
		case Finishing:
			if c.lives[i] != 0 {
				c.order(id, Order{Kind: Finish, BatchID: tuple.BatchID{Tx: c.record.Committed}})
			}
		case Running:
			for k, w := range c.batches {
				switch {
				case r.Kind == Spout && w.got[i]&hasEmitted == 0:
					c.order(id, c.beginning(r, w.tx))
				case k > 0:
				case r.Kind == Stateful && w.stage == Writing && w.got[i]&hasWritten == 0:
					c.order(id, Order{Kind: Write, BatchID: tuple.BatchID{Tx: w.tx}})
				}
				if k == 0 && r.Settled && w.lacks(r, id) {
					c.order(id, Order{Kind: Settled, BatchID: tuple.BatchID{Tx: c.record.Committed}})
				}
			}
		}
	}
}

// missing returns the tasks that an answer is waited for of.
func (c *Coordinator) missing() (who []tuple.TaskID) {
	for i := range c.roles {
		r, id := &c.roles[i], tuple.TaskID(i)
		if r.Kind == Bystander {
			continue
		}
		switch c.phase {
		case Waiting:
			if c.lives[i] == 0 {
				who = append(who, id)
			}
		case Joining:
			if !c.joined[i] {
				who = append(who, id)
			}
		case Running:
			if len(c.batches) > 0 && c.batches[0].lacks(r, id) {
				who = append(who, id)
			}
		case Finishing:
			if c.lives[i] != 0 {
				who = append(who, id)
			}
		}
	}
	return who
}

// ended reports whether no spout task will ever have input again.
func (c *Coordinator) ended() bool {
	for i := range c.roles {
		if c.roles[i].Kind == Spout && !c.inputs[i].ended {
			return false
		}
	}
	return true
}
