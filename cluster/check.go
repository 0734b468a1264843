package cluster

import (
	"slices"
	"time"

	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/tuple"
)

const (
	mostParallel = 4096    // tasks of a component, as in package topology
	mostTasks    = 1 << 20 // ids of tasks of a plan, those of retired tasks included
)

// checkSpec returns a refusal of a spec that cannot be placed.
func checkSpec(s *Spec) error {
	if s.Topology == "" {
		return refuse(ErrInvalid, "a topology without a name")
	}
	if len(s.Components) == 0 {
		return refuse(ErrInvalid, "topology %q has no components", s.Topology)
	}
	seen := map[string]bool{}
	for c, k := range s.Components {
		switch {
		case k.Name == "" || seen[k.Name]:
			return refuse(ErrInvalid, "topology %q has two components called %q, or one without a name", s.Topology, k.Name)
		case k.Parallel < 1 || k.Parallel > mostParallel:
			return refuse(ErrInvalid, "component %q of topology %q has %d tasks: from 1 to 4,096 are possible", k.Name, s.Topology, k.Parallel)
		}
		for _, to := range k.To {
			if to <= c || to >= len(s.Components) {
				return refuse(ErrInvalid, "component %q of topology %q is said to send to number %d: it sends to later ones, and there are %d",
					k.Name, s.Topology, to, len(s.Components))
			}
		}
		seen[k.Name] = true
	}
	return nil
}

// checkPlan returns a refusal of a plan that is not one for components: each has its
// tasks, each task its home, and what is beside them is retired. With fixed it has the
// parallelism that components have.
func checkPlan(components []Component, p *Plan, fixed bool) error {
	if p == nil || len(p.Components) != len(components) {
		return refuse(ErrInvalid, "the plan is not for the %d components of the topology", len(components))
	}
	if len(p.Tasks) > mostTasks {
		return refuse(ErrInvalid, "the plan has %d ids of tasks: at most 1,048,576 are possible", len(p.Tasks))
	}
	living := 0
	for c, l := range p.Components {
		name := components[c].Name
		if l.Parallel < 1 || l.Parallel > mostParallel || fixed && l.Parallel != components[c].Parallel {
			return refuse(ErrInvalid, "the plan gives component %q %d tasks", name, l.Parallel)
		}
		if uint64(l.First)+uint64(l.Parallel) > uint64(len(p.Tasks)) {
			return refuse(ErrInvalid, "the plan says that component %q has the tasks from %d, and leaves some out", name, l.First)
		}
		for i := range l.Parallel {
			id := l.First + tuple.TaskID(i)
			switch t := p.Tasks[id]; {
			case t.Component != c || t.Index != i:
				return refuse(ErrInvalid, "in the plan task %d is another one than number %d of component %q", id, i, name)
			case t.Home.Node == 0 || t.Home.Boot == 0:
				return refuse(ErrInvalid, "the plan has no node for task %d, number %d of component %q", id, i, name)
			}
		}
		living += l.Parallel
	}
	for id, t := range p.Tasks {
		if t.Component < 0 || t.Component >= len(components) || t.Index < 0 {
			return refuse(ErrInvalid, "in the plan task %d is of no component", id)
		}
		if t.Home != (Home{}) {
			living--
		}
	}
	if living != 0 {
		return refuse(ErrInvalid, "the plan has a node for tasks that are of no component any more")
	}
	return nil
}

// checkStep returns a refusal of a plan that cannot follow old, which may be nil. A
// task with an epoch is the same in both, so that an epoch of a task means one home for
// ever, and an id stands for the same task for ever.
func checkStep(old, p *Plan) error {
	if old == nil {
		old = &Plan{}
	}
	if len(p.Tasks) < len(old.Tasks) {
		return refuse(ErrInvalid, "the plan leaves out tasks of the one before: those that are retired stay in it")
	}
	for id, t := range p.Tasks {
		var was Task
		if id < len(old.Tasks) {
			was = old.Tasks[id]
		}
		switch {
		case t.Epoch != 0 && t != was:
			return refuse(ErrInvalid, "the plan gives task %d epoch %d, and it was not so in the one before", id, t.Epoch)
		case id < len(old.Tasks) && (t.Component != was.Component || t.Index != was.Index):
			return refuse(ErrInvalid, "the plan gives task %d to another component, or another number in it", id)
		}
	}
	return nil
}

// inForce returns a proposed plan with its epoch.
func (p *Plan) inForce(epoch uint32) *Plan {
	next := &Plan{epoch, p.Components, slices.Clone(p.Tasks)}
	for i := range next.Tasks {
		if t := &next.Tasks[i]; t.Epoch == 0 {
			t.Epoch = epoch
		}
	}
	return next
}

// keepEpochs is a bug on purpose.
func keepEpochs(was, p *Plan) {
	if was == nil || !mutation.Is(mutation.MovedKeepsEpoch) {
		return
	}
	for id := range was.Tasks {
		if t := &p.Tasks[id]; t.Home.Node != 0 && was.Tasks[id].Home.Node != 0 {
			t.Epoch = was.Tasks[id].Epoch
		}
	}
}

// when returns a time as it is kept. RFC 3339 knows years of four digits.
func when(t time.Time) (time.Time, error) {
	t = t.UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return t, refuse(ErrInvalid, "a time in the year %d", y)
	}
	return t, nil
}
