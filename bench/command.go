package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/topology"
)

// options are the flags of the command.
type options struct {
	setup     Setup
	guarantee string
	duration  time.Duration
	json      bool
	digest    bool
	baseline  string
	compare   bool
	rounds    int
	costModel string
}

// Command returns the command bench, whose topologies run is given.
func Command(run Runner) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast topologies run on this machine",
		Long: `Measure how fast a topology runs on this machine, or with --compare how tracked
and untracked topologies and a word count in plain Go compare.

The topologies are null (a spout and a bolt that does nothing), identity (a bolt
that passes tuples on in between) and wordcount (4,096 lines of 6 words, split
and counted by word).

Look at ratios: absolute rates depend on what else the machine does.`,
		Args: cobra.NoArgs,
		// What is wrong with the flags is said before RunE, whose errors are failures
		// of a measurement.
		PreRunE: func(*cobra.Command, []string) error { return o.check() },
		RunE: func(c *cobra.Command, _ []string) error {
			ctx := c.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			if o.compare {
				return o.runCompare(ctx, c)
			}
			return o.runOne(ctx, c, run)
		},
	}
	f := c.Flags()
	f.StringVar(&o.setup.Topology, "topology", "null", "what to run: null, identity or wordcount")
	f.StringVar(&o.guarantee, "guarantee", topology.AtLeastOnce.String(), "at-most-once or at-least-once")
	f.DurationVar(&o.duration, "duration", 5*time.Second, "length of the timed phase, after a warm-up of 500ms")
	f.Float64Var(&o.setup.Rate, "rate", 0, "messages/s over all spouts; 0: as many as go through")
	f.IntVar(&o.setup.Spouts, "spouts", 2, "tasks of the spout")
	f.IntVar(&o.setup.Bolts, "bolts", 2, "tasks of each bolt")
	f.BoolVar(&o.setup.Latency, "latency", true, "measure latencies; without, words carry no time")
	f.BoolVar(&o.digest, "digest", false, "count a fixed amount first and print the digest of the counts")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	f.StringVar(&o.baseline, "baseline", "", "run a word count in plain Go instead: plain-batched or plain-channel")
	f.BoolVar(&o.compare, "compare", false, "compare null and wordcount at both guarantees and the baselines, each in a process of its own")
	f.IntVar(&o.rounds, "rounds", 7, "rounds of a comparison")
	f.StringVar(&o.costModel, "cost-model", "", "directory of the cost model, to compare with as well")
	for _, other := range []string{"topology", "guarantee", "rate", "spouts", "bolts", "latency", "digest"} {
		c.MarkFlagsMutuallyExclusive("compare", other)
		if other != "digest" && other != "latency" {
			c.MarkFlagsMutuallyExclusive("baseline", other)
		}
	}
	c.MarkFlagsMutuallyExclusive("compare", "baseline")
	return c
}

// check reports every mistake in o at once.
func (o *options) check() error {
	var errs []error
	switch o.guarantee {
	case topology.AtLeastOnce.String():
		o.setup.Guarantee = topology.AtLeastOnce
	case topology.AtMostOnce.String():
		o.setup.Guarantee = topology.AtMostOnce
	default:
		errs = append(errs, fmt.Errorf("--guarantee is %q: use at-most-once or at-least-once", o.guarantee))
	}
	if o.duration < time.Millisecond || o.duration > time.Hour {
		errs = append(errs, fmt.Errorf("--duration is %v: use 1ms to 1h", o.duration))
	}
	if o.rounds < 1 || o.rounds > 1000 {
		errs = append(errs, fmt.Errorf("--rounds is %d: use 1 to 1,000", o.rounds))
	}
	if _, ok := baselines[o.baseline]; !ok && o.baseline != "" {
		errs = append(errs, fmt.Errorf("--baseline is %q: use plain-batched or plain-channel", o.baseline))
	}
	if o.costModel != "" && !o.compare {
		errs = append(errs, errors.New("--cost-model needs --compare"))
	}
	return errors.Join(append(errs, o.setup.check())...)
}

func (o *options) runOne(ctx context.Context, c *cobra.Command, run Runner) error {
	var r Result
	var err error
	if o.baseline != "" {
		fmt.Fprintf(c.ErrOrStderr(), "measuring %s for %v\n", o.baseline, o.duration)
		r, err = measurePlain(ctx, o.baseline, o.duration, o.digest)
	} else {
		fmt.Fprintf(c.ErrOrStderr(), "measuring %s, %s, for %v\n", o.setup.Topology, o.guarantee, o.duration)
		r, err = o.measure(ctx, run)
	}
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(r)
	}
	return r.print(c.OutOrStdout())
}

