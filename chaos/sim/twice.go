package sim

import (
	"fmt"
	"io"
	"slices"
)

// How seeds of clusters and of batches are played, whose faults are deeds.

// A playable is a run of a seed that has not begun.
type playable interface {
	play()
	report() Report
	broken() *Violation // nil: nothing
}

// playTwice runs what fresh makes, and unless it is to be run once, again to see that it
// is the same.
func playTwice(log io.Writer, once bool, fresh func(log io.Writer) playable) (Report, *Violation) {
	s := fresh(log)
	s.play()
	report, bad := s.report(), s.broken()
	if log != nil {
		_, _ = fmt.Fprintf(log, "%d events, hash %016x\n", report.Events, report.Hash)
	}
	if bad != nil || once {
		return report, bad
	}
	again := fresh(nil)
	again.play()
	report.Checks[repeatable] = report.Events
	if r := again.report(); r.Hash != report.Hash || r.Events != report.Events {
		return report, &Violation{repeatable, fmt.Sprintf("a run has %d events, and another one of the same seed has %d. %s", report.Events, r.Events, cause), 0}
	}
	return report, nil
}

// fewerDeeds leaves out deeds as long as the same invariant does not hold, and tells f how
// it then fails.
func fewerDeeds[D any](deeds []D, f *Failure, fresh func(deeds []D) playable) []D {
	for i := len(deeds) - 1; i >= 0; i-- {
		fewer := slices.Delete(slices.Clone(deeds), i, i+1)
		s := fresh(fewer)
		s.play()
		if bad := s.broken(); bad != nil && bad.Invariant == f.Invariant {
			deeds, f.Violation = fewer, *bad
		}
	}
	return deeds
}
