package cluster

import (
	"cmp"
	"slices"
)

// A tally counts how many tasks of each component each node has, and should have.
//
// Nodes are those that may get tasks, by id, and i or j is one of them; c or d is a
// component. Everything is in whole numbers, so that it is the same everywhere.
type tally struct {
	nodes    []Candidate
	index    map[NodeID]int
	draining map[Home]bool // the others

	parallel    []int   // tasks of c
	least, most [][]int // share of i in c, rounded down and up
	count       [][]int // tasks of c on i
	away        []int   // tasks of c that look for a node
	total       []int   // all tasks on i, those of other topologies included

	twins   [][]int // neighbours of c with as many tasks, those it gets tuples from first
	friends [][]int // all neighbours of c
}

// A move takes one task from a node to another.
type move struct{ component, from, to int }

func newTally(components []Component, nodes []Candidate) *tally {
	t := &tally{index: map[NodeID]int{}, draining: map[Home]bool{}, away: make([]int, len(components))}
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b Candidate) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(b.Boot, a.Boot)) })
	nodes = slices.CompactFunc(nodes, func(a, b Candidate) bool { return a.Node == b.Node }) // the last boot
	all := !slices.ContainsFunc(nodes, func(n Candidate) bool { return !n.Draining })
	weights := 0
	for _, n := range nodes {
		if n.Draining && !all {
			t.draining[n.Home] = true
			continue
		}
		n.Weight = min(max(n.Weight, 1), 1<<16)
		n.Load = min(max(n.Load, 0), 1<<30)
		weights += n.Weight
		t.index[n.Node] = len(t.nodes)
		t.nodes = append(t.nodes, n)
		t.total = append(t.total, n.Load)
	}
	t.twins = make([][]int, len(components))
	t.friends = make([][]int, len(components))
	for c, k := range components {
		least, most := make([]int, len(t.nodes)), make([]int, len(t.nodes))
		for i, n := range t.nodes {
			least[i] = k.Parallel * n.Weight / weights
			most[i] = (k.Parallel*n.Weight + weights - 1) / weights
		}
		t.least, t.most = append(t.least, least), append(t.most, most)
		t.count = append(t.count, make([]int, len(t.nodes)))
		t.parallel = append(t.parallel, k.Parallel)
		for _, d := range k.To {
			t.befriend(components, c, d)
		}
	}
	// Those from which c gets tuples were placed before it: they are asked first.
	for c := range components {
		slices.Sort(t.twins[c])
	}
	return t
}

func (t *tally) befriend(components []Component, c, d int) {
	if slices.Contains(t.friends[c], d) {
		return
	}
	t.friends[c], t.friends[d] = append(t.friends[c], d), append(t.friends[d], c)
	if components[c].Parallel == components[d].Parallel {
		t.twins[c], t.twins[d] = append(t.twins[c], d), append(t.twins[d], c)
	}
}

// at returns which node a home is on, or -1, and whether it is the same process.
func (t *tally) at(h Home) (i int, same bool) {
	i, ok := t.index[h.Node]
	if !ok {
		return -1, false
	}
	return i, t.nodes[i].Boot == h.Boot
}

// begin makes total what it will be at least: each node has what it has, or its share
// rounded down if that is more.
func (t *tally) begin() {
	for c := range t.count {
		for i, n := range t.count[c] {
			t.total[i] += max(n, t.least[c][i])
		}
	}
}

// sum makes total what it is.
func (t *tally) sum() {
	for i, n := range t.nodes {
		t.total[i] = n.Load
		for c := range t.count {
			t.total[i] += t.count[c][i]
		}
	}
}

// evict takes tasks of c from nodes until all nodes can have their share: those that
// have more than it, and then those with the most tasks in all, as there are only so
// many odd ones.
func (t *tally) evict(c int) {
	count, least, most := t.count[c], t.least[c], t.most[c]
	take := func(i, n int) {
		count[i] -= n
		t.total[i] -= n
		t.away[c] += n
	}
	odd := t.parallel[c]
	var have []int
	for i := range count {
		take(i, max(count[i]-most[i], 0))
		odd -= least[i]
		if count[i] > least[i] {
			have = append(have, i)
		}
	}
	slices.SortFunc(have, func(i, j int) int { return cmp.Or(t.compareOut(j, i), cmp.Compare(j, i)) })
	for _, i := range have[:max(len(have)-odd, 0)] {
		take(i, 1)
	}
}

