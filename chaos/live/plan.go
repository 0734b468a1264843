package live

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// Faults that a run can have: what each costs is kept.
const mostFaults = 100_000

// check says what of a plan cannot be done to a topology, or in the time there is.
func (o *Options) check(plan *topology.Plan) error {
	var errs []error
	wrong := func(f *chaos.Fault, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%q: %s", f.String(), fmt.Sprintf(format, args...)))
	}
	if plan.Guarantee != topology.AtLeastOnce {
		errs = append(errs, fmt.Errorf("topology %s is %v: nothing is promised of what is under way when a task dies, so there is nothing to check; run it with --guarantee %v", plan.Topology, plan.Guarantee, topology.AtLeastOnce))
	}
	for i := range o.Plan {
		f := &o.Plan[i]
		switch {
		case len(who(plan, f)) > 0:
		case f.Who.Component != "*" && !slices.ContainsFunc(plan.Components, func(n topology.Node) bool { return n.Name == f.Who.Component }):
			wrong(f, "topology %s has no component %s: it has %s", plan.Topology, f.Who.Component, names(plan, nil))
		case harmless(f, node(plan, f.Who.Component)):
			wrong(f, "%s is done to %s: here %s", f.Kind, victims[f.Kind], names(plan, func(n *topology.Node) bool { return !harmless(f, n) }))
		default:
			n := node(plan, f.Who.Component)
			wrong(f, "component %s has the tasks 0 to %d", n.Name, n.Parallel-1)
		}
		if f.Kind == chaos.Slow && f.Factor < 1 {
			wrong(f, "a running task cannot be made faster: say a factor from 1 on")
		}
		if begins := time.Duration(f.When.From.At); begins >= o.For {
			wrong(f, "it begins at %v, and faults are done for %v", begins, o.For)
		}
		if f.When.Every > 0 && int64(o.For/f.When.Every) > mostFaults {
			wrong(f, "that is more than %d faults", mostFaults)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if n := len(timeline(o.Plan, o.For)); n > mostFaults {
		return fmt.Errorf("the plan has %d faults: %d is the most", n, mostFaults)
	}
	return nil
}

// victims are those to whom a kind can be done, where that is not everybody.
var victims = map[chaos.Kind]string{
	chaos.Slow: "bolts", chaos.Panic: "spouts and bolts", chaos.Pause: "spouts", chaos.Break: "spouts",
}

// harmless reports whether a fault cannot be done to a component. A nil one is "*".
func harmless(f *chaos.Fault, n *topology.Node) bool {
	if n == nil {
		return true
	}
	switch f.Kind {
	case chaos.Slow:
		return n.Bolt == nil
	case chaos.Pause, chaos.Break:
		return n.Source == nil
	case chaos.Panic:
		return n.Queue != nil
	}
	return false
}

// who returns the tasks that a fault may be done to: of one that is drawn all.
func who(plan *topology.Plan, f *chaos.Fault) (ids []tuple.TaskID) {
	for id, t := range plan.Tasks {
		n := &plan.Components[t.Component]
		if f.Who.Is(n.Name, t.Index) && !harmless(f, n) {
			ids = append(ids, tuple.TaskID(id))
		}
	}
	return ids
}

func node(plan *topology.Plan, name string) *topology.Node {
	for i := range plan.Components {
		if n := &plan.Components[i]; n.Name == name {
			return n
		}
	}
	return nil
}

func names(plan *topology.Plan, which func(*topology.Node) bool) string {
	var all []string
	for i := range plan.Components {
		if n := &plan.Components[i]; which == nil || which(n) {
			all = append(all, n.Name)
		}
	}
	if all == nil {
		return "there are none"
	}
	return strings.Join(all, ", ")
}

// A deed is what is to be done at a time: a fault, or the end of one that lasts.
type deed struct {
	at    time.Duration // since the faults began
	fault int           // of the plan
	ends  bool
}

// timeline returns all deeds before the end of the faults, which ends all that lasts.
func timeline(p chaos.Plan, end time.Duration) (all []deed) {
	for i, f := range p {
		from, to := time.Duration(f.When.From.At), time.Duration(f.When.To.At)
		if to == 0 || to > end {
			to = end
		}
		switch {
		case from >= end:
		case f.When.Once:
			all = append(all, deed{at: from, fault: i})
		case f.When.Every > 0:
			for at := from; at < to && len(all) <= mostFaults; at += f.When.Every {
				all = append(all, deed{at: at, fault: i})
			}
		default:
			all = append(all, deed{at: from, fault: i})
			if to < end {
				all = append(all, deed{at: to, fault: i, ends: true})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b deed) int { return int(a.at - b.at) })
	return all
}
