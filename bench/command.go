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
	half      bool
	watch     string
}

// halfFlag makes this process the other one of a run on two nodes.
const halfFlag = "half"

// Command returns the command bench. run is what runs its topologies, and halve what
// does on two nodes.
func Command(run Runner, halve Halver) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast topologies run on this machine",
		Long: `Measure how fast a topology runs on this machine, or with --compare how tracked
and untracked topologies and a word count in plain Go compare.

The topologies are null (a spout and a bolt that does nothing), identity (a bolt
that passes tuples on in between) and wordcount (4,096 lines of 6 words, split
and counted by word).

With --nodes 2 the spouts are in one process and the bolts in another, with a
connection of loopback between them. bare-tcp is a loop that sends parcels of the
same tuples over such a connection, and nothing else; with --compare the topologies
are compared to that, and run at a tenth of their rate for latencies as well.

With --watched another process looks at the run as its page does, and taps a stream;
with --compare such runs are compared to those at which nobody looks, and those to runs
that have no page.

Look at ratios: absolute rates depend on what else the machine does.`,
		Args: cobra.NoArgs,
		// What is wrong with the flags is said before RunE, whose errors are failures
		// of a measurement.
		PreRunE: func(*cobra.Command, []string) error {
			if o.watch != "" {
				return nil
			}
			return o.check()
		},
		RunE: func(c *cobra.Command, _ []string) error {
			ctx := c.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			switch {
			case o.watch != "":
				return serveWatch(ctx, c.InOrStdin(), c.OutOrStdout(), o.watch, o.setup.Topology)
			case o.half:
				return serveHalf(ctx, c.InOrStdin(), c.OutOrStdout(), halve)
			case o.compare:
				return o.runCompare(ctx, c)
			}
			return o.runOne(ctx, c, run, halve)
		},
	}
	f := c.Flags()
	f.StringVar(&o.setup.Topology, "topology", "null", "what to run: null, identity or wordcount")
	f.StringVar(&o.guarantee, "guarantee", topology.AtLeastOnce.String(), "at-most-once, at-least-once or exactly-once")
	f.StringVar(&o.setup.State, "state", "", "of exactly-once: memory or disk (default memory)")
	f.BoolVar(&o.setup.Combiner, "combiner", false, "of exactly-once: words are counted before they are sent, too")
	f.DurationVar(&o.duration, "duration", 5*time.Second, "length of the timed phase, after a warm-up of 500ms")
	f.Float64Var(&o.setup.Rate, "rate", 0, "messages/s over all spouts; 0: as many as go through")
	f.IntVar(&o.setup.Spouts, "spouts", 2, "tasks of the spout")
	f.IntVar(&o.setup.Bolts, "bolts", 2, "tasks of each bolt")
	f.IntVar(&o.setup.Nodes, "nodes", 1, "processes: 1, or 2 with the spouts in one and the bolts in the other")
	f.BoolVar(&o.setup.TLS, "tls", false, "with TLS between the two nodes")
	f.BoolVar(&o.setup.Watched, "watched", false, "another process has the page of the run open and taps a stream")
	f.BoolVar(&o.setup.Page, "page", false, "the run has a page, at which nobody looks")
	f.BoolVar(&o.setup.Latency, "latency", true, "measure latencies; without, words carry no time")
	f.BoolVar(&o.digest, "digest", false, "count a fixed amount first and print the digest of the counts")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	f.StringVar(&o.baseline, "baseline", "", "run plain Go instead: a word count (plain-batched, plain-channel) or parcels between two processes (bare-tcp)")
	f.BoolVar(&o.compare, "compare", false, "compare null and wordcount at both guarantees, or on two nodes, with the baselines, each in a process of its own")
	f.IntVar(&o.rounds, "rounds", 7, "rounds of a comparison")
	f.StringVar(&o.costModel, "cost-model", "", "directory of the cost model, to compare with as well")
	f.BoolVar(&o.half, halfFlag, false, "be the process with the bolts")
	f.StringVar(&o.watch, watchFlag, "", "be the process that looks, at the page with this URL")
	_, _ = f.MarkHidden(halfFlag), f.MarkHidden(watchFlag) // they are there
	for _, other := range []string{"topology", "guarantee", "rate", "spouts", "bolts", "tls", "latency", "digest", "state", "combiner", "page"} {
		c.MarkFlagsMutuallyExclusive("compare", other)
		if other != "digest" && other != "latency" {
			c.MarkFlagsMutuallyExclusive("baseline", other)
		}
	}
	c.MarkFlagsMutuallyExclusive("compare", "baseline")
	c.MarkFlagsMutuallyExclusive("watched", "baseline")
	c.MarkFlagsMutuallyExclusive("watched", "cost-model")
	c.MarkFlagsMutuallyExclusive("nodes", "baseline")
	c.MarkFlagsMutuallyExclusive("nodes", "cost-model")
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
	case topology.ExactlyOnce.String():
		o.setup.Guarantee = topology.ExactlyOnce
		if o.setup.State == "" {
			o.setup.State = inMemory
		}
	default:
		errs = append(errs, fmt.Errorf("--guarantee is %q: use at-most-once, at-least-once or exactly-once", o.guarantee))
	}
	if o.duration < time.Millisecond || o.duration > time.Hour {
		errs = append(errs, fmt.Errorf("--duration is %v: use 1ms to 1h", o.duration))
	}
	if o.rounds < 1 || o.rounds > 1000 {
		errs = append(errs, fmt.Errorf("--rounds is %d: use 1 to 1,000", o.rounds))
	}
	if _, ok := baselines[o.baseline]; !ok && o.baseline != "" && o.baseline != bareTCP {
		errs = append(errs, fmt.Errorf("--baseline is %q: use plain-batched, plain-channel or bare-tcp", o.baseline))
	}
	if o.baseline == bareTCP && o.digest {
		errs = append(errs, errors.New("--digest: bare-tcp counts no words"))
	}
	if o.costModel != "" && !o.compare {
		errs = append(errs, errors.New("--cost-model needs --compare"))
	}
	return errors.Join(append(errs, o.setup.check())...)
}

