package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/egretstream/egret/tuple"
)

// ErrFenced reports that another attempt or another life of the task has the key groups
// now. Nothing was written. It is not to be tried again.
var ErrFenced = errors.New("another attempt has fenced the state")

// An UnusableError is of a store that no other try helps with: it is damaged or of another
// layout, its place cannot be read, or it cannot keep a key. People have to look. A store
// that may be back, as a database that is away or a disk that is full, returns other errors.
type UnusableError struct{ Err error }

func (e *UnusableError) Error() string { return e.Err.Error() }
func (e *UnusableError) Unwrap() error { return e.Err }

// A FencedError is the ErrFenced of a [Store.Join].
type FencedError struct {
	Joins, By tuple.Attempt
	Group     uint16 // one that has the fence
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("%v: attempt %v joins, and key group %d has attempt %v", ErrFenced, e.Joins, e.Group, e.By)
}

func (e *FencedError) Unwrap() error { return ErrFenced }

// ErrLost reports that a store has not what it has acknowledged, or is not the store of
// this topology: the stamp of a key group is not the one that the record has (T15), or that
// the task has left (T11). It is not to be tried again, and people have to look.
var ErrLost = errors.New("the state does not fit the record")

// ErrNone reports that there is no such state in a place.
var ErrNone = errors.New("there is no such state")

// A Backend makes stores: one kind of place.
type Backend interface {
	// Open returns the store of a state. It may wait. Several tasks, and several
	// processes if the place can be reached from them, may have one state open.
	Open(ctx context.Context, name Name) (Store, error)
	// Find is Open for who only reads what is there: it makes nothing. If nothing is there
	// the error wraps ErrNone.
	Find(ctx context.Context, name Name) (Store, error)
	// String says for people where the states are, without secrets.
	String() string
}

// A Local backend has its states in the memory or on the disk of one node. A topology that
// has states there stays on the node where they are (T18).
type Local interface {
	Backend
	// Local does nothing; it says that the backend is one.
	Local()
}

// A Name names a state: that of one component of one topology.
type Name struct{ Topology, State string }

func (n Name) String() string { return n.Topology + "/" + n.State }

// A Store is one state. Its methods may wait, and may be called by several goroutines. Their
// errors, and those of [Backend].Open, say which state it is and where, and no secret.
type Store interface {
	// Join raises the fences of the groups, durably: from when it returns, a Write with
	// another fence is refused. If a group has a fence that is greater it changes nothing
	// and returns a FencedError.
	//
	// Then it compares what the store has with the record. The stamp of each group must be
	// j.Last of that group, or be of batch j.Committed+1, whichever attempt. A group that has
	// that is undone if j.Undo: all its rows which that batch has changed get back the value
	// before (T12) and the batch of j.Last for their Tx, or are gone if they had none, and
	// then the group has j.Last. If j.Fixed the batch stays, from now on as one of this
	// attempt, and the group is among those that are returned. Any other stamp is ErrLost, and
	// so is that of batch j.Committed+1 with neither of them; that changes nothing.
	Join(ctx context.Context, j *Join) (ahead tuple.Groups, err error)
	// Get returns the rows of keys, in their order. A key without a row has the zero Row.
	// It does not look at fences.
	Get(ctx context.Context, keys []Key) ([]Row, error)
	// Write writes rows in one transaction, whose first act is to compare the fence of each
	// group of w.Rows; if one is another it returns ErrFenced. Then the stamp of each must be
	// w.Last of that group, else it returns ErrLost; and that must be of a batch before w.Tx,
	// or of w.Tx if w.Again, else it returns ErrFenced. Then nothing is written. It returns
	// nil when the rows are durable, and their groups have the stamp of w. After another
	// error nobody knows what is written, and only a Join finds out. Without rows it does
	// nothing.
	Write(ctx context.Context, w *Write) error
	// Scan calls f for each row of the groups, in no order, until it returns false. What is
	// written meanwhile may be seen or not. f may call the store.
	Scan(ctx context.Context, groups *tuple.Groups, f func(Key, Row) bool) error
	// Close lets go of what the store has open. Everything that was written stays. A call
	// beside it, or behind it, may return an error.
	Close() error
}

// A Settler is a store that others can read, too, and wants to show them what is
// committed.
type Settler interface {
	// Settle says that the batches up to committed are. It is for readers outside only: a
	// Join says so, and a Write says it of the batch before its own, so without Settle they
	// miss the last batch for as long as no other one follows. It is refused by nobody and
	// does nothing after another fence has come.
	Settle(ctx context.Context, fence tuple.Fence, committed tuple.TxID) error
}

// A Key is a key and the group that it belongs to.
type Key struct {
	Group uint16
	Bytes string // any bytes
}

// A Row is what a store has of a key. Its bytes are not to be changed.
type Row struct {
	Tx    tuple.TxID // the batch that has changed it; 0: there is no row
	Value []byte     // nil: absent
	Prev  []byte     // the value before Tx; nil: there was none, or none is kept
}

// A Join is what a task tells its store when a round begins.
type Join struct {
	Fence     tuple.Fence
	Groups    tuple.Groups // of the task
	Committed tuple.TxID
	Last      []tuple.BatchID // stamps of the record, by group, of batches up to Committed; nil: nothing was ever written
	Undo      bool            // rows have Prev
	// Fixed: not Undo, and the record has the ranges of batch Committed+1 (T13), so that it
	// may have been written; or it is of no account what such a batch had.
	Fixed bool
}

// A Write is what a batch changes.
type Write struct {
	Fence tuple.Fence
	Tx    tuple.TxID
	// Last are the stamps that this task has left in the groups of Rows, or found in those
	// that it has not written to since it joined, by group; nil: nothing was ever written.
	// Never what it has merely seen there (T11).
	Last  []tuple.BatchID
	Rows  []Change // no key twice; their Tx is that of the Write, whatever they say
	Again bool     // Tx may have written before: for values that know of it themselves (T13)
}

// A Change is a row that is to be.
type Change struct {
	Key
	Row
}
