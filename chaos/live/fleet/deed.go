package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Kind is what is done in a deed.
type Kind string

// What can be done.
const (
	Kill      Kind = "kill"      // kill -9; for: and it is started again then
	Stall     Kind = "stall"     // SIGSTOP, and SIGCONT after the time
	Restart   Kind = "restart"   // an interrupt, and a start when it has ended
	Roll      Kind = "roll"      // restart all, one after the other
	Rebalance Kind = "rebalance" // components get other numbers of tasks
	Drain     Kind = "drain"     // a node has its tasks moved away
	Undrain   Kind = "undrain"   // it may have tasks again
	Cut       Kind = "cut"       // nodes hear nothing of the others, nor these of them
)

// Leader and Worker stand for the node that leads the log, and for one that does not and
// has tasks; several times for several ones.
const (
	Leader = "leader"
	Worker = "worker"
)

// A Deed is one thing that is done to a fleet.
//
//	at 5s kill worker worker for 3s
//	every 8s from 5s kill leader for 3s
//	at 5s rebalance pass=5
type Deed struct {
	At       time.Duration
	Every    time.Duration // 0: once
	Kind     Kind
	Who      []string // node/2, leader, worker
	For      time.Duration
	Parallel map[string]int
}

// Help says how deeds are written.
func Help() []string {
	return []string{
		"kill WHO... [for 3s]       kill -9; for: started again after that time",
		"stall WHO... for 10s       SIGSTOP, and SIGCONT after that time",
		"restart WHO...             interrupt, and start again",
		"roll                       restart all nodes, each when the one before is back",
		"rebalance pass=5           another number of tasks; pass and sink",
		"drain WHO, undrain WHO     move its tasks away, and let it have some again",
		"cut WHO... for 5s          from the other nodes; needs --netns",
	}
}

// Parse reads deeds: with semicolons or newlines between them, # begins a comment.
func Parse(text string) (all []Deed, err error) {
	for line := range strings.SplitSeq(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for s := range strings.SplitSeq(line, ";") {
			if s = strings.TrimSpace(s); s == "" {
				continue
			}
			d, err := parse(strings.Fields(s))
			if err != nil {
				return nil, fmt.Errorf("%q: %w", s, err)
			}
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all, func(a, b Deed) int { return int(a.At - b.At) })
	return all, nil
}

func parse(words []string) (d Deed, err error) {
	next := func() (w string) {
		if len(words) > 0 {
			w, words = words[0], words[1:]
		}
		return w
	}
	duration := func(after string) (t time.Duration) {
		s := next()
		if t, err = time.ParseDuration(s); err != nil || t < 0 {
			err = fmt.Errorf("%q is no time: after %s comes one like 5s", s, after)
		}
		return t
	}
	switch w := next(); w {
	case "at":
		d.At = duration(w)
	case "every":
		d.Every = duration(w)
		if d.At = d.Every; err == nil && d.Every == 0 {
			err = fmt.Errorf("every 0s would never end")
		}
		if err == nil && len(words) > 0 && words[0] == "from" {
			next()
			d.At = duration("from")
		}
	default:
		err = fmt.Errorf("say first when: at 5s, every 8s, every 8s from 2s")
	}
	if err != nil {
		return d, err
	}
	d.Kind = Kind(next())
	for len(words) > 0 && words[0] != "for" {
		d.Who = append(d.Who, next())
	}
	if len(words) > 0 {
		next()
		if d.For = duration("for"); err != nil {
			return d, err
		}
	}
	if len(words) > 0 {
		return d, fmt.Errorf("nothing was to follow, and there is %q", strings.Join(words, " "))
	}
	return d, d.check()
}

func (d *Deed) check() error {
	switch d.Kind {
	case Rebalance:
		d.Parallel = map[string]int{}
		for _, w := range d.Who {
			name, n, _ := strings.Cut(w, "=")
			v, err := strconv.Atoi(n)
			if err != nil || v < 1 {
				return fmt.Errorf("%q is no number of tasks: write pass=5", w)
			}
			d.Parallel[name] = v
		}
		d.Who = nil
	case Kill, Stall, Restart, Drain, Undrain, Cut:
		if len(d.Who) == 0 {
			return fmt.Errorf("%s whom? Say node/1, leader or worker", d.Kind)
		}
		for _, w := range d.Who {
			digits, is := strings.CutPrefix(w, "node/")
			if n, err := strconv.Atoi(digits); w != Leader && w != Worker && (!is || err != nil || n < 1) {
				return fmt.Errorf("%q is nobody: say node/1, leader or worker", w)
			}
		}
	case Roll:
		if len(d.Who) > 0 {
			return fmt.Errorf("roll is for all nodes: %q", d.Who)
		}
	default:
		return fmt.Errorf("%q cannot be done to nodes: what can is kill, stall, restart, roll, rebalance, drain, undrain and cut", d.Kind)
	}
	if (d.Kind == Stall || d.Kind == Cut) && d.For == 0 {
		return fmt.Errorf("%s for how long? Say for 10s", d.Kind)
	}
	if d.For != 0 && d.Kind != Stall && d.Kind != Cut && d.Kind != Kill {
		return fmt.Errorf("%s is not for a time", d.Kind)
	}
	return nil
}

// Fits says what a deed is for that a fleet of so many nodes does not have.
func (d Deed) Fits(nodes int) error {
	for _, w := range d.Who {
		if digits, is := strings.CutPrefix(w, "node/"); is {
			if n, _ := strconv.Atoi(digits); n > nodes {
				return fmt.Errorf("%q: there are nodes 1 to %d", d, nodes)
			}
		}
	}
	for name := range d.Parallel {
		if name != passName && name != sinkName && name != numbersName {
			return fmt.Errorf("%q: the components are %s, %s and %s", d, numbersName, passName, sinkName)
		}
	}
	return nil
}

func (d Deed) String() string {
	text := "at " + d.At.String()
	if d.Every > 0 {
		text = "every " + d.Every.String()
		if d.At != d.Every {
			text += " from " + d.At.String()
		}
	}
	return text + " " + d.what()
}

func (d Deed) what() string {
	parts := append([]string{string(d.Kind)}, d.Who...)
	for _, name := range []string{passName, sinkName, numbersName} {
		if n, has := d.Parallel[name]; has {
			parts = append(parts, fmt.Sprintf("%s=%d", name, n))
		}
	}
	if d.For > 0 {
		parts = append(parts, "for", d.For.String())
	}
	return strings.Join(parts, " ")
}
