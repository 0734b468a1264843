package task

import "fmt"

// giveUp is the timer of calls of the source that should have returned when their
// context ended.
type giveUp struct{}

// callsUnderWay reports whether a call of Splits, Open or Next has not returned.
func (t *spoutTask) callsUnderWay() bool {
	for _, r := range t.splits {
		if r.call != nil {
			return true
		}
	}
	return t.listing
}

// abandon goes on without the calls that ignore their context. What they return
// after all is dropped, and their reader closed. Their splits have ended here;
// what they had read and not returned will be read again by the next run.
func (t *spoutTask) abandon() {
	if t.listing {
		t.listing = false
		t.leftBehind("Splits", nil)
	}
	for _, r := range t.splits {
		if r.call == nil {
			continue
		}
		if _, back := r.call.leave(); back {
			continue // its result is on its way
		}
		what := "Next"
		if r.reader == nil {
			what = "Open"
		}
		r.call, r.reader, r.eof = nil, nil, true
		t.leftBehind(what, r)
	}
}

func (t *spoutTask) leftBehind(what string, r *reading) {
	if r != nil {
		what += " of split " + string(r.split)
	}
	t.tellLeft(ignores, "source", what)
}

// abandon goes on without a call of the queue that ignores its context. It is the
// task's nevertheless: if it comes back before the task ends, what it has brought is
// handed back, and else it hands that back itself.
func (t *queueTask) abandon() {
	if t.call == nil || t.given {
		return
	}
	t.given = true
	what := "Next"
	if t.call.opening {
		what = "Open"
	}
	t.tellLeft(ignores, "queue", what)
}

const ignores = "ignores its context"

func (c *core) tellLeft(why, whose, what string) {
	c.m.AbandonedCalls.Add(1)
	c.set.Event(&Notice{Task: c.m.Name, Text: fmt.Sprintf("the %s of %s %s: %s is left behind", whose, c.node.Name, why, what)})
}
