package egret

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/view"
)

// errorsOptions are the flags of "errors".
type errorsOptions struct {
	looker
	component     string
	json, verbose bool
}

// errorsCommand is "errors".
func errorsCommand() *cobra.Command {
	o := &errorsOptions{}
	c := &cobra.Command{
		Use:   "errors [TOPOLOGY]",
		Short: "Show what went wrong in topologies, the latest first",
		Long: `Show what went wrong in topologies, the latest first: tasks that have died, failed
executions, dead letters, errors of sources. One that has come again and again is shown
once, with the tuple that was in hand the last time. Values of masked fields are "•••".

Without TOPOLOGY those of all are shown. The run or the node that is asked has a page
(--http); of a cluster any node will do.
` + exitCodes,
		Args: cobra.MaximumNArgs(1),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.open(); err != nil {
			return err
		}
		defer o.close()
		all, err := o.errors(c, args)
		if err != nil {
			return err
		}
		if o.json {
			return encode(c.OutOrStdout(), all)
		}
		o.print(c.OutOrStdout(), all, time.Now())
		return nil
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.component, "component", "", "show only those of this component")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show stacks")
	f.BoolVar(&o.json, "json", false, "print JSON")
	o.looker.flags(f)
	return c
}

// errors asks for those of one topology, or of all.
func (o *errorsOptions) errors(c *cobra.Command, args []string) ([]view.Error, error) {
	names := args
	if len(args) == 0 {
		var v view.Overview
		if err := o.value(c.Context(), &v, nil, "overview"); err != nil {
			return nil, err
		}
		for _, t := range v.Topologies {
			names = append(names, t.Topology)
		}
	}
	all := []view.Error{}
	for _, name := range names {
		if o.component != "" {
			if err := o.has(c, name, len(args) > 0); err != nil {
				return nil, err
			}
		}
		var its []view.Error
		if err := o.value(c.Context(), &its, nil, "topologies", name, "errors"); err != nil {
			return nil, err
		}
		all = append(all, its...)
	}
	if o.component != "" {
		all = slices.DeleteFunc(all, func(e view.Error) bool { return e.Component != o.component })
	}
	slices.SortStableFunc(all, func(x, y view.Error) int { return y.Last.Compare(x.Last) })
	return all, nil
}

// has says that a topology which was named does not have the component: then there are no
// errors of it for another reason than that nothing went wrong.
func (o *errorsOptions) has(c *cobra.Command, name string, named bool) error {
	var d view.Detail
	if err := o.value(c.Context(), &d, nil, "topologies", name); err != nil || !named || d.Graph == nil {
		return err
	}
	var have []string
	for _, x := range d.Components {
		have = append(have, x.Component)
	}
	if slices.Contains(have, o.component) {
		return nil
	}
	return &codedError{ExitUnknown, fmt.Errorf("the topology %s has no component %q: it has %s", name, o.component, strings.Join(have, ", "))}
}

// print writes errors for people. What comes from a topology is kept from moving the cursor.
func (o *errorsOptions) print(w io.Writer, all []view.Error, now time.Time) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no errors")
		return
	}
	for i := range all {
		e := &all[i]
		where := e.Task
		if where == "" {
			where = e.Component
		}
		if where = strings.TrimSuffix(e.Topology+" "+where, " "); e.Node != "" && e.Node != localNode {
			where += " on " + e.Node
		}
		fmt.Fprintf(w, "%s: %s, %s ago", oneLine(where, 200), oneLine(e.Kind, 40), age(now.Sub(e.Last)))
		if e.Count > 1 {
			fmt.Fprintf(w, "; %s times in %s", amount.Digits(e.Count), age(e.Last.Sub(e.First)))
		}
		fmt.Fprintln(w)
		indented(w, e.Text)
		if e.Tuple != "" {
			indented(w, "tuple: "+e.Tuple)
		}
		if o.verbose && e.Stack != "" {
			indented(w, e.Stack)
		}
	}
}

func indented(w io.Writer, text string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		depth := len(line) - len(strings.TrimLeft(line, "\t"))
		fmt.Fprintln(w, strings.TrimRight("    "+strings.Repeat("    ", depth)+oneLine(line[depth:], 2000), " "))
	}
}

// age is a time for people: 3s, 2m, 5h, 4d.
func age(d time.Duration) string {
	switch d = max(0, d); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
