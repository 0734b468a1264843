package sim

import (
	gocontext "context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Options are how [Seed] and [Seeds] run. The zero value will do.
type Options struct {
	// Tuples is about how many tuples a run executes when nothing goes wrong.
	// Default 1,000. With another number a seed draws another scene.
	Tuples int
	// Peaceful draws no faults. The scenes are others than without it.
	Peaceful bool
	// Log, if given, gets what a seed has drawn and a line for each event of its first
	// run.
	Log io.Writer
	// Once does not run a seed a second time to see that it gives the same run.
	Once bool
}

func (o *Options) messages() int {
	if o.Tuples <= 0 {
		return 1000
	}
	return o.Tuples
}

// A Report is what one seed came to.
type Report struct {
	Seed       uint64          `json:"seed"`
	Mood       string          `json:"mood"` // peaceful, failing, deadly or forgetful
	Hash       uint64          `json:"hash"` // of the events and what was done in them
	Events     int             `json:"events"`
	Time       time.Duration   `json:"time_ns"` // made-up
	Messages   int             `json:"messages"`
	Executions int             `json:"executions"`
	Faults     map[string]int  `json:"faults"` // by kind
	Checks     int             `json:"checks"` // invariants evaluated
	Recovery   []time.Duration `json:"recovery_ns"`
}

// A Failure is a seed in which an invariant did not hold.
type Failure struct {
	Seed uint64 `json:"seed"`
	Violation
}

func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d: %v; to see it again: egret chaos sim --seed %d -v", f.Seed, &f.Violation, f.Seed)
}

// Seed runs the engine, the code that ships, on a topology, a network and faults
// that are drawn from a seed, and checks what came of each message against a
// record that the simulated sources, queues and bolts keep. It runs the seed twice and
// compares. The error is a *[Failure].
//
// Seeds share nothing and may be run at the same time.
func Seed(seed uint64, o Options) (Report, error) {
	report, bad := play(func(log io.Writer) *run { return newRun(draw(seed, &o), log) }, &o)
	if bad != nil {
		return report, &Failure{seed, *bad}
	}
	return report, nil
}

// A Summary is what many seeds came to.
type Summary struct {
	First    uint64          `json:"first"`
	Seeds    int             `json:"seeds"` // that were run
	Events   int64           `json:"events"`
	Time     time.Duration   `json:"time_ns"` // made-up
	Messages int64           `json:"messages"`
	Tuples   int64           `json:"executions"`
	Moods    map[string]int  `json:"moods"`
	Faults   map[string]int  `json:"faults"`
	Checks   int64           `json:"checks"`
	Recovery Recovery        `json:"recovery"`
	Failures []*Failure      `json:"failures"`
	recovery []time.Duration // all
}

// Recovery says how long it took, in made-up time, from the death of a task until
// the last message that was lost with it had come through. Deaths that cost no
// message do not count.
type Recovery struct {
	Deaths int           `json:"deaths"`
	P50    time.Duration `json:"p50_ns"`
	P99    time.Duration `json:"p99_ns"`
	Max    time.Duration `json:"max_ns"`
}

// Seeds runs n seeds from first on, until ctx ends. It calls progress, if given,
// after each, with what came of all so far.
func Seeds(ctx gocontext.Context, first uint64, n int, o Options, progress func(*Summary)) *Summary {
	s := &Summary{First: first, Moods: map[string]int{}, Faults: map[string]int{}, Failures: []*Failure{}}
	for i := range uint64(n) {
		if ctx.Err() != nil {
			break
		}
		r, err := Seed(first+i, o)
		s.add(&r)
		if f, is := err.(*Failure); is {
			s.Failures = append(s.Failures, f)
		}
		if progress != nil {
			progress(s)
		}
	}
	s.Recovery = recoveryOf(s.recovery)
	return s
}

func (s *Summary) add(r *Report) {
	s.Seeds++
	s.Events += int64(r.Events)
	s.Time += r.Time
	s.Messages += int64(r.Messages)
	s.Tuples += int64(r.Executions)
	s.Moods[r.Mood]++
	for k, n := range r.Faults {
		s.Faults[k] += n
	}
	s.Checks += int64(r.Checks)
	s.recovery = append(s.recovery, r.Recovery...)
}

func recoveryOf(all []time.Duration) Recovery {
	if len(all) == 0 {
		return Recovery{}
	}
	all = slices.Sorted(slices.Values(all))
	at := func(p int) time.Duration { return all[(len(all)-1)*p/100] }
	return Recovery{Deaths: len(all), P50: at(50), P99: at(99), Max: at(100)}
}

// FaultKinds returns the kinds of faults that there were, in order.
func (s *Summary) FaultKinds() []string { return slices.Sorted(maps.Keys(s.Faults)) }

// MoodNames returns the moods of the scenes that there were, in order.
func (s *Summary) MoodNames() []string { return slices.Sorted(maps.Keys(s.Moods)) }