// fill gives all tasks of c a node that are away. back is how many each node would have
// back.
func (t *tally) fill(c int, back []int) {
	count, least, most := t.count[c], t.least[c], t.most[c]
	kept := slices.Clone(count)
	missing := 0
	for i := range count {
		missing += max(least[i]-count[i], 0)
	}
	for ; t.away[c] > 0 && t.away[c] < missing; t.away[c]-- {
		// Too many stay where they are above their share: the others get alike.
		i := t.best(func(i int) bool { return count[i] < least[i] }, func(i, j int) int {
			return cmp.Or(later(kept[i]+back[i] > count[i], kept[j]+back[j] > count[j]),
				t.compare(i, j, 2*count[i]+1, 2*count[j]+1), t.compareIn(i, j))
		})
		count[i]++
		missing--
	}
	if t.away[c] == 0 {
		return
	}
	var open []int
	for i := range count {
		if n := least[i] - count[i]; n > 0 {
			count[i] += n
			t.away[c] -= n
		}
		if count[i] < most[i] {
			open = append(open, i)
		}
	}
	friends := make([]int, len(count)) // that have an odd one on i
	for _, d := range t.friends[c] {
		for i, n := range t.count[d] {
			if n > t.least[d][i] {
				friends[i]++
			}
		}
	}
	slices.SortFunc(open, func(i, j int) int {
		return cmp.Or(later(kept[i]+back[i] > count[i], kept[j]+back[j] > count[j]), t.compareIn(i, j),
			cmp.Compare(friends[j], friends[i]), cmp.Compare(i, j))
	})
	for _, i := range open[:t.away[c]] {
		count[i]++
		t.total[i]++
	}
	t.away[c] = 0
}

// later orders true before false.
func later(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// uneven returns the move that is needed most so that each node has its share of each
// component.
func (t *tally) uneven() (m move, found bool) {
	worst := 0
	for c := range t.count {
		count, least, most := t.count[c], t.least[c], t.most[c]
		from := t.best(func(i int) bool { return count[i] > most[i] }, func(i, j int) int {
			return cmp.Or(cmp.Compare(count[j]-most[j], count[i]-most[i]), t.compareOut(j, i))
		})
		to := t.best(func(i int) bool { return count[i] < least[i] }, func(i, j int) int {
			return cmp.Or(cmp.Compare(least[j]-count[j], least[i]-count[i]), t.compareIn(i, j))
		})
		off := 0
		if from >= 0 {
			off = count[from] - most[from]
		} else {
			from = t.best(func(i int) bool { return count[i] > least[i] }, func(i, j int) int { return t.compareOut(j, i) })
		}
		if to >= 0 {
			off = max(off, least[to]-count[to])
		} else {
			to = t.best(func(i int) bool { return count[i] < most[i] }, t.compareIn)
		}
		if off > worst && from >= 0 && to >= 0 {
			m, found, worst = move{c, from, to}, true, off
		}
	}
	return m, found
}

// unequal returns the move that brings the totals nearest to each other, of those that
// leave every node its share of every component. Each makes the sum of total*total/weight
// smaller, so there is no way round in circles.
func (t *tally) unequal(movable func(c, i int) bool) (m move, found bool) {
	for c := range t.count {
		count, least, most := t.count[c], t.least[c], t.most[c]
		from := t.best(func(i int) bool { return count[i] > least[i] && movable(c, i) }, func(i, j int) int { return t.compareOut(j, i) })
		to := t.best(func(i int) bool { return count[i] < most[i] }, t.compareIn)
		if from < 0 || to < 0 || t.compare(from, to, 2*t.total[from]-1, 2*t.total[to]+1) <= 0 {
			continue
		}
		if !found || cmp.Or(t.compareOut(from, m.from), t.compareIn(m.to, to)) > 0 {
			m, found = move{c, from, to}, true
		}
	}
	return m, found
}

func (t *tally) move(m move) {
	t.count[m.component][m.from]--
	t.count[m.component][m.to]++
	t.total[m.from]--
	t.total[m.to]++
}

// best returns the first of those that can be, in an order, or -1.
func (t *tally) best(can func(i int) bool, compare func(i, j int) int) int {
	best := -1
	for i := range t.nodes {
		if can(i) && (best < 0 || compare(i, best) < 0) {
			best = i
		}
	}
	return best
}

// compare compares what a and b are for nodes of the weights of i and j.
func (t *tally) compare(i, j, a, b int) int {
	return cmp.Compare(int64(a)*int64(t.nodes[j].Weight), int64(b)*int64(t.nodes[i].Weight))
}

// compareIn compares how much one more task would weigh, compareOut how much one less
// would help.
func (t *tally) compareIn(i, j int) int  { return t.compare(i, j, 2*t.total[i]+1, 2*t.total[j]+1) }
func (t *tally) compareOut(i, j int) int { return t.compare(i, j, 2*t.total[i]-1, 2*t.total[j]-1) }
