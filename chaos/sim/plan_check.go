package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/topology"
)

// Which classes of messages may come twice, and which in any order within their
// pair. The others follow one another, or count how often they come.
var (
	repeated   = []chaos.Class{chaos.Limit, chaos.Ask, chaos.StillQueued, chaos.Held, chaos.Lost, chaos.Peers, chaos.End, chaos.Dry}
	disordered = []chaos.Class{chaos.Report, chaos.StillQueued, chaos.Held, chaos.Lost, chaos.Limit, chaos.Ask, chaos.Peers}
	lost       = []chaos.Class{chaos.Limit, chaos.Ask, chaos.StillQueued, chaos.Held, chaos.Lost, chaos.Report, chaos.Save}
)

// What cannot be done to a class, and what can in its place: the first line that
// fits says it.
var unheard = []struct {
	class chaos.Class // "": any
	kind  chaos.Kind  // "": any
	why   string
}{
	{chaos.Verdict, "", "a verdict does not travel, for a ledger is in the task whose messages it tracks: delay report"},
	{chaos.Tick, "", "a timer comes once, and in no order with anything: delay it"},
	{chaos.Timer, "", "a timer comes once, and in no order with anything: delay it"},
	{chaos.Save, "", "the store is called once at a time: lose its calls or delay them"},
	{chaos.Parcel, chaos.Lose, "parcels between living tasks are never lost: crash a task"},
	{chaos.Parcel, chaos.Repeat, "what a link has lost it sends again, but nothing comes twice: crash a task, and its messages are read again"},
	{chaos.Report, chaos.Repeat, "nothing comes twice between living tasks, and an entry that did would count twice: reorder report"},
	{chaos.Peers, chaos.Lose, "who is not told where a task lives can never send to it: delay or reorder peers"},
	{chaos.End, chaos.Lose, "an end is said once, and whoever waits for it would wait for ever: delay it"},
	{chaos.Dry, chaos.Lose, "it is said once, and whoever waits for it would wait for ever: delay it"},
	{chaos.Control, "", "between a task and the supervisor everything comes once and in order: delay it"},
	{"", chaos.Reorder, "it keeps its order with what was sent before and after: delay it"},
}

// Limits of what a plan may say, so that a run of it comes to its end.
const (
	longest  = 10 * time.Minute
	soonest  = 100 * time.Microsecond
	slowest  = 1000
	mostLast = 50 * time.Minute
)

// A target is a component as far as a plan is concerned.
type target struct {
	name    string
	tasks   int
	reads   bool // a spout
	queue   bool
	prompt  bool // its Next may be called on its task's turn
	chooses bool // a custom grouping sends to it
	retains bool // it may retain a tuple for good
}

// targetsOf are the components of any topology.
func targetsOf(p *topology.Plan) (all []target) {
	for i := range p.Components {
		n := &p.Components[i]
		t := target{name: n.Name, tasks: n.Parallel, reads: n.Reads(), queue: n.Queue != nil, prompt: n.Source != nil, retains: !n.Reads()}
		all = append(all, t)
	}
	for i := range p.Components {
		for _, r := range p.Components[i].Outputs {
			all[r.To].chooses = all[r.To].chooses || r.Grouping == topology.Custom
		}
	}
	return all
}

// targets are the components of a scene.
func (s *scene) targets() (all []target) {
	for i := range s.parts {
		p := &s.parts[i]
		all = append(all, target{
			name: p.name, tasks: p.parallel, reads: p.spout(), queue: p.queue != nil, prompt: p.prompt && p.queue == nil,
			chooses: p.chooses(), retains: p.act == holding && !p.spout(),
		})
	}
	return all
}

// chooses reports whether a custom grouping sends to a part.
func (p *part) chooses() bool {
	return slices.ContainsFunc(p.inputs, func(e edge) bool { return e.grouping == topology.Custom })
}

// check says why the plan of a scene cannot be done to it.
func (s *scene) check() error { return checkPlan(s.plan, s.targets(), s.stores()) }

// checkPlan says which fault of a plan cannot be done to a topology, and why.
// stores says whether something survives its runs.
func checkPlan(p chaos.Plan, all []target, stores bool) error {
	for _, f := range p {
		if err := checkFault(f, all, stores); err != nil {
			return fmt.Errorf("%q: %w", f, err)
		}
	}
	return nil
}

