package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPlaceShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		components, nodes := drawComponents(t), drawNodes(t, 1)
		p, err := Place(components, nil, nodes)
		require.NoError(t, err)
		requireSound(t, components, nil, p, takers(nodes))
		requireShares(t, components, p, takers(nodes))

		// It is a fixed point of everything, and the order of nodes does not matter.
		p = inForce(p)
		for name, fn := range map[string]func([]Component, *Plan, []Candidate) (*Plan, error){"place": Place, "repair": Repair, "vacate": Vacate} {
			same, err := fn(components, p, nodes)
			require.NoError(t, err)
			same.Epoch = p.Epoch
			require.Equal(t, p, same, name)
		}
		require.Nil(t, Improve(components, p, nodes), "what was placed anew cannot be improved")
		mixed := rapid.Permutation(nodes).Draw(t, "mixed")
		other, err := Place(components, nil, mixed)
		require.NoError(t, err)
		require.Equal(t, p, inForce(other))
	})
}

// Whatever happened to nodes and parallelism, what comes of it is sound and even, and
// no task moves that need not: one that moves was above the share of its node.
func TestPlaceAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		components, all := drawComponents(t), drawNodes(t, 2)
		p, err := Place(components, nil, all[:rapid.IntRange(1, len(all)).Draw(t, "before")])
		require.NoError(t, err)
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			p = inForce(p)
			left := lose(t, all)
			for c := range components {
				if rapid.IntRange(0, 4).Draw(t, "resize") == 0 {
					components[c].Parallel = rapid.IntRange(1, 12).Draw(t, "parallel")
				}
			}
			next, err := Place(components, p, left)
			if len(left) == 0 {
				require.ErrorIs(t, err, ErrNoNode)
				break
			}
			require.NoError(t, err)
			requireSound(t, components, p, next, takers(left))
			requireShares(t, components, next, takers(left))
			requireFewest(t, components, p, next, takers(left))
			requireBest(t, components, p, next, takers(left))
			p = next
		}
	})
}

// requireFewest checks that as many tasks stay as the shares allow.
func requireFewest(t require.TestingT, components []Component, old, p *Plan, nodes []Candidate) {
	all := 0
	for _, n := range nodes {
		all += weight(n)
	}
	for c, k := range components {
		if old.Components[c].Parallel != k.Parallel {
			continue
		}
		had, most, odd, above := count(old, c, nodes), 0, k.Parallel, 0
		for i, n := range nodes {
			least := k.Parallel * weight(n) / all
			odd -= least
			most += min(had[i], least)
			if had[i] > least && k.Parallel*weight(n)%all != 0 {
				above++
			}
		}
		kept := 0
		for i := range k.Parallel {
			if id := int(p.Components[c].First) + i; p.Tasks[id] == old.Tasks[id] {
				kept++
			}
		}
		require.Equal(t, most+min(odd, above), kept, "component %d", c)
	}
}

// When nodes are gone only their tasks move, whatever else could be better.
func TestRepair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		components, all := drawComponents(t), drawNodes(t, 2)
		p, err := Place(components, nil, all[:rapid.IntRange(1, len(all)).Draw(t, "before")])
		require.NoError(t, err)
		for range rapid.IntRange(1, 3).Draw(t, "steps") {
			p = inForce(p)
			left := lose(t, all)
			if len(left) == 0 {
				break
			}
			next, err := Repair(components, p, left)
			require.NoError(t, err)
			requireSound(t, components, p, next, left)
			for _, id := range stay(p, left) {
				require.Equal(t, p.Tasks[id], next.Tasks[id])
			}
			requireBest(t, components, p, next, takers(left))
			// What moves goes to nodes that may take it, and above no share.
			whole := 0
			for _, n := range takers(left) {
				whole += weight(n)
			}
			for c, k := range components {
				had, has := count(p, c, takers(left)), count(next, c, takers(left))
				for i, n := range takers(left) {
					if has[i] > had[i] {
						require.Less(t, float64(has[i]), float64(k.Parallel)*float64(weight(n))/float64(whole)+1)
					}
				}
			}
			p = next
		}
	})
}

