package egret

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/view"
)

// topOptions are the flags of "top".
type topOptions struct {
	looker
	sort       string
	interval   time.Duration
	once, json bool
}

// A topNow is what "top" shows of a moment.
type topNow struct {
	*view.Overview
	Details []view.Detail `json:"details"` // of the topologies that are shown, and have not ended
}

// topCommand is "top".
func topCommand() *cobra.Command {
	o := &topOptions{}
	c := &cobra.Command{
		Use:   "top [TOPOLOGY]",
		Short: "Show what components do, again and again",
		Long: `Show what nodes, topologies and components do, in one place on a terminal and below each
other elsewhere, until it is interrupted; on a terminal q leaves, too.

LOAD is the share of its time that a task spends in the topology's code, on average and of
the busiest one; THROTTLED the share in which it waits for room, and BY for whom: a component, or
the one task of it that has none. Rates and latencies are those of the last seconds, which
the first line names. Below it stands what holds a topology up. RESTARTS, STUCK, DEAD and LOST
are totals, and are there if there are any.

The run or the node that is asked has a page (--http); of a cluster any node will do.
` + exitCodes,
		Args: cobra.MaximumNArgs(1),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if topOrders[o.sort] == nil && o.sort != "graph" {
			return &usageError{fmt.Errorf("--sort is %q: use graph, load, rate or queued", o.sort)}
		}
		if o.interval < 100*time.Millisecond {
			return &usageError{fmt.Errorf("--interval is %v: use at least 100ms", o.interval)}
		}
		if err := o.open(); err != nil {
			return err
		}
		defer o.close()
		return o.watch(c, args)
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.sort, "sort", "graph", "order of components: graph, load, rate or queued")
	f.DurationVar(&o.interval, "interval", time.Second, "between two looks; a node counts anew each second")
	f.BoolVar(&o.once, "once", false, "look once")
	f.BoolVar(&o.json, "json", false, "print JSON, a line for each look")
	o.looker.flags(f)
	return c
}

// topOrders say which component comes first.
var topOrders = map[string]func(x, y view.ComponentNow) int{
	"load":   func(x, y view.ComponentNow) int { return cmp.Compare(y.Busiest, x.Busiest) },
	"rate":   func(x, y view.ComponentNow) int { return cmp.Compare(y.Rate, x.Rate) },
	"queued": func(x, y view.ComponentNow) int { return cmp.Compare(y.Counts.Queued, x.Counts.Queued) },
}

// watch looks again and again. That there is no answer for a while does not end it.
func (o *topOptions) watch(c *cobra.Command, args []string) error {
	out := c.OutOrStdout()
	ctx, quit := context.WithCancel(c.Context())
	defer quit()
	_, stop := interrupts(func(int) { quit() })
	defer stop()
	f, isFile := fileOf(out)
	terminal := isFile && isTerminal(f) && !o.json && !o.once
	beat := time.NewTicker(o.interval)
	defer beat.Stop()
	var s *topScreen
	for first := true; ; first = false {
		now, err := o.look(ctx, args, first)
		if ctx.Err() != nil {
			return nil // in the middle of it
		}
		var text strings.Builder
		switch {
		case err != nil && (first || exitCode(err) == ExitUnknown):
			return err
		case err != nil:
			fmt.Fprintf(&text, "%v\n", err)
		case o.json:
			if err := encode(&text, now); err != nil {
				return &runError{err}
			}
		default:
			o.print(&text, now)
		}
		if terminal {
			if s == nil { // not before there is something to show
				var leave func()
				s, leave = onScreen(out, f, c.InOrStdin(), quit)
				defer leave()
			}
			s.show(plainText(text.String()))
		} else {
			if !first && !o.json {
				fmt.Fprintln(out)
			}
			if _, err := io.WriteString(out, plainText(text.String())); err != nil {
				return nil // execute says so
			}
		}
		if o.once {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
		}
	}
}

