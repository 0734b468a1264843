package egret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/view"
)

// tapOptions are the flags of "tap".
type tapOptions struct {
	looker
	filter string
	n      int64
	rate   float64
}

// tapCommand is "tap".
func tapCommand() *cobra.Command {
	o := &tapOptions{}
	c := &cobra.Command{
		Use:   "tap TOPOLOGY COMPONENT[.STREAM]",
		Short: "Show a sample of the tuples of a stream, as they are emitted",
		Long: `Show a sample of the tuples of a stream, as they are emitted, one line of JSON each:

  {"at":"2026-11-30T10:00:00.5Z","task":"split/1","values":{"word":"whale"}}

What is shown changes nothing of what the topology does: it is a sample, a few a second.
Values of masked fields are "•••", and some topologies forbid it.

--where is an expression over the fields, as in 'word == "whale" && count > 10', in the
language of expr-lang.org without loops. A field whose name is no word is $env["its name"].
One that fails for each tuple that is looked at, such as a text that is compared with a
number, ends the command with exit code 2.

The run or the node that is asked has a page (--http); of a cluster any node will do.
` + exitCodes,
		Args: cobra.MaximumNArgs(2),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return &usageError{errors.New("say which topology to look at, and which stream of it: egret tap TOPOLOGY COMPONENT[.STREAM]")}
		}
		if len(args) == 1 { // as the page writes it
			topology, stream, _ := strings.Cut(args[0], "/")
			args = []string{topology, stream}
		}
		switch {
		case args[1] == "":
			return &usageError{fmt.Errorf("say which stream of %s to show: egret tap %s COMPONENT[.STREAM]", args[0], args[0])}
		case o.n < 0:
			return &usageError{fmt.Errorf("-n is %d: use a number of tuples, or 0 for all", o.n)}
		case !(o.rate > 0 && o.rate <= tapAtMost):
			return &usageError{fmt.Errorf("--rate is %v: use tuples a second, above 0 and up to %d", o.rate, tapAtMost)}
		}
		if err := o.open(); err != nil {
			return err
		}
		defer o.close()
		return o.tap(c, args[0], args[1])
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.filter, "where", "", "show only tuples for which this is true")
	f.Int64VarP(&o.n, "n", "n", 0, "end after so many tuples (default: when the run does)")
	f.Float64Var(&o.rate, "rate", tapMost, "tuples a second, at most 1000")
	o.looker.flags(f)
	return c
}

func (o *tapOptions) tap(c *cobra.Command, topology, name string) error {
	ctx := c.Context()
	var d view.Detail
	if err := o.value(ctx, &d, nil, "topologies", topology); err != nil {
		return err
	}
	s, err := streamNamed(&d, name)
	if err != nil {
		return &codedError{ExitUnknown, err}
	}
	query := url.Values{"component": {s.Component}, "stream": {s.Stream}, "most": {strconv.FormatFloat(o.rate, 'g', -1, 64)}}
	if o.filter != "" {
		query.Set("where", o.filter)
	}
	out, notes := c.OutOrStdout(), noteWriter{w: c.ErrOrStderr(), stream: s.Component + "." + s.Stream}
	shown := int64(0)
	var last view.Tapped // note
	fits := func() error {
		return &codedError{ExitUsage, fmt.Errorf("no tuple of %s.%s can match: %s of %s failed with %s", s.Component, s.Stream, amount.Digits(last.Failed), amount.Digits(last.Looked), last.FailedWith)}
	}
	err = o.lines(ctx, func(line json.RawMessage) (bool, error) {
		var t view.Tapped
		if err := json.Unmarshal(line, &t); err != nil {
			return false, &runError{fmt.Errorf("%s sends what is no tuple: is it another version of Egret? (%w)", o.where(), err)}
		}
		if t.Values == nil {
			if last = t; notes.inVain(&t) {
				return false, fits()
			}
			notes.note(&t)
			return true, nil
		}
		if _, err := out.Write(plainJSON(tappedLine(s.Fields, &t))); err != nil {
			return false, &runError{err}
		}
		shown++
		return shown != o.n, nil
	}, query, "topologies", topology, "tap")
	if err == nil && shown == 0 && last.Failed > 0 && last.Failed == last.Looked {
		return fits() // the run has ended before that was clear
	}
	return err
}

