package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/egretstream/egret/topology"
)

// A run on two nodes has its spouts in this process and all bolts in another one, which
// is this program again. The two talk about the measurement over the other's standard
// input and output, a JSON object a line:
//
//	order                 -->  starts its half
//	                      <--  answer: its address
//	request: phase, snap  -->
//	                      <--  answer
//	request: end          -->
//	                      <--  answer, when all bolts have ended
//	end of input          -->  stops its half and exits

// A Halver starts the half of a topology that a Side has. When ctx ends the spouts read
// no more, and what is open is finished.
type Halver func(ctx context.Context, t *topology.Topology, guarantee topology.Guarantee, s Side) (*Half, error)

// A Side says which half of a topology is meant, and how the two find each other.
type Side struct {
	Peer   string // address of the half with the bolts; "": this is that one
	Secret string // for TLS between the two; "": none
}

// A Half is what one of two processes has of a topology on its way. Both have the tasks
// of the whole in their counts.
type Half struct {
	Running
	Addr string        // of the half with the bolts
	Wire func() uint64 // bytes of frames that were written to the other process so far
	// Close stops what is left and waits. It is called when Wait has returned, or instead.
	Close func() error
}

// An order says what the other process is to run.
type order struct {
	Setup    Setup  `json:"setup"`
	Passes   int    `json:"passes"`
	Secret   string `json:"secret"`
	Kernel   int64  `json:"kernel"`   // of the clock of the process that orders
	Baseline string `json:"baseline"` // instead of a topology
}

type request struct {
	Op          string `json:"op"`
	From, Until int64  `json:",omitempty"` // the timed phase
}

const (
	opSnap  = "snap"
	opPhase = "phase"
	opEnd   = "end"
)

// An answer is all that there is to say at any time.
type answer struct {
	Addr    string   `json:"addr,omitempty"`
	Counts  Counts   `json:"counts"`
	Used    usage    `json:"used"`
	Latency *Latency `json:"latency,omitempty"` // these three only at the end
	Due     *Latency `json:"due,omitempty"`
	Digest  string   `json:"digest,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// serveHalf is the other process. It returns when its input ends.
func serveHalf(ctx context.Context, in io.Reader, out io.Writer, halve Halver) (err error) {
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	var o order
	if err := requests.Decode(&o); err != nil {
		return fmt.Errorf("no order has come: %w", err)
	}
	if o.Baseline != "" {
		return serveBare(requests, answers)
	}
	p := probeBy(sharedClock(o.Kernel))
	o.Setup.passes = o.Passes
	h, err := halve(ctx, o.Setup.define(p), o.Setup.Guarantee, Side{Secret: o.Secret})
	if err != nil {
		return answers.Encode(answer{Error: err.Error()})
	}
	failed := make(chan error, 1)
	var waiting sync.WaitGroup
	waiting.Go(func() { _, err := h.Wait(); failed <- err })
	defer func() {
		err = joined(err, h.Close())
		waiting.Wait()
	}()
	a := answer{Addr: h.Addr}
	for {
		if err := answers.Encode(a); err != nil {
			return err
		}
		var r request
		if err := requests.Decode(&r); err != nil {
			return nil // who has ordered has what it wants, or is gone
		}
		a = answer{}
		switch r.Op {
		case opPhase:
			p.from.Store(r.From)
			p.until.Store(r.Until)
		case opEnd:
			if err := <-failed; err != nil {
				a.Error = err.Error()
			}
			a.Latency, a.Due = p.latencies()
			a.Digest = p.digest()
		}
		a.Counts, a.Used = h.Stats(), used()
		a.Used.Wire = h.Wire()
	}
}
