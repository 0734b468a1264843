package fleet

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/amount"
)

// A Part is what was done, and what came of it until the next one.
type Part struct {
	What string        `json:"what"`
	Who  []string      `json:"who,omitempty"`
	At   time.Duration `json:"at_ns"`   // since the first number
	Took time.Duration `json:"took_ns"` // until it was done
	Err  string        `json:"error,omitempty"`
	// Late is how many executions there were of numbers that were under way, or had been
	// executed before; Recovered the time to the last of them, or of those that became due
	// later and were held up. Held says that this was so until the next part began.
	Late      int64         `json:"late"`
	Recovered time.Duration `json:"recovered_ns"`
	Held      bool          `json:"held,omitempty"`
	Again     int64         `json:"again"`          // executed although they had been before
	Gap       time.Duration `json:"longest_gap_ns"` // without a number for the first time
	Before    float64       `json:"rate_before"`    // median of the 10 s before; below 0: not measured
	After     float64       `json:"rate_after"`     // and of the 5 s after the deed and the recovery; below 0: there was no second of them
	Replaced  int           `json:"tasks_replaced"` // whose process had been harmed
	Moved     int           `json:"tasks_moved"`    // to another process by a plan
	// Restarted are tasks that have had a new life in a process that nobody had harmed.
	Restarted []string `json:"tasks_restarted_in_place,omitempty"`

	mark    *mark
	renewed map[string]bool // components whose number of tasks was changed: all of theirs are new ones
}

// RateFloor is the least that the rate after a deed may be of the one before it.
const RateFloor = 0.8

// leastRated is how long the rate after a deed must have been looked at.
const leastRated = time.Second

// recoverWithin is how long after a deed numbers may be held up: a hung node is noticed in
// some seconds, and what it held up is done in some more.
const recoverWithin = 10 * time.Second

// slower reports whether the rate is not what it was before the deed.
func (p *Part) slower() bool {
	return p.mark != nil && p.Before > 0 && p.After >= 0 && p.After < RateFloor*p.Before
}

// A Report says what became of the numbers.
type Report struct {
	Nodes    int           `json:"nodes"`
	Pace     string        `json:"pace"`
	Rate     int           `json:"rate"`
	Messages int64         `json:"messages"`
	Lasted   time.Duration `json:"lasted_ns"`
	Lost     int64         `json:"lost"` // never executed
	LostOnes []int64       `json:"lost_ones,omitempty"`
	Again    int64         `json:"executed_again"`     // executions beyond the first
	Open     string        `json:"not_done,omitempty"` // why the cluster has not said that the topology is done
	Strange  string        `json:"strange,omitempty"`
	Counts   Counts        `json:"counts"`
	Parts    []*Part       `json:"parts"`
	Executed []int64       `json:"executed_each_100ms"`
	Repeated []int64       `json:"executed_again_each_100ms"`
}

// Counts are what the tasks say of themselves, as far as their nodes have told before they
// were gone.
type Counts struct {
	Lost     int64 `json:"attempts_lost"`
	TimedOut int64 `json:"attempts_timed_out"`
	Failed   int64 `json:"attempts_failed"`
	Refused  int64 `json:"refused"` // parcels, reports and limits of or for lives that are over
	Stale    int64 `json:"stale"`   // positions of lives that are over
	Dead     int64 `json:"dead"`
	Restarts int64 `json:"restarts"`
}

// Failed says what is not as it must be, nil for nothing.
func (r *Report) Failed() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Lost > 0 {
		fail("%s never executed", amount.Of(r.Lost, "number"))
	}
	if r.Open != "" {
		fail("the topology has not come to its end: %s", r.Open)
	}
	if r.Strange != "" {
		fail("the recorder was told what cannot be: %s", r.Strange)
	}
	for _, p := range r.Parts {
		if p.Err != "" {
			fail("%s: %s", p.What, p.Err)
		}
		if p.Held {
			fail("%s: numbers are held up for more than %v, and %v later still", p.What, overdue, p.Recovered.Round(time.Second))
		}
		if p.slower() {
			fail("%s: the rate after it is %.2f of that before, and %.1f is the least (%s and %s a second)", p.What, p.After/p.Before, RateFloor, rate(p.After), rate(p.Before))
		}
		if n := len(p.Restarted); n > 0 {
			fail("%s: %s had a new life that need not have: %s", p.What, amount.Of(int64(n), "task"), strings.Join(p.Restarted, ", "))
		}
	}
	return errors.Join(errs...)
}