func (o *options) measure(ctx context.Context, run Runner) (Result, error) {
	var sum string
	if o.digest {
		var err error
		if sum, err = Digest(ctx, run, o.setup); err != nil {
			return Result{}, err
		}
	}
	r, err := Measure(ctx, run, o.setup, o.duration)
	r.Digest = sum
	return r, err
}

func (o *options) runCompare(ctx context.Context, c *cobra.Command) (err error) {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, to start it again: %w", err)
	}
	self := child{program, strings.Fields(c.CommandPath())[1:]} // without the root's name
	cmp := &comparer{
		rounds:   o.rounds,
		duration: o.duration,
		child:    self.run,
		progress: func(line string) { fmt.Fprintln(c.ErrOrStderr(), line) },
	}
	if o.costModel != "" {
		m, err := buildCostModel(ctx, o.costModel, o.duration)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.close()) }()
		cmp.model = m.run
	}
	out, err := cmp.run(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(out)
	}
	return out.print(c.OutOrStdout())
}

func (r *Result) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "topology\t%s\n", strings.TrimSpace(r.Topology+" "+r.Guarantee))
	fmt.Fprintf(t, "tasks\t%d of the spout, %d of each bolt\n", r.Spouts, r.Bolts)
	fmt.Fprintf(t, "messages/s\t%s\n", amount.Digits(int64(r.MessagesPerS)))
	fmt.Fprintf(t, "tuples/s\t%s\n", amount.Digits(int64(r.TuplesPerS)))
	if r.WordsPerS > 0 {
		fmt.Fprintf(t, "words/s\t%s\n", amount.Digits(int64(r.WordsPerS)))
	}
	if r.Guarantee == topology.AtLeastOnce.String() {
		fmt.Fprintf(t, "acked/s\t%s\n", amount.Digits(int64(r.AckedPerS)))
	}
	fmt.Fprintf(t, "failed\t%s\n", amount.Digits(r.Failed))
	fmt.Fprintf(t, "allocations\t%.4f a tuple, %.1f bytes\n", r.AllocsPerTuple, r.BytesPerTuple)
	fmt.Fprintf(t, "cores\t%.2f\n", r.Cores)
	for _, l := range []struct {
		name string
		of   *Latency
	}{{"emission to sink", r.Latency}, {"due to sink", r.Due}, {"emission to ack", r.AckLatency}} {
		if l.of != nil {
			us := func(v float64) string { return amount.Digits(int64(math.Round(v))) + " us" }
			fmt.Fprintf(t, "%s\tp50 %s, p99 %s, p99.9 %s\n", l.name, us(l.of.P50), us(l.of.P99), us(l.of.P999))
		}
	}
	if r.Digest != "" {
		fmt.Fprintf(t, "digest\t%s\n", r.Digest)
	}
	return t.Flush()
}

func (c *Comparison) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s of %.1f s, %s, %s\n\n", amount.Of(c.Rounds, "round"), c.Seconds, amount.Of(c.Cores, "core"), c.Go)
	fmt.Fprintf(t, "rate, median\tM/s\tallocations a tuple\n")
	for _, v := range variants {
		fmt.Fprintf(t, "%s\t%.2f\t%.4f\n", v.name, c.Medians[v.name]/1e6, c.AllocsPerTuple[v.name])
	}
	if m, ok := c.Medians[modelName]; ok {
		fmt.Fprintf(t, "%s\t%.2f\t\n", modelName, m/1e6)
	}
	fmt.Fprintf(t, "\nratio\tmedian\tmin\tmax\twanted on 2 cores\n")
	for _, q := range ratios {
		if r, ok := c.Ratios[q.name]; ok {
			short := ""
			if r < q.floor {
				short = ", not reached"
			}
			fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f\t%.2f%s\n", q.name, r, c.Ranges[q.name].Min, c.Ranges[q.name].Max, q.floor, short)
		}
	}
	fmt.Fprintf(t, "\n%s failed; the counts of all word counts are equal (%s)\n", amount.Of(c.Failed, "message"), c.Digest)
	return t.Flush()
}