// With nodes that are alike, a repaired plan is even without moving anything else.
func TestLossOfOneOfMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		components := drawComponents(t)
		all := nodes(rapid.IntRange(2, 8).Draw(t, "nodes"))
		p, err := Place(components, nil, all)
		require.NoError(t, err)
		p = inForce(p)
		lost := rapid.IntRange(0, len(all)-1).Draw(t, "lost")
		left := slices.Delete(slices.Clone(all), lost, lost+1)
		next, err := Repair(components, p, left)
		require.NoError(t, err)
		requireShares(t, components, next, left)
		require.Equal(t, len(p.Tasks)-len(stay(p, left)), moves(p, next))
		placed, err := Place(components, p, left)
		require.NoError(t, err)
		require.Equal(t, next, placed)
	})
}

// Nodes that start again have the same tasks again, all of them at once as well.
func TestRestart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		components, all := drawComponents(t), drawNodes(t, 1)
		p, err := Place(components, nil, all)
		require.NoError(t, err)
		p = inForce(p)
		for i := range all {
			all[i].Boot += Boot(rapid.IntRange(0, 1).Draw(t, "boot"))
			all[i].Load = rapid.IntRange(0, 9).Draw(t, "load")
		}
		for _, fn := range []func([]Component, *Plan, []Candidate) (*Plan, error){Place, Repair, Vacate} {
			next, err := fn(components, p, all)
			require.NoError(t, err)
			for id, task := range p.Tasks {
				require.Equal(t, task.Home.Node, next.Tasks[id].Home.Node)
			}
		}
	})
	// Of two processes of a node the later one counts.
	p, err := Place(chain(1), nil, []Candidate{{Home: Home{1, 2}}, {Home: Home{1, 3}}, {Home: Home{1, 1}}})
	require.NoError(t, err)
	require.Equal(t, Home{1, 3}, p.Tasks[0].Home)
}

// Where all but few tasks stay above the share of their node, those few go to nodes
// that have least, but first of all back.
func TestRepairOfUneven(t *testing.T) {
	p, err := Place(chain(10), nil, nodes(1))
	require.NoError(t, err)
	p.Tasks[0].Home.Node, p.Tasks[1].Home.Node = 2, 2
	p = inForce(p)
	four := nodes(4)
	next, err := Repair(chain(10), p, []Candidate{four[0], four[2], four[3]})
	require.NoError(t, err)
	require.Equal(t, []int{8, 0, 1, 1}, count(next, 0, four))
	four[1].Boot = 2
	next, err = Repair(chain(10), p, four)
	require.NoError(t, err)
	require.Equal(t, []int{8, 2, 0, 0}, count(next, 0, four))
}

func TestVacate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		components, all := drawComponents(t), drawNodes(t, 2)
		p, err := Place(components, nil, all)
		require.NoError(t, err)
		p = inForce(p)
		i := rapid.IntRange(0, len(all)-1).Draw(t, "drained")
		all[i].Draining = true
		next, err := Vacate(components, p, all)
		require.NoError(t, err)
		requireSound(t, components, p, next, takers(all))
		for _, id := range stay(p, takers(all)) {
			require.Equal(t, p.Tasks[id], next.Tasks[id])
		}
	})
}

// A node that joins gets its share, one task a call, and then all is quiet.
func TestImprove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		components := drawComponents(t)
		all := nodes(rapid.IntRange(2, 8).Draw(t, "nodes"))
		p, err := Place(components, nil, all[1:])
		require.NoError(t, err)
		p = inForce(p)
		most := 0
		for _, k := range components {
			most += (k.Parallel + len(all) - 1) / len(all)
		}
		n := 0
		for ; ; n++ {
			next := Improve(components, p, all)
			if next == nil {
				break
			}
			requireSound(t, components, p, next, all)
			require.Equal(t, 1, moves(p, next))
			p = inForce(next)
			require.Less(t, n, most, "it takes more moves than the new node can have tasks")
		}
		requireShares(t, components, p, all)
		sum := make([]int, len(all))
		for c := range components {
			for i, n := range count(p, c, all) {
				sum[i] += n
			}
		}
		require.LessOrEqual(t, slices.Max(sum)-slices.Min(sum), 1)
	})
}

