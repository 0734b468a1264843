package sim

import (
	"fmt"
	"io"

	"github.com/egretstream/egret/amount"
)

// play runs what fresh makes and, unless it is to be run once, runs it again to see that
// it is the same. A failure that is not found again is one of that.
func play(fresh func(log io.Writer) *run, o *Options) (Report, *Violation) {
	r := fresh(o.Log)
	if !o.Once {
		r.w.trace = &trace{}
	}
	r.play()
	report, bad := r.report(), r.rec.bad
	if o.Log != nil { // says of what the lines do not that it was the same
		_, _ = fmt.Fprintf(o.Log, "%d events, hash %016x\n", report.Events, report.Hash)
	}
	if o.Once {
		return report, bad
	}
	again := repeat(r.w.trace, &report, fresh)
	if again == nil || bad != nil && again.Invariant != repeatable {
		return report, bad
	}
	if bad != nil {
		again.What += ". The first run failed: " + bad.String()
	}
	return report, again
}

// repeatable is the invariant that a seed gives the same run each time.
const repeatable = "repeatable"

const cause = "Code in a topology must be a function of what it is given. " +
	"Look there for a clock, a goroutine, the order of a map, an address, or a generator of its own"

// lookAt finds words for how the runs of a seed differ in an event. It runs the seed
// again and again up to there, until two runs differ; code may be another only now and
// then. If a run is another before that event, that event is the one.
func lookAt(event int, first *trace, fresh func(log io.Writer) *run) *Violation {
	var seen []*look
	for range 30 {
		r := fresh(nil)
		l := &look{event: event}
		r.w.trace, r.w.look = first.again(), l
		r.w.trace.stop = event
		r.play()
		if d := r.w.trace.differs; d > 0 && d < event {
			event, seen = d, nil
			continue
		}
		if l.doing == "" {
			continue // this time the run has ended before
		}
		seen = append(seen, l)
		if what := seen[0].other(l); what != "" {
			return differs(l, what)
		}
	}
	if len(seen) > 0 {
		return differs(seen[0], "what it does there was another once, and was not in "+amount.Of(len(seen), "more run"))
	}
	return &Violation{Invariant: repeatable, What: fmt.Sprintf("event %d is not the same in two runs of the seed, and mostly the run ends before it. %s", event, cause)}
}

func differs(l *look, what string) *Violation {
	return &Violation{repeatable, fmt.Sprintf("event %d, %s, %s: %s. %s", l.event, l.who, l.doing, what, cause), l.at}
}

// repeat runs again what was run once, and compares.
func repeat(first *trace, report *Report, fresh func(log io.Writer) *run) *Violation {
	r := fresh(nil)
	r.w.trace = first.again()
	r.play()
	switch n := r.w.count; {
	case r.w.trace.differs > 0:
		return lookAt(r.w.trace.differs, first, fresh)
	case r.rec.bad != nil:
		return r.rec.bad
	case n < len(first.hashes):
		return lookAt(n+1, first, fresh)
	case r.w.hash != report.Hash:
		return &Violation{repeatable, fmt.Sprintf("two runs have the same %d events and are not the same at their end. %s", n, cause), r.w.now}
	}
	return nil
}
