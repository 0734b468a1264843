package from

import (
	"context"
	"time"
)

const (
	// precise is the longest wait that is left to the kernel's clock. ctx is not
	// looked at meanwhile.
	precise = 5 * time.Millisecond
	// early is how much before a due time a timer of Go's is set: it fires up to
	// about a millisecond late in a process that has nothing else to do.
	early = 2 * time.Millisecond
)

// An alarm waits more precisely than a timer.
type alarm struct {
	timers bool // use nothing but timers
}

// wait waits for about d, or until ctx ends. It may return early: the caller looks
// at its clock again.
func (a *alarm) wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d <= precise && !a.timers {
		before := time.Now()
		if sleep(d) && !time.Now().Equal(before) {
			return nil
		}
		// Either the kernel's clock cannot be waited for here, or time stands still
		// while it passes in the kernel, as in a testing/synctest bubble.
		a.timers = true
	}
	if !a.timers {
		d -= early
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
