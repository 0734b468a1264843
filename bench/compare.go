package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"
)

// A variant is one of the things that a comparison measures, in a process of its
// own each time.
type variant struct {
	name  string
	args  []string // of the command bench in the child
	words bool     // its rate is words, else messages, a second
	count bool     // it also counts the fixed amount, for the digest
}

var variants = []variant{
	{name: "null_untracked", args: []string{"--topology", "null", "--guarantee", "at-most-once"}},
	{name: "null_tracked", args: []string{"--topology", "null", "--guarantee", "at-least-once"}},
	{name: "wordcount_untracked", args: []string{"--topology", "wordcount", "--guarantee", "at-most-once", "--digest"}, words: true, count: true},
	{name: "wordcount_tracked", args: []string{"--topology", "wordcount", "--guarantee", "at-least-once", "--digest"}, words: true, count: true},
	{name: "plain_batched", args: []string{"--baseline", "plain-batched", "--digest"}, words: true, count: true},
	{name: "plain_channel", args: []string{"--baseline", "plain-channel", "--digest"}, words: true, count: true},
}

// modelName is the variant that the cost model is, if there is one.
const modelName = "cost_model"

// ratios are the quotients that a comparison reports, with the least that is
// wanted of each on two cores.
var ratios = []struct {
	name, of, by string
	floor        float64
}{
	{"null_tracked_untracked", "null_tracked", "null_untracked", 0.85},
	{"wordcount_tracked_untracked", "wordcount_tracked", "wordcount_untracked", 0.90},
	{"wordcount_tracked_plain_batched", "wordcount_tracked", "plain_batched", 0.80},
	{"wordcount_tracked_plain_channel", "wordcount_tracked", "plain_channel", 3},
	{"null_tracked_cost_model", "null_tracked", modelName, 0.35},
}

// A Comparison is what several rounds have shown.
type Comparison struct {
	Rounds         int                `json:"rounds"`
	Seconds        float64            `json:"seconds"` // of each timed phase
	Cores          int                `json:"cores"`   // that a child may use at once
	Go             string             `json:"go"`
	Ratios         map[string]float64 `json:"ratios"` // the median of the rounds' ratios
	Ranges         map[string]Range   `json:"ratio_ranges"`
	Medians        map[string]float64 `json:"medians"` // messages/s of null and the cost model, words/s of the others
	AllocsPerTuple map[string]float64 `json:"allocs_per_tuple"`
	Failed         int64              `json:"failed"` // messages, over all runs
	Digest         string             `json:"digest"` // of the counts, equal in all
}

// A Range is the least and the greatest ratio of all rounds.
type Range struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// A comparer knows how to run the variants. Its functions are called one at a
// time.
type comparer struct {
	rounds   int
	duration time.Duration
	child    func(ctx context.Context, args []string) (Result, error)
	model    func(ctx context.Context) (float64, error) // messages/s; nil for none
	progress func(line string)
}

// run measures every variant once a round, in another order each time, so that
// no variant always follows the same one on a machine that slows down.
func (c *comparer) run(ctx context.Context) (*Comparison, error) {
	out := &Comparison{
		Rounds:  c.rounds,
		Seconds: c.duration.Seconds(),
		Cores:   runtime.GOMAXPROCS(0),
		Go:      runtime.Version(),
		Digest:  wantDigest(plainTasks),
	}
	rates, allocs := map[string][]float64{}, map[string][]float64{}
	order := slices.Clone(variants)
	if c.model != nil {
		order = append(order, variant{name: modelName})
	}
	for round := range c.rounds {
		rand.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
		for _, v := range order {
			var rate float64
			var err error
			if v.name == modelName {
				rate, err = c.model(ctx)
			} else {
				var r Result
				if r, err = c.measure(ctx, v, out.Digest); err == nil {
					rate = v.rate(&r)
					allocs[v.name] = append(allocs[v.name], r.AllocsPerTuple)
					out.Failed += r.Failed
				}
			}
			if err == nil && rate <= 0 {
				err = fmt.Errorf("nothing went through in %v", c.duration)
			}
			if err != nil {
				return nil, fmt.Errorf("%s in round %d: %w", v.name, round+1, err)
			}
			rates[v.name] = append(rates[v.name], rate)
			c.progress(fmt.Sprintf("round %d of %d: %-20s %7.2f M/s", round+1, c.rounds, v.name, rate/1e6))
		}
	}
	out.Medians, out.AllocsPerTuple = medians(rates), medians(allocs)
	out.Ratios, out.Ranges = ratiosOf(rates)
	return out, nil
}

func (c *comparer) measure(ctx context.Context, v variant, digest string) (Result, error) {
	args := append([]string{"--json", "--latency=false", "--duration", c.duration.String()}, v.args...)
	r, err := c.child(ctx, args)
	if err == nil && v.count && r.Digest != digest {
		err = fmt.Errorf("its counts have the digest %q, not %q: words were lost or counted twice, so its rate means nothing", r.Digest, digest)
	}
	return r, err
}

func (v *variant) rate(r *Result) float64 {
	if v.words {
		return r.WordsPerS
	}
	return r.MessagesPerS
}

// ratiosOf divides within each round, and only then looks at all rounds.
func ratiosOf(rates map[string][]float64) (medians map[string]float64, ranges map[string]Range) {
	medians, ranges = map[string]float64{}, map[string]Range{}
	for _, q := range ratios {
		of, by := rates[q.of], rates[q.by]
		if len(of) == 0 || len(by) != len(of) {
			continue // without cost model
		}
		rounds := make([]float64, len(of))
		for i := range of {
			rounds[i] = of[i] / by[i]
		}
		medians[q.name] = median(rounds)
		ranges[q.name] = Range{slices.Min(rounds), slices.Max(rounds)}
	}
	return medians, ranges
}

func medians(values map[string][]float64) map[string]float64 {
	all := map[string]float64{}
	for name, vs := range values {
		all[name] = median(vs)
	}
	return all
}

// median returns the middle of vs, which is not empty.
func median(vs []float64) float64 {
	s := slices.Sorted(slices.Values(vs))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}
