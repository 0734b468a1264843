package tuple

import (
	"fmt"
	"iter"
	"math/bits"
)

// A TxID numbers the batches of an exactly-once topology: 1, 2, ... They are
// committed in this order. Zero is no batch.
type TxID uint64

// An Attempt is one try at all batches that are not committed: the epoch is the
// coordinator's and durable, the round counts its tries. The zero value is before all
// others (docs/trident-rules.md, T1).
type Attempt struct {
	Epoch uint32 `json:"epoch"`
	Round uint32 `json:"round"`
}

// Less reports whether b begins after a.
func (a Attempt) Less(b Attempt) bool {
	return a.Epoch < b.Epoch || a.Epoch == b.Epoch && a.Round < b.Round
}

func (a Attempt) String() string { return fmt.Sprintf("%d.%d", a.Epoch, a.Round) }

// A BatchID names one attempt at one batch. As the stamp of a key group it is the one that
// has written to it last; the zero value: none has.
type BatchID struct {
	Attempt
	Tx TxID `json:"tx"`
}

func (b BatchID) String() string { return fmt.Sprintf("%d of attempt %v", b.Tx, b.Attempt) }

// A Fence says who may write: one life of one task in one attempt. A store refuses
// everybody else (T11).
type Fence struct {
	Attempt
	Life Incarnation
}

// Less reports whether b takes the place of f.
func (f Fence) Less(b Fence) bool {
	return f.Attempt.Less(b.Attempt) || f.Attempt == b.Attempt && f.Life < b.Life
}

// Groups is a set of key groups.
type Groups [KeyGroups / 64]uint64

// Add puts a group into the set; Has reports whether it is there.
func (g *Groups) Add(group uint16)      { g[group/64] |= 1 << (group % 64) }
func (g *Groups) Has(group uint16) bool { return g[group/64]&(1<<(group%64)) != 0 }

// Empty reports whether no group is in the set.
func (g *Groups) Empty() bool { return *g == Groups{} }

// All yields the groups of the set, the least first.
func (g *Groups) All() iter.Seq[uint16] {
	return func(yield func(uint16) bool) {
		for i, word := range g {
			for ; word != 0; word &= word - 1 {
				if !yield(uint16(64*i + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}