func (o *options) runOne(ctx context.Context, c *cobra.Command, run Runner, halve Halver) error {
	var r Result
	self, err := itself(c)
	if err != nil {
		return err
	}
	switch what := o.baseline; {
	case what != "":
		fmt.Fprintf(c.ErrOrStderr(), "measuring %s for %v\n", what, o.duration)
		if what == bareTCP {
			r, err = measureBare(ctx, self, o.duration)
		} else {
			r, err = measurePlain(ctx, what, o.duration, o.digest)
		}
	case o.setup.Nodes == 2:
		fmt.Fprintf(c.ErrOrStderr(), "measuring %s, %s, on two nodes, for %v\n", o.setup.Topology, o.guarantee, o.duration)
		p := &pairing{halve, self}
		r, err = o.measure(func() (string, error) { return p.digest(ctx, o.setup) },
			func() (Result, error) { return p.measure(ctx, o.setup, o.duration) })
	default:
		fmt.Fprintf(c.ErrOrStderr(), "measuring %s, %s, for %v\n", o.setup.Topology, o.guarantee, o.duration)
		o.setup.look = self.look
		r, err = o.measure(func() (string, error) { return Digest(ctx, run, o.setup) },
			func() (Result, error) { return Measure(ctx, run, o.setup, o.duration) })
	}
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(r)
	}
	return r.print(c.OutOrStdout())
}

func (o *options) measure(digest func() (string, error), measure func() (Result, error)) (Result, error) {
	var sum string
	if o.digest {
		var err error
		if sum, err = digest(); err != nil {
			return Result{}, err
		}
	}
	r, err := measure()
	r.Digest = sum
	return r, err
}

// itself returns this program as a child.
func itself(c *cobra.Command) (child, error) {
	program, err := os.Executable()
	if err != nil {
		return child{}, fmt.Errorf("finding this program, to start it again: %w", err)
	}
	return child{program, strings.Fields(c.CommandPath())[1:]}, nil // without the root's name
}

func (o *options) runCompare(ctx context.Context, c *cobra.Command) (err error) {
	self, err := itself(c)
	if err != nil {
		return err
	}
	cmp := &comparer{
		contest:  oneNode(),
		rounds:   o.rounds,
		duration: o.duration,
		child:    self.run,
		progress: func(line string) { fmt.Fprintln(c.ErrOrStderr(), line) },
	}
	switch {
	case o.setup.Nodes == 2:
		cmp.contest = twoNodes
	case o.setup.Watched:
		cmp.contest = watching
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
	if r.Nodes > 1 {
		fmt.Fprintf(t, "nodes\t%d%s\n", r.Nodes, map[bool]string{true: ", with TLS"}[r.TLS])
	}
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
	if r.WirePerMessage > 0 {
		fmt.Fprintf(t, "on the wire\t%.1f bytes a message\n", r.WirePerMessage)
	}
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
