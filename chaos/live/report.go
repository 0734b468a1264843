package live

import (
	"fmt"
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
	// Letters is how often Egret has said that of any message: of one that was read again
	// it may say it again, and Dead has it once.
	Letters int64 `json:"dead_letters"`
	// Lost is how many were never executed to the end, and are not dead, of a run that has
	// come to its end; of another one those only that Egret has said to be done. Open are
	// the other ones of a run that has not.
	Lost     int64     `json:"never_executed_to_the_end"`
	LostOnes []Message `json:"never_executed,omitempty"` // the first of them
	Open     int64     `json:"open_when_it_was_stopped"`
	// TooOften is how many had tuples that were executed more often than there were any.
	TooOften int64 `json:"executed_too_often"`
	// Failures is how often one failed or was rejected in a bolt; no fault is charged.
	Failures   int64       `json:"failures"`
	Unsteady   []Unsteady  `json:"unsteady,omitempty"`
	Violations []Violation `json:"violations,omitempty"`
	More       int         `json:"more_violations,omitempty"`
	Folded     Folded      `json:"each"`
	Own        Own         `json:"of_bolts_and_queues"`
	Answers    *Answers    `json:"queues,omitempty"` // nil: there are none
	Planned    int         `json:"faults_planned"`   // and not all may have been done
	Done       []Done      `json:"done,omitempty"`
	Recoveries []Recovery  `json:"recoveries,omitempty"`
	Rates      Rates       `json:"rates"`
	Err        error       `json:"-"` // of the run
	ErrText    string      `json:"error,omitempty"`
}

// An Unsteady split gives other messages when it is read again, so that of some it cannot
// be told what became of them.
type Unsteady struct {
	Component string `json:"component"`
	Split     string `json:"split"`
	Unknown   int64  `json:"unknown"` // messages, at least
}

func (u Unsteady) String() string {
	return fmt.Sprintf("%s, split %s, gives other messages when it is read again: what became of %s of it cannot be told", u.Component, u.Split, amount.Of(u.Unknown, "message"))
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
	First    Spread `json:"to_first_emitted_again,omitzero"`
	Last     Spread `json:"to_last_done,omitzero"`
	// Close is how many of the faults had one of another kind, or on another component,
	// less than 50 ms before or after them: which of those has cost what cannot be told.
	Close int `json:"not_told_apart"`
}

// A Spread is some quantiles of a time, of Of measurements.
type Spread struct {
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
	Of  int           `json:"of"`
}

// Failed reports whether a message was lost, Egret has said what is not so, or that
// cannot be told because no harm was done or a source cannot be read again.
func (r *Report) Failed() bool {
	return r.Lost > 0 || len(r.Violations) > 0 || r.Err != nil || len(r.Done) == 0 || len(r.Unsteady) > 0
}

// Lost messages that are named.
const mostLost = 100

// report puts together what is known when the run has ended.
func (r *run) report() *Report {
	rec := r.record
	rec.sweep(true)
	err, finished := r.engine.Err()
	rep := &Report{
		Topology: rec.plan.Topology, Plan: r.Plan, Seed: r.Seed,
		Seen: rec.seen.Load(), Err: err, Planned: r.planned(),
	}
	if rep.Err != nil {
		rep.ErrText = rep.Err.Error()
	}
	for _, b := range rec.books {
		b.close(finished)
		if finished {
			rec.seats[b.id].unsent(rec)
		}
		rep.Lost += b.lost
		rep.Open += b.open
		rep.TooOften += b.often
		rep.Failures += b.failures
		rep.LostOnes = append(rep.LostOnes, b.lostOnes[:min(len(b.lostOnes), mostLost-len(rep.LostOnes))]...)
		rep.Folded.plus(&b.folded)
		own := &b.others.own
		rep.Own.plus(*own)
		if finished && own.Open > 0 {
			rec.violated(Message{Component: b.node.Name}, fmt.Sprintf("the run has ended, and of %s of its own %d have not", amount.Of(own.Messages, "message"), own.Open))
		}
		if b.node.Queue != nil {
			if rep.Answers == nil {
				rep.Answers = new(Answers)
			}
			rep.Answers.plus(b.answers.Answers)
		}
		for _, s := range b.splits {
			if s.unsteady {
				rep.Unsteady = append(rep.Unsteady, Unsteady{b.node.Name, string(s.name), s.unknown})
			}
		}
	}
	rep.Dead, rep.Letters = rec.dead.Load(), rec.letters.Load()
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
