package egret

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/chaos/sim"
	"github.com/egretstream/egret/topology"
)

// chaosCommand is "chaos", whose commands do harm to the engine.
func chaosCommand(topologies []*topology.Topology) *cobra.Command {
	c := &cobra.Command{
		Use:   "chaos",
		Short: "Harm the engine and check that no message is lost",
		Long: `Harm the engine and check that no message is lost.

chaos sim runs topologies of its own, not those of this program, in a simulation:
one goroutine, a made-up clock, and tasks, links and sources that fail as a seed
says. What it finds it finds again with the same seed.

chaos live runs a topology of this program and does harm to its tasks.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("unknown command %q: use chaos sim or chaos live", args[0])}
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error { return &usageError{errors.New("use chaos sim or chaos live")} },
	}
	c.AddCommand(chaosSimCommand(), chaosLiveCommand(topologies), fleetNodeCommand())
	return c
}

// Bounds of the flags of "chaos sim".
const (
	mostSeeds   = 1_000_000_000
	mostMinutes = 7 * 24 * 60
)

// chaosOptions are the flags of "chaos sim".
type chaosOptions struct {
	first   uint64
	seeds   int
	minutes float64 // 0: as long as it takes
	verbose bool
	json    bool
	report  string // a file, or two without their endings; "": none
	files   reportFiles

	planText string
	plan     *chaos.Plan // nil: as each seed draws it
	cluster  bool        // of nodes, so many; 0: the seed draws that
	nodes    int
	batches  bool
}

func chaosSimCommand() *cobra.Command {
	var o chaosOptions
	c := &cobra.Command{
		Use:   "sim",
		Short: "Run simulated topologies with simulated faults",
		Long: `Run the engine in a simulation. Each seed draws a topology, a network, speeds and
faults: tasks are killed, links and tasks freeze, bolts fail, panic and hang,
sources err, and what may be lost is lost. What came of each message is compared with a
record that the simulated sources, queues and bolts keep. Each seed is run twice, and
both runs must be the same, event by event.

Seeds run on all cores; what comes of one depends on nothing but its number. A seed
that fails is named, with the fewest faults with which it fails and the command that
repeats it, and the exit code is 1. --plan plays the scenes of the seeds with other
faults than they draw, and --plan '' with none. An interrupt lets the seeds that have
begun come to their end and reports on those that were run; the exit code is 1 then too.

--nodes runs a cluster of so many nodes instead, or with 0 of a number that the seed
draws: nodes are killed, hang, are cut off from each other, join, drain and leave while
topologies are rebalanced, and in the end all nodes must be of one mind.

--batches runs exactly-once topologies instead: tasks and the process die, also between
what a state has written and what the record says of it, stores lose what is not yet
durable, and each message must be in each state once.`,
		Example: `  chaos sim --seeds 500                 seeds 1 to 500
  chaos sim --minutes 10 --seed 1000    as many as go into 10 minutes, from 1,000 on
  chaos sim --seed 17 -v                every event of seed 17
  chaos sim --nodes 3 --seeds 500       clusters of 3 nodes
  chaos sim --batches --seeds 500       exactly-once topologies
  chaos sim --seed 17 --plan 'at 1s crash *; lose limit 4%'`,
		Args: cobra.NoArgs,
		PreRunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(c.Flags().Changed); err != nil {
				return &usageError{err}
			}
			var err error
			o.files, err = openReports(o.report)
			return err
		},
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.Uint64Var(&o.first, "seed", 1, "the first seed; alone the only one")
	f.IntVar(&o.seeds, "seeds", 100, "how many seeds to run")
	f.Float64Var(&o.minutes, "minutes", 0, "run as many seeds as go into this time")
	f.StringVar(&o.planText, "plan", "", "do these faults and not those that the seeds draw; '' does none")
	f.IntVar(&o.nodes, "nodes", 0, "run a cluster of so many nodes at first; 0: as the seed draws it")
	f.BoolVar(&o.batches, "batches", false, "run exactly-once topologies")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "write what the seed draws and every event, and no report")
	f.BoolVar(&o.json, "json", false, "write the report as JSON")
	f.StringVar(&o.report, "report", "", "write the report to a file too: FILE.json, FILE.md, or both without an ending")
	return failing(c)
}

// check finishes the options and reports every mistake in them at once.
func (o *chaosOptions) check(given func(flag string) bool) error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case given("minutes") && given("seeds"):
		refuse("--seeds and --minutes: give one of them")
	case given("minutes") && !(o.minutes > 0 && o.minutes <= mostMinutes):
		refuse("--minutes is %v: use more than 0, up to %s", o.minutes, amount.Digits(mostMinutes))
	case given("minutes"):
		o.seeds = math.MaxInt
	case given("seeds") && (o.seeds < 1 || o.seeds > mostSeeds):
		refuse("--seeds is %d: use 1 to %s", o.seeds, amount.Digits(mostSeeds))
	case given("seed") && !given("seeds"):
		o.seeds = 1
	}
	if o.verbose && o.seeds != 1 {
		refuse("-v writes the events of one seed: say which with --seed")
	}
	if o.verbose && (o.json || o.report != "") {
		refuse("-v writes the events and no report: leave out --json and --report")
	}
	if given("report") && o.report == "" {
		refuse("--report needs the name of a file")
	}
	o.cluster = given("nodes")
	if o.nodes < 0 || o.nodes > sim.MostNodes {
		refuse("--nodes is %d: use 0 to %d", o.nodes, sim.MostNodes)
	}
	if o.cluster && given("plan") {
		refuse("--plan is for tasks, and --nodes draws what is done to nodes: leave out one of them")
	}
	if o.batches && (given("plan") || o.cluster) {
		refuse("--batches draws its own topologies and what is done to them: leave out --plan and --nodes")
	}
	if given("plan") && len(errs) == 0 {
		if err := o.readPlan(); err != nil {
			refuse("--plan: %w", err)
		}
	}
	return errors.Join(errs...)
}

// readPlan reads the plan and sees that it can be done to the scenes of all seeds, or
// of the first hundred.
func (o *chaosOptions) readPlan() error {
	p, err := chaos.Parse(o.planText)
	if err != nil {
		return err
	}
	o.plan = &p
	for i := range uint64(min(o.seeds, 100)) {
		if err := (sim.Options{Plan: o.plan}).Check(o.first + i); err != nil {
			return err
		}
	}
	return nil
}

func (o *chaosOptions) run(c *cobra.Command) error {
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	defer o.files.close()
	stderr := c.ErrOrStderr()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	_, quiet := interrupts(func(int) { stop() })
	defer quiet()
	inTime := ctx
	if o.minutes > 0 {
		var done context.CancelFunc
		inTime, done = context.WithTimeout(ctx, time.Duration(o.minutes*float64(time.Minute)))
		defer done()
	}
	so := sim.Options{Plan: o.plan}
	if o.verbose {
		so.Log = c.OutOrStdout()
	}
	show := newProgress(stderr)
	show.lines = !o.verbose && !o.json
	began, told := time.Now(), false
	seeds := func(progress func(*sim.Summary)) *sim.Summary {
		if o.cluster {
			return sim.ClusterSeeds(inTime, o.first, o.seeds, sim.ClusterOptions{Nodes: o.nodes, Log: so.Log}, progress)
		}
		if o.batches {
			return sim.BatchSeeds(inTime, o.first, o.seeds, sim.BatchOptions{Log: so.Log}, progress)
		}
		return sim.Seeds(inTime, o.first, o.seeds, so, progress)
	}
	s := seeds(func(s *sim.Summary) {
		if ctx.Err() != nil && !told {
			told = true
			show.clear()
			fmt.Fprintln(stderr, "interrupted: waiting for the seeds that have begun; twice more to exit at once")
		}
		took := time.Since(began)
		show.now(took, func() string { return o.progress(s, took) })
	})
	show.clear()
	r := newChaosReport(s, time.Since(began), ctx.Err() != nil && s.Seeds < o.seeds)
	if o.verbose {
		return r.failure(true)
	}
	var err error
	if o.json {
		err = r.json(c.OutOrStdout())
	} else {
		r.text(c.OutOrStdout())
	}
	return errors.Join(r.failure(false), err, o.files.write(r))
}

// progress says how far a run is.
func (o *chaosOptions) progress(s *sim.Summary, took time.Duration) string {
	rate := float64(s.Seeds) / max(took, time.Millisecond).Seconds()
	text := amount.Of(s.Seeds, "seed")
	left := time.Duration(o.minutes*float64(time.Minute)) - took
	if o.minutes == 0 {
		text = fmt.Sprintf("%s of %s", amount.Digits(s.Seeds), amount.Of(o.seeds, "seed"))
		left = time.Duration(float64(o.seeds-s.Seeds) / rate * float64(time.Second))
	}
	return fmt.Sprintf("%s  %.1f/s  %s failed  %v left", text, rate, amount.Digits(s.Failed), max(left, 0).Round(time.Second))
}

// reportFiles are the files that a report goes to, opened before the run, so that none
// is for nothing.
type reportFiles []*os.File

func openReports(name string) (files reportFiles, err error) {
	if name == "" {
		return nil, nil
	}
	names := []string{name}
	if end := filepath.Ext(name); end != ".json" && end != ".md" {
		names = []string{name + ".json", name + ".md"}
	}
	for _, n := range names {
		// What is there stays until there is a report to put in its place.
		f, err := os.OpenFile(n, os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			files.close()
			return nil, &placeError{fmt.Errorf("--report: %w", err)}
		}
		files = append(files, f)
	}
	return files, nil
}

func (files reportFiles) write(r *chaosReport) error {
	var errs []error
	for _, f := range files {
		write := r.json
		if filepath.Ext(f.Name()) == ".md" {
			write = r.markdown
		}
		err := f.Truncate(0)
		if err == nil {
			err = write(f)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--report: the report is not complete: %w", err))
		}
	}
	return errors.Join(append(errs, files.close())...)
}

// close closes the files that are open.
func (files reportFiles) close() error {
	var errs []error
	for i, f := range slices.Backward(files) {
		if f != nil {
			errs = append(errs, f.Close())
			files[i] = nil
		}
	}
	return errors.Join(errs...)
}
