// Package bench measures how fast topologies run: it is what the command bench
// is made of. It is not for use outside Egret.
//
//	         warm-up              timed phase
//	start |-----------|==============================| stop
//	                  ^ snapshot                     ^ snapshot
//	                  counters, allocations, CPU     the same again
//
// Rates are differences of two snapshots of a topology that is in full run, so
// neither its start nor its end counts. A comparison runs every variant in a
// process of its own, in shuffled order and several rounds, and looks at ratios
// within a round: absolute rates of one machine swing much more than these.
//
// The package knows no engine. Who has one hands over a [Runner].
package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// A Runner starts a topology with the given guarantee and returns at once. dir, if not "",
// is where its record of batches is kept; page is whether it has a page on loopback. The
// topology runs until its input has ended or ctx has. A topology that cannot be started is
// a Running whose Wait returns the error.
type Runner func(ctx context.Context, t *topology.Topology, guarantee topology.Guarantee, dir string, page bool) Running

// Running is a topology on its way.
type Running struct {
	// Stats returns the counts so far. It may be called at any time until Wait
	// has returned.
	Stats func() Counts
	// Wait returns when every task has closed, with the final counts. It is called
	// once. That ctx has ended is no error, or context.Canceled.
	Wait func() (Counts, error)
	// Page is where its page is, "" if it has none.
	Page string
}

// Counts are what a running topology has done since it started.
type Counts struct {
	Emitted    int64 // messages by spouts
	Acked      int64 // messages, or those of committed batches
	Batches    int64 // committed
	Failed     int64 // messages, each time one fails
	Executed   int64 // tuples, over all bolts
	ExecutedBy map[string]int64
	AckLatency metrics.Latency // from a message's emission until it was done

	other usage // of another process, and what has gone between the two
}

// Latency is a distribution of times, in microseconds. Each is at most 6 % above
// the true quantile.
type Latency struct {
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Count int64   `json:"count"` // values behind it
}

// latency returns l in microseconds, or nil if there is nothing in it.
func latency(l metrics.Latency) *Latency {
	if l.Count == 0 {
		return nil
	}
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	return &Latency{P50: us(l.P50), P99: us(l.P99), P999: us(l.P999), Count: l.Count}
}

// A Setup says what to measure.
type Setup struct {
	Topology  string // null, identity or wordcount
	Guarantee topology.Guarantee
	Spouts    int     // tasks
	Bolts     int     // tasks of each bolt
	Rate      float64 // messages/s over all spouts; 0 for as many as go through
	Latency   bool    // stamp messages and measure how old they get

	Nodes int  // processes: 1, or 2 with the spouts in one and the bolts in the other; 0 is 1
	TLS   bool // between them

	Watched bool // a process has its page open and taps a stream
	Page    bool // it has a page, at which nobody looks

	State    string // of exactly-once: memory or disk
	Combiner bool   // words are counted before they are sent, too

	counts *trident.State[string, int64] // of exactly-once, see place
	passes int                           // over the lines, by each spout; 0 for no end
	look   func(ctx context.Context, page, topology string) (seen func() (sight, error), err error)
}

// MaxTasks is the most tasks that a component of a Setup can have.
const MaxTasks = 1024

func (s *Setup) check() error {
	if _, ok := shapes[s.Topology]; !ok {
		return fmt.Errorf("--topology is %q: use null, identity or wordcount", s.Topology)
	}
	if s.Spouts < 1 || s.Spouts > MaxTasks {
		return fmt.Errorf("--spouts is %d: use 1 to %s", s.Spouts, amount.Digits(MaxTasks))
	}
	if s.Bolts < 1 || s.Bolts > MaxTasks {
		return fmt.Errorf("--bolts is %d: use 1 to %s", s.Bolts, amount.Digits(MaxTasks))
	}
	if s.Nodes < 0 || s.Nodes > 2 {
		return fmt.Errorf("--nodes is %d: use 1 or 2", s.Nodes)
	}
	if s.TLS && s.Nodes != 2 {
		return errors.New("--tls needs --nodes 2")
	}
	if s.Nodes == 2 && (s.Watched || s.Page) {
		return errors.New("--watched and --page are for a run in one process")
	}
	if err := s.checkExact(); err != nil {
		return err
	}
	if !(s.Rate >= 0 && s.Rate <= maxRate) {
		return fmt.Errorf("--rate is %v: use 0 (as many as go through) to %.0e messages/s", s.Rate, float64(maxRate))
	}
	return nil
}

const maxRate = 1e9

// A Result is one measurement. Rates are per second of the timed phase.
type Result struct {
	Topology       string   `json:"topology"`            // or the name of a baseline
	Guarantee      string   `json:"guarantee,omitempty"` // a baseline has none
	Spouts         int      `json:"spouts"`
	Bolts          int      `json:"bolts"`
	Nodes          int      `json:"nodes,omitempty"` // 2: the spouts are in one process and the bolts in another
	TLS            bool     `json:"tls,omitempty"`   // between them
	Rate           float64  `json:"rate,omitempty"`
	Seconds        float64  `json:"seconds"`
	MessagesPerS   float64  `json:"messages_per_s"` // emitted by spouts
	TuplesPerS     float64  `json:"tuples_per_s"`   // executed by bolts
	WordsPerS      float64  `json:"words_per_s,omitempty"`
	AckedPerS      float64  `json:"acked_per_s"`
	Failed         int64    `json:"failed"` // warm-up included
	AllocsPerTuple float64  `json:"allocs_per_tuple"`
	BytesPerTuple  float64  `json:"bytes_per_tuple"`
	WirePerMessage float64  `json:"wire_bytes_per_message,omitempty"` // both ways between two nodes, without what TLS adds
	Cores          float64  `json:"cores"`                            // CPU time by wall time
	Latency        *Latency `json:"latency_us"`                       // from emission to the last bolt
	Due            *Latency `json:"due_us,omitempty"`                 // from when the message was due
	AckLatency     *Latency `json:"ack_latency_us"`                   // warm-up included; of batches from their beginning to the commit
	State          string   `json:"state,omitempty"`                  // of exactly-once
	Combiner       bool     `json:"combiner,omitempty"`
	BatchesPerS    float64  `json:"batches_per_s,omitempty"` // committed
	Digest         string   `json:"digest,omitempty"`        // of the counts of a fixed amount
}
