package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/tuple"
)

// Positions say where the splits of a component's source are read on, as its readers
// have said; "" is the beginning.
type Positions map[string]string

// A Range is what a batch has of a split: Messages from From on, to To.
type Range struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Messages int    `json:"messages"`
}

// Ranges are those of one batch in one component, by split. Splits of which it has
// nothing are not in it.
type Ranges map[string]Range

// A Record is what is durable of a topology's batches, besides the states (T9). The
// zero value is that of a topology that has never run.
type Record struct {
	Epoch uint32 `json:"epoch"` // the present coordinator's
	// Life is the greatest one of the coordinator's task that has begun an epoch. What has
	// been replaced and does not know it cannot begin one again.
	Life      tuple.Incarnation `json:"life,omitempty"`
	Committed tuple.TxID        `json:"committed"`
	// Positions behind Committed, by component. A split that is not there begins at its
	// beginning.
	Positions map[string]Positions `json:"positions,omitempty"`
	// Fixed, if not nil, are the ranges that batch Committed+1 has for ever, by component:
	// those of transactional spouts (T13).
	Fixed map[string]Ranges `json:"fixed,omitempty"`
	// Last is the last batch that has written to each key group, by stateful component:
	// tuple.KeyGroups long (T15). Every state is there that a batch was committed with, also
	// if none has written to it.
	Last map[string][]tuple.TxID `json:"last,omitempty"`
	// Attempts say which attempt has committed the batches of Last: each the first one of
	// its attempt and of those until the next. See Stamps.
	//
	// Invariants: attempts and batches grow; when one is added each has a batch in Last, so
	// there are never more than groups that were written to.
	Attempts []tuple.BatchID `json:"attempts,omitempty"`
}

// An Entry changes a record. Exactly one of its parts is there.
type Entry struct {
	// Epoch is that of the coordinator who wants the change.
	Epoch uint32 `json:"epoch"`
	// Begin makes Epoch that of the record. Life is that of the coordinator who wants it; 0
	// where nobody else can be, as in a directory that is locked.
	Begin bool              `json:"begin,omitempty"`
	Life  tuple.Incarnation `json:"life,omitempty"`
	// Fix says what the batch behind the last committed one has for ever.
	Fix *Fix `json:"fix,omitempty"`
	// Commit makes a batch committed.
	Commit *Commit `json:"commit,omitempty"`
}

// A Fix is the part of an Entry that fixes ranges.
type Fix struct {
	Tx     tuple.TxID        `json:"tx"`
	Ranges map[string]Ranges `json:"ranges"`
}

// A Commit is the part of an Entry that makes a batch committed.
type Commit struct {
	Tx tuple.TxID `json:"tx"`
	// Round is that of the attempt that has written it; the epoch is the Entry's.
	Round     uint32                  `json:"round"`
	Positions map[string]Positions    `json:"positions,omitempty"` // those that have changed
	Written   map[string]tuple.Groups `json:"written,omitempty"`   // by stateful component
}

// ErrStale reports an entry that the record does not take: of a coordinator that has
// been replaced, or not of the next batch. It says nothing of what has happened to the
// batch; whoever gets it is not the coordinator any more.
var ErrStale = errors.New("stale entry for the record of batches")

// ErrReplaced is the ErrStale of a Begin by a life that has been replaced: it is of no
// use to begin again.
var ErrReplaced = fmt.Errorf("%w: a later life of the coordinator has begun", ErrStale)

// Apply takes in an entry, or changes nothing and returns an error that wraps ErrStale
// (T9). It is called where the record is, in the order in which entries become durable.
// r keeps parts of e.
func (r *Record) Apply(e *Entry) error {
	parts := 0
	for _, is := range [...]bool{e.Begin, e.Fix != nil, e.Commit != nil} {
		if is {
			parts++
		}
	}
	switch {
	case parts != 1:
		return fmt.Errorf("%w: it has %d parts and not one", ErrStale, parts)
	case e.Begin && e.Life != 0 && e.Life < r.Life:
		return fmt.Errorf("%w: this is %v, and that is %v", ErrReplaced, e.Life, r.Life)
	case e.Begin:
		if e.Epoch <= r.Epoch {
			return fmt.Errorf("%w: epoch %d begins, and it has %d", ErrStale, e.Epoch, r.Epoch)
		}
		r.Epoch, r.Life = e.Epoch, max(r.Life, e.Life)
		return nil
	case e.Epoch != r.Epoch && !mutation.Is(mutation.EpochUncompared):
		return fmt.Errorf("%w: it is of epoch %d, and it has %d", ErrStale, e.Epoch, r.Epoch)
	case e.Fix != nil:
		if len(e.Fix.Ranges) == 0 {
			return fmt.Errorf("%w: it fixes nothing of batch %d", ErrStale, e.Fix.Tx)
		}
		if e.Fix.Tx != r.Committed+1 || r.Fixed != nil {
			return fmt.Errorf("%w: the ranges of batch %d, and batch %d is committed (the next one is fixed: %t)", ErrStale, e.Fix.Tx, r.Committed, r.Fixed != nil)
		}
		r.Fixed = e.Fix.Ranges
		return nil
	default:
		return r.commit(tuple.Attempt{Epoch: e.Epoch, Round: e.Commit.Round}, e.Commit)
	}
}

