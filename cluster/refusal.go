package cluster

import "fmt"

// A Reason is the kind of a [Refusal], for programs: errors.Is finds it in one.
type Reason string

// The reasons. They travel as these words.
const (
	ErrUnknown Reason = "unknown" // there is no such topology or node
	ErrRunning Reason = "running" // what should be new or over is there and at work
	ErrEnded   Reason = "ended"   // what should be at work has ended, or is about to
	ErrStale   Reason = "stale"   // it was made for something that has changed since: look again
	ErrInvalid Reason = "invalid" // it contradicts itself, or what it is for
	ErrNoNode  Reason = "no-node" // no node may take tasks
	ErrUnfit   Reason = "unfit"   // a version of a topology cannot go on from the one before
	ErrFull    Reason = "full"    // a number has come to its end
	ErrNewer   Reason = "newer"   // a newer version of Egret wrote it
	ErrCorrupt Reason = "corrupt" // it cannot be read
)

func (r Reason) Error() string { return string(r) }

// A Refusal says why something was not done, and that nothing has changed by it.
type Refusal struct {
	Reason Reason `json:"reason"`
	Text   string `json:"text"` // a sentence for people
}

func (r *Refusal) Error() string { return r.Text }

// Unwrap returns the reason.
func (r *Refusal) Unwrap() error { return r.Reason }

func refuse(why Reason, format string, args ...any) error {
	return &Refusal{why, fmt.Sprintf(format, args...)}
}
