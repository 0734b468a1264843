package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/amount"
)

// lately is for how long a death is what matters most of a topology.
const lately = time.Minute

// verdict says what holds a topology up: what is worst comes first. Tasks that die do not get
// on, who waits for a call that does not come back has stopped, who waits for room is slow,
// and who may have no more messages open waits for all of them together.
func (c *Comparison) verdict(d *Detail, r *Run, tasks []pair) Verdict {
	reason := func(before string) string {
		if d.Reason == "" {
			return ""
		}
		return before + d.Reason
	}
	switch {
	case d.Ended && d.Status == "failed":
		return Verdict{"bad", "It has failed" + reason(": ") + ". These are its last numbers."}
	case d.Ended && d.Status == "stopped":
		return Verdict{"", "It has been stopped" + reason(": ") + ": submit it, and it goes on. These are its last numbers."}
	case d.Ended:
		return Verdict{"", "It has ended" + reason(": ") + ". These are its last numbers."}
	case d.Graph == nil:
		return Verdict{"warn", "It does not run yet" + reason(": ") + "."}
	case d.Silent > 0:
		return Verdict{"bad", fmt.Sprintf("Nothing is known of %s: look at the nodes.", amount.Of(d.Silent, "task"))}
	}
	for _, v := range []Verdict{c.dying(d, r, tasks), c.stuck(r), d.held()} {
		if v.Text != "" {
			return v
		}
	}
	if d.Status != "running" {
		return Verdict{"warn", "It is " + d.Status + reason(": ") + "."}
	}
	if v := d.full(tasks); v.Text != "" {
		return v
	}
	var most *ComponentNow
	for i := range d.Components {
		if x := &d.Components[i]; x.Kind == "bolt" && (most == nil || x.Busiest > most.Busiest) {
			most = x
		}
	}
	if c.window == 0 || most == nil {
		return Verdict{}
	}
	return Verdict{"good", fmt.Sprintf("Nothing is held up. The busiest task is one of %s, %.0f %% of the time.", most.Component, 100*most.Busiest)}
}

// dying says which components have died in the window, or lately.
func (c *Comparison) dying(d *Detail, r *Run, tasks []pair) Verdict {
	var said, whys []string
	with := map[string][]string{} // components, by why
	for i := range d.Components {
		x := &d.Components[i]
		dies := slices.ContainsFunc(tasks, func(t pair) bool {
			return t.now.Component == x.Component && t.now.Restarts > t.before.Restarts && c.window > 0
		})
		why := ""
		for _, t := range r.Troubles {
			if t.Kind == "died" && t.Component == x.Component {
				dies = dies || c.now.At.Sub(t.At) < lately
				why = strings.TrimRight(short(t.Text), ".")
			}
		}
		switch times := x.Counts.Restarts; {
		case dies && times > 0:
			if why != "" {
				why = ", last: " + why
			}
			said = append(said, fmt.Sprintf("%s has died %s%s.", x.Component, timesOf(times), why))
		case dies && why != "": // with its node, which had counted whatever there was
			if !slices.Contains(whys, why) {
				whys = append(whys, why)
			}
			with[why] = append(with[why], x.Component)
		}
	}
	for _, why := range whys {
		said = append(said, fmt.Sprintf("Tasks of %s have begun anew: %s.", listed(with[why]), why))
	}
	return Verdict{"bad", strings.Join(said, " ")}
}

func timesOf(n int64) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return amount.Digits(n) + " times"
}

// stuck says which tasks are in a call that does not come back, the longest one first.
func (c *Comparison) stuck(r *Run) Verdict {
	all := slices.DeleteFunc(slices.Clone(r.Troubles), func(t Trouble) bool { return t.Kind != "stuck" })
	if len(all) == 0 {
		return Verdict{}
	}
	slices.SortFunc(all, func(x, y Trouble) int { return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Task, y.Task)) })
	text := fmt.Sprintf("%s %s, for %v", all[0].Task, short(all[0].Text), max(0, c.now.At.Sub(all[0].At)).Round(time.Second))
	if n := len(all) - 1; n > 0 {
		text += fmt.Sprintf("; nor %s", amount.Of(n, "other task"))
	}
	return Verdict{"bad", text + "."}
}

// held says who waits for whom.
func (d *Detail) held() Verdict {
	var said, causes []string
	for i := range d.Components {
		if cause := d.Components[i].Cause; cause != "" && !slices.Contains(causes, cause) {
			causes = append(causes, cause)
		}
	}
	for _, cause := range causes {
		var waiting []string
		most := 0.0
		for i := range d.Components {
			if x := &d.Components[i]; x.Cause == cause {
				waiting, most = append(waiting, x.Component), max(most, x.Throttled)
			}
		}
		verb := "waits"
		if len(waiting) > 1 {
			verb = "wait"
		}
		slow := d.component(cause)
		said = append(said, fmt.Sprintf("%s %s for %s, up to %.0f %% of the time; its busiest task is busy %.0f %%, with %s queued.",
			listed(waiting), verb, cause, 100*most, 100*slow.Busiest, amount.Of(slow.Counts.Queued, "tuple")))
	}
	return Verdict{"warn", strings.Join(said, " ")}
}

// full says which spouts may have no more messages open. While a tree of them is done and the
// next one is not emitted, they are an eighth below what they may have.
func (d *Detail) full(tasks []pair) Verdict {
	var said []string
	for i := range d.Components {
		x := &d.Components[i]
		var limit, n int64
		full := false
		for _, t := range tasks {
			if t.now.Component == x.Component && t.now.MostOpen > 0 {
				limit, n = max(limit, t.now.MostOpen), n+1
				full = full || 8*t.now.Open >= 7*t.now.MostOpen
			}
		}
		if full && n == 1 {
			said = append(said, fmt.Sprintf("%s has as many messages open as --max-pending allows (%s).", x.Component, amount.Digits(limit)))
		} else if full {
			said = append(said, fmt.Sprintf("%s has tasks with as many messages open as --max-pending allows (%s each).", x.Component, amount.Digits(limit)))
		}
	}
	return Verdict{"warn", strings.Join(said, " ")}
}

// listed is "a", "a and b", "a, b and c".
func listed(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}

// short is the first line of a text, and not much of it.
func short(s string) string {
	const most = 200
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
