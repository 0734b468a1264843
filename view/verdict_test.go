package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/graph"
)

// What is worst is said first, and what is over is not said.
func TestVerdict(t *testing.T) {
	boxes := &graph.Drawing{
		Components: []graph.Box{{Component: "lines", Kind: "spout"}, {Component: "count", Kind: "bolt"}, {Component: "print", Kind: "bolt"}},
		Edges:      []graph.Edge{{From: "lines", To: "count"}, {From: "count", To: "print"}},
	}
	type world struct {
		before, now [3]Task // of lines, count and print
		run         Run
	}
	base := func() *world {
		w := &world{run: Run{Topology: "t", Status: "running", Graph: boxes}}
		for i, name := range []string{"lines", "count", "print"} {
			w.before[i] = Task{Task: name + "/0", Component: name, Node: "a", Known: true}
			w.now[i] = w.before[i]
		}
		w.now[1].Execute = &Histogram{Sum: float64(2500 * time.Millisecond)}
		return w
	}
	died := Trouble{Kind: "died", Component: "print", Task: "print/0", Text: "panic in Execute: boom\nmore.", At: noon.Add(-10 * time.Minute)}
	stuck := Trouble{Kind: "stuck", Component: "count", Task: "count/0", Text: "does not come back from Execute", At: noon.Add(-2 * time.Minute)}
	for _, tt := range []struct {
		name, tone, text string
		change           func(w *world)
	}{
		{"well", "good", "Nothing is held up. The busiest task is one of count, 50 % of the time.", func(*world) {}},
		{"dies", "bad", "print has died 561 times, last: panic in Execute: boom.", func(w *world) {
			w.before[2].Restarts, w.now[2].Restarts = 560, 561
			w.run.Troubles = []Trouble{died, stuck}
		}},
		{"died lately", "bad", "print has died once, last: panic in Execute: boom.", func(w *world) {
			w.before[2].Restarts, w.now[2].Restarts = 1, 1
			late := died
			late.At = noon.Add(-59 * time.Second)
			w.run.Troubles = []Trouble{late}
		}},
		{"died with their node", "bad", "print has died once, last: panic in Execute: boom. Tasks of lines and count have begun anew: the process of node b is gone.", func(w *world) {
			w.before[2].Restarts, w.now[2].Restarts = 0, 1
			lost := Trouble{Kind: "died", Component: "count", Task: "count/0", Text: "the process of node b is gone", At: noon.Add(-59 * time.Second)}
			w.run.Troubles = []Trouble{lost, died, lost}
			w.run.Troubles[2].Component = "lines"
		}},
		{"died long ago", "good", "Nothing is held up. The busiest task is one of count, 50 % of the time.", func(w *world) {
			w.before[2].Restarts, w.now[2].Restarts = 561, 561
			w.run.Troubles = []Trouble{died}
		}},
		{"stuck", "bad", "count/0 does not come back from Execute, for 2m0s; nor 1 other task.", func(w *world) {
			other := stuck
			other.Task, other.At = "print/0", noon.Add(-time.Minute)
			w.run.Troubles = []Trouble{died, other, stuck}
			w.now[0].Throttled = 5 * time.Second
		}},
		{"waits", "warn", "lines waits for count, up to 50 % of the time; its busiest task is busy 50 %, with 7 tuples queued.", func(w *world) {
			w.now[0].Throttled = 2500 * time.Millisecond
			w.now[0].Open, w.now[0].MostOpen, w.now[1].Queued = 3000, 3000, 7
		}},
		{"full", "warn", "lines has as many messages open as --max-pending allows (3,000).", func(w *world) { w.now[0].Open, w.now[0].MostOpen = 2900, 3000 }},
		{"not full", "good", "Nothing is held up. The busiest task is one of count, 50 % of the time.", func(w *world) { w.now[0].Open, w.now[0].MostOpen = 2600, 3000 }},
		{"changing", "warn", "It is changing: rebalance waits.", func(w *world) {
			w.run.Status, w.run.Reason = "changing", "rebalance waits"
			w.now[0].Open, w.now[0].MostOpen = 3000, 3000
		}},
		{"silent", "bad", "Nothing is known of 1 task: look at the nodes.", func(w *world) {
			w.now[0].Known = false
			w.run.Troubles = []Trouble{stuck}
		}},
		{"failed", "bad", "It has failed: no. These are its last numbers.", func(w *world) {
			w.run.Status, w.run.Reason, w.run.Ended = "failed", "no", true
			w.run.Troubles = []Trouble{stuck}
		}},
		{"waiting", "warn", "It does not run yet: no node.", func(w *world) { w.run.Status, w.run.Reason, w.run.Graph = "waiting", "no node", nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := base()
			tt.change(w)
			before, now := w.run, w.run
			before.Tasks, now.Tasks = w.before[:], w.now[:]
			d := Compare(&Sample{At: noon.Add(-5 * time.Second), Runs: []Run{before}}, &Sample{At: noon, Runs: []Run{now}}).Detail("t")
			require.Equal(t, Verdict{tt.tone, tt.text}, d.Verdict)
			require.Equal(t, now.Troubles, d.Troubles)
		})
	}
}

// Of what nodes have met, deaths count once for a component, and a task that is stuck only
// where it is.
func TestTroublesOfNodes(t *testing.T) {
	trouble := func(kind, task, text string, at int) Trouble {
		return Trouble{Kind: kind, Component: "count", Task: task, Text: text, At: noon.Add(time.Duration(at))}
	}
	whole := &Sample{Runs: []Run{{Topology: "t", Tasks: []Task{{Task: "count/0", Component: "count", Node: "a"}, {Task: "count/1", Component: "count", Node: "b"}}}}}
	a := &Sample{Runs: []Run{{Topology: "t", Tasks: []Task{{Task: "count/0", Component: "count", Node: "a"}, {Task: "count/1", Component: "count"}},
		Troubles: []Trouble{trouble("died", "count/0", "first", 1), trouble("stuck", "count/0", "here", 1), trouble("stuck", "count/1", "gone", 1)}}}}
	b := &Sample{Runs: []Run{{Topology: "t", Tasks: []Task{{Task: "count/1", Component: "count", Node: "b"}},
		Troubles: []Trouble{trouble("died", "count/1", "last", 2)}}}}
	require.Equal(t, []Trouble{trouble("died", "count/1", "last", 2), trouble("stuck", "count/0", "here", 1)}, Join(whole, a, b).Runs[0].Troubles)
}