// From any plan, with any nodes, improving comes to an end.
func TestImproveEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		components, all := drawComponents(t), drawNodes(t, 1)
		p, err := Place(components, nil, all)
		require.NoError(t, err)
		for id := range p.Tasks {
			p.Tasks[id].Home = Home{NodeID(rapid.IntRange(1, 8).Draw(t, "home")), 1}
		}
		lost := len(p.Tasks) - len(stay(p, takers(all)))
		for range 500 {
			p = inForce(p)
			next := Improve(components, p, all)
			if next == nil {
				if lost == 0 {
					requireShares(t, components, p, takers(all))
				}
				return
			}
			require.Equal(t, 1, moves(p, next))
			p = next
		}
		require.Fail(t, "it does not end")
	})
}

func TestImproveRefuses(t *testing.T) {
	p, err := Place(chain(2), nil, nodes(1))
	require.NoError(t, err)
	require.NotNil(t, Improve(chain(2), p, nodes(2)))
	require.Nil(t, Improve(chain(2), p, nil))
	require.Nil(t, Improve(chain(3), p, nodes(2)))
	require.Nil(t, Improve(chain(2), nil, nodes(2)))
}

// Tasks of a chain go together where the shares allow it.
func TestNeighbours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "nodes")
		each := n * rapid.IntRange(1, 4).Draw(t, "each")
		components := chain(slices.Repeat([]int{each}, rapid.IntRange(2, 5).Draw(t, "length"))...)
		p, err := Place(components, nil, nodes(n))
		require.NoError(t, err)
		for id, task := range p.Tasks {
			require.Equal(t, p.Tasks[task.Index].Home, task.Home, "task %d", id)
		}
		if n == 1 {
			return
		}
		// They move together as well.
		p = inForce(p)
		left := nodes(n)[1:]
		for _, fn := range []func([]Component, *Plan, []Candidate) (*Plan, error){Place, Repair} {
			next, err := fn(components, p, left)
			require.NoError(t, err)
			if each%(n-1) == 0 {
				for id, task := range next.Tasks {
					require.Equal(t, next.Tasks[task.Index].Home, task.Home, "task %d", id)
				}
			}
		}
	})
}

// They find each other, also where those that stay are in no order.
func TestNewNeighbours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "nodes")
		each := n * rapid.IntRange(1, 3).Draw(t, "each")
		at := rapid.IntRange(0, 2).Draw(t, "new one")
		components := chain(each, each, each)
		components[at].Parallel = each + 1
		p, err := Place(components, nil, nodes(n))
		require.NoError(t, err)
		for c, l := range p.Components {
			if c == at {
				continue
			}
			for i, k := range rapid.Permutation(seq(each)).Draw(t, "order") {
				p.Tasks[int(l.First)+i].Home = Home{NodeID(1 + k%n), 1}
			}
		}
		p = inForce(p)
		next, err := Resize(components, p, nodes(n), map[string]int{components[at].Name: each})
		require.NoError(t, err)
		before := max(at-1, 0) // that it gets tuples from
		if at == 0 {
			before = 1
		}
		for i := range each {
			require.Equal(t, next.Tasks[int(next.Components[before].First)+i].Home, next.Tasks[int(next.Components[at].First)+i].Home)
		}
	})
}

