package cluster

import "time"

// A Report is what a node says of itself to the node that leads, again and again, and
// at once when something has changed. Each takes the place of the one before, so they
// may be lost and late.
type Report struct {
	Home    Home         `json:"home"`
	Applied uint64       `json:"applied"` // of the log
	Runs    []RunReport  `json:"runs,omitempty"`
	Links   []LinkReport `json:"links,omitempty"` // those that are not well
}

// A RunReport is about a run on one node.
type RunReport struct {
	Run    Run    `json:"run"`
	Cannot string `json:"cannot,omitempty"` // why the node cannot have tasks of it; empty: it can
	Epoch  uint32 `json:"epoch,omitempty"`  // of the plan that its tasks live in
	Ended  bool   `json:"ended,omitempty"`  // all of them have ended, in this plan
	Rest   uint64 `json:"rest,omitempty"`   // the proposal at which all of them have come to rest
	Over   bool   `json:"over,omitempty"`   // nothing of it is left here
	Err    string `json:"err,omitempty"`    // why it is over, if nobody wanted it
}

// A LinkReport is about the link to another process.
type LinkReport struct {
	To      Home          `json:"to"`
	Refused bool          `json:"refused,omitempty"` // nobody listens there
	Down    time.Duration `json:"down,omitempty"`    // for so long there was no connection
	// Reset names runs with tasks at both ends, and the epochs of their plans, when what
	// was under way between them was given up.
	Reset []RunEpoch `json:"reset,omitempty"`
}

// A RunEpoch is a plan of a run.
type RunEpoch struct {
	Run   Run    `json:"run"`
	Epoch uint32 `json:"epoch"`
}

// of returns what a report says of a run.
func (r *Report) of(run Run) (RunReport, bool) {
	for _, x := range r.Runs {
		if x.Run == run {
			return x, true
		}
	}
	return RunReport{}, false
}
