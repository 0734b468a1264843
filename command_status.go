package egret

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/view"
)

const watchEvery = time.Second

// A statusJSON is a cluster for programs.
type statusJSON struct {
	Cluster    string         `json:"cluster"`
	Quorum     bool           `json:"quorum"` // false: nothing can be changed, as far as the node knows
	Nodes      []memberJSON   `json:"nodes"`
	Topologies []topologyJSON `json:"topologies"`
}

// A topologyJSON is what a cluster has of a topology.
type topologyJSON struct {
	Topology   string          `json:"topology"`
	Run        cluster.Run     `json:"run"`
	Guarantee  string          `json:"guarantee"`
	Status     cluster.Status  `json:"status"`
	Reason     string          `json:"reason,omitempty"`
	Since      time.Time       `json:"since"`
	Tasks      int             `json:"tasks"`
	Nodes      int             `json:"nodes"`             // that have some
	Placed     bool            `json:"placed"`            // false: no node has been found for its tasks yet
	Waiting    string          `json:"waiting,omitempty"` // for what a change is made that waits until nothing is open
	Moves      int             `json:"moves,omitempty"`   // tasks that it moves, begins or ends
	Components []componentJSON `json:"components"`
	PerTask    []taskJSON      `json:"per_task,omitempty"`
	Unknown    string          `json:"unknown,omitempty"` // why there are no counts
	Lacks      string          `json:"lacks,omitempty"`   // the node that it waits for, which has its states
	// Batches are those of an exactly-once topology; nil: it is none. Of one that does not
	// run, or of which nothing is heard, there is the last one alone.
	Batches *view.Batches `json:"batches,omitempty"`
}

// A componentJSON is what the tasks of a component do, together.
type componentJSON struct {
	Component string `json:"component"`
	Tasks     int    `json:"tasks"`
	Silent    int    `json:"silent,omitempty"` // tasks whose node has said nothing yet
	countsJSON
	By      []string `json:"throttled_by,omitempty"`
	counted bool     // false: nobody was asked what its tasks do, or has answered
}

// MarshalJSON leaves out counts that nobody was asked for: they are not 0.
func (c componentJSON) MarshalJSON() ([]byte, error) {
	if !c.counted {
		return json.Marshal(struct {
			Component string `json:"component"`
			Tasks     int    `json:"tasks"`
		}{c.Component, c.Tasks})
	}
	type plain componentJSON // without this method
	return json.Marshal(plain(c))
}

// A taskJSON is one task.
type taskJSON struct {
	Task string `json:"task"`
	Node string `json:"node"`
	Life string `json:"life,omitempty"`
	countsJSON
	By string `json:"throttled_by,omitempty"`
}

// countsJSON are what tasks have done since they are where they are.
type countsJSON struct {
	Rate     float64 `json:"rate"`
	Queued   int64   `json:"queued"`
	Open     int64   `json:"open"`
	Acked    int64   `json:"acked"`
	Failed   int64   `json:"failed"`
	Lost     int64   `json:"lost"`
	Replayed int64   `json:"replayed"`
	Dead     int64   `json:"dead"`
}

func (c *countsJSON) add(t *node.TaskStats) {
	c.Rate += t.Rate
	c.Queued += t.Queued
	c.Open += t.Open
	c.Acked += t.Acked
	c.Failed += t.Failed
	c.Lost += t.Lost
	c.Replayed += t.Replayed
	c.Dead += t.Dead
}

// statusOptions are the flags of "status".
type statusOptions struct {
	client
	watch, perTask bool
}

// statusCommand is "status".
func statusCommand() *cobra.Command {
	o := &statusOptions{}
	c := o.client.command("status [TOPOLOGY]", "Show what the cluster does",
		`Without TOPOLOGY it shows the topologies that the cluster has and its nodes. With one
it shows what its components do. Counts are those of the tasks where they are now, and
rates those of the last second, between two messages of a node; top shows those of five.
`, cobra.MaximumNArgs(1), func(ctx context.Context, c *cobra.Command, args []string) error {
			if o.watch {
				return o.watching(c, args)
			}
			s, err := o.status(ctx, args)
			if err != nil {
				return err
			}
			return o.show(c.OutOrStdout(), s, len(args) > 0)
		})
	c.Flags().BoolVar(&o.watch, "watch", false, "again each second, until it is interrupted")
	c.Flags().BoolVarP(&o.perTask, "verbose", "v", false, "show each task with its node and its life")
	return c
}

// listCommand is "list".
func listCommand() *cobra.Command {
	o := &statusOptions{}
	return o.client.command("list", "List the topologies that the cluster has",
		`Those of the program are shown by "topologies".
`, cobra.NoArgs, func(ctx context.Context, c *cobra.Command, args []string) error {
			s, err := o.status(ctx, args)
			if err != nil {
				return err
			}
			if o.json {
				return encode(c.OutOrStdout(), s.Topologies)
			}
			if !s.Quorum {
				fmt.Fprint(c.OutOrStdout(), noQuorum(s.Nodes))
			}
			printTopologies(c.OutOrStdout(), s.Topologies)
			return nil
		})
}

