package state

import (
	"fmt"

	"github.com/egretstream/egret/tuple"
)

// Check says what a Join has to do with a group of its own, of which the store has fence
// and, as the last batch that has written, last. It is how stores decide; they have to
// keep others from the group between that and what they do.
func (j *Join) Check(group uint16, fence tuple.Fence, last tuple.TxID) (undo bool, err error) {
	if j.Fence.Less(fence) {
		return false, fmt.Errorf("%w: attempt %v joins, and key group %d has attempt %v", ErrFenced, j.Fence.Attempt, group, fence.Attempt)
	}
	switch want := j.LastOf(group); {
	case last == want:
		return false, nil
	case last == j.Committed+1:
		return j.Undo, nil
	case last < want:
		return false, fmt.Errorf("%w: key group %d has batch %d last, and batch %d was acknowledged: it has lost that, or is not the store that had it",
			ErrLost, group, last, want)
	default:
		return false, fmt.Errorf("%w: key group %d has batch %d last, and of the batches up to %d, which are committed, %d was the last one for it: the record is of another time or another topology",
			ErrLost, group, last, j.Committed, want)
	}
}

// LastOf is Last of a group, which is 0 if Last is nil.
func (j *Join) LastOf(group uint16) tuple.TxID {
	if j.Last == nil {
		return 0
	}
	return j.Last[group]
}

// Check says whether w may write to a group, of which the store has fence and, as the
// last batch that has written, last. If not, the error wraps ErrFenced.
func (w *Write) Check(group uint16, fence tuple.Fence, last tuple.TxID) error {
	if fence == (tuple.Fence{}) {
		return fmt.Errorf("%w: batch %d would write, and nobody has joined key group %d", ErrFenced, w.Tx, group)
	}
	if fence != w.Fence {
		return fmt.Errorf("%w: batch %d of attempt %v would write, and key group %d has attempt %v", ErrFenced, w.Tx, w.Fence.Attempt, group, fence.Attempt)
	}
	if last < w.Tx || last == w.Tx && w.Again {
		return nil
	}
	return fmt.Errorf("%w: batch %d would write, and key group %d has batch %d", ErrFenced, w.Tx, group, last)
}

// Groups returns the groups of w.Rows.
func (w *Write) Groups() (groups tuple.Groups) {
	for i := range w.Rows {
		groups.Add(w.Rows[i].Group)
	}
	return groups
}
