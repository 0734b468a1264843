package metrics

import (
	"sync/atomic"
	"time"
)

// RoundCauses are the names of what Batches.Causes counts: why a round has begun.
var RoundCauses = [...]string{"start", "death", "moved", "failure", "timeout", "unknown entry"}

// A StaleKind is what Task.StaleBatches counts in an exactly-once topology: something that was
// dropped or refused, since it is of an attempt or a life that is over.
type StaleKind uint8

const (
	StaleTuple  StaleKind = iota // that has come to a bolt
	StaleMarker                  // so too
	StaleOrder                   // of a coordinator
	StaleAnswer                  // to one; also one that was said again
	StaleJoin                    // refused by the store of a state
	StaleWrite                   // so too
	StaleEntry                   // refused by the record of batches
	StaleKinds
)

var staleNames = [...]string{"tuple", "marker", "order", "answer", "join", "write", "entry"}

func (k StaleKind) String() string { return staleNames[k] }

// A BatchesNow is how the coordinator of an exactly-once topology is at a moment.
type BatchesNow struct {
	Attempt string      `json:"attempt"`           // epoch and round: "3.1"
	Phase   string      `json:"phase"`             // recovering, waiting, joining, running, finishing or stopped
	Held    bool        `json:"held,omitempty"`    // no batch begins: the topology is inactive, or about to change
	Record  bool        `json:"record,omitempty"`  // it waits for its record
	Missing []string    `json:"missing,omitempty"` // the first tasks that it waits for
	Batches []BatchInfo `json:"batches"`           // under way, the first one first
}

// A BatchInfo is a batch that is under way.
type BatchInfo struct {
	Tx       uint64        `json:"tx"`
	Stage    string        `json:"stage"` // emitting, processing, queued, fixing, writing, committing or failed
	Messages int           `json:"messages"`
	Age      time.Duration `json:"age_ns"`
}

// A Board shows how something is: its one writer puts up another picture, and never
// changes one that is up.
type Board struct{ now atomic.Pointer[BatchesNow] }

// Put shows a picture. Only the owner calls it.
func (b *Board) Put(p *BatchesNow) { b.now.Store(p) }

// Load returns the picture of a moment ago, or nil. It is not to be changed.
func (b *Board) Load() *BatchesNow { return b.now.Load() }

// RoundsBegan returns how many rounds have begun, by why, without those that are none.
func (b *Batches) RoundsBegan() map[string]int64 {
	all := map[string]int64{}
	for i := range b.Causes {
		if n := b.Causes[i].Load(); n > 0 {
			all[RoundCauses[i]] = n
		}
	}
	return all
}
