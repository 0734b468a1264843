package egret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/chaos/sim"
)

// A chaosReport is what "chaos sim" has to say in the end.
type chaosReport struct {
	*sim.Summary
	Took        time.Duration `json:"took_ns"`      // of the real clock
	Rate        int64         `json:"events_per_s"` // of both runs of each seed
	Interrupted bool          `json:"interrupted"`
}

func newChaosReport(s *sim.Summary, took time.Duration, interrupted bool) *chaosReport {
	took = max(took, time.Millisecond)
	return &chaosReport{s, took, int64(2 * float64(s.Events) / took.Seconds()), interrupted}
}

// verdict says in a few words how it went.
func (r *chaosReport) verdict() string {
	switch {
	case r.Failed > 0:
		return fmt.Sprintf("%s of %s failed", amount.Digits(r.Failed), amount.Of(r.Seeds, "seed"))
	case r.Interrupted:
		return fmt.Sprintf("interrupted after %s, none failed", amount.Of(r.Seeds, "seed"))
	}
	return fmt.Sprintf("%s, none failed", amount.Of(r.Seeds, "seed"))
}

// failure is the error of the command, nil if all is well. In full it has each failure
// with what repeats it, for a run that writes no report.
func (r *chaosReport) failure(full bool) error {
	var errs []error
	if r.Failed > 0 && !full {
		errs = append(errs, fmt.Errorf("%s: %s", r.verdict(), r.failed()))
	}
	if full {
		for _, f := range r.Failures {
			errs = append(errs, f)
		}
	}
	if r.Interrupted {
		errs = append(errs, fmt.Errorf("interrupted after %s", amount.Of(r.Seeds, "seed")))
	}
	return errors.Join(errs...)
}

// failed names the seeds that failed, the first ten.
func (r *chaosReport) failed() string {
	var names []string
	for _, f := range r.Failures[:min(len(r.Failures), 10)] {
		names = append(names, fmt.Sprintf("%d (%s)", f.Seed, f.Invariant))
	}
	if more := r.Failed - len(names); more > 0 {
		names = append(names, "and "+amount.Digits(more)+" more")
	}
	return strings.Join(names, ", ")
}

// A line is a name and what is to be said of it.
type line struct{ name, text string }

func (r *chaosReport) lines() []line {
	times := int64(r.Time.Seconds() / r.Took.Seconds())
	all := []line{
		{"seeds", fmt.Sprintf("%s from %d on, each run twice, in %v", amount.Digits(r.Seeds), r.First, r.Took.Round(10*time.Millisecond))},
		{"failed", amount.Digits(r.Failed)},
		{"time", fmt.Sprintf("%s virtual hours, %s times as fast", tenths(r.Time.Hours()), amount.Digits(times))},
		{"events", fmt.Sprintf("%s, simulated twice, %s/s", amount.Digits(r.Events), amount.Digits(r.Rate))},
		{"work", fmt.Sprintf("%s, %s", amount.Of(r.Messages, "message"), amount.Of(r.Tuples, "execution"))},
	}
	if r.Interrupted {
		all[0].text += ", interrupted"
	}
	v := r.Recovery
	recovery := "no message was lost with a task"
	if v.Deaths > 0 {
		recovery = fmt.Sprintf("p50 %s, p99 %s, max %s virtual ms, after %s", millis(v.P50), millis(v.P99), millis(v.Max), amount.Of(v.Deaths, "death"))
	}
	return append(all, line{"recovery", recovery})
}

// A tally is a table of the report: how often there was what.
type tally struct {
	title, of string // of is what a name in it is
	n         map[string]int
}

func (r *chaosReport) tallies() []tally {
	return []tally{
		{"Scenes, by mood", "mood", r.Moods},
		{"Scenes, by what is in them", "what", r.Features},
		{"Faults", "fault", r.Faults},
		{"Invariants evaluated, by checker", "checker", checksOf(r.Summary)},
	}
}

// checksOf returns how often each checker was asked, its twin included.
func checksOf(s *sim.Summary) map[string]int {
	n := map[string]int{}
	for _, asked := range []map[chaos.Checker]int{s.Checks, s.Twins} {
		for c, k := range asked {
			n[string(c)] += k
		}
	}
	return n
}

func (t *tally) names() []string { return slices.Sorted(maps.Keys(t.n)) }