func (r *run) report(open string) *Report {
	rec := r.recorder
	rep := &Report{Nodes: r.Nodes, Pace: r.Pace.String(), Rate: r.Rate, Messages: int64(len(rec.times)), Lasted: rec.now() - r.began, Open: open, Parts: r.parts}
	rep.LostOnes, rep.Lost = rec.missing()
	distinct, all := rec.done()
	rep.Again = all - distinct
	for of, c := range r.counts {
		if strings.HasPrefix(of.task, numbersName+"/") {
			rep.Counts.Lost += c.Lost
			rep.Counts.TimedOut += c.TimedOut
			rep.Counts.Failed += c.Failed
			rep.Counts.Dead += c.Dead
		}
		rep.Counts.Refused += c.Refused
		rep.Counts.Stale += c.Stale
		rep.Counts.Restarts += c.Restarts
	}
	var marked []*Part
	for _, p := range r.parts {
		if p.mark != nil {
			marked = append(marked, p)
		}
	}
	for i, p := range marked {
		end := rec.now()
		if i+1 < len(marked) {
			end = marked[i+1].mark.at
		}
		r.reportPart(p, end)
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rep.Strange = rec.strange
	rep.Executed, rep.Repeated = slices.Clone(rec.windows), slices.Clone(rec.repeats)
	r.reportLives(marked)
	return rep
}

func (r *run) reportPart(p *Part, end time.Duration) {
	r.recorder.mu.Lock()
	m, last := *p.mark, r.recorder.last
	r.recorder.mu.Unlock()
	p.Late, p.Again, p.Gap = m.late, m.again, m.longest.to-m.longest.from
	recovered := max(m.last, m.overdue, m.at)
	p.Recovered = recovered - m.at
	p.Before = r.recorder.rate(max(r.began, m.at-10*time.Second), m.at)
	// Nothing may have been under way, or it came first; and a deed may take longer.
	from := max(recovered, m.longest.to, m.at+p.Took)
	p.After = -1
	end = min(end, last)
	p.Held = m.overdue > end-leastRated && end-m.at > recoverWithin
	if to := min(from+5*time.Second, end); to-from >= leastRated {
		p.After = r.recorder.rate(from, to)
	}
}

// reportLives says of each life that was not the first of its task why it has begun.
func (r *run) reportLives(parts []*Part) {
	home := map[life]int{}
	for _, l := range r.recorder.lives {
		before, known := home[l.life]
		home[l.life] = l.process
		i, _ := slices.BinarySearchFunc(parts, l.at, func(p *Part, at time.Duration) int { return int(p.mark.at - at) })
		if !known || i == 0 {
			if known && before == l.process && len(parts) > 0 {
				parts[0].Restarted = append(parts[0].Restarted, fmt.Sprintf("%s/%d before", l.Component, l.Index))
			}
			continue
		}
		p := parts[i-1]
		if p.renewed[l.Component] {
			continue
		}
		switch {
		case r.harmed[before]:
			p.Replaced++
		case before != l.process:
			p.Moved++
		default:
			who := "?"
			if s := r.fleet.of(before); s != nil {
				who = s.name
			}
			p.Restarted = append(p.Restarted, fmt.Sprintf("%s/%d on %s", l.Component, l.Index, who))
		}
	}
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%s, pace %s: %s at %s a second, %v\n", amount.Of(int64(r.Nodes), "node"), r.Pace, amount.Of(r.Messages, "number"), amount.Digits(int64(r.Rate)), r.Lasted.Round(100*time.Millisecond))
	fmt.Fprintf(w, "never executed   %s\n", amount.Digits(r.Lost))
	if len(r.LostOnes) > 0 {
		fmt.Fprintf(w, "                 %v\n", r.LostOnes)
	}
	fmt.Fprintf(w, "executed again   %s\n", amount.Digits(r.Again))
	c := r.Counts
	fmt.Fprintf(w, "as the nodes say attempts lost %s, failed %s, timed out %s; refused of the dead %s, and positions %s; restarts %s\n",
		amount.Digits(c.Lost), amount.Digits(c.Failed), amount.Digits(c.TimedOut), amount.Digits(c.Refused), amount.Digits(c.Stale), amount.Digits(c.Restarts))
	if r.Open != "" {
		fmt.Fprintf(w, "NOT DONE         %s\n", r.Open)
	}
	if r.Strange != "" {
		fmt.Fprintf(w, "STRANGE          %s\n", r.Strange)
	}
	for _, p := range r.Parts {
		fmt.Fprintf(w, "\n%7.2fs %s %s\n", p.At.Seconds(), p.What, strings.Join(p.Who, " "))
		if p.Err != "" {
			fmt.Fprintf(w, "         ERROR %s\n", p.Err)
		}
		if p.mark == nil {
			continue
		}
		fmt.Fprintf(w, "         recovered after %v, longest gap %v, late %s, again %s\n", ms(p.Recovered), ms(p.Gap), amount.Digits(p.Late), amount.Digits(p.Again))
		fmt.Fprintf(w, "         rate %s before, %s after%s; tasks replaced %d, moved %d, restarted in place %d %s\n",
			rate(p.Before), rate(p.After), ratio(p), p.Replaced, p.Moved, len(p.Restarted), strings.Join(p.Restarted, " "))
	}
	r.printRecoveries(w)
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func rate(x float64) string {
	if x < 0 {
		return "-"
	}
	return amount.Digits(int64(x))
}

func ratio(p *Part) string {
	if p.Before <= 0 || p.After < 0 {
		return ""
	}
	text := fmt.Sprintf(" (%.2f", p.After/p.Before)
	if p.slower() {
		text += fmt.Sprintf(", and %.1f is the least", RateFloor)
	}
	return text + ")"
}

// printRecoveries sums up what was done more than once.
func (r *Report) printRecoveries(w io.Writer) {
	var order []string
	all := map[string][]time.Duration{}
	for _, p := range r.Parts {
		if p.mark == nil || p.Err != "" {
			continue
		}
		if all[p.What] == nil {
			order = append(order, p.What)
		}
		all[p.What] = append(all[p.What], p.Recovered)
	}
	for _, what := range order {
		times := all[what]
		if len(times) < 2 {
			continue
		}
		slices.Sort(times)
		at := func(q float64) time.Duration { return times[min(len(times)-1, int(q*float64(len(times))))] }
		fmt.Fprintf(w, "\n%d times %s: from it to the last number that was under way or held up p50 %v, p99 %v, least %v\n", len(times), what, ms(at(0.5)), ms(at(0.99)), ms(times[0]))
	}
}
