package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/state"
)

// A variant is one of the things that a comparison measures, in a process of its
// own each time.
type variant struct {
	name  string
	args  []string // of the command bench in the child
	words bool     // its rate is words, else messages, a second
	count bool     // it also counts the fixed amount, for the digest
	load  bool     // it is also run at a tenth of its rate, for latencies
	p99   float64  // us that are wanted then at most, on two cores; 0: nobody has said
}

var variants = []variant{
	{name: "null_untracked", args: []string{"--topology", "null", "--guarantee", "at-most-once"}},
	{name: "null_tracked", args: []string{"--topology", "null", "--guarantee", "at-least-once"}},
	{name: "wordcount_untracked", args: []string{"--topology", "wordcount", "--guarantee", "at-most-once", "--digest"}, words: true, count: true},
	{name: "wordcount_tracked", args: []string{"--topology", "wordcount", "--guarantee", "at-least-once", "--digest"}, words: true, count: true},
	{name: "wordcount_exact_memory", args: []string{"--topology", "wordcount", "--guarantee", "exactly-once", "--digest"}, words: true, count: true},
	{name: "wordcount_exact_disk", args: []string{"--topology", "wordcount", "--guarantee", "exactly-once", "--state", "disk", "--digest"}, words: true, count: true},
	{name: "wordcount_exact_combiner", args: []string{"--topology", "wordcount", "--guarantee", "exactly-once", "--combiner", "--digest"}, words: true, count: true},
	{name: "wordcount_exact_combiner_disk", args: []string{"--topology", "wordcount", "--guarantee", "exactly-once", "--state", "disk", "--combiner", "--digest"}, words: true, count: true},
	{name: "plain_batched", args: []string{"--baseline", "plain-batched", "--digest"}, words: true, count: true},
	{name: "plain_channel", args: []string{"--baseline", "plain-channel", "--digest"}, words: true, count: true},
}

// modelName is the variant that the cost model is, if there is one.
const modelName = "cost_model"

// A ratio is a quotient that a comparison reports, with the least that is wanted of
// it on two cores.
type ratio struct {
	name, of, by string
	floor        float64
}

var ratios = []ratio{
	{"null_tracked_untracked", "null_tracked", "null_untracked", 0.85},
	{"wordcount_tracked_untracked", "wordcount_tracked", "wordcount_untracked", 0.90},
	{"wordcount_tracked_plain_batched", "wordcount_tracked", "plain_batched", 0.80},
	{"wordcount_tracked_plain_channel", "wordcount_tracked", "plain_channel", 3},
	{"wordcount_exact_memory_tracked", "wordcount_exact_memory", "wordcount_tracked", 0.70},
	{"wordcount_exact_disk_tracked", "wordcount_exact_disk", "wordcount_tracked", 0.50},
	{"wordcount_exact_combiner_tracked", "wordcount_exact_combiner", "wordcount_tracked", 0},
	{"wordcount_exact_combiner_disk_tracked", "wordcount_exact_combiner_disk", "wordcount_tracked", 0},
	{"null_tracked_cost_model", "null_tracked", modelName, 0.35},
}

// On two nodes the rates are of messages, all of which travel.
var (
	nodesVariants = []variant{
		{name: "null", args: []string{"--nodes", "2", "--topology", "null"}, load: true, p99: 3000},
		{name: "wordcount", args: []string{"--nodes", "2", "--topology", "wordcount", "--digest"}, count: true, load: true, p99: 3000},
		{name: "null_tls", args: []string{"--nodes", "2", "--tls", "--topology", "null"}, load: true},
		{name: "wordcount_tls", args: []string{"--nodes", "2", "--tls", "--topology", "wordcount", "--digest"}, count: true, load: true},
		{name: "bare_tcp", args: []string{"--baseline", bareTCP}},
	}
	nodesRatios = []ratio{
		{"null_bare_tcp", "null", "bare_tcp", 0.40},
		{"wordcount_bare_tcp", "wordcount", "bare_tcp", 0.40},
		{"null_tls_null", "null_tls", "null", 0},
		{"wordcount_tls_wordcount", "wordcount_tls", "wordcount", 0},
	}
)

// A contest is what a comparison compares.
type contest struct {
	variants []variant
	ratios   []ratio
}