// clipped is as much of a text as there is room for in h-1 lines of w.
func clipped(text string, w, h int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) >= h {
		all = append(all[:h-2], fmt.Sprintf("and %s more", amount.Of(len(all)-h+2, "line")))
	}
	for i, line := range all {
		if runes := []rune(line); len(runes) > w {
			all[i] = string(runes[:w-1]) + "…"
		}
	}
	return strings.Join(all, "\n")
}

// rateWithin is how long who looks first waits for something to compare with: who is asked
// may have had a rest.
const rateWithin = 3 * time.Second

// look asks once.
func (o *topOptions) look(ctx context.Context, args []string, first bool) (*topNow, error) {
	now := &topNow{Details: []view.Detail{}}
	for began := time.Now(); ; {
		now.Overview = &view.Overview{}
		if err := o.value(ctx, now.Overview, nil, "overview"); err != nil {
			return nil, err
		}
		if now.Window > 0 || !first || time.Since(began) > rateWithin || !pause(ctx, askAgain) {
			break
		}
	}
	for _, t := range now.Topologies {
		if len(args) == 0 && t.Ended || len(args) > 0 && t.Topology != args[0] {
			continue
		}
		var d view.Detail
		if err := o.value(ctx, &d, nil, "topologies", t.Topology); err != nil {
			if len(args) == 0 && exitCode(err) == ExitUnknown {
				continue // it has just gone
			}
			return nil, err
		}
		now.Details = append(now.Details, d)
	}
	if len(args) == 0 || len(now.Details) > 0 {
		return now, nil
	}
	text := "there is none"
	var have []string
	for _, t := range now.Topologies {
		have = append(have, t.Topology)
	}
	if len(have) > 0 {
		text = "there are " + strings.Join(have, ", ")
	}
	return nil, &codedError{ExitUnknown, fmt.Errorf("there is no topology %q: %s", args[0], text)}
}

// print writes what is there, for people.
func (o *topOptions) print(w io.Writer, now *topNow) {
	line := now.At.Local().Format(time.TimeOnly)
	if now.Cluster != "" {
		line += "  cluster " + now.Cluster
	}
	line += fmt.Sprintf("  %s, %s", amount.Of(len(now.Nodes), "node"), topologies(len(now.Topologies)))
	if now.Window > 0 {
		line += fmt.Sprintf("  rates of the last %.1f s", now.Window.Seconds())
	}
	if !now.Quorum {
		line += "  NO QUORUM: nothing can be changed"
	}
	fmt.Fprintln(w, line)
	for i := range now.Details {
		if d := &now.Details[i]; d.Verdict.Text != "" {
			fmt.Fprintf(w, "%s: %s\n", d.Topology, oneLine(d.Verdict.Text, 2000))
		}
	}
	fmt.Fprintln(w)
	o.nodes(w, now)
	o.topologies(w, now)
	for i := range now.Details {
		o.components(w, &now.Details[i], len(now.Details) > 1)
	}
}

func topologies(n int) string {
	if n == 1 {
		return "1 topology"
	}
	return amount.Digits(n) + " topologies"
}

func (o *topOptions) nodes(w io.Writer, now *topNow) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tTASKS\tCPU\tMEMORY\tUP\tSTATE")
	for i := range now.Nodes {
		n := &now.Nodes[i]
		state := alive
		switch {
		case !n.Alive:
			state = dead
		case n.Silent != "":
			state = "silent: " + oneLine(n.Silent, 60)
		}
		if n.Leads {
			state += ", leads"
		}
		if n.Draining {
			state += ", draining"
		}
		if n.Silent != "" {
			fmt.Fprintf(t, "%s\t%d\t-\t-\t-\t%s\n", oneLine(n.Node.Node, 60), n.Tasks, state)
			continue
		}
		fmt.Fprintf(t, "%s\t%d\t%s of %d\t%s\t%s\t%s\n", oneLine(n.Node.Node, 60), n.Tasks, share(n.Load), n.Cores, megabytes(n.Memory), age(n.Up), state)
	}
	t.Flush()
	fmt.Fprintln(w)
}

