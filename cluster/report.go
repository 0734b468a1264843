package cluster

import (
	"iter"
	"slices"
	"time"
)

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
	Ended  bool   `json:"ended,omitempty"`  // all of them have ended, in this plan; the log may lack positions of theirs
	Rest   uint64 `json:"rest,omitempty"`   // the proposal at which all of them have come to rest; AtEnd
	Over   bool   `json:"over,omitempty"`   // nothing of it is left here
	Err    string `json:"err,omitempty"`    // why it is over, if nobody wanted it
}

// AtEnd is the Rest of a run that is stopping, when its tasks have all ended and the log lacks
// nothing of theirs.
const AtEnd = 1<<64 - 1

// A LinkReport is about the link to another process.
type LinkReport struct {
	To      Home          `json:"to"`
	Refused bool          `json:"refused,omitempty"` // nobody listens there
	Down    time.Duration `json:"down,omitempty"`    // for so long there was no connection
	// Reset names runs with tasks at both ends, and the epochs of their plans, when what
	// was under way between them was given up. It is said until one end has others: see
	// Plan.Renewed.
	Reset []RunEpoch `json:"reset,omitempty"`
}

// A RunEpoch is a plan of a run.
type RunEpoch struct {
	Run   Run    `json:"run"`
	Epoch uint32 `json:"epoch"`
}

// Renewed reports whether none of the tasks that a plan has on a process lived in an
// earlier plan with an epoch, or in that one.
func (p *Plan) Renewed(h Home, epoch uint32) bool {
	return !slices.ContainsFunc(p.Tasks, func(t Task) bool { return t.Home == h && t.Epoch <= epoch })
}

// of returns what a report, which may be nil, says of a run.
func (r *Report) of(run Run) (RunReport, bool) {
	if r == nil {
		return RunReport{}, false
	}
	for _, x := range r.Runs {
		if x.Run == run {
			return x, true
		}
	}
	return RunReport{}, false
}

// ill reports whether there is no connection.
func (l LinkReport) ill() bool { return l.Refused || l.Down > 0 || len(l.Reset) == 0 }

// sameLinks reports whether two reports say the same of links, as far as it matters: of
// how long one is down, whether it is nearly or quite too long.
func (r *Report) sameLinks(old *Report, down time.Duration) bool {
	return slices.EqualFunc(r.Links, old.Links, func(a, b LinkReport) bool {
		return a.To == b.To && a.Refused == b.Refused && a.ill() == b.ill() &&
			(2*a.Down >= down) == (2*b.Down >= down) && (a.Down >= down) == (b.Down >= down) && slices.Equal(a.Reset, b.Reset)
	})
}

// differs yields runs of which two reports say different things, some maybe twice.
func (r *Report) differs(old *Report) iter.Seq[Run] {
	return func(yield func(Run) bool) {
		if slices.Equal(r.Runs, old.Runs) {
			return
		}
		for _, pair := range [][2]*Report{{r, old}, {old, r}} {
			for _, x := range pair[0].Runs {
				if other, known := pair[1].of(x.Run); (!known || other != x) && !yield(x.Run) {
					return
				}
			}
		}
	}
}