// status asks how the cluster is, and what one topology does.
func (o *statusOptions) status(ctx context.Context, args []string) (*statusJSON, error) {
	v, err := o.view(ctx)
	if err != nil {
		return nil, err
	}
	s := &statusJSON{Cluster: v.Cluster, Quorum: v.Leader != 0, Nodes: members(v), Topologies: []topologyJSON{}}
	for _, sub := range v.Submissions {
		if len(args) > 0 && args[0] != sub.Topology {
			continue
		}
		x := topologyOf(sub)
		if x.Batches != nil {
			x.Batches.Last = int64(v.Committed[sub.Run])
		}
		x.Lacks = lacks(v, sub)
		if len(args) > 0 && x.Placed && sub.Status.Runs() {
			a, err := o.askOnce(ctx, o.node, &node.Request{Op: node.OpStats, Topology: sub.Topology})
			switch {
			case errors.Is(err, node.ErrNoQuorum), errors.Is(err, node.ErrUnsure):
				x.Unknown = err.Error()
			case err != nil:
				return nil, err
			default:
				x.count(sub, a.Stats, names(v), o.perTask)
			}
		}
		s.Topologies = append(s.Topologies, x)
	}
	if len(args) > 0 && len(s.Topologies) == 0 {
		return nil, unknownTopology(v, args[0])
	}
	return s, nil
}

func topologyOf(sub *cluster.Submission) topologyJSON {
	x := topologyJSON{
		Topology: sub.Topology, Run: sub.Run, Guarantee: cmp.Or(sub.Guarantee, "-"), Status: sub.Status, Reason: sub.Reason, Since: sub.Since, Placed: sub.Plan != nil,
		Components: []componentJSON{},
	}
	homes := map[cluster.Home]bool{}
	if sub.Plan != nil && sub.Status.Runs() { // the plan of one that has ended stays
		for _, t := range sub.Plan.Tasks {
			if t.Home.Node != 0 {
				homes[t.Home] = true
				x.Tasks++
			}
		}
	}
	x.Nodes = len(homes)
	for _, c := range sub.Components {
		x.Components = append(x.Components, componentJSON{Component: c.Name, Tasks: c.Parallel})
		if c.One && x.Batches == nil {
			x.Batches = &view.Batches{}
		}
	}
	if sub.Next != nil {
		x.Waiting = sub.Why
		for id, t := range sub.Next.Tasks {
			if id >= len(sub.Plan.Tasks) || sub.Plan.Tasks[id].Home != t.Home {
				x.Moves++
			}
		}
	}
	return x
}

// count adds what its tasks do.
func (x *topologyJSON) count(sub *cluster.Submission, s *node.Stats, of func(cluster.Home) string, perTask bool) {
	if s == nil {
		return
	}
	for i := range x.Components {
		x.Components[i].counted = true
	}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		at := slices.IndexFunc(x.Components, func(c componentJSON) bool { return c.Component == t.Component })
		if at < 0 {
			continue
		}
		c := &x.Components[at]
		if !t.Known {
			c.Silent++
		}
		c.add(t)
		if t.Batches != nil {
			x.Batches = t.Batches
		}
		if t.By != "" && !slices.Contains(c.By, t.By) {
			c.By = append(c.By, t.By)
		}
		if perTask {
			one := taskJSON{Task: t.Name, Node: of(t.Home), By: t.By}
			if t.Known {
				one.Life = t.Life.String()
			}
			one.add(t)
			x.PerTask = append(x.PerTask, one)
		}
	}
}

// show prints a status.
func (o *statusOptions) show(w io.Writer, s *statusJSON, one bool) error {
	if o.json {
		return encode(w, s)
	}
	if !s.Quorum {
		fmt.Fprint(w, noQuorum(s.Nodes))
	}
	if !one {
		printTopologies(w, s.Topologies)
		fmt.Fprintln(w)
	}
	for i := range s.Topologies {
		if one {
			s.Topologies[i].print(w)
			fmt.Fprintln(w)
		}
	}
	printMembers(w, s.Nodes)
	return nil
}

func printTopologies(w io.Writer, all []topologyJSON) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no topologies")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TOPOLOGY\tRUN\tGUARANTEE\tSTATUS\tSINCE\tTASKS\tNODES\tCHANGE")
	for i := range all {
		x := &all[i]
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%d\t%d\t%s\n", x.Topology, x.Run, x.Guarantee, x.state(200), x.Since.Local().Format(time.DateTime), x.Tasks, x.Nodes, x.change())
	}
	t.Flush()
}