func (t *tally) total() (n int) {
	for _, k := range t.n {
		n += k
	}
	return n
}

// again is the command that repeats a failure.
func again(f *sim.Failure) string {
	return fmt.Sprintf("%s chaos sim --seed %d%s -v", program(), f.Seed, f.Flag())
}

// what is what a failure says, in lines: a panic has its stack.
func what(f *sim.Failure) []string {
	return strings.Split(strings.TrimRight(f.What, "\n"), "\n")
}

// text writes the report for a terminal.
func (r *chaosReport) text(w io.Writer) {
	for _, l := range r.lines() {
		fmt.Fprintf(w, "%-9s %s\n", l.name, l.text)
	}
	for _, t := range r.tallies() {
		fmt.Fprintf(w, "\n%s: %s\n", t.title, amount.Digits(t.total()))
		t.columns(w, 80)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(w, "\nseed %d: %s, at %v\n", f.Seed, f.Invariant, f.At)
		for _, l := range what(f) {
			fmt.Fprintln(w, "  "+l)
		}
		for i, x := range f.Plan {
			name := "with"
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(w, "  %-6s %s\n", name, x)
		}
		fmt.Fprintf(w, "  again  %s\n", again(f))
	}
	if more := r.Failed - len(r.Failures); more > 0 {
		fmt.Fprintf(w, "\nand %s that failed\n", amount.Of(more, "more seed"))
	}
}

// columns writes a table in as many columns as go into the width, each from top to
// bottom.
func (t *tally) columns(w io.Writer, width int) {
	const gap = "   "
	names := t.names()
	if len(names) == 0 {
		return
	}
	longest, digits := 0, 0
	for _, k := range names {
		longest, digits = max(longest, len(k)), max(digits, len(amount.Digits(t.n[k])))
	}
	cell := longest + 2 + digits
	columns := max(1, (width-2+len(gap))/(cell+len(gap)))
	rows := (len(names) + columns - 1) / columns
	for row := range rows {
		fmt.Fprint(w, "  ")
		for i := row; i < len(names); i += rows {
			if i > row {
				fmt.Fprint(w, gap)
			}
			fmt.Fprintf(w, "%-*s  %*s", longest, names[i], digits, amount.Digits(t.n[names[i]]))
		}
		fmt.Fprintln(w)
	}
}

// json writes the report as an indented object.
func (r *chaosReport) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// markdown writes the report as a page.
func (r *chaosReport) markdown(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# chaos sim: %s\n\n| | |\n|---|---|\n", r.verdict())
	for _, l := range r.lines() {
		fmt.Fprintf(&b, "| %s | %s |\n", l.name, l.text)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "\n## Seed %d: %s\n\nAt %v of virtual time:\n\n", f.Seed, f.Invariant, f.At)
		block(&b, what(f)...)
		if len(f.Plan) > 0 {
			fmt.Fprint(&b, "\nWith these faults:\n\n")
			var lines []string
			for _, x := range f.Plan {
				lines = append(lines, x.String())
			}
			block(&b, lines...)
		}
		fmt.Fprint(&b, "\nAgain:\n\n")
		block(&b, again(f))
	}
	if more := r.Failed - len(r.Failures); more > 0 {
		fmt.Fprintf(&b, "\nAnd %s that failed.\n", amount.Of(more, "more seed"))
	}
	for _, t := range r.tallies() {
		fmt.Fprintf(&b, "\n## %s\n\n| %s | times |\n|---|--:|\n", t.title, t.of)
		for _, k := range t.names() {
			fmt.Fprintf(&b, "| %s | %s |\n", k, amount.Digits(t.n[k]))
		}
		fmt.Fprintf(&b, "| **all** | **%s** |\n", amount.Digits(t.total()))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// block writes lines as they are, indented, since what somebody's panic says may hold
// any fence.
func block(w io.Writer, lines ...string) {
	for _, l := range lines {
		fmt.Fprintln(w, "    "+l)
	}
}

// millis writes a time in milliseconds.
func millis(d time.Duration) string { return tenths(float64(d) / float64(time.Millisecond)) }

// tenths writes a number that is not negative with one digit behind the point.
func tenths(x float64) string {
	n := int64(x*10 + 0.5)
	return fmt.Sprintf("%s.%d", amount.Digits(n/10), n%10)
}