// The task that moves is the one whose neighbour is there.
func TestImproveFollowsNeighbours(t *testing.T) {
	at := func(c, index, node int) Task { return Task{c, index, Home{NodeID(node), 1}, 1} }
	p := &Plan{1, []Layout{{0, 3}, {3, 3}}, []Task{at(0, 0, 3), at(0, 1, 1), at(0, 2, 2), at(1, 0, 1), at(1, 1, 1), at(1, 2, 2)}}
	next := Improve(chain(3, 3), p, nodes(3))
	require.Equal(t, Task{1, 0, Home{3, 1}, 0}, next.Tasks[3])
	require.Equal(t, 1, moves(p, next))
	require.Nil(t, Improve(chain(3, 3), inForce(next), nodes(3)))
}

func seq(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func TestResize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		components, all := drawComponents(t), drawNodes(t, 1)
		p, err := Place(components, nil, all)
		require.NoError(t, err)
		for range rapid.IntRange(1, 6).Draw(t, "times") {
			p = inForce(p)
			parallel := map[string]int{}
			for _, k := range components {
				if rapid.IntRange(0, 2).Draw(t, "which") == 0 {
					parallel[k.Name] = rapid.IntRange(1, 12).Draw(t, "parallel")
				}
			}
			next, err := Resize(components, p, all, parallel)
			require.NoError(t, err)
			for c := range components {
				was := components[c].Parallel
				if n, ok := parallel[components[c].Name]; ok {
					components[c].Parallel = n
				}
				if was != components[c].Parallel {
					continue
				}
				for i := range was {
					id := int(p.Components[c].First) + i
					require.Equal(t, p.Tasks[id], next.Tasks[id])
				}
			}
			requireSound(t, components, p, next, all)
			requireShares(t, components, next, takers(all))
			require.LessOrEqual(t, len(next.Tasks), 5*12*5, "ids are used again")
			p = next
		}
	})
}

// An id that was retired a plan ago is used again for the same task, one that is retired
// now is not.
func TestIDs(t *testing.T) {
	components := chain(2, 3)
	p, err := Place(components, nil, nodes(2))
	require.NoError(t, err)
	resize := func(name string, n int) {
		t.Helper()
		p = inForce(p)
		next, err := Resize(components, p, nodes(2), map[string]int{name: n})
		require.NoError(t, err)
		components[slices.IndexFunc(components, func(k Component) bool { return k.Name == name })].Parallel = n
		p = next
	}
	require.Equal(t, []Layout{{0, 2}, {2, 3}}, p.Components)
	resize("c0", 1)
	require.Equal(t, []Layout{{5, 1}, {2, 3}}, p.Components)
	resize("c1", 2)
	require.Equal(t, []Layout{{5, 1}, {6, 2}}, p.Components, "0 and 1 are of c0 for ever")
	resize("c1", 3)
	require.Equal(t, []Layout{{5, 1}, {2, 3}}, p.Components)
	resize("c0", 4)
	require.Equal(t, []Layout{{8, 4}, {2, 3}}, p.Components)
	resize("c1", 6)
	require.Equal(t, []Layout{{8, 4}, {12, 6}}, p.Components)
	resize("c1", 2)
	require.Equal(t, []Layout{{8, 4}, {2, 2}}, p.Components)
	resize("c1", 7)
	require.Equal(t, []Layout{{8, 4}, {12, 7}}, p.Components, "the end grows")
	require.Len(t, p.Tasks, 20, "to a power of two")

	// They are used up, unless a gap is wide enough.
	p = inForce(p)
	for len(p.Tasks) < mostTasks-12 {
		p.Tasks = append(p.Tasks, Task{1, 0, Home{}, 1})
	}
	for index := range 12 {
		p.Tasks = append(p.Tasks, Task{1, index, Home{}, 1})
	}
	_, err = Resize(components, p, nodes(2), map[string]int{"c1": 12})
	require.NoError(t, err)
	p.Tasks[mostTasks-3].Component = 0
	_, err = Resize(components, p, nodes(2), map[string]int{"c1": 12})
	require.ErrorIs(t, err, ErrFull)
}