// state is the status, with what is wrong: the first part of it, if it is long.
func (x *topologyJSON) state(most int) string {
	switch {
	case x.Lacks != "": // also of one that is not placed, since no other node may have it
		return string(x.Status) + ", waits for " + x.Lacks + ", which has its states"
	case x.Status.Runs() && !x.Placed:
		return string(x.Status) + ", no node found yet"
	case x.Reason != "":
		return string(x.Status) + ": " + oneLine(x.Reason, most)
	}
	return string(x.Status)
}

// change says what is waited for.
func (x *topologyJSON) change() string {
	if x.Waiting == "" {
		return "-"
	}
	return fmt.Sprintf("%s waits until nothing is open (%s)", x.Waiting, amount.Of(x.Moves, "task"))
}

// print writes what the components of a topology do.
func (x *topologyJSON) print(w io.Writer) {
	counted := x.Status.Runs() && x.Placed && x.Unknown == ""
	fmt.Fprintf(w, "%s (run %d): %s", x.Topology, x.Run, x.state(2000))
	if x.Status.Runs() {
		fmt.Fprintf(w, ", %s on %s", amount.Of(x.Tasks, "task"), amount.Of(x.Nodes, "node"))
	}
	if counted {
		fmt.Fprint(w, "; rates of the last second")
	}
	fmt.Fprintln(w)
	if x.Waiting != "" {
		fmt.Fprintln(w, "change: "+x.change())
	}
	if x.Unknown != "" {
		fmt.Fprintln(w, "no counts: "+x.Unknown)
	}
	if x.Batches != nil {
		printBatches(w, x.Batches)
	}
	if !counted {
		return
	}
	fmt.Fprintln(w)
	const heads = "RATE/S\tQUEUED\tOPEN\tACKED\tFAILED\tLOST\tREPLAYED\tDEAD\tTHROTTLED BY"
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	silent := 0
	fmt.Fprintln(t, "COMPONENT\tTASKS\t"+heads)
	for _, c := range x.Components {
		fmt.Fprintf(t, "%s\t%d\t%s\n", c.Component, c.Tasks, c.text(strings.Join(c.By, ", "), x.Batches != nil))
		silent += c.Silent
	}
	t.Flush()
	if silent > 0 {
		fmt.Fprintf(w, "(nothing is heard yet of %s)\n", amount.Of(silent, "task"))
	}
	if len(x.PerTask) == 0 {
		return
	}
	fmt.Fprintln(w)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TASK\tNODE\tLIFE\t"+heads)
	for _, c := range x.PerTask {
		life := c.Life
		if life == "" {
			life = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", c.Task, c.Node, life, c.text(c.By, x.Batches != nil))
	}
	t.Flush()
}

// text is a line of the table. A topology of batches tracks no messages: what would count
// them is not 0 there, it is not.
func (c *countsJSON) text(by string, batches bool) string {
	open, acked, failed, lost, replayed, dead := amount.Digits(c.Open), amount.Digits(c.Acked), amount.Digits(c.Failed), amount.Digits(c.Lost), amount.Digits(c.Replayed), amount.Digits(c.Dead)
	if batches {
		open, acked, lost, replayed, dead = "-", "-", "-", "-", "-"
	}
	if by == "" {
		by = "-"
	}
	return strings.Join([]string{amount.Digits(int64(c.Rate)), amount.Digits(c.Queued), open, acked, failed, lost, replayed, dead, by}, "\t")
}

// watching shows the status again and again: in one place on a terminal, below each
// other elsewhere. A node that does not answer for a moment does not end it.
func (o *statusOptions) watching(c *cobra.Command, args []string) error {
	out := c.OutOrStdout()
	interrupted, stop := interrupts(nil)
	defer stop()
	f, isFile := fileOf(out)
	terminal := isFile && term.IsTerminal(int(f.Fd())) && !o.json
	beat := time.NewTicker(watchEvery)
	defer beat.Stop()
	for first := true; ; first = false {
		ctx, cancel := context.WithTimeout(c.Context(), o.timeout)
		s, err := o.status(ctx, args)
		cancel()
		var text strings.Builder
		switch {
		case err == nil:
			if err := o.show(&text, s, len(args) > 0); err != nil {
				return err
			}
		case first || exitCode(err) == ExitUnknown:
			return err
		default:
			fmt.Fprintf(&text, "%v\n", err)
		}
		if terminal {
			fmt.Fprint(out, "\x1b[H\x1b[2J")
		} else if !first && !o.json {
			fmt.Fprintln(out)
		}
		if _, err := io.WriteString(out, plainText(text.String())); err != nil {
			return nil // execute says so
		}
		select {
		case <-interrupted:
			return nil
		case <-beat.C:
		}
	}
}

// fileOf returns the file that a command's output goes to.
func fileOf(w io.Writer) (*os.File, bool) {
	if o, is := w.(*output); is {
		w = o.w
	}
	f, is := w.(*os.File)
	return f, is
}