// Whether it makes a difference that somebody looks.
var (
	watchingVariants = []variant{
		{name: "null", args: []string{"--topology", "null"}},
		{name: "null_page", args: []string{"--topology", "null", "--page"}},
		{name: "null_watched", args: []string{"--topology", "null", "--watched"}},
		{name: "wordcount", args: []string{"--topology", "wordcount"}, words: true},
		{name: "wordcount_page", args: []string{"--topology", "wordcount", "--page"}, words: true},
		{name: "wordcount_watched", args: []string{"--topology", "wordcount", "--watched"}, words: true},
	}
	watchingRatios = []ratio{
		{"null_page_null", "null_page", "null", 0.97},
		{"null_watched_null", "null_watched", "null", 0.97},
		{"wordcount_page_wordcount", "wordcount_page", "wordcount", 0.97},
		{"wordcount_watched_wordcount", "wordcount_watched", "wordcount", 0.97},
	}
)

var (
	twoNodes = &contest{nodesVariants, nodesRatios}
	watching = &contest{watchingVariants, watchingRatios}
)

// oneNode is what a program compares that has only one process. One without pebble has
// no states on a disk.
func oneNode() *contest {
	c := &contest{slices.Clone(variants), slices.Clone(ratios)}
	if _, err := state.At("pebble", ""); err != nil {
		c.variants = slices.DeleteFunc(c.variants, func(v variant) bool { return slices.Contains(v.args, onDisk) })
		c.ratios = slices.DeleteFunc(c.ratios, func(r ratio) bool { return strings.HasSuffix(r.of, onDisk) })
	}
	return c
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
	// Time of all cores, which depends less on what else the machine does.
	CPUPerMessage map[string]float64 `json:"cpu_ns_per_message"`
	// Of two nodes: bytes both ways, without what TLS adds; and how old messages get
	// from when they were due, each time at a tenth of the rate of a moment before.
	WirePerMessage map[string]float64 `json:"wire_bytes_per_message,omitempty"`
	AtTenth        map[string]Load    `json:"at_tenth_due_us,omitempty"`

	of *contest
}

// A Load is the medians of several latencies, in microseconds.
type Load struct {
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
	P99Range Range   `json:"p99_range"`
	P999     float64 `json:"p999"`
}

// A Range is the least and the greatest ratio of all rounds.
type Range struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// A comparer knows how to run the variants. Its functions are called one at a
// time.
type comparer struct {
	*contest
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
		of:      c.contest,
	}
	rates, allocs, wire, cpu := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	loads := map[string][]*Latency{}
	order := slices.Clone(c.variants)
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
					if r.MessagesPerS > 0 {
						cpu[v.name] = append(cpu[v.name], r.Cores/r.MessagesPerS*1e9)
					}
					if r.WirePerMessage > 0 {
						wire[v.name] = append(wire[v.name], r.WirePerMessage)
					}
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
			if v.load {
				l, err := c.load(ctx, v, rate/10)
				if err != nil {
					return nil, fmt.Errorf("%s at a tenth in round %d: %w", v.name, round+1, err)
				}
				loads[v.name] = append(loads[v.name], l)
				c.progress(fmt.Sprintf("round %d of %d: %-20s %7.2f M/s, p99 %.2f ms", round+1, c.rounds, v.name, rate/1e7, l.P99/1e3))
			}
		}
	}
	out.Medians, out.AllocsPerTuple = medians(rates), medians(allocs)
	out.Ratios, out.Ranges = ratiosOf(c.ratios, rates)
	out.WirePerMessage, out.CPUPerMessage = medians(wire), medians(cpu)
	for name, ls := range loads {
		if out.AtTenth == nil {
			out.AtTenth = map[string]Load{}
		}
		out.AtTenth[name] = loadOf(ls)
	}
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

// load measures how old messages get at a rate.
func (c *comparer) load(ctx context.Context, v variant, rate float64) (*Latency, error) {
	args := append([]string{"--json", "--rate", strconv.FormatFloat(rate, 'f', 0, 64), "--duration", c.duration.String()}, v.args...)
	r, err := c.child(ctx, slices.DeleteFunc(args, func(a string) bool { return a == "--digest" }))
	if err == nil && r.Due == nil {
		err = fmt.Errorf("nothing went through in %v", c.duration)
	}
	return r.Due, err
}

func loadOf(all []*Latency) Load {
	var p50, p99, p999 []float64
	for _, l := range all {
		p50, p99, p999 = append(p50, l.P50), append(p99, l.P99), append(p999, l.P999)
	}
	return Load{P50: median(p50), P99: median(p99), P99Range: Range{slices.Min(p99), slices.Max(p99)}, P999: median(p999)}
}

func (v *variant) rate(r *Result) float64 {
	if v.words {
		return r.WordsPerS
	}
	return r.MessagesPerS
}

// ratiosOf divides within each round, and only then looks at all rounds.
func ratiosOf(ratios []ratio, rates map[string][]float64) (medians map[string]float64, ranges map[string]Range) {
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
