package egret

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/chaos/sim"
)

// chaosCommand is "chaos", whose commands do harm to the engine.
func chaosCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "chaos",
		Short: "Harm the engine and check that no message is lost",
		Long: `Harm the engine and check that no message is lost.

chaos sim runs topologies of its own, not those of this program, in a simulation:
one goroutine, a made-up clock, and tasks, links and sources that fail as a seed
says. What it finds it finds again with the same seed.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("unknown command %q: use chaos sim", args[0])}
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error { return &usageError{errors.New("use chaos sim")} },
	}
	c.AddCommand(chaosSimCommand())
	return c
}

// chaosOptions are the flags of "chaos sim".
type chaosOptions struct {
	first, seeds uint64
	verbose      bool
	json         bool
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
both runs must be the same.

A seed that fails is named, with the command that repeats it.`,
		Args: cobra.NoArgs,
		PreRunE: func(c *cobra.Command, _ []string) error {
			if o.seeds == 0 {
				if o.seeds = 100; c.Flags().Changed("seed") {
					o.seeds = 1
				}
			}
			if o.verbose && o.seeds != 1 {
				return &usageError{errors.New("-v writes the events of one seed: say which with --seed")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.Uint64Var(&o.first, "seed", 1, "the first seed; without --seeds the only one")
	f.Uint64Var(&o.seeds, "seeds", 0, "how many seeds to run (default 100)")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "write what the seed draws and every event, and no report")
	f.BoolVar(&o.json, "json", false, "write the report as JSON")
	return failing(c)
}

func (o *chaosOptions) run(c *cobra.Command) error {
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	interrupted, quiet := interrupts(nil)
	defer quiet()
	var so sim.Options
	if o.verbose {
		so.Log = c.OutOrStdout()
	}
	p := newProgress(c.ErrOrStderr())
	began := time.Now()
	s := sim.Seeds(ctx, o.first, int(o.seeds), so, func(s *sim.Summary) {
		select {
		case <-interrupted:
			stop()
		default:
		}
		p.text(fmt.Sprintf("%d of %s  %s  %d failed", s.Seeds, amount.Of(o.seeds, "seed"), amount.Of(s.Events, "event"), len(s.Failures)))
	})
	p.clear()
	switch {
	case o.verbose:
	case o.json:
		e := json.NewEncoder(c.OutOrStdout())
		e.SetIndent("", "  ")
		if err := e.Encode(s); err != nil {
			return err
		}
	default:
		chaosReport(c.OutOrStdout(), s, time.Since(began))
	}
	return o.outcome(s)
}

// outcome is the error of the command: the failures, each with the command that
// repeats it.
func (o *chaosOptions) outcome(s *sim.Summary) error {
	var errs []error
	for _, f := range s.Failures {
		if len(errs) == 10 {
			errs = append(errs, fmt.Errorf("and %d more", len(s.Failures)-10))
			break
		}
		errs = append(errs, f)
	}
	if uint64(s.Seeds) < o.seeds {
		errs = append(errs, fmt.Errorf("interrupted after %d of %s", s.Seeds, amount.Of(o.seeds, "seed")))
	}
	return errors.Join(errs...)
}

func chaosReport(w io.Writer, s *sim.Summary, took time.Duration) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	counts := func(kinds []string, n map[string]int) string {
		var parts []string
		for _, k := range kinds {
			parts = append(parts, fmt.Sprintf("%s %s", k, amount.Digits(n[k])))
		}
		if len(parts) == 0 {
			return "none"
		}
		return strings.Join(parts, ", ")
	}
	line("seeds", "%d from %d on, each twice, in %v: %d failed", s.Seeds, s.First, took.Round(time.Millisecond), len(s.Failures))
	line("scenes", "%s", counts(s.MoodNames(), s.Moods))
	line("time", "%.2f hours made up, %s", s.Time.Hours(), amount.Of(s.Events, "event"))
	line("work", "%s, %s executed", amount.Of(s.Messages, "message"), amount.Of(s.Tuples, "tuple"))
	line("faults", "%s", counts(s.FaultKinds(), s.Faults))
	line("invariants", "%s evaluated", amount.Digits(s.Checks))
	r := s.Recovery
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }
	line("recovery", "%s with a loss of messages: p50 %s, p99 %s, at most %s of made-up time", amount.Of(r.Deaths, "death"), ms(r.P50), ms(r.P99), ms(r.Max))
}
