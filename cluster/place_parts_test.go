package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/tuple"
)

// golden compares got with a file of testdata, or writes it with UPDATE=1.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// nodes returns candidates with the ids 1 to n.
func nodes(n int) []Candidate {
	all := make([]Candidate, n)
	for i := range all {
		all[i].Home = Home{NodeID(i + 1), 1}
	}
	return all
}

// chain returns components that send each to the next.
func chain(parallel ...int) []Component {
	all := make([]Component, len(parallel))
	for c, n := range parallel {
		all[c] = Component{Name: fmt.Sprintf("c%d", c), Parallel: n}
		if c > 0 {
			all[c-1].To = []int{c}
		}
	}
	return all
}

// inForce returns p with an epoch that is new.
func inForce(p *Plan) *Plan {
	last := uint32(1)
	for _, task := range p.Tasks {
		last = max(last, task.Epoch)
	}
	return p.inForce(last + 1)
}

// drawComponents draws a graph.
func drawComponents(t *rapid.T) []Component {
	all := chain(rapid.SliceOfN(rapid.IntRange(1, 12), 1, 5).Draw(t, "parallel")...)
	for c := range all {
		all[c].To = nil
		for d := c + 1; d < len(all); d++ {
			if rapid.Bool().Draw(t, "sends") {
				all[c].To = append(all[c].To, d)
			}
		}
	}
	return all
}

// drawNodes draws candidates with the ids 1 to n.
func drawNodes(t *rapid.T, least int) []Candidate {
	all := nodes(rapid.IntRange(least, 8).Draw(t, "nodes"))
	plain := rapid.Bool().Draw(t, "plain")
	for i := range all {
		if !plain {
			all[i].Weight = rapid.IntRange(0, 4).Draw(t, "weight")
			all[i].Load = rapid.IntRange(0, 9).Draw(t, "load")
			all[i].Draining = rapid.IntRange(0, 4).Draw(t, "draining") == 0
		}
	}
	return all
}

// lose takes some nodes away, starts others again, and drains others.
func lose(t *rapid.T, nodes []Candidate) []Candidate {
	var left []Candidate
	for _, n := range nodes {
		switch rapid.IntRange(0, 4).Draw(t, "fate") {
		case 0:
			continue
		case 1:
			n.Boot++
		case 2:
			n.Draining = !n.Draining
		}
		left = append(left, n)
	}
	return left
}

// count returns how many tasks a component has on each of nodes.
func count(p *Plan, c int, nodes []Candidate) []int {
	n := make([]int, len(nodes))
	for _, task := range p.Tasks {
		if i := slices.IndexFunc(nodes, func(o Candidate) bool { return o.Home == task.Home }); i >= 0 && task.Component == c {
			n[i]++
		}
	}
	return n
}

func weight(n Candidate) int { return max(n.Weight, 1) }

// takers returns those that may get tasks.
func takers(nodes []Candidate) []Candidate {
	able := slices.DeleteFunc(slices.Clone(nodes), func(n Candidate) bool { return n.Draining })
	if len(able) == 0 {
		return nodes
	}
	return able
}

// requireShares checks that each node has its share of each component.
func requireShares(t require.TestingT, components []Component, p *Plan, nodes []Candidate) {
	all := 0
	for _, n := range nodes {
		all += weight(n)
	}
	for c, k := range components {
		for i, n := range count(p, c, nodes) {
			share := float64(k.Parallel) * float64(weight(nodes[i])) / float64(all)
			require.Less(t, share-1, float64(n), "component %d on node %v", c, nodes[i].Node)
			require.Greater(t, share+1, float64(n), "component %d on node %v", c, nodes[i].Node)
		}
	}
}

// requireSound checks what holds of every plan that follows old.
func requireSound(t require.TestingT, components []Component, old, p *Plan, nodes []Candidate) {
	require.Zero(t, p.Epoch)
	require.NoError(t, checkPlan(components, p, true))
	require.NoError(t, checkStep(old, p))
	for id, task := range p.Tasks {
		same := old != nil && id < len(old.Tasks) && old.Tasks[id].Home == task.Home && old.Tasks[id].Component == task.Component
		require.Equal(t, same, task.Epoch != 0, "task %d has a new epoch exactly if it is new here", id)
		if task.Home != (Home{}) {
			require.True(t, slices.ContainsFunc(nodes, func(n Candidate) bool { return n.Home == task.Home }), "task %d is nowhere", id)
		}
	}
	if old == nil {
		return
	}
	for c, l := range p.Components {
		was := old.Components[c]
		if was.Parallel == l.Parallel {
			require.Equal(t, was.First, l.First)
			continue
		}
		for i := range l.Parallel {
			if id := int(l.First) + i; id < len(old.Tasks) {
				require.Zero(t, old.Tasks[id].Home, "id %d was in use", id)
			}
		}
		for i := range was.Parallel {
			task := p.Tasks[int(was.First)+i]
			require.Equal(t, Task{Component: c, Index: i}, task, "it is retired")
		}
	}
}

// stay returns the tasks of a plan that have a home among nodes.
func stay(p *Plan, nodes []Candidate) (ids []tuple.TaskID) {
	for id, task := range p.Tasks {
		if slices.ContainsFunc(nodes, func(n Candidate) bool { return n.Home == task.Home }) {
			ids = append(ids, tuple.TaskID(id))
		}
	}
	return ids
}

// moves returns how many tasks have another home in p.
func moves(old, p *Plan) (n int) {
	for id, task := range p.Tasks {
		if id < len(old.Tasks) && old.Tasks[id].Home != task.Home {
			n++
		}
	}
	return n
}

// requireBest checks that no task that is new to its node would be better off on
// another one, as far as the sum of all tasks goes.
func requireBest(t require.TestingT, components []Component, old, p *Plan, nodes []Candidate) {
	whole := 0
	total := make([]int, len(nodes))
	for i, n := range nodes {
		whole += weight(n)
		total[i] = n.Load
		for c := range components {
			total[i] += count(p, c, nodes)[i]
		}
	}
	for c, l := range p.Components {
		n := count(p, c, nodes)
		share := func(i int) (least, odd int) {
			x := l.Parallel * weight(nodes[i])
			return x / whole, min(x%whole, 1)
		}
		for index := range l.Parallel {
			id := int(l.First) + index
			i := slices.IndexFunc(nodes, func(n Candidate) bool { return n.Home == p.Tasks[id].Home })
			if i < 0 || id < len(old.Tasks) && old.Tasks[id].Home.Node == p.Tasks[id].Home.Node {
				continue
			}
			for j := range nodes {
				from, _ := share(i)
				to, odd := share(j)
				if n[i] > from && n[j] < to+odd {
					require.LessOrEqual(t, (2*total[i]-1)*weight(nodes[j]), (2*total[j]+1)*weight(nodes[i]),
						"task %d of component %d is on %v, with %v", index, c, nodes[i].Node, total)
				}
			}
		}
	}
}
