package egret

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// stateVariable is the environment variable with the default of --state.
const stateVariable = "EGRET_STATE"

// deadLettersCommand is "deadletters", whose commands show and change the dead
// letters in a state directory.
func deadLettersCommand(topologies []*topology.Topology) *cobra.Command {
	d := &deadLetters{topologies: topologies}
	c := &cobra.Command{
		Use:   "deadletters",
		Short: "List, show, replay and drop the messages that were given up",
		Long: `List, show, replay and drop the messages that were given up.

Values of masked fields are shown as "•••", and all values of a topology that forbids taps,
or that cannot be built without parameters: then it is not known what is masked.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("unknown command %q: use list, show, replay or drop", args[0])}
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			return &usageError{errors.New("use deadletters list, show, replay or drop")}
		},
	}
	c.PersistentFlags().StringVar(&d.dir, "state", os.Getenv(stateVariable), "the state directory (default: $"+stateVariable+")")
	where := ""
	if len(topologies) > 1 {
		where = "TOPOLOGY "
	}
	add := func(use, short, long string, f func(c *cobra.Command, ids []string) error) *cobra.Command {
		sub := &cobra.Command{Use: use, Short: short, Long: short + ".\n\n" + long, Args: cobra.ArbitraryArgs}
		sub.RunE = func(c *cobra.Command, args []string) error {
			ids, err := d.take(args)
			if err != nil {
				return err
			}
			return f(c, ids)
		}
		c.AddCommand(sub)
		return sub
	}
	const anID = "An ID is two numbers, as in 7-42: the run that gave the message up, and which it was\nof that run. deadletters list shows them."
	listed := add("list", "List the dead letters", "The component is the one that emitted the message, whichever bolt has refused\nit.", d.list)
	if len(topologies) > 1 {
		listed.Use = "list [TOPOLOGY]"
		listed.Long += " Without TOPOLOGY the letters of all are listed."
	}
	listed.Flags().BoolVar(&d.json, "json", false, "print a JSON array")
	listed.Flags().StringVar(&d.component, "component", "", "only messages that this component has emitted")
	show := add("show "+where+"ID...", "Show all that is known of dead letters", anID, d.show)
	show.Flags().BoolVar(&d.json, "json", false, "print a JSON array")
	replay := add("replay "+where+"ID...", "Send messages through their topology again",
		`A message is only marked here. The run that is under way with the state directory
takes it within about a second; if there is none, the next run does, as the first
thing. Its letter is gone when all that came of it is done, and back if it dies
again.

`+anID, d.replay)
	replay.Flags().BoolVar(&d.all, "all", false, "all of them, without IDs")
	drop := add("drop "+where+"ID...", "Delete dead letters for good", anID, d.drop)
	drop.Flags().BoolVar(&d.all, "all", false, "all of them, without IDs, also those that wait to be replayed")
	return c
}

// deadLetters are the flags of "deadletters".
type deadLetters struct {
	topologies []*topology.Topology
	t          *topology.Topology
	dir        string
	component  string
	json, all  bool
}

// take finds the topology that the arguments name, or the only one, and returns
// the IDs among them.
func (d *deadLetters) take(args []string) (ids []string, err error) {
	if d.dir == "" {
		return nil, &usageError{fmt.Errorf("name the state directory with --state or %s", stateVariable)}
	}
	if len(args) > 0 {
		if i := slices.IndexFunc(d.topologies, func(t *topology.Topology) bool { return t.Name() == args[0] }); i >= 0 {
			d.t, args = d.topologies[i], args[1:]
		}
	}
	if d.t == nil && len(d.topologies) == 1 {
		d.t = d.topologies[0]
	}
	for _, id := range args {
		if !disk.IsID(id) {
			return nil, &usageError{fmt.Errorf("%q is neither %s nor the ID of a dead letter, such as 7-42", id, oneOf(d.topologies))}
		}
	}
	return args, nil
}

// open returns the letters of the one topology that was named.
func (d *deadLetters) open() (*disk.Letters, error) {
	if d.t == nil {
		return nil, &usageError{fmt.Errorf("name one of %s", list(d.topologies, "or"))}
	}
	l, err := disk.OpenLetters(d.dir, d.t.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, d.nothing([]*topology.Topology{d.t})
	}
	return l, failed(err)
}

// nothing says that there is no part of any of the topologies in the directory.
func (d *deadLetters) nothing(of []*topology.Topology) error {
	return &runError{fmt.Errorf("there is nothing of %s in %s: is that the --state directory of the runs?", list(of, "and"), d.dir)}
}

// chosen returns the IDs that replay and drop are about; nil means all.
func (d *deadLetters) chosen(ids []string) ([]string, error) {
	switch {
	case d.all && len(ids) > 0:
		return nil, &usageError{errors.New("give IDs or --all, not both")}
	case !d.all && len(ids) == 0:
		return nil, &usageError{errors.New("name the letters by their IDs, or give --all")}
	case d.all:
		return nil, nil
	}
	return ids, nil
}

// An entryOf is a dead letter of a topology.
type entryOf struct {
	disk.Entry
	topology string
	masked   *tuple.Schema
}

// entries returns letters of a topology as people may see them. Which fields are masked is
// not known of one that cannot be built without parameters: then all are.
func (d *deadLetters) entries(t *topology.Topology, all []disk.Entry) (shown []entryOf) {
	box := &letterBox{dir: d.dir, topology: t.Name()}
	box.plan, _ = t.Build(topology.Options{})
	for _, e := range all {
		shown = append(shown, entryOf{e, t.Name(), box.schema(e.DeadLetter)})
	}
	return shown
}

// hidden returns the letter without the values of masked fields.
func (e *entryOf) hidden() *task.DeadLetter {
	l := *e.DeadLetter
	l.Values = slices.Clone(l.Values)
	for i := range l.Values {
		if e.masked.Masks(i) {
			l.Values[i] = tuple.String(tuple.Mask)
		}
	}
	return &l
}

func (d *deadLetters) list(c *cobra.Command, ids []string) error {
	if len(ids) > 0 {
		return &usageError{errors.New("list takes no IDs: use show")}
	}
	of := d.topologies
	if d.t != nil {
		of = []*topology.Topology{d.t}
	}
	var all []entryOf
	var errs []error
	none := true // of them has ever run with the directory
	for _, t := range of {
		l, err := disk.OpenLetters(d.dir, t.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		none = false
		var entries []disk.Entry
		if err == nil {
			entries, err = l.List()
		}
		errs = append(errs, err)
		all = append(all, d.entries(t, entries)...)
	}
	if none {
		return d.nothing(of)
	}
	if d.component != "" {
		all = slices.DeleteFunc(all, func(e entryOf) bool { return e.Component != d.component })
		if len(all) == 0 {
			if err := unknownComponent(of, d.component); err != nil {
				return &usageError{err}
			}
		}
	}
	out := c.OutOrStdout()
	switch {
	case d.json:
		errs = append(errs, printLetters(out, all))
	case len(all) == 0:
		text := "no dead letters"
		if onlyQueues(of) {
			text += ": what fails is handed back to its queue, which keeps it or delivers it again"
		}
		fmt.Fprintln(out, text)
	default:
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		first := func(name string) string {
			if len(of) == 1 {
				return ""
			}
			return name + "\t"
		}
		fmt.Fprintln(w, first("TOPOLOGY")+"ID\tWHEN\tCOMPONENT\tSTREAM\tFAILURES\tERROR")
		for _, e := range all {
			text := e.DeadLetter.Err
			if e.Waiting {
				text = "(to be replayed) " + text
			}
			fmt.Fprintf(w, "%s%s\t%s\t%s\t%s\t%d\t%s\n", first(e.topology), e.ID, e.Time.Local().Format(time.DateTime), e.Component, e.Stream, e.Failures, oneLine(text, 60))
		}
		w.Flush()
	}
	return failed(errors.Join(errs...))
}

// unknownComponent returns an error if none of the topologies has a component. One
// that cannot be built without parameters may have any.
func unknownComponent(of []*topology.Topology, name string) error {
	var have []string
	for _, t := range of {
		plan, err := t.Build(topology.Options{})
		if err != nil {
			return nil
		}
		for i := range plan.Components {
			if plan.Components[i].Name == name {
				return nil
			}
			have = append(have, plan.Components[i].Name)
		}
	}
	return fmt.Errorf("there is no component %s (have %s)", name, strings.Join(have, ", "))
}

// onlyQueues reports whether all that the topologies read is queues.
func onlyQueues(of []*topology.Topology) bool {
	for _, t := range of {
		plan, err := t.Build(topology.Options{})
		if err != nil || slices.ContainsFunc(plan.Components, func(n topology.Node) bool { return n.Source != nil }) {
			return false
		}
	}
	return true
}

func (d *deadLetters) show(c *cobra.Command, ids []string) error {
	l, err := d.open()
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return &usageError{errors.New("name the letters by their IDs: list shows them")}
	}
	all, err := l.List()
	var found []disk.Entry
	for _, id := range ids {
		i := slices.IndexFunc(all, func(e disk.Entry) bool { return e.ID == id })
		if i < 0 {
			err = errors.Join(err, fmt.Errorf("there is no dead letter %s", id))
			continue
		}
		found = append(found, all[i])
	}
	shown := d.entries(d.t, found)
	if d.json {
		return failed(errors.Join(printLetters(c.OutOrStdout(), shown), err))
	}
	for i := range shown {
		if i > 0 {
			fmt.Fprintln(c.OutOrStdout())
		}
		showLetter(c.OutOrStdout(), &shown[i])
	}
	return failed(err)
}

func showLetter(out io.Writer, e *entryOf) {
	state := "dead"
	if e.Waiting {
		state = "to be replayed"
	}
	fmt.Fprintf(out, "id         %s (%s)\n", e.ID, state)
	fmt.Fprintf(out, "when       %s\n", e.Time.Local().Format(time.RFC3339Nano))
	fmt.Fprintf(out, "message    of %s, stream %s, emitted by %s\n", e.Component, e.Stream, e.Task)
	fmt.Fprintf(out, "error      %s\n", oneLine(e.DeadLetter.Err, 1<<20))
	fmt.Fprintf(out, "attempts   %d failed, %d were lost or timed out; replayed %s\n", e.Failures, e.Losses, amount.Of(e.Deaths-1, "time"))
	kept := 0
	for i, h := range e.History {
		fmt.Fprintf(out, "%-10s %s\n", label(i, "history"), oneLine(h, 1<<20))
		if h != "replayed" {
			kept++
		}
	}
	if all := e.Failures + e.Losses; all > kept {
		fmt.Fprintf(out, "%-10s (the last %d of %s)\n", "", kept, amount.Of(all, "attempt"))
	}
	if e.Err != nil {
		fmt.Fprintf(out, "values     %v\n", e.Err)
	}
	hidden := e.hidden().Values
	for i, v := range e.Values {
		text := fmt.Sprintf("%q", v.String())
		if k := v.Kind().String(); k != "string" || e.masked.Masks(i) {
			text = oneLine(hidden[i].String(), 1<<20)
		}
		fmt.Fprintf(out, "%-10s %s (%v) = %s\n", label(i, "values"), e.Fields[i], v.Kind(), text)
	}
}

func label(i int, text string) string {
	if i > 0 {
		return ""
	}
	return text
}

// letterJSON is a letter for programs.
type letterJSON struct {
	Topology  string          `json:"topology"`
	ID        string          `json:"id"`
	Waiting   bool            `json:"waiting"` // to be replayed
	Time      time.Time       `json:"time"`
	Component string          `json:"component"`
	Task      string          `json:"task"`
	Stream    string          `json:"stream"`
	Error     string          `json:"error"`
	Failures  int             `json:"failures"`
	Losses    int             `json:"losses"`
	Replayed  int             `json:"replayed"`
	History   []string        `json:"history"`
	Fields    []string        `json:"fields"`
	Kinds     []string        `json:"kinds"`
	Values    json.RawMessage `json:"values"` // null if they cannot be read
}

func printLetters(out io.Writer, all []entryOf) error {
	letters := []letterJSON{}
	for _, e := range all {
		x := letterJSON{
			Topology: e.topology, ID: e.ID, Waiting: e.Waiting, Time: e.Time, Component: e.Component, Task: e.Task, Stream: e.Stream,
			Error: e.DeadLetter.Err, Failures: e.Failures, Losses: e.Losses, Replayed: e.Deaths - 1,
			History: e.History, Fields: e.Fields, Kinds: []string{}, Values: json.RawMessage("null"),
		}
		if e.Err == nil {
			x.Values = json.RawMessage(e.hidden().JSON())
		}
		for _, v := range e.Values {
			x.Kinds = append(x.Kinds, v.Kind().String())
		}
		letters = append(letters, x)
	}
	return encode(out, letters)
}

func (d *deadLetters) drop(c *cobra.Command, ids []string) error {
	l, err := d.open()
	if err != nil {
		return err
	}
	ids, err = d.chosen(ids)
	if err != nil {
		return err
	}
	n, err := l.Drop(ids)
	fmt.Fprintf(c.OutOrStdout(), "%s dropped\n", amount.Of(n, "dead letter"))
	return failed(err)
}

func (d *deadLetters) replay(c *cobra.Command, ids []string) error {
	l, err := d.open()
	if err != nil {
		return err
	}
	ids, err = d.chosen(ids)
	if err != nil {
		return err
	}
	// Parameters may be missing here; then the run looks for itself.
	plan, _ := d.t.Build(topology.Options{})
	n, err := l.Replay(ids, func(x *task.DeadLetter) error {
		if plan == nil {
			return nil
		}
		return task.Replayable(plan, x)
	})
	when := "when " + d.t.Name() + " runs next with this state directory"
	if disk.Running(d.dir, d.t.Name()) {
		when = "by the run that is under way, within about a second, or by the next one if its input has ended"
	}
	if n > 0 {
		fmt.Fprintf(c.OutOrStdout(), "%s will be replayed %s\n", amount.Of(n, "dead letter"), when)
	} else {
		fmt.Fprintln(c.OutOrStdout(), "nothing to replay")
	}
	return failed(err)
}

// failed makes err that of a command that had begun its work.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &runError{err}
}
