package egret

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	states "github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

// queryOptions are the flags of "query".
type queryOptions struct {
	client
	topologies []*topology.Topology
	dir        string
	set        []string
}

// queryCommand is "query".
func queryCommand(topologies []*topology.Topology) *cobra.Command {
	o := &queryOptions{topologies: topologies}
	c := &cobra.Command{
		Use:   "query TOPOLOGY STATE KEY...",
		Short: "Show what a state of an exactly-once topology has for keys",
		Long: `Show what a state of an exactly-once topology has for keys.

Values are those that are committed, but for a state that keeps no value before (of
another kind than opaque): it may be a batch ahead. With --state a state of the runs
on this machine is read, by this program; one on disk only while no run is under way.
Else the node of a cluster that is asked reads it, or the one that has it in memory or
on its disk.
A key that is a struct is JSON, as in '{"Day":"2026-11-30","Origin":"VIE"}'; so is a
value that is one.
` + exitCodes,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 3 {
				return fmt.Errorf("it wants TOPOLOGY STATE KEY..., as in: query wordcount counts whale; there is only %q", args)
			}
			return nil
		},
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		local := o.dir != "" && !c.Flags().Changed("node")
		switch {
		case c.Flags().Changed("node") && c.Flags().Changed("state"):
			return &usageError{errors.New("--state reads what runs on this machine have left, --node asks a cluster: give one of the two")}
		case len(o.set) > 0 && !local:
			return &usageError{errors.New("--set goes with --state: a cluster knows what its topologies were submitted with")}
		}
		ask := o.remote
		if local {
			ask = o.local
		}
		values, err := ask(c.Context(), args[0], args[1], args[2:])
		if err != nil {
			return err
		}
		return o.show(c, args, values)
	}
	o.flags(c)
	f := c.Flags()
	f.StringVar(&o.dir, "state", os.Getenv(stateVariable), "the state directory of runs on this machine (default: $"+stateVariable+", else a node is asked)")
	f.StringArrayVar(&o.set, "set", nil, "value of a parameter that the runs had, `name=value`; as often as needed")
	c.SetFlagErrorFunc(parameterHint(topologies, "here it is --set NAME=VALUE"))
	return c
}

// remote asks a node.
func (o *queryOptions) remote(ctx context.Context, name, state string, keys []string) ([]node.Value, error) {
	ctx, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	defer o.close()
	a, err := o.query(ctx, &node.Request{Topology: name, State: state, Keys: keys})
	if err != nil {
		return nil, err
	}
	return a.Values, nil
}

// query asks for values of keys, and who has them if it is not the node that was named.
func (l *client) query(ctx context.Context, q *node.Request) (*node.Answer, error) {
	q.Op = node.OpQuery
	a, err := l.ask(ctx, q)
	if err == nil && a.Elsewhere != "" {
		a, err = l.askAt(ctx, a.Elsewhere, q)
	}
	if err != nil {
		return nil, err
	}
	if len(a.Values) != len(q.Keys) || len(a.Stored) != len(q.Stored) {
		return nil, &runError{errors.New("the node has not read the state: is it another version of Egret, or has the topology just moved?")}
	}
	return a, nil
}

// local reads what the runs with a state directory have committed.
func (o *queryOptions) local(ctx context.Context, name, state string, keys []string) ([]node.Value, error) {
	params, err := settings(o.set)
	if err != nil {
		return nil, &usageError{err}
	}
	t, err := chosen(o.topologies, []string{name})
	if err != nil {
		return nil, &codedError{ExitUnknown, err}
	}
	lookup, r := lookupOf(t, topology.Options{Params: params}, state)
	if r != nil {
		return nil, refusal(r)
	}
	record, err := disk.ReadRecord(o.dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is nothing of batches of the topology %s in %s: is that the --state directory of its runs?", name, o.dir)
	}
	if err != nil {
		return nil, &runError{err}
	}
	values, err := lookIn(ctx, lookup, record, state, keys)
	if err != nil {
		r := unread(err)
		if errors.Is(err, states.ErrLost) {
			r.Text += notSet(t, params)
		}
		if r.Reason == node.ErrFailed && disk.Running(o.dir, name) {
			r.Text += "\na run is under way: a state on disk can be read when that has ended, one in PostgreSQL at any time"
		}
		return nil, refusal(r)
	}
	return values, nil
}

