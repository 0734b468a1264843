package sim

import (
	"fmt"
	"io"

	"github.com/egretstream/egret/chaos"
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
const repeatable = chaos.Repeatable

const cause = "Code in a topology must be a function of what it is given. " +
	"Look there for a clock, a goroutine, the order of a map, an address, or a generator of its own"

// repeat runs again what was run once, and compares.
func repeat(first *trace, report *Report, fresh func(log io.Writer) *run) *Violation {
	r := fresh(nil)
	first.again(r.w, 0)
	r.play()
	switch n := r.w.count; {
	case r.w.trace.differs > 0:
		return explain(r.w.look, first, fresh)
	case r.rec.bad != nil:
		return r.rec.bad
	case n < len(first.hashes):
		return &Violation{repeatable, fmt.Sprintf("the run has ended after event %d, and before it has had %d. %s", n, len(first.hashes), cause), r.w.now}
	case r.w.hash != report.Hash:
		return &Violation{repeatable, fmt.Sprintf("two runs have the same %d events and are not the same at their end. %s", n, cause), r.w.now}
	}
	return nil
}

// explain finds words for how an event is not what it was in the first run, of which
// there are only hashes: it runs the seed again, up to there, until that does something
// else. Code may be another only now and then, and something else each time. If a run
// is another before that event, then that event is the one.
func explain(l *look, first *trace, fresh func(log io.Writer) *run) *Violation {
	const most = 30
	for range most {
		r := fresh(nil)
		first.again(r.w, l.event)
		r.play()
		switch t := r.w.trace; {
		case t.differs > 0 && t.differs < l.event:
			l = r.w.look
		case t.differs == l.event || r.w.count == l.event:
			if what := l.other(r.w.look); what != "" {
				return differs(l, what)
			}
		}
	}
	return differs(l, fmt.Sprintf("what it did there once it did not do in %d more runs", most))
}

func differs(l *look, what string) *Violation {
	return &Violation{repeatable, fmt.Sprintf("event %d, %s, %s: %s. %s", l.event, l.who, l.doing, what, cause), l.at}
}