func (o *topOptions) topologies(w io.Writer, now *topNow) {
	if len(now.Topologies) == 0 {
		fmt.Fprintln(w, "no topologies")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TOPOLOGY\tSTATUS\tTASKS\tRATE/S\tDONE/S\tFAILED/S\tOPEN\tP50\tP99")
	for i := range now.Topologies {
		x := &now.Topologies[i]
		status := x.Status
		if x.Silent > 0 {
			status += fmt.Sprintf(", %s silent", amount.Of(x.Silent, "task"))
		}
		open := amount.Digits(x.Counts.Open)
		if x.Guarantee == topology.ExactlyOnce.String() {
			open = "-" // its messages are not tracked one by one
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", x.Topology, status, x.Tasks, rate(x.Rate), rate(x.DoneRate), rate(x.FailedRate), open, latency(x.Complete))
	}
	t.Flush()
}

func (o *topOptions) components(w io.Writer, d *view.Detail, several bool) {
	if d.Graph == nil {
		return
	}
	all := slices.Clone(d.Components)
	if order := topOrders[o.sort]; order != nil {
		slices.SortStableFunc(all, order)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := "COMPONENT"
	if several {
		head = "COMPONENT OF " + d.Topology
	}
	harm := harmOf(all)
	for _, h := range harm {
		head += "\t" + h.name
	}
	fmt.Fprintln(t, head+"\tTASKS\tRATE/S\tLOAD\tBUSIEST\tQUEUED\tTHROTTLED\tBY\tFAILED/S\tP50\tP99")
	for i := range all {
		x := &all[i]
		tasks, by, took := amount.Digits(x.Tasks), waitedFor(d, x), x.Execute
		if x.Silent > 0 {
			tasks += fmt.Sprintf(" (%d silent)", x.Silent)
		}
		if by == "" {
			by = "-"
		}
		if x.Kind != "bolt" {
			took = x.Complete
		}
		name := x.Component
		for _, h := range harm {
			name += "\t" + amount.Digits(h.of(&x.Counts))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, tasks, rate(x.Rate), share(x.Load), share(x.Busiest), amount.Digits(x.Counts.Queued),
			share(x.Throttled), by, rate(x.FailedRate), latency(took))
	}
	t.Flush()
	if d.Batches != nil && d.Batches.Now != nil {
		fmt.Fprintln(w)
		printBatches(w, d.Batches)
	}
}

// waitedFor is what a component waits for: its cause, or the one task of that which all of
// its tasks wait for that do so now.
func waitedFor(d *view.Detail, x *view.ComponentNow) string {
	by := ""
	for i := range d.TasksNow {
		t := &d.TasksNow[i]
		switch {
		case t.Component != x.Component || t.WaitsFor == "":
		case by == "" || by == t.WaitsFor:
			by = t.WaitsFor
		default:
			return x.Cause
		}
	}
	if name, _, _ := strings.Cut(by, "/"); name != x.Cause {
		return x.Cause
	}
	return by
}

// A harm is a column that is there if a component has something in it.
type harm struct {
	name string
	of   func(*view.Counts) int64
}

func harmOf(all []view.ComponentNow) (some []harm) {
	for _, h := range []harm{
		{"RESTARTS", func(c *view.Counts) int64 { return c.Restarts }},
		{"STUCK", func(c *view.Counts) int64 { return c.Stuck }},
		{"DEAD", func(c *view.Counts) int64 { return c.Dead }},
		{"LOST", func(c *view.Counts) int64 { return c.Lost }},
	} {
		if slices.ContainsFunc(all, func(x view.ComponentNow) bool { return h.of(&x.Counts) > 0 }) {
			some = append(some, h)
		}
	}
	return some
}

func share(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// rate is how much there is a second: of little more digits.
func rate(x float64) string {
	if x > 0 && x < 10 {
		return fmt.Sprintf("%.1f", x)
	}
	return amount.Digits(int64(x + 0.5))
}

func latency(l metrics.Latency) string {
	if l.Count == 0 {
		return "-\t-"
	}
	return fmt.Sprintf("%s\t%s", short(l.P50), short(l.P99))
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", (n+500_000)/1_000_000) }