func (r *Record) commit(by tuple.Attempt, c *Commit) error {
	if c.Tx != r.Committed+1 || c.Tx == 0 {
		return fmt.Errorf("%w: batch %d, and batch %d is committed", ErrStale, c.Tx, r.Committed)
	}
	if n := len(r.Attempts); n > 0 && by.Epoch == r.Epoch && by.Less(r.Attempts[n-1].Attempt) {
		return fmt.Errorf("%w: batch %d of attempt %v, and attempt %v has committed the one before", ErrStale, c.Tx, by, r.Attempts[n-1].Attempt)
	}
	r.Committed, r.Fixed = c.Tx, nil
	for component, positions := range c.Positions {
		if r.Positions == nil {
			r.Positions = map[string]Positions{}
		}
		if r.Positions[component] == nil {
			r.Positions[component] = Positions{}
		}
		for split, p := range positions {
			r.Positions[component][split] = p
		}
	}
	for component, groups := range c.Written {
		if r.Last == nil {
			r.Last = map[string][]tuple.TxID{}
		}
		if r.Last[component] == nil {
			r.Last[component] = make([]tuple.TxID, tuple.KeyGroups)
		}
		for g := range groups.All() {
			r.Last[component][g] = c.Tx
		}
	}
	r.wrote(tuple.BatchID{Attempt: by, Tx: c.Tx}, c.Written)
	return nil
}

// Components returns the components that a record has something of, each once.
func (r *Record) Components() []string {
	return names(slices.Collect(maps.Keys(r.Positions)), slices.Collect(maps.Keys(r.Fixed)), slices.Collect(maps.Keys(r.Last)))
}

// Components returns the components that an entry has something of, each once.
func (e *Entry) Components() (all []string) {
	if e.Fix != nil {
		all = slices.AppendSeq(all, maps.Keys(e.Fix.Ranges))
	}
	if e.Commit != nil {
		all = slices.AppendSeq(slices.AppendSeq(all, maps.Keys(e.Commit.Positions)), maps.Keys(e.Commit.Written))
	}
	return names(all)
}

// Unwritable returns a split or position of an entry that is not UTF-8, which what is
// written of a record could not give back; "" if there is none.
func (e *Entry) Unwritable() string {
	bad := func(all ...string) string {
		for _, s := range all {
			if !utf8.ValidString(s) {
				return s
			}
		}
		return ""
	}
	if e.Fix != nil {
		for _, ranges := range e.Fix.Ranges {
			for split, r := range ranges {
				if s := bad(split, r.From, r.To); s != "" {
					return s
				}
			}
		}
	}
	if e.Commit != nil {
		for _, positions := range e.Commit.Positions {
			for split, p := range positions {
				if s := bad(split, p); s != "" {
					return s
				}
			}
		}
	}
	return ""
}

func names(some ...[]string) []string {
	all := slices.Concat(some...)
	slices.Sort(all)
	return slices.Compact(all)
}

// Clone returns a copy that shares nothing with r which Apply changes. That of nil is the
// zero Record.
func (r *Record) Clone() *Record {
	if r == nil {
		return new(Record)
	}
	c := *r
	c.Fixed = maps.Clone(r.Fixed)
	c.Positions = maps.Clone(r.Positions)
	for component, positions := range c.Positions {
		c.Positions[component] = maps.Clone(positions)
	}
	c.Last = maps.Clone(r.Last)
	for component, last := range c.Last {
		c.Last[component] = slices.Clone(last)
	}
	c.Attempts = slices.Clone(r.Attempts)
	return &c
}

// UnmarshalJSON reads what was written of a Record. It refuses what no Apply has made: a
// record that was repaired by guessing would lose or double messages.
func (r *Record) UnmarshalJSON(data []byte) error {
	type plain Record
	var p plain
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	next := Record(p)
	if err := next.checkStamps(); err != nil {
		return fmt.Errorf("the record of batches is damaged, or of an earlier version of Egret: %w", err)
	}
	*r = next
	return nil
}

// Records is where the record of one topology is kept: durable, and one for all who
// could coordinate it. It knows whose life it is that asks. Its methods may wait.
type Records interface {
	// Begin begins the next epoch and returns the record as it stands then (T1). The
	// record is the caller's. After any error but one that wraps ErrReplaced it may be
	// called again.
	Begin(ctx context.Context) (*Record, error)
	// Append applies e and returns when that is durable. After an error that wraps
	// ErrStale it was not applied; after another one nobody knows, which only Begin finds
	// out (T2). e is not to be changed any more.
	Append(ctx context.Context, e *Entry) error
}