func checkFault(f chaos.Fault, all []target, stores bool) error {
	ends := f.Kind == chaos.Drain || f.Kind == chaos.Stop
	switch from := f.When.From; {
	case from.Clock == chaos.Time && ends && time.Duration(from.At) > mostLast:
		return fmt.Errorf("a simulated run takes an hour at most: say a time up to %v", mostLast)
	case from.Clock == chaos.Time && !ends && time.Duration(from.At) >= healAfter:
		return fmt.Errorf("everything is healed after %v, and nothing is done any more: say an earlier time", healAfter)
	case f.When.Every > 0 && f.When.Every < soonest:
		return fmt.Errorf("every %v is too often: say every %v or more", f.When.Every, soonest)
	case f.Most > longest:
		return fmt.Errorf("%v is too long for a simulated run: say up to %v", f.Most, longest)
	case f.Factor > slowest:
		return fmt.Errorf("by %v is too slow for a simulated run: say up to %d", f.Factor, slowest)
	case ends:
		return nil
	case onLinks(f.Kind):
		return checkClass(f, all, stores)
	case f.Kind == chaos.Hold:
		return checkLink(f, all)
	}
	return checkWho(f.Who, all, func(t *target) string { return t.refuses(f) })
}

func checkClass(f chaos.Fault, all []target, stores bool) error {
	may := f.Kind == chaos.Lose && slices.Contains(lost, f.Class) || f.Kind == chaos.Repeat && slices.Contains(repeated, f.Class) ||
		f.Kind == chaos.Reorder && slices.Contains(disordered, f.Class) || f.Kind == chaos.Delay && f.Class != chaos.Verdict
	for _, u := range unheard {
		if !may && (u.class == "" || u.class == f.Class) && (u.kind == "" || u.kind == f.Kind) {
			return fmt.Errorf("%s", u.why)
		}
	}
	switch {
	case f.To == (chaos.Who{}):
	case f.Class == chaos.Save:
		return fmt.Errorf("a call of the store goes over no link: name no tasks")
	default:
		return checkLink(f, all)
	}
	if f.Class == chaos.Save && !stores {
		return fmt.Errorf("this run has no store")
	}
	return nil
}

func checkLink(f chaos.Fault, all []target) error {
	any := func(*target) string { return "" }
	if err := checkWho(f.Who, all, any); err != nil {
		return err
	}
	return checkWho(f.To, all, any)
}

// checkWho says why nobody who is meant will do.
func checkWho(w chaos.Who, all []target, refuses func(*target) string) error {
	var names []string
	why := ""
	for i := range all {
		t := &all[i]
		names = append(names, t.name)
		if w.Component != "*" && w.Component != t.name {
			continue
		}
		if w.Task >= t.tasks {
			return fmt.Errorf("%s has %d tasks, which are counted from 0", t.name, t.tasks)
		}
		r := refuses(t)
		if r == "" {
			return nil
		}
		why = r
		if w.Component != "*" {
			why = t.name + " " + r
		} else {
			why = "there is none that does not: each " + r
		}
	}
	if why == "" {
		return fmt.Errorf("there is no component %q: the components are %s", w.Component, strings.Join(names, ", "))
	}
	return fmt.Errorf("%s", why)
}

// refuses says why a fault cannot be done to a component; "": it can.
func (t *target) refuses(f chaos.Fault) string {
	switch f.Kind {
	case chaos.Refuse, chaos.Reject, chaos.Poison:
		if t.reads {
			return "is a spout, which executes no tuples"
		}
	case chaos.Forget:
		if !t.retains {
			return "retains no tuples"
		}
	case chaos.Misroute:
		if !t.chooses {
			return "gets no tuples by a custom grouping"
		}
	case chaos.Pause, chaos.Redeliver:
		if !t.reads {
			return "is a bolt, which reads nothing"
		}
	case chaos.Break, chaos.Panic, chaos.Hang:
		return t.refusesCall(f)
	}
	return ""
}

func (t *target) refusesCall(f chaos.Fault) string {
	if f.Kind == chaos.Break && !t.reads {
		return "is a bolt: refuse its tuples, or have it panic"
	}
	switch c := f.Call; c {
	case "":
		if f.Kind == chaos.Hang && t.reads {
			return "is a spout: say in which call it is to hang, at a time"
		}
	case chaos.InPrepare, chaos.InTick, chaos.InFinish:
		if t.reads {
			return fmt.Sprintf("is a spout, which has no %s", c)
		}
	case chaos.InOpen, chaos.InNext, chaos.InCommit, chaos.InAck, chaos.InFail:
		answers := c == chaos.InAck || c == chaos.InFail
		switch {
		case !t.reads || answers && !t.queue || c == chaos.InCommit && t.queue:
			return fmt.Sprintf("has no %s", c)
		case f.Kind == chaos.Panic && c == chaos.InCommit:
			return "does not end by a panic in commit: break it"
		case f.Kind == chaos.Hang && !answers && !(c == chaos.InNext && t.prompt):
			return fmt.Sprintf("does not wait for %s: pause it", c)
		}
	}
	return ""
}
