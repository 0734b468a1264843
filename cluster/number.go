package cluster

import (
	"math/bits"

	"github.com/egretstream/egret/tuple"
)

// number returns a plan with the ids that all tasks have from now on. Those of old have
// their home and epoch. A component that has as many tasks as in old keeps its ids; one
// that has not gets others, and those it had are retired.
//
// An id stands for one task of one component for ever: what is retired may come back as
// the same task, in a later epoch, and never as another one. Nodes skip plans, so nobody
// could rely on having seen an id as nobody's in between. So ids are only ever used again
// within a component, and new ones are made in powers of two: the others are those of tasks
// that it may have later. Then a component has at most nine times as many ids as it ever had
// tasks, however often it is changed: at most two runs of each power of two, beside those
// that it had in the beginning.
func number(components []Component, old *Plan) (*Plan, error) {
	if old != nil && len(old.Components) != len(components) {
		return nil, refuse(ErrInvalid, "the plan is for %d components, and there are %d", len(old.Components), len(components))
	}
	next := &Plan{Components: make([]Layout, len(components))}
	var used []bool // by id
	if old != nil {
		next.Tasks = append(next.Tasks, old.Tasks...)
		used = make([]bool, len(old.Tasks))
		for c, l := range old.Components {
			if l.Parallel < 1 || uint64(l.First)+uint64(l.Parallel) > uint64(len(old.Tasks)) {
				return nil, refuse(ErrInvalid, "the plan leaves out tasks of component %q", components[c].Name)
			}
			for i := range l.Parallel {
				used[int(l.First)+i] = true
			}
		}
	}
	for c, k := range components {
		if k.Parallel < 1 || k.Parallel > mostParallel {
			return nil, refuse(ErrInvalid, "component %q cannot have %d tasks: from 1 to 4,096 are possible", k.Name, k.Parallel)
		}
		if old != nil {
			l := old.Components[c]
			if l.Parallel == k.Parallel {
				next.Components[c] = l
				continue
			}
			for i := range l.Parallel {
				t := &next.Tasks[int(l.First)+i]
				t.Home, t.Epoch = Home{}, 0
			}
		}
		first := gap(next.Tasks, used, c, k.Parallel)
		if first+k.Parallel > mostTasks {
			return nil, refuse(ErrFull, "there is no room for %d more tasks among the 1,048,576 ids of a topology", k.Parallel)
		}
		next.Components[c] = Layout{tuple.TaskID(first), k.Parallel}
		room := k.Parallel
		if old != nil && first+k.Parallel > len(next.Tasks) {
			room = min(1<<bits.Len(uint(k.Parallel-1)), mostTasks-first)
		}
		for i := range room {
			id := first + i
			if id == len(next.Tasks) {
				next.Tasks, used = append(next.Tasks, Task{}), append(used, false)
			}
			next.Tasks[id], used[id] = Task{Component: c, Index: i}, i < k.Parallel
		}
	}
	return next, nil
}

// gap returns the first id of n that follow each other, are not used, and were the n
// first tasks of component c if they were any. They may reach beyond the end.
func gap(tasks []Task, used []bool, c, n int) int {
	first := 0
	for id := range tasks {
		if used[id] || tasks[id].Component != c || tasks[id].Index != id-first {
			first = id + 1
			if !used[id] && tasks[id].Component == c && tasks[id].Index == 0 {
				first = id
			}
		}
		if id+1-first == n {
			break
		}
	}
	return first
}
