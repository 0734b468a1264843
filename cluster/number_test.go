package cluster

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// However often components are changed, ids are not used up, and each stands for one task
// of one component for ever.
func TestIDsAreNotUsedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 8), 1, 3).Draw(t, "sizes")
		components := chain(sizes...)
		most := slices.Clone(sizes)
		p, err := Place(components, nil, nodes(2))
		require.NoError(t, err)
		p = p.inForce(1)
		ever := slices.Clone(p.Tasks)
		for epoch := range uint32(100) {
			c := rapid.IntRange(0, len(sizes)-1).Draw(t, "component")
			// One more each time is what takes most.
			n := components[c].Parallel + 1
			if rapid.IntRange(0, 3).Draw(t, "jump") == 0 {
				n = rapid.IntRange(1, 60).Draw(t, "n")
			}
			components = slices.Clone(components)
			components[c].Parallel = n
			most[c] = max(most[c], n)
			next, err := Place(components, p, nodes(2))
			require.NoError(t, err)
			require.NoError(t, checkPlan(components, next, true))
			require.NoError(t, checkStep(p, next))
			was := p
			p = next.inForce(epoch + 2)
			for id, task := range p.Tasks {
				if id < len(ever) {
					require.Equal(t, [2]int{ever[id].Component, ever[id].Index}, [2]int{task.Component, task.Index})
				} else {
					ever = append(ever, task)
				}
				if id < len(was.Tasks) && was.Tasks[id] != task {
					require.Greater(t, task.Epoch, was.Tasks[id].Epoch, "its next life is greater")
				}
			}
			for c := range components {
				ids := 0
				for _, task := range p.Tasks {
					if task.Component == c {
						ids++
					}
				}
				require.LessOrEqual(t, ids, 9*most[c])
			}
		}
	})
}

// One more task each time, up to 1,000: the ids of 10,000 suffice, which a plan may have.
func TestGrowOneByOne(t *testing.T) {
	components := chain(1)
	p, err := Place(components, nil, nodes(1))
	require.NoError(t, err)
	for n := 2; n <= 1000; n++ {
		p = p.inForce(uint32(n))
		p, err = Resize(components, p, nodes(1), map[string]int{"c0": n})
		require.NoError(t, err)
		components = chain(n)
	}
	require.Less(t, len(p.Tasks), 10_000)
}