func TestPlaceRefuses(t *testing.T) {
	p, err := Place(chain(2, 3), nil, nodes(2))
	require.NoError(t, err)
	for _, tt := range []struct {
		why  Reason
		call func() (*Plan, error)
	}{
		{ErrNoNode, func() (*Plan, error) { return Place(chain(1), nil, nil) }},
		{ErrInvalid, func() (*Plan, error) { return Place(chain(0), nil, nodes(1)) }},
		{ErrInvalid, func() (*Plan, error) { return Place(chain(4097), nil, nodes(1)) }},
		{ErrInvalid, func() (*Plan, error) { return Place(chain(2), p, nodes(1)) }},
		{ErrInvalid, func() (*Plan, error) {
			return Place(chain(2, 3), &Plan{Components: p.Components}, nodes(1))
		}},
		{ErrUnknown, func() (*Plan, error) { return Resize(chain(2, 3), p, nodes(1), map[string]int{"c0": 1, "c7": 1}) }},
		{ErrInvalid, func() (*Plan, error) { return Resize(chain(2, 3), p, nodes(1), map[string]int{"c0": 0}) }},
		{ErrFull, func() (*Plan, error) { return Place(chain(slices.Repeat([]int{4096}, 257)...), nil, nodes(1)) }},
	} {
		got, err := tt.call()
		require.ErrorIs(t, err, tt.why)
		require.NotContains(t, err.Error(), "%!")
		require.Nil(t, got)
	}
}

// Where things go, for people to look at.
func TestPlaceLooks(t *testing.T) {
	var text strings.Builder
	draw := func(what string, p *Plan, nodes []Candidate) {
		fmt.Fprintf(&text, "%s\n", what)
		for _, n := range nodes {
			fmt.Fprintf(&text, "\t%v:", n.Home.Node&0xf)
			for _, task := range p.Tasks {
				if task.Home == n.Home {
					fmt.Fprintf(&text, " c%d.%d", task.Component, task.Index)
					if task.Epoch == 0 {
						text.WriteString("*")
					}
				}
			}
			text.WriteString("\n")
		}
	}
	components, all := chain(1, 4, 4, 2), nodes(4)
	p, err := Place(components, nil, all[:3])
	require.NoError(t, err)
	draw("three nodes", p, all[:3])
	p = inForce(p)
	for next := Improve(components, p, all); next != nil; next = Improve(components, p, all) {
		draw("a fourth joins", next, all)
		p = inForce(next)
	}
	p, err = Repair(components, p, all[1:])
	require.NoError(t, err)
	draw("the first is lost", p, all)
	p = inForce(p)
	all[1].Draining = true
	p, err = Vacate(components, p, all[1:])
	require.NoError(t, err)
	draw("the second is drained", p, all)
	p = inForce(p)
	p, err = Resize(components, p, all[1:], map[string]int{"c2": 6})
	require.NoError(t, err)
	draw("c2 has six tasks", p, all)
	golden(t, "place.txt", text.String())
}

func thousand() ([]Component, []Candidate) {
	components := chain(slices.Repeat([]int{1000}, 20)...)
	all := nodes(1000)
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return components, all
}

func BenchmarkPlace(b *testing.B) {
	components, all := thousand()
	p, err := Place(components, nil, all)
	require.NoError(b, err)
	p = inForce(p)
	weighted := slices.Clone(all)
	for i := range weighted {
		weighted[i].Weight = 1 + i%7
	}
	for _, bb := range []struct {
		what string
		call func() (*Plan, error)
	}{
		{"new", func() (*Plan, error) { return Place(components, nil, all) }},
		{"weighted", func() (*Plan, error) { return Place(components, nil, weighted) }},
		{"again", func() (*Plan, error) { return Place(components, p, weighted) }},
		{"loss", func() (*Plan, error) { return Repair(components, p, all[1:]) }},
		{"half", func() (*Plan, error) { return Repair(components, p, all[500:]) }},
		{"improve", func() (*Plan, error) {
			return Improve(components, p, append(all[:1000:1000], Candidate{Home: Home{2000, 1}})), nil
		}},
	} {
		b.Run("plan="+bb.what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bb.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
