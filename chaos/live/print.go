package live

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/chaos"
)

// Lost messages and violations that are printed.
const mostPrinted = 20

// Print writes the report for people.
func (r *Report) Print(w io.Writer) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("run", "%s, seed %d: %v quiet, %v with faults, %v quiet, %v to the end", r.Topology, r.Seed,
		tenth(r.Before), tenth(r.Faults), tenth(r.After), tenth(r.Rest))
	if r.Cut != "" {
		line("", "%s: this is what there is", r.Cut)
	}
	if r.Err != nil {
		line("ended by", "%v", r.Err)
	}
	line("plan", "%s", Outline(r.Plan))
	line("faults", "%s", r.faults())
	r.printMessages(line)
	for _, c := range r.Recoveries {
		c.print(line)
	}
	r.Rates.print(line)
	some := func(name string, given int, all int64, text func(int) string) {
		for i := range min(given, mostPrinted) {
			line(name, "%s", text(i))
		}
		if all > mostPrinted {
			line("", "and %s more", amount.Digits(all-mostPrinted))
		}
	}
	for _, u := range r.Unsteady {
		line("unsteady", "%s", u)
	}
	some("lost", len(r.LostOnes), r.Lost, func(i int) string { return r.LostOnes[i].String() })
	some("violation", len(r.Violations), int64(len(r.Violations)+r.More), func(i int) string {
		return r.Violations[i].Message.String() + ": " + r.Violations[i].What
	})
}

// faults says how many were done of those that were planned.
func (r *Report) faults() string {
	done := len(r.Done)
	if done == r.Planned {
		return amount.Of(done, "fault") + " done"
	}
	return fmt.Sprintf("%s of %s done: the others would have come when the run had ended, or were to kill a task that had not come back", amount.Digits(int64(done)), amount.Digits(int64(r.Planned)))
}

// mostOutlined is how many faults of a plan are shown.
const mostOutlined = 5

// Outline is a plan for people: its first faults.
func Outline(p chaos.Plan) string {
	if len(p) <= mostOutlined {
		return p.String()
	}
	return fmt.Sprintf("%s; and %s more", p[:mostOutlined], amount.Digits(int64(len(p)-mostOutlined)))
}

type liner func(name, format string, args ...any)

// printMessages says what became of the messages.
func (r *Report) printMessages(line liner) {
	f, n := &r.Folded, amount.Digits[int64]
	if r.Seen > 0 || r.Answers == nil {
		text := fmt.Sprintf("%s, %s dead, %s never executed to the end", amount.Of(r.Seen, "message"), n(r.Dead), n(r.Lost))
		if len(r.Unsteady) > 0 {
			text += " that is known of"
		}
		if r.Open > 0 {
			text += fmt.Sprintf(", %s open when it was stopped", n(r.Open))
		}
		if r.TooOften > 0 {
			text += fmt.Sprintf(", %s executed too often", n(r.TooOften))
		}
		line("messages", "%s", text)
	}
	if f.Messages > 0 {
		line("emitted", "%s; %s replayed", histogram(f.Attempts), n(f.Replayed))
		line("to the end", "%s", histogram(f.Ends))
		line("executions", "%s, %.2f a message, at most %s: %s", n(f.All), float64(f.All)/float64(f.Messages), n(f.Most), powers(f.Executions))
	}
	if r.Letters != r.Dead+r.Own.Dead {
		line("dead letters", "%s: a message that is read again when its spout has died may die again", n(r.Letters))
	}
	if r.Failures > 0 {
		line("failures", "%s a message failed or was rejected in a bolt, which no fault is charged with", amount.Of(r.Failures, "time"))
	}
	if o := r.Own; o.Messages > 0 {
		text := fmt.Sprintf("%s of bolts, queues and dead letters: %s done, %s dead, %s handed back, %s gone with their task", amount.Of(o.Messages, "message"), n(o.Done), n(o.Dead), n(o.HandedBack), n(o.Gone))
		if o.Unsent > 0 {
			text += fmt.Sprintf(", %s emitted and never sent", n(o.Unsent))
		}
		if o.Open > 0 {
			text += fmt.Sprintf(", %s open when it was stopped", n(o.Open))
		}
		line("others", "%s", text)
	}
	if a := r.Answers; a != nil {
		line("queues", "gave %s: %s acked, %s handed back, the others open when their task died; %s came a second time by their id", amount.Of(a.Given, "message"), n(a.Acked), n(a.HandedBack), n(a.Again))
	}
}

func (c *Recovery) print(line liner) {
	if c.Messages == 0 {
		line(c.What, "%s, without a loss", amount.Of(c.Faults, "time"))
		return
	}
	line(c.What, "%s, %d of them with a loss of %s in all", amount.Of(c.Faults, "time"), c.Costly, amount.Of(c.Messages, "message"))
	if c.First.Of > 0 {
		line("", "to the first one emitted again: %s", c.First)
		line("", "to the last one done: %s", c.Last)
	}
	if c.Close > 0 {
		line("", "%d had another fault within %v, whose losses cannot be told apart: the last one is charged", c.Close, apart)
	}
	if c.Open > 0 {
		line("", "%s of them never", amount.Digits(c.Open))
	}
}

func (r *Rates) print(line liner) {
	if !r.Before.Measured() && !r.During.Measured() && !r.After.Measured() {
		return
	}
	of := func(x Rate) string {
		if !x.Measured() || !r.Before.Measured() || r.Before == 0 {
			return ""
		}
		return fmt.Sprintf(" (%.2f of it)", x/r.Before)
	}
	line("rate", "messages a second, medians of 100 ms: before %s, during %s%s, after %s%s", r.Before, r.During, of(r.During), r.After, of(r.After))
	if !r.Good.Measured() {
		return
	}
	again := "not seen again after the last fault"
	if r.Again != nil {
		again = fmt.Sprintf("back at 90 %% within %v of the last fault", tenth(*r.Again))
	}
	line("", "%.0f %% of the windows with faults had 80 %% of it, the least %s; %s", 100*r.Good, r.Least, again)
}

func (r Rate) String() string {
	if !r.Measured() {
		return "not measured"
	}
	return amount.Digits(int64(r))
}

func tenth(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

func (s Spread) String() string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }
	return fmt.Sprintf("p50 %s, p99 %s, at most %s", ms(s.P50), ms(s.P99), ms(s.Max))
}

// histogram is how many had something never, once, twice, ...
func histogram(of []int64) string {
	var parts []string
	for times, n := range of {
		if n == 0 {
			continue
		}
		name := "never"
		switch {
		case times == mostCounted:
			name = fmt.Sprintf("%d times and more", times)
		case times == 1:
			name = "once"
		case times == 2:
			name = "twice"
		case times > 2:
			name = fmt.Sprintf("%d times", times)
		}
		parts = append(parts, amount.Digits(n)+" "+name)
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// powers shows entries for 0, 1, 2-3, 4-7, ...
func powers(of []int64) string {
	var parts []string
	for i, n := range of {
		if n == 0 {
			continue
		}
		name := fmt.Sprint(i) // 0 and 1
		if i > 1 {
			name = fmt.Sprintf("%d-%d", 1<<(i-1), 1<<i-1)
		}
		parts = append(parts, amount.Digits(n)+" with "+name)
	}
	return strings.Join(parts, ", ")
}
