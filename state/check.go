package state

import (
	"errors"
	"fmt"

	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/tuple"
)

// Check says what a Join has to do with a group of its own, of which the store has fence
// and, as the stamp of the last write, last: whether it is of the batch behind the last
// committed one. It is how stores decide; they have to keep others from the group between
// that and what they do.
func (j *Join) Check(group uint16, fence tuple.Fence, last tuple.BatchID) (ahead bool, err error) {
	if j.Fence.Less(fence) {
		return false, &FencedError{Joins: j.Fence.Attempt, By: fence.Attempt, Group: group}
	}
	want := lastOf(j.Last, group)
	switch {
	case last == want, last.Tx == want.Tx && mutation.Is(mutation.TxidAlone):
		return false, nil
	case last.Tx == j.Committed+1 && (j.Undo || j.Fixed || mutation.Is(mutation.AheadUnfixed)):
		return true, nil
	case last.Tx == j.Committed+1:
		return false, fmt.Errorf("%w: key group %d has %s last, and the record does not say what that batch has, so it is not one of this record, in which batch %d is the last one",
			ErrLost, group, written(last), j.Committed)
	case last.Tx < want.Tx:
		return false, fmt.Errorf("%w: key group %d has %s last, and %s was acknowledged: it has lost that, or is not the store that had it",
			ErrLost, group, written(last), written(want))
	case last.Tx == want.Tx:
		return false, fmt.Errorf("%w: key group %d has %s last, and %s was committed: it is a copy from before that, or the store of another topology",
			ErrLost, group, written(last), written(want))
	default:
		return false, fmt.Errorf("%w: key group %d has %s last, and of the batches up to %d, which are committed, %s was the last one for it: the record is of another time or another topology",
			ErrLost, group, written(last), j.Committed, written(want))
	}
}

// Advise adds to an error of a Join or a Write what people can do if the state is of
// another record. remove says how the state is removed from its store.
func Advise(err error, remove string) error {
	if _, fenced := errors.AsType[*FencedError](err); !fenced && !errors.Is(err, ErrLost) {
		return err
	}
	return fmt.Errorf("%w (to go on, start with the --state directory that the state was written with; to begin anew, %s, and start with --reset if there is a --state directory; what was killed in a cluster can only begin anew)", err, remove)
}

// Leaves returns the stamp that a group has after a Join for which Check has said ahead.
func (j *Join) Leaves(group uint16, ahead bool) tuple.BatchID {
	if ahead && !j.Undo {
		return tuple.BatchID{Attempt: j.Fence.Attempt, Tx: j.Committed + 1}
	}
	return lastOf(j.Last, group)
}

// Check says whether w may write to a group, of which the store has fence and, as the
// stamp of the last write, last. If not, the error wraps ErrFenced or ErrLost.
func (w *Write) Check(group uint16, fence tuple.Fence, last tuple.BatchID) error {
	if fence == (tuple.Fence{}) {
		return fmt.Errorf("%w: batch %d would write, and nobody has joined key group %d", ErrFenced, w.Tx, group)
	}
	if fence != w.Fence && !mutation.Is(mutation.FenceUncompared) {
		return fmt.Errorf("%w: batch %d of attempt %v would write, and key group %d has attempt %v", ErrFenced, w.Tx, w.Fence.Attempt, group, fence.Attempt)
	}
	if left := lastOf(w.Last, group); last != left && !mutation.Is(mutation.AnyOlder) {
		return fmt.Errorf("%w: batch %v would write, and key group %d has %s last, and this task has left %s there: the store has lost that, or somebody has put another one in its place",
			ErrLost, w.Stamp(), group, written(last), written(left))
	}
	if last.Tx < w.Tx || last.Tx == w.Tx && w.Again {
		return nil
	}
	return fmt.Errorf("%w: batch %d would write, and key group %d has batch %d", ErrFenced, w.Tx, group, last.Tx)
}

// Stamp returns what the groups of w have when it is written.
func (w *Write) Stamp() tuple.BatchID { return tuple.BatchID{Attempt: w.Fence.Attempt, Tx: w.Tx} }

// Groups returns the groups of w.Rows.
func (w *Write) Groups() (groups tuple.Groups) {
	for i := range w.Rows {
		groups.Add(w.Rows[i].Group)
	}
	return groups
}

func lastOf(last []tuple.BatchID, group uint16) tuple.BatchID {
	if last == nil {
		return tuple.BatchID{}
	}
	return last[group]
}

// written names a stamp for people.
func written(stamp tuple.BatchID) string {
	if stamp == (tuple.BatchID{}) {
		return "nothing"
	}
	return "batch " + stamp.String()
}