// notSet says which parameters could have had another state looked for.
func notSet(t *topology.Topology, set map[string][]string) string {
	all, _ := t.Params()
	var names []string
	for _, p := range all {
		if _, is := set[p.Name]; !is {
			names = append(names, p.Name)
		}
	}
	switch {
	case len(all) == 0:
		return ""
	case len(names) == 0:
		return "\nif a parameter says where the state is, --set must have the value that the runs had"
	}
	return fmt.Sprintf("\nif a parameter says where the state is, give the value that the runs had: --set NAME=VALUE; not set here: %s", strings.Join(names, ", "))
}

// lookupOf returns what reads a state of a topology.
func lookupOf(t *topology.Topology, o topology.Options, state string) (*trident.Lookup, *cluster.Refusal) {
	plan, err := t.Build(o)
	if err != nil {
		return nil, &cluster.Refusal{Reason: node.ErrParameter, Text: errorOf("topology "+t.Name(), err).Error()}
	}
	l, err := trident.LookupOf(plan, state)
	if err != nil {
		return nil, &cluster.Refusal{Reason: node.ErrState, Text: err.Error()}
	}
	return l, nil
}

// lookIn reads the values that are committed by a record; nil: none is.
func lookIn(ctx context.Context, l *trident.Lookup, r *batch.Record, state string, keys []string) ([]node.Value, error) {
	r = cmp.Or(r, new(batch.Record))
	got, err := l.Get(ctx, r.Committed, r.Last[state], keys)
	if err != nil {
		return nil, err
	}
	values := make([]node.Value, len(keys))
	for i, k := range keys {
		values[i] = node.Value{Key: k, Value: got[i]}
	}
	return values, nil
}

// unread says why keys of a state are not read.
func unread(err error) *cluster.Refusal {
	if errors.Is(err, trident.ErrKey) {
		return &cluster.Refusal{Reason: node.ErrParameter, Text: err.Error()}
	}
	return &cluster.Refusal{Reason: node.ErrFailed, Text: err.Error()}
}

// query reads a state for somebody who asks this node.
func (p *nodeProgram) query(ctx context.Context, s *cluster.Submission, q *node.Request) *node.Answer {
	t, err := chosen(p.topologies, []string{s.Topology})
	if err != nil {
		return &node.Answer{Error: &cluster.Refusal{Reason: cluster.ErrUnknown, Text: err.Error()}}
	}
	l, r := lookupOf(t, topology.Options{Params: s.Params, Parallel: s.Parallel}, q.State)
	if r != nil {
		return &node.Answer{Error: r}
	}
	a := new(node.Answer)
	if len(q.Stored) == 0 {
		if a.Values, err = lookIn(ctx, l, s.Record, q.State, q.Keys); err != nil {
			a.Error = unread(err)
		}
		return a
	}
	record := cmp.Or(s.Record, new(batch.Record)) // nil: nothing is committed
	if a.Stored, err = l.Stored(ctx, record.Committed, record.Last[q.State], q.Stored); err != nil {
		a.Error = unread(err)
	}
	return a
}

// show prints what there is. That a key is not there is an error behind it.
func (o *queryOptions) show(c *cobra.Command, args []string, values []node.Value) error {
	found := []node.Value{}
	var missing []string
	for _, v := range values {
		if v.Value == nil {
			missing = append(missing, fmt.Sprintf("%q", v.Key))
		} else {
			found = append(found, v)
		}
	}
	if o.json {
		if err := encode(c.OutOrStdout(), found); err != nil {
			return &runError{err}
		}
	} else {
		w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
		for _, v := range found {
			text := string(v.Value)
			_ = json.Unmarshal(v.Value, &text) // what is a string in JSON is shown without its quotes
			fmt.Fprintf(w, "%s\t%s\n", oneLine(v.Key, 1<<20), oneLine(text, 1<<20))
		}
		w.Flush()
	}
	if len(missing) > 0 {
		return &codedError{ExitUnknown, fmt.Errorf("state %s of the topology %s has nothing for %s", args[1], args[0], strings.Join(missing, ", "))}
	}
	return nil
}
