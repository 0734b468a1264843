package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/chaos"
)

// A Report says what was done to a run and what became of its messages. Messages are
// those of spouts; what it says of them is read off the record.
type Report struct {
	Topology string     `json:"topology"`
	Plan     chaos.Plan `json:"plan"`
	Seed     uint64     `json:"seed"`
	// How long each part of the run was: quiet, with faults, quiet, and the rest.
	Before time.Duration `json:"before_ns"`
	Faults time.Duration `json:"faults_ns"`
	After  time.Duration `json:"after_ns"`
	Rest   time.Duration `json:"rest_ns"`
	Cut    string        `json:"cut,omitempty"` // why it was shorter than was wanted

	Seen int64 `json:"messages"` // emitted at least once
	Dead int64 `json:"dead"`     // given up by Egret, which has said so
	// Lost is how many were never executed to the end, and are not dead.
	Lost       int64       `json:"never_executed_to_the_end"`
	LostOnes   []Message   `json:"never_executed,omitempty"` // the first of them
	Violations []Violation `json:"violations,omitempty"`
	More       int         `json:"more_violations,omitempty"`
	Folded     Folded      `json:"each"`
	Own        Own         `json:"of_bolts_and_queues"`
	Done       []Done      `json:"done,omitempty"`
	Recoveries []Recovery  `json:"recoveries,omitempty"`
	Rates      Rates       `json:"rates"`
	Err        error       `json:"-"` // of the run
	ErrText    string      `json:"error,omitempty"`
}

// Rates are messages done a second: medians of windows of 100 ms.
type Rates struct {
	Before float64 `json:"before"`
	During float64 `json:"during"`
	After  float64 `json:"after"`
	Least  float64 `json:"least_during"`
	// Good is the part of the windows with faults that had at least 80 % of Before.
	Good float64 `json:"at_80_percent"`
	// Again is the time from the last fault until a window had 90 % of Before; -1: none.
	Again time.Duration `json:"again_ns"`
}

// A Recovery is how long it took after faults of one kind until what they cost was made
// good, by the faults that have cost something. What is the kind and the component that it
// was done to.
type Recovery struct {
	What     string `json:"what"` // "kill count"
	Faults   int    `json:"faults"`
	Costly   int    `json:"with_losses"`
	Messages int64  `json:"messages"`    // given back, or forgotten with their spout task
	Open     int64  `json:"not_made_up"` // of those
	First    Spread `json:"to_first_emitted_again"`
	Last     Spread `json:"to_last_done"`
}

