package live

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/egretstream/egret/amount"
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
	line("plan", "%s", r.Plan)
	line("faults", "%s done", amount.Of(len(r.Done), "fault"))
	line("messages", "%s, %s dead, %s never executed to the end", amount.Of(r.Seen, "message"), amount.Digits(r.Dead), amount.Digits(r.Lost))
	line("emitted", "%s; %s replayed", histogram(r.Folded.Attempts), amount.Digits(r.Folded.Replayed))
	line("to the end", "%s", histogram(r.Folded.Ends))
	line("executions", "%s, %.2f a message, at most %s: %s", amount.Digits(r.Folded.All), float64(r.Folded.All)/float64(max(1, r.Folded.Messages)), amount.Digits(r.Folded.Most), powers(r.Folded.Executions))
	if o := r.Own; o.Messages > 0 {
		line("others", "%s of bolts and queues: %s done, %s dead, %s handed back, %s gone with their task", amount.Of(o.Messages, "message"),
			amount.Digits(o.Done), amount.Digits(o.Dead), amount.Digits(o.HandedBack), amount.Digits(o.Gone))
	}
	for _, c := range r.Recoveries {
		line(c.What, "%s, %d of them with a loss of %s in all", amount.Of(c.Faults, "time"), c.Costly, amount.Of(c.Messages, "message"))
		if c.Costly > 0 {
			line("", "to the first one emitted again: %s", c.First)
			line("", "to the last one done: %s", c.Last)
		}
		if c.Open > 0 {
			line("", "%s of them never", amount.Digits(c.Open))
		}
	}
	rates := r.Rates
	line("rate", "%s a second before, %s during (%.2f of it), %s after (%.2f): medians of 100 ms", amount.Digits(int64(rates.Before)),
		amount.Digits(int64(rates.During)), ratio(rates.During, rates.Before), amount.Digits(int64(rates.After)), ratio(rates.After, rates.Before))
	if r.Faults > 0 {
		again := "not seen again after the last fault"
		if rates.Again >= 0 {
			again = fmt.Sprintf("back at 90 %% within %v of the last fault", tenth(rates.Again))
		}
		line("", "%.0f %% of the windows with faults had 80 %% of it, the least %s a second; %s", 100*rates.Good, amount.Digits(int64(rates.Least)), again)
	}
	some := func(name string, given int, all int64, text func(int) string) {
		for i := range min(given, mostPrinted) {
			line(name, "%s", text(i))
		}
		if all > mostPrinted {
			line("", "and %s more", amount.Digits(all-mostPrinted))
		}
	}
	some("lost", len(r.LostOnes), r.Lost, func(i int) string { return r.LostOnes[i].String() })
	some("violation", len(r.Violations), int64(len(r.Violations)+r.More), func(i int) string {
		return r.Violations[i].Message.String() + ": " + r.Violations[i].What
	})
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
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
