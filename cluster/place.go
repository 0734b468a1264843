package cluster

import "slices"

// A Candidate is a living node that may have tasks.
type Candidate struct {
	Home
	Weight   int  // how many tasks it should have beside others, at most 65,536; 0 is 1
	Draining bool // it gets nothing new, unless all are draining
	Load     int  // tasks of other topologies that it has
}

// Place returns the best plan for components. What is best, in this order:
//
//   - No task is on a node that is gone or draining.
//   - Each node has its share of the tasks of each component, by weight, rounded up
//     or down.
//   - A task stays where it is, or at least on its node if that has started again.
//   - Nodes have their share of all tasks, those of other topologies included.
//   - Tasks with the same index of components that send to each other, and have equally
//     many tasks, share a node.
//
// old is the plan in force, nil for none. A component whose parallelism differs from
// that in old gets new tasks, with ids that nobody has in old. The order of nodes does
// not matter. The error is a *Refusal: [ErrNoNode] if there are no nodes, [ErrInvalid],
// [ErrFull].
func Place(components []Component, old *Plan, nodes []Candidate) (*Plan, error) {
	return arrange(components, old, nodes, rules{even: true})
}

// Repair returns the plan that follows old at once, when nodes are gone: only tasks
// that have no home any more get another one. Everything that is alive stays where it
// is, also on a node that is draining or has more than its share.
func Repair(components []Component, old *Plan, nodes []Candidate) (*Plan, error) {
	return arrange(components, old, nodes, rules{stay: true})
}

// Vacate is Repair which also takes away all tasks from the nodes that are draining,
// unless all are.
func Vacate(components []Component, old *Plan, nodes []Candidate) (*Plan, error) {
	return arrange(components, old, nodes, rules{})
}

// Resize is Repair with another number of tasks of some components, by name.
func Resize(components []Component, old *Plan, nodes []Candidate, parallel map[string]int) (*Plan, error) {
	components = slices.Clone(components)
	known := 0
	for c := range components {
		if n, ok := parallel[components[c].Name]; ok {
			if components[c].One && n != 1 {
				return nil, refuse(ErrInvalid, "component %q has one task, always", components[c].Name)
			}
			components[c].Parallel = n
			known++
		}
	}
	if known < len(parallel) {
		for name := range parallel {
			if !slices.ContainsFunc(components, func(k Component) bool { return k.Name == name }) {
				return nil, refuse(ErrUnknown, "there is no component %q", name)
			}
		}
	}
	return Repair(components, old, nodes)
}

// Improve returns plan with one task moved to where it would be by Place, or nil if
// there is nothing to gain: each node has its share of each component, and no move
// would bring it nearer to its share of all tasks. It leaves alone what is not on one of
// the nodes, or on one that is draining.
//
// Each move is a gain by one measure, so calling it again and again comes to an end.
func Improve(components []Component, plan *Plan, nodes []Candidate) *Plan {
	if checkPlan(components, plan, true) != nil {
		return nil
	}
	t := newTally(components, nodes)
	if len(t.nodes) == 0 {
		return nil
	}
	for _, task := range plan.Tasks {
		if i, same := t.at(task.Home); same {
			t.count[task.Component][i]++
			t.total[i]++
		}
	}
	m, ok := t.uneven()
	if !ok {
		m, ok = t.unequal(func(int, int) bool { return true })
	}
	if !ok {
		return nil
	}
	l := plan.Components[m.component]
	best, most := -1, 0
	for index := range l.Parallel {
		id := int(l.First) + index
		if plan.Tasks[id].Home != t.nodes[m.from].Home {
			continue
		}
		near := 0 // neighbours that it comes to, less those that it leaves
		for _, d := range t.twins[m.component] {
			switch plan.Tasks[int(plan.Components[d].First)+index].Home {
			case t.nodes[m.to].Home:
				near++
			case t.nodes[m.from].Home:
				near--
			}
		}
		if best < 0 || near >= most {
			best, most = id, near
		}
	}
	next := plan.inForce(0)
	next.Tasks[best].Home, next.Tasks[best].Epoch = t.nodes[m.to].Home, 0
	return next
}

// rules are the differences between ways to make a plan.
type rules struct {
	stay bool // a task stays on a node that is draining
	even bool // a task leaves a node that has more than its share
}

func arrange(components []Component, old *Plan, nodes []Candidate, r rules) (*Plan, error) {
	t := newTally(components, nodes)
	if len(t.nodes) == 0 {
		return nil, refuse(ErrNoNode, "there is no node that tasks could be placed on")
	}
	next, err := number(components, old)
	if err != nil {
		return nil, err
	}
	// Who stays, and how many the others would like to have back.
	back := make([][]int, len(components))
	wish := make([]int, len(next.Tasks)) // a node for a task without a home, or -1
	for c, l := range next.Components {
		back[c] = make([]int, len(t.nodes))
		for id := int(l.First); id < int(l.First)+l.Parallel; id++ {
			task := &next.Tasks[id]
			i, same := t.at(task.Home)
			wish[id] = -1
			switch {
			case same:
				t.count[c][i]++
				continue
			case r.stay && t.draining[task.Home]:
				continue
			case i >= 0:
				back[c][i]++
				wish[id] = i
			}
			t.away[c]++
			task.Home, task.Epoch = Home{}, 0
		}
	}
	t.begin()
	kept := make([][]int, len(components))
	for c, l := range next.Components {
		if r.even {
			t.evict(c)
		}
		kept[c] = slices.Clone(t.count[c])
		if r.even {
			leave(next, l, t, kept[c], wish)
		}
		t.fill(c, back[c])
	}
	t.sum()
	// With weights, who got the odd one early may have too many in the end.
	free := func(c, i int) bool { return t.count[c][i] > kept[c][i]+back[c][i] }
	for {
		m, ok := t.unequal(free)
		if !ok {
			break
		}
		t.move(m)
	}
	for c, l := range next.Components {
		settle(next, l, t, c, kept[c], wish)
	}
	return next, nil
}

// leave takes their home from the last tasks of a component that a node does not keep.
func leave(p *Plan, l Layout, t *tally, keep, wish []int) {
	has := make([]int, len(t.nodes))
	for id := int(l.First); id < int(l.First)+l.Parallel; id++ {
		task := &p.Tasks[id]
		i, same := t.at(task.Home)
		if !same {
			continue
		}
		if has[i]++; has[i] > keep[i] {
			task.Home, task.Epoch = Home{}, 0
			wish[id] = -1
		}
	}
}

// settle gives a home to each task of a component that has none: so many of them to
// each node as it has in t beyond those that it has kept.
func settle(p *Plan, l Layout, t *tally, c int, kept, wish []int) {
	room := make([]int, len(t.nodes))
	for i := range room {
		room[i] = t.count[c][i] - kept[i]
	}
	homeless := func(yield func(index int, task *Task) bool) {
		for index := range l.Parallel {
			if task := &p.Tasks[int(l.First)+index]; task.Home == (Home{}) && !yield(index, task) {
				return
			}
		}
	}
	move := func(task *Task, i int) bool {
		if i < 0 || room[i] == 0 {
			return false
		}
		room[i]--
		task.Home = t.nodes[i].Home
		return true
	}
	for index, task := range homeless {
		move(task, wish[int(l.First)+index])
	}
	for index, task := range homeless {
		for _, d := range t.twins[c] {
			home := p.Tasks[int(p.Components[d].First)+index].Home
			if i, same := t.at(home); same && move(task, i) {
				break
			}
		}
	}
	i := 0
	for _, task := range homeless {
		for !move(task, i) {
			i++
		}
	}
}