// A Spread is some quantiles of a time.
type Spread struct {
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

// Failed reports whether a message was lost, or Egret has said what is not so.
func (r *Report) Failed() bool { return r.Lost > 0 || len(r.Violations) > 0 || r.Err != nil }

// Lost messages that are named.
const mostLost = 100

// report puts together what is known when the run has ended.
func (r *run) report() *Report {
	rec := r.record
	rec.sweep(true)
	rep := &Report{
		Topology: rec.plan.Topology, Plan: r.Plan, Seed: r.Seed,
		Seen: rec.seen.Load(), Err: r.engine.Err(),
	}
	if rep.Err != nil {
		rep.ErrText = rep.Err.Error()
	}
	for _, b := range rec.books {
		b.close()
		rep.Lost += b.lost
		rep.LostOnes = append(rep.LostOnes, b.lostOnes[:min(len(b.lostOnes), mostLost-len(rep.LostOnes))]...)
		rep.Folded.plus(&b.folded)
		rep.Own.plus(b.own)
		if o := b.own; o.Messages > o.Done+o.Dead+o.HandedBack+o.Gone {
			rec.violated(Message{Component: b.node.Name}, fmt.Sprintf("of %s of its own only %d have come to an end", amount.Of(o.Messages, "message"), o.Done+o.Dead+o.HandedBack+o.Gone))
		}
	}
	rep.Dead = rec.dead.Load()
	rep.Violations, rep.More = rec.violations, rec.more
	rep.parts(r)
	for _, h := range rec.harms.all {
		rep.Done = append(rep.Done, h.Done)
	}
	rep.Recoveries = recoveries(rec.harms.all)
	rep.Rates = r.rates()
	return rep
}

// parts says how long the parts of the run were, and why they were shorter.
func (rep *Report) parts(r *run) {
	end := r.record.now()
	at := r.phases
	for i := range at {
		if i > 0 && at[i] == 0 {
			at[i] = end
		}
	}
	rep.Before, rep.Faults, rep.After, rep.Rest = at[1], at[2]-at[1], at[3]-at[2], end-at[3]
	switch {
	case r.cut:
		rep.Cut = "interrupted"
	case rep.Before < r.Before:
		rep.Cut = "the input ended before the faults began"
	case rep.Faults < r.For:
		rep.Cut = "the input ended while faults were done"
	case rep.After < r.After:
		rep.Cut = "the input ended soon after the faults"
	}
}

func (o *Own) plus(p Own) {
	o.Messages += p.Messages
	o.Done += p.Done
	o.Dead += p.Dead
	o.HandedBack += p.HandedBack
	o.Gone += p.Gone
}

func recoveries(all []*harm) (found []Recovery) {
	times := map[string][][2]time.Duration{}
	for _, h := range all {
		component, _, _ := strings.Cut(h.Task, "/")
		what := string(h.Fault.Kind) + " " + component
		i := slices.IndexFunc(found, func(r Recovery) bool { return r.What == what })
		if i < 0 {
			i = len(found)
			found = append(found, Recovery{What: what})
		}
		r := &found[i]
		r.Faults++
		if h.cost == 0 {
			continue
		}
		r.Costly++
		r.Messages += h.cost
		r.Open += h.open
		if h.first > 0 && h.open == 0 {
			times[what] = append(times[what], [2]time.Duration{h.first - h.At, h.last - h.At})
		}
	}
	for i := range found {
		var first, last []time.Duration
		for _, t := range times[found[i].What] {
			first, last = append(first, t[0]), append(last, t[1])
		}
		found[i].First, found[i].Last = spread(first), spread(last)
	}
	return found
}

func spread(all []time.Duration) (s Spread) {
	if len(all) == 0 {
		return s
	}
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[min(len(all)-1, int(q*float64(len(all))))] }
	return Spread{at(0.5), at(0.99), all[len(all)-1]}
}

// rates compares the windows of the three parts. The first one, in which the run begins,
// is left out.
func (r *run) rates() (rates Rates) {
	part := func(from, to time.Duration) []int64 {
		first := int((from + window - 1) / window)
		last := min(int(to/window), len(r.windows))
		if first >= last {
			return nil
		}
		return r.windows[first:last]
	}
	perSecond := func(n int64) float64 { return float64(n) / window.Seconds() }
	median := func(of []int64) float64 {
		if len(of) == 0 {
			return 0
		}
		sorted := slices.Sorted(slices.Values(of))
		return perSecond(sorted[len(sorted)/2])
	}
	at := r.phases
	if at[1] == 0 {
		at[1] = time.Duration(len(r.windows)) * window
	}
	during, after := part(at[1], at[2]), part(at[2], at[3])
	rates = Rates{Before: median(part(window, at[1])), During: median(during), After: median(after), Again: -1}
	if len(during) > 0 {
		rates.Least = perSecond(slices.MinFunc(during, cmp.Compare))
		good := 0
		for _, n := range during {
			if perSecond(n) >= 0.8*rates.Before {
				good++
			}
		}
		rates.Good = float64(good) / float64(len(during))
	}
	if all := r.record.harms.all; len(all) > 0 && rates.Before > 0 {
		last := all[len(all)-1].At
		for i := int(last/window) + 1; i < len(r.windows) && time.Duration(i)*window < at[3]; i++ {
			if perSecond(r.windows[i]) >= 0.9*rates.Before {
				rates.Again = time.Duration(i+1)*window - last
				break
			}
		}
	}
	return rates
}
