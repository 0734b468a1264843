package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/graph"
	"github.com/egretstream/egret/metrics"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// lines --> split --> count, of which count has two tasks on two nodes.
var drawn = &graph.Drawing{
	Components: []graph.Box{{Component: "lines", Kind: "spout"}, {Component: "split", Kind: "bolt"}, {Component: "count", Kind: "bolt"}},
	Edges:      []graph.Edge{{From: "lines", Stream: "default", To: "split"}, {From: "split", Stream: "default", To: "count"}},
}

func sample(after time.Duration, tasks ...Task) *Sample {
	return &Sample{At: noon.Add(after), Quorum: true, Nodes: []Node{{Node: "a", Cores: 2, CPU: after}}, Runs: []Run{{Topology: "words", Status: "running", Graph: drawn, Tasks: tasks}}}
}

func lines(messages, acked int64, throttled time.Duration) Task {
	return Task{Task: "lines/0", Component: "lines", Node: "a", Known: true, Throttled: throttled, Counts: Counts{Messages: messages, Acked: acked, Open: messages - acked}}
}

func worker(name, node string, executed, queued int64, busy time.Duration) Task {
	return Task{
		Task: name, Component: name[:5], Node: node, Known: true, Executed: []int64{executed}, Counts: Counts{Queued: queued},
		Execute: &Histogram{Sum: float64(busy), Buckets: []Bucket{{time.Millisecond, executed}}},
	}
}

func TestRatesAreOfTheWindow(t *testing.T) {
	before := sample(0, lines(1000, 900, 0), worker("split/0", "a", 900, 0, time.Second), worker("count/0", "a", 2000, 5, time.Second), worker("count/1", "b", 100, 5, 0))
	now := sample(4*time.Second, lines(1400, 1380, 2*time.Second), worker("split/0", "a", 1300, 0, 2*time.Second), worker("count/0", "a", 6000, 80, 4*time.Second), worker("count/1", "b", 300, 0, time.Second))
	now.Runs[0].Tasks[1].Throttled = time.Second
	c := Compare(before, now)

	o := c.Overview()
	require.Equal(t, 4*time.Second, o.Window)
	require.Equal(t, 0.5, o.Nodes[0].Load, "four seconds of eight")
	require.Equal(t, 100.0, o.Topologies[0].Rate)
	require.Equal(t, 120.0, o.Topologies[0].DoneRate)
	require.Equal(t, int64(20), o.Topologies[0].Counts.Open)
	require.Equal(t, []NodeTasks{{"words", []string{"lines/0", "split/0", "count/0"}}}, o.Nodes[0].Has, "and not what is on another node")
	now.Nodes[0].CPU += 3 * time.Second
	require.Equal(t, 0.875, c.Overview().Nodes[0].Load, "seven seconds of eight: more than one core")
	now.Runs[0].Ended = true
	require.Equal(t, []NodeTasks{}, c.Overview().Nodes[0].Has, "which has none of what has ended")
	now.Runs[0].Ended = false

	d := c.Detail("words")
	require.Equal(t, []EdgeNow{{From: "lines", Stream: "default", To: "split", Rate: 100, Total: 1300, Full: true}, {From: "split", Stream: "default", To: "count", Rate: 1050, Total: 6300, Full: true}}, d.Edges)
	count := d.Components[2]
	require.Equal(t, 1050.0, count.Rate)
	require.Equal(t, 0.5, count.Load, "of two tasks, one for three seconds of four and one for one")
	require.Equal(t, 0.75, count.Busiest)
	require.Equal(t, int64(80), count.Counts.Queued)
	require.Equal(t, metrics.Latency{Count: 4200, P50: time.Millisecond, P99: time.Millisecond, P999: time.Millisecond, Longest: time.Millisecond}, count.Execute, "of the window alone")
	require.Equal(t, 0.5, d.Components[0].Throttled)
	require.Equal(t, []string{"count", "count", ""}, []string{d.Components[0].Cause, d.Components[1].Cause, count.Cause}, "who waits for one that waits, waits for what that waits for")
	require.Equal(t, 1000.0, d.TasksNow[2].Rate)
	require.Equal(t, 50.0, d.TasksNow[3].Rate)
	require.Nil(t, c.Detail("other"))
}

