package web

import (
	"context"

	"github.com/egretstream/egret/view"
)

// A Source is what is looked at: a run on this machine, or a cluster by one of its nodes.
// Its methods are called from several goroutines, and return when ctx ends at the latest.
// An *Error says to whoever asked what is wrong; another error is one of the source itself.
type Source interface {
	// Sample reads all counters. What it returns is not changed afterwards.
	Sample(ctx context.Context) (*view.Sample, error)
	// Errors returns the last errors of a topology, the latest first.
	Errors(ctx context.Context, topology string) ([]view.Error, error)
	// Oldest returns up to n open trees of a topology, the oldest first.
	Oldest(ctx context.Context, topology string, n int) ([]view.Tree, error)
	// Tap calls yield for each tuple that is to be shown, and about once a second for a note,
	// one call after the other, until yield returns false, ctx ends or the run does. A slow
	// yield holds up nothing: what comes meanwhile is dropped and counted.
	Tap(ctx context.Context, tap view.Tap, yield func(*view.Tapped) bool) error
	// Letters returns up to n dead letters, the latest first; of all components if component
	// is empty.
	Letters(ctx context.Context, topology, component string, n int) ([]view.Letter, error)
	// Settle replays or drops dead letters.
	Settle(ctx context.Context, topology string, ids []string, replay bool) (*view.Effect, error)
	// Act does what people want, or says what that would do.
	Act(ctx context.Context, a *view.Action) (*view.Effect, error)
}

// Codes of an Error, for programs.
const (
	Unknown   = "unknown"   // there is no such topology, component, stream or node: 404
	Invalid   = "invalid"   // what is asked for makes no sense: 400
	Forbidden = "forbidden" // who asks may not, or nobody may: 403
	Refused   = "refused"   // as things are: 409
	NoQuorum  = "no-quorum" // nothing can be changed now: 503
	NotHere   = "not-here"  // this run has no such thing, such as letters without a state directory: 404
	Busy      = "busy"      // too many ask for it: 429
	NoToken   = "no-token"  // it is not known who asks: 401
	Broken    = "broken"    // what is looked at cannot be read now: 503
)

// An Error is for who has asked.
type Error struct {
	Code string `json:"code"`
	Text string `json:"text"` // what, where, and what to do
}

func (e *Error) Error() string { return e.Text }
