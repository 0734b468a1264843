package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawTask is a task that has done something.
func drawTask(t *rapid.T, name, component string) Task {
	n := func(label string) int64 { return rapid.Int64Range(0, 1000).Draw(t, name+" "+label) }
	x := Task{
		Task: name, Component: component, Known: true, Executed: []int64{n("executed")}, Throttled: time.Duration(n("throttled")) * time.Millisecond,
		Counts:  Counts{Messages: n("messages"), Acked: n("acked"), Failed: n("failed"), Open: n("open"), Queued: n("queued"), Restarts: n("restarts")},
		Execute: &Histogram{Sum: float64(n("sum")), Buckets: []Bucket{{time.Millisecond, n("bucket")}}},
		Own:     []Own{{Name: "seen", Help: "Seen.", Kind: "counter", Value: Number(n("seen"))}},
	}
	return x
}

// grown is the same task later.
func grown(t *rapid.T, x Task) Task {
	y := drawTask(t, x.Task, x.Component)
	y.Messages += x.Messages
	y.Acked += x.Acked
	y.Failed += x.Failed
	y.Executed[0] += x.Executed[0]
	y.Throttled += x.Throttled
	y.Execute.Sum += x.Execute.Sum
	y.Execute.Buckets[0].Count += x.Execute.Buckets[0].Count
	return y
}

// Samples of nodes, joined, are shown as one sample of all would be.
func TestJoinIsOneSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "nodes")]
		of := map[string]string{} // where a task is
		var first, second []Task
		for _, c := range drawn.Components {
			for i := range rapid.IntRange(1, 3).Draw(t, c.Component) {
				x := drawTask(t, fmt.Sprintf("%s/%d", c.Component, i), c.Component)
				x.Node = rapid.SampledFrom(nodes).Draw(t, "node of "+x.Task)
				of[x.Task] = x.Node
				first = append(first, x)
				y := grown(t, x)
				y.Node = x.Node
				second = append(second, y)
			}
		}
		one := func(after time.Duration, tasks []Task) *Sample {
			s := &Sample{At: noon.Add(after), Quorum: true, Cluster: "c", Runs: []Run{{Topology: "words", Run: "3", Status: "running", Graph: drawn, Tasks: tasks}}}
			for i, n := range nodes {
				s.Nodes = append(s.Nodes, Node{Node: n, ID: "id of " + n, Alive: true, Tasks: i, CPU: after, Memory: 7, Cores: 2})
			}
			return s
		}
		joined := func(all *Sample) *Sample {
			var parts []*Sample
			whole := one(0, nil)
			whole.At = all.At
			for i, n := range all.Nodes {
				whole.Nodes[i] = Node{Node: n.Node, ID: n.ID, Alive: true, Tasks: n.Tasks}
				p := &Sample{At: all.At.Add(time.Second), Nodes: []Node{{Node: n.Node, ID: n.ID, CPU: n.CPU, Memory: n.Memory, Cores: n.Cores}}}
				r := Run{Topology: "words", Run: "3", Graph: drawn}
				for _, x := range all.Runs[0].Tasks {
					if x.Node == n.Node {
						r.Tasks = append(r.Tasks, x)
					}
				}
				p.Runs = []Run{{Topology: "other", Run: "1"}, r}
				parts = append(parts, p)
			}
			for _, x := range all.Runs[0].Tasks {
				whole.Runs[0].Tasks = append(whole.Runs[0].Tasks, Task{Task: x.Task, Component: x.Component, Node: x.Node})
			}
			whole.Runs[0].Graph = nil
			order := rapid.Permutation(parts).Draw(t, "order")
			before, err := json.Marshal(order)
			require.NoError(t, err)
			s := Join(whole, order...)
			after, err := json.Marshal(order)
			require.NoError(t, err)
			require.Equal(t, string(before), string(after), "parts are not changed")
			return s
		}
		x, y := one(0, first), one(2*time.Second, second)
		want, got := Compare(x, y), Compare(joined(x), joined(y))
		require.Equal(t, want.Overview(), got.Overview())
		require.Equal(t, want.Detail("words"), got.Detail("words"))
	})
}

// A task that moves, or is one of fewer, takes its totals along, and no rate of them.
func TestJoinKeepsTotals(t *testing.T) {
	task := func(name, node string, executed int64) Task { return worker(name, node, executed, 3, 0) }
	whole := func(after time.Duration, tasks ...Task) *Sample {
		s := sample(after, tasks...)
		s.Nodes = []Node{{Node: "a"}, {Node: "b", Silent: "away"}}
		return s
	}
	part := func(tasks ...Task) *Sample { return &Sample{Runs: []Run{{Topology: "words", Tasks: tasks}}} }
	place := func(name, node string) Task { return Task{Task: name, Component: name[:5], Node: node} }

	before := Join(whole(0, place("count/0", "a"), place("count/1", "a")), part(task("count/0", "a", 1000), task("count/1", "a", 500)), part())
	gone := task("count/1", "", 600)
	gone.Open, gone.Dead = 5, 2
	now := Join(whole(time.Second, place("count/0", "b")), part(task("count/0", "", 1100), gone), part(task("count/0", "b", 40)))
	d := Compare(before, now).Detail("words")
	require.Equal(t, int64(1740), d.Edges[1].Total)
	require.Equal(t, 40.0, d.Edges[1].Rate)
	require.Equal(t, int64(2), d.Counts.Dead)
	require.Zero(t, d.Counts.Open, "what is now is that of tasks that are there")
	require.Equal(t, int64(3), d.Counts.Queued)

	// It comes back, where its totals go on.
	again := Join(whole(2*time.Second, place("count/0", "a")), part(task("count/0", "a", 1200), gone), part(task("count/0", "", 50)))
	d = Compare(now, again).Detail("words")
	require.Equal(t, int64(1850), d.Edges[1].Total)
	require.Zero(t, d.Edges[1].Rate, "how much of it is of the window is not known")

	// Its node says nothing.
	silent := Join(whole(3*time.Second, place("count/0", "b")), part(task("count/0", "", 1200), gone))
	d = Compare(again, silent).Detail("words")
	require.Equal(t, 1, d.Silent)
	require.False(t, d.TasksNow[0].Known)
	require.Zero(t, d.Edges[1].Rate)
	require.Equal(t, int64(1800), d.Edges[1].Total)
	require.True(t, slices.ContainsFunc(Compare(nil, silent).Overview().Nodes, func(n NodeNow) bool { return n.Silent == "away" }))

	// A run that was submitted after the sample before has begun in the window.
	empty := whole(0)
	empty.Runs = nil
	require.Equal(t, 60.0, Compare(empty, Join(whole(time.Second, place("count/0", "a")), part(task("count/0", "a", 60)))).Detail("words").Edges[1].Rate)
}