func TestWithoutAnEarlierSampleNothingHasARate(t *testing.T) {
	now := sample(0, lines(1400, 1380, time.Second), worker("split/0", "a", 1300, 0, time.Second))
	for _, before := range []*Sample{nil, now, sample(time.Second)} {
		d := Compare(before, now).Detail("words")
		require.Zero(t, d.Window)
		require.Zero(t, d.Rate)
		require.Zero(t, d.Components[1].Load)
		require.Equal(t, int64(1300), d.Edges[0].Total)
	}
}

// Counters of a task that has moved begin anew; what it did elsewhere is no negative rate,
// and what it had done before anybody looked is none at all.
func TestTasksThatMove(t *testing.T) {
	before := sample(0, worker("count/0", "a", 5000, 0, time.Second))
	now := sample(time.Second, worker("count/0", "b", 70, 0, time.Second/2), worker("count/1", "b", 90, 0, time.Second))
	d := Compare(before, now).Detail("words")
	require.Equal(t, 70.0, d.TasksNow[0].Rate, "it began on its node in the window")
	require.Equal(t, 0.0, d.TasksNow[1].Rate, "it was not looked at before")
	require.Equal(t, 0.5, d.TasksNow[0].Load)

	now.Runs[0].Tasks[0] = Task{Task: "count/0", Component: "count", Node: "a"} // its node says nothing
	d = Compare(before, now).Detail("words")
	require.Zero(t, d.TasksNow[0].Rate)
	require.Equal(t, 1, d.Silent)
	require.Equal(t, 1, d.Components[2].Silent)
}

// What a topology does is in its rates from the first tuple on, however it was when somebody
// looked first: not there, without a node, or with nodes that had not begun its tasks. What
// a node that was silent has done may be older.
func TestTasksThatBegin(t *testing.T) {
	now := sample(4*time.Second, lines(400, 380, 0), worker("split/0", "a", 300, 0, 0), worker("count/0", "b", 200, 0, 0))
	placed := []Task{{Task: "lines/0", Component: "lines", Node: "a"}, {Task: "split/0", Component: "split", Node: "a"}, {Task: "count/0", Component: "count", Node: "b"}}
	up := func(s *Sample) *Sample {
		s.Nodes[0].Up = time.Minute
		return s
	}
	nowhere := sample(0)
	nowhere.Runs = nil
	for name, tt := range map[string]struct {
		before *Sample
		rates  []float64 // of the tasks
	}{
		"not there":                  {nowhere, []float64{100, 75, 50}},
		"without a node":             {sample(0), []float64{100, 75, 50}},
		"a had begun nothing":        {up(sample(0, placed...)), []float64{100, 75, 0}},
		"nobody had answered":        {sample(0, placed...), []float64{0, 0, 0}},
		"it had been there, and was": {up(sample(0, Task{Task: "lines/0", Component: "lines", Node: "a", Past: &Past{}}, placed[1], placed[2])), []float64{0, 75, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var rates []float64
			for _, x := range Compare(tt.before, now).Detail("words").TasksNow {
				rates = append(rates, x.Rate)
			}
			require.Equal(t, tt.rates, rates)
		})
	}
}

func TestHistory(t *testing.T) {
	var h History
	for i := range HistoryPoints + 10 {
		h.Add(Point{At: noon.Add(time.Duration(i) * time.Second), Open: int64(i)})
	}
	all := h.Since(time.Time{})
	require.Len(t, all, HistoryPoints)
	require.Equal(t, int64(10), all[0].Open)
	require.Equal(t, int64(HistoryPoints+9), all[HistoryPoints-1].Open)
	require.Len(t, h.Since(noon.Add((HistoryPoints+7)*time.Second)), 2)
	require.NotNil(t, new(History).Since(noon))
}