// streamNamed finds "component.stream", "component/stream", or the first stream of "component".
func streamNamed(d *view.Detail, name string) (*view.Stream, error) {
	for i := range d.Streams {
		if s := &d.Streams[i]; name == s.Component || name == s.Component+"."+s.Stream || name == s.Component+"/"+s.Stream {
			return s, nil
		}
	}
	if len(d.Streams) == 0 {
		return nil, errors.New("the topology is not at work: it has no streams yet")
	}
	var have []string
	for _, s := range d.Streams {
		have = append(have, s.Component+"."+s.Stream)
	}
	return nil, fmt.Errorf("the topology %s has no stream %q: it has %s", d.Topology, name, strings.Join(have, ", "))
}

// tappedLine is a tuple as a line of JSON, with its values in the order of the fields.
func tappedLine(fields []string, t *view.Tapped) []byte {
	quote := func(v string) []byte {
		b, _ := json.Marshal(v) // a string has always some
		return b
	}
	line := slices.Concat([]byte(`{"at":`), quote(t.At.Format(time.RFC3339Nano)), []byte(`,"task":`), quote(t.Task))
	if t.Node != "" && t.Node != localNode {
		line = slices.Concat(line, []byte(`,"node":`), quote(t.Node))
	}
	line = append(line, `,"values":{`...)
	for i, v := range t.Values {
		name := "field " + strconv.Itoa(i)
		if i < len(fields) {
			name = fields[i]
		}
		if i > 0 {
			line = append(line, ',')
		}
		line = slices.Concat(line, quote(name), []byte{':'}, bytes.TrimSpace(v))
	}
	return append(line, "}}\n"...)
}

// A noteWriter says how much there is beside what is shown: to who reads along each few
// seconds; of what went wrong always, and once that there is nothing to show.
type noteWriter struct {
	w      io.Writer
	stream string
	first  time.Time // note
	last   time.Time // that was written
	empty  bool      // that there is nothing was said
}

const (
	noteEvery = 5 * time.Second
	vainAfter = 100             // tuples for all of which an expression has failed, or
	vainTime  = 5 * time.Second // any, in this time
)

// inVain reports whether it is clear that the expression fits no tuple.
func (n *noteWriter) inVain(t *view.Tapped) bool {
	if n.first.IsZero() {
		n.first = t.At.Add(-tapNote) // about when the tap began
	}
	return t.Failed > 0 && t.Failed == t.Looked && (t.Failed >= vainAfter || t.At.Sub(n.first) >= vainTime)
}

func (n *noteWriter) note(t *view.Tapped) {
	if t.Error != "" {
		fmt.Fprintln(n.w, "tap:", oneLine(t.Error, 2000))
	}
	if n.last.IsZero() {
		n.last = t.At
	}
	if t.Matched == 0 && t.Shown == 0 && !n.empty && t.At.Sub(n.first) >= noteEvery {
		n.empty, n.last = true, t.At
		if t.Looked > 0 {
			fmt.Fprintf(n.w, "tap: of %s of %s that were looked at none fits --where yet\n", amount.Of(t.Looked, "tuple"), n.stream)
		} else if t.Emitted == 0 {
			fmt.Fprintf(n.w, "tap: %s has emitted nothing since the tap began\n", n.stream)
		}
		return
	}
	if !isTerminal(n.w) || t.At.Sub(n.last) < noteEvery {
		return
	}
	n.last = t.At
	fmt.Fprintln(n.w, noteText(t))
}

// noteText is a note for people.
func noteText(t *view.Tapped) string {
	text := fmt.Sprintf("tap: %s emitted, %s looked at", amount.Of(t.Emitted, "tuple"), amount.Digits(t.Looked))
	if t.Matched != t.Looked {
		text += fmt.Sprintf(", %s wanted", amount.Digits(t.Matched))
	}
	if t.Failed > 0 {
		text += fmt.Sprintf(", %s failed with %s", amount.Digits(t.Failed), t.FailedWith)
	}
	text += fmt.Sprintf(", %s shown", amount.Digits(t.Shown))
	if t.Missed > 0 {
		text += fmt.Sprintf(", %s missed since they are read too slowly", amount.Digits(t.Missed))
	}
	return text
}
