package batch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/egretstream/egret/tuple"
)

// What a record knows of who has written (T11, T15). A batch is committed by one attempt
// for the whole group, and attempts grow with batches: so a list of where each begins is
// enough, and most records have a few of them for thousands of key groups.

// Stamps returns the stamp of each key group of a stateful component: the batch that has
// written to it last, and the attempt that has committed that. It is tuple.KeyGroups long;
// nil: nothing was ever written.
func (r *Record) Stamps(component string) []tuple.BatchID {
	last := r.Last[component]
	if last == nil {
		return nil
	}
	stamps := make([]tuple.BatchID, len(last))
	for g, tx := range last {
		if tx != 0 {
			stamps[g] = tuple.BatchID{Attempt: r.Attempts[r.attemptOf(tx)].Attempt, Tx: tx}
		}
	}
	return stamps
}

// attemptOf returns which of the Attempts has committed a batch of Last.
func (r *Record) attemptOf(tx tuple.TxID) int {
	i, is := slices.BinarySearchFunc(r.Attempts, tx, func(a tuple.BatchID, tx tuple.TxID) int {
		return cmp.Compare(a.Tx, tx)
	})
	if !is {
		i-- // it has begun before
	}
	return i
}

// wrote takes in who has written a batch, which is in Last now. Attempts none of whose
// batches is there any more are forgotten when another one comes.
func (r *Record) wrote(id tuple.BatchID, groups map[string]tuple.Groups) {
	if n := len(r.Attempts); n > 0 && r.Attempts[n-1].Attempt == id.Attempt {
		return
	}
	some := false
	for _, g := range groups {
		some = some || !g.Empty()
	}
	if !some {
		return
	}
	r.Attempts = append(r.Attempts, id)
	r.forgetAttempts()
}

// Without returns the record without what it has of some states.
func (r *Record) Without(states []string) *Record {
	c := r.Clone()
	for _, name := range states {
		delete(c.Last, name)
	}
	c.forgetAttempts()
	return c
}

// forgetAttempts forgets those none of whose batches is in Last.
func (r *Record) forgetAttempts() {
	used := make([]bool, len(r.Attempts))
	for _, last := range r.Last {
		for _, tx := range last {
			if tx != 0 {
				used[r.attemptOf(tx)] = true
			}
		}
	}
	kept := r.Attempts[:0]
	for i, a := range r.Attempts {
		if used[i] {
			kept = append(kept, a)
		}
	}
	r.Attempts = kept
}

// checkStamps returns what no Apply has made of Last and Attempts.
func (r *Record) checkStamps() error {
	for i, a := range r.Attempts {
		switch {
		case a.Tx == 0 || a.Tx > r.Committed || a.Epoch > r.Epoch:
			return fmt.Errorf("batch %v was written, and epoch %d has committed batch %d", a, r.Epoch, r.Committed)
		case i > 0 && (a.Tx <= r.Attempts[i-1].Tx || !r.Attempts[i-1].Attempt.Less(a.Attempt)):
			return fmt.Errorf("batch %v was written behind batch %v", a, r.Attempts[i-1])
		}
	}
	for component, last := range r.Last {
		if len(last) != tuple.KeyGroups {
			return fmt.Errorf("%s has %d key groups, and not %d", component, len(last), tuple.KeyGroups)
		}
		for g, tx := range last {
			switch {
			case tx > r.Committed:
				return fmt.Errorf("batch %d has written to key group %d of %s, and batch %d is committed", tx, g, component, r.Committed)
			case tx > 0 && (len(r.Attempts) == 0 || tx < r.Attempts[0].Tx):
				return fmt.Errorf("batch %d has written to key group %d of %s, and no attempt has", tx, g, component)
			}
		}
	}
	if len(r.Attempts) > len(r.Last)*tuple.KeyGroups {
		return errors.New("more attempts have written than there are key groups")
	}
	return nil
}
