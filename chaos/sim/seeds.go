package sim

import (
	"cmp"
	gocontext "context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/metrics"
)

// maxFailures is how many failures a Summary keeps.
const maxFailures = 100

// A Summary is what many seeds came to.
type Summary struct {
	First    uint64                `json:"first"`
	Seeds    int                   `json:"seeds"` // that were run
	Events   int64                 `json:"events"`
	Time     time.Duration         `json:"time_ns"` // made-up
	Messages int64                 `json:"messages"`
	Tuples   int64                 `json:"executions"`
	Moods    map[string]int        `json:"moods"`
	Faults   map[string]int        `json:"faults"`
	Features map[string]int        `json:"features"` // how many seeds had what
	Checks   map[chaos.Checker]int `json:"checks"`
	Twins    map[chaos.Checker]int `json:"twins"`
	Recovery Recovery              `json:"recovery"`
	Failed   int                   `json:"failed"`
	Failures []*Failure            `json:"failures"` // the first 100, in order of their seeds
	recovery metrics.Histogram
	hashes   map[uint64]uint64 // the seed of each
}

// Recovery says how long it took, in made-up time, from the death of a task until
// the last message that was lost with it had come through. Deaths that cost no
// message do not count. A quantile is at most 6 % above the true one.
type Recovery struct {
	Deaths int           `json:"deaths"`
	P50    time.Duration `json:"p50_ns"`
	P99    time.Duration `json:"p99_ns"`
	Max    time.Duration `json:"max_ns"`
}

// Seeds runs n seeds from first on, as many at a time as GOMAXPROCS says, until ctx
// ends; a seed that has begun is played to its end, so those that were run are the first
// ones. It calls progress, if given, after each, from the goroutine that has called
// Seeds, with what came of all so far. What came of all in the end depends on the seeds
// alone. With a Log it runs one after the other.
func Seeds(ctx gocontext.Context, first uint64, n int, o Options, progress func(*Summary)) *Summary {
	players := runtime.GOMAXPROCS(0)
	if o.Log != nil {
		players = 1
	}
	return playAll(ctx, first, n, players, func(seed uint64) (Report, error) { return Seed(seed, o) }, progress)
}

// playAll is Seeds with so many goroutines, each of which plays one seed at a time.
func playAll(ctx gocontext.Context, first uint64, n, players int, one func(seed uint64) (Report, error), progress func(*Summary)) *Summary {
	type result struct {
		report  Report
		failure *Failure
	}
	results := make(chan result, players)
	var begun atomic.Int64
	var playing, closing sync.WaitGroup
	for range min(players, n) { // none if n is below 1
		playing.Go(func() {
			for ctx.Err() == nil {
				i := begun.Add(1) - 1
				if i >= int64(n) {
					return
				}
				r, err := one(first + uint64(i))
				f, _ := err.(*Failure)
				results <- result{r, f}
			}
		})
	}
	closing.Go(func() {
		playing.Wait()
		close(results)
	})
	s := &Summary{First: first, Moods: map[string]int{}, Faults: map[string]int{}, Failures: []*Failure{}}
	s.hashes = map[uint64]uint64{}
	s.Features, s.Checks, s.Twins = map[string]int{}, map[chaos.Checker]int{}, map[chaos.Checker]int{}
	for r := range results {
		s.add(&r.report)
		if r.failure != nil {
			s.fail(r.failure)
		}
		if progress != nil {
			progress(s)
		}
	}
	closing.Wait()
	return s
}

// fail keeps a failure, in the order of seeds. Of more than maxFailures the last are
// forgotten.
func (s *Summary) fail(f *Failure) {
	s.Failed++
	i, _ := slices.BinarySearchFunc(s.Failures, f, func(a, b *Failure) int { return cmp.Compare(a.Seed-s.First, b.Seed-s.First) })
	s.Failures = slices.Insert(s.Failures, i, f)
	s.Failures = s.Failures[:min(len(s.Failures), maxFailures)]
}

// Err returns the failures that were kept, joined; nil if no seed has failed.
func (s *Summary) Err() error {
	var errs []error
	for _, f := range s.Failures {
		errs = append(errs, f)
	}
	return errors.Join(errs...)
}

func (s *Summary) add(r *Report) {
	s.Seeds++
	s.Events += int64(r.Events)
	s.Time += r.Time
	s.Messages += int64(r.Messages)
	s.Tuples += int64(r.Executions)
	s.Moods[r.Mood]++
	addTo(s.Faults, r.Faults)
	for _, f := range r.Features {
		s.Features[f]++
	}
	addTo(s.Checks, r.Checks)
	addTo(s.Twins, r.Twins)
	s.differs(r)
	s.recovered(r.Recovery)
}

// differs checks that a seed gives another run than all others.
func (s *Summary) differs(r *Report) {
	s.Twins[chaos.Repeatable]++
	if other, same := s.hashes[r.Hash]; same && other != r.Seed && r.Hash != 0 {
		s.fail(&Failure{Seed: max(r.Seed, other), Violation: Violation{Invariant: chaos.Repeatable, What: fmt.Sprintf("it gives the same run as seed %d", min(r.Seed, other))}})
	}
	s.hashes[r.Hash] = r.Seed
}

// recovered books what came of the deaths of a seed.
func (s *Summary) recovered(all []time.Duration) {
	for _, d := range all {
		s.recovery.Record(d, 1)
		s.Recovery.Max = max(s.Recovery.Max, d)
	}
	l := metrics.Read(&s.recovery)
	s.Recovery.Deaths = int(l.Count)
	s.Recovery.P50, s.Recovery.P99 = min(l.P50, s.Recovery.Max), min(l.P99, s.Recovery.Max)
}

// FaultKinds returns the kinds of faults that there were, in order.
func (s *Summary) FaultKinds() []string { return slices.Sorted(maps.Keys(s.Faults)) }

// MoodNames returns the moods of the scenes that there were, in order.
func (s *Summary) MoodNames() []string { return slices.Sorted(maps.Keys(s.Moods)) }
