package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/graph"
	"github.com/egretstream/egret/metrics"
)

// How long batches take to be committed is told of the window, and of all.
func TestCommitsOfTheWindow(t *testing.T) {
	took := func(quick, slow int64) Task {
		h := &Histogram{Buckets: []Bucket{{time.Millisecond, quick}, {time.Second, slow}}}
		return Task{Task: "coordinator/0", Component: "coordinator", Node: "a", Known: true, Complete: h}
	}
	other := Task{Task: "in/0", Component: "in", Node: "a", Known: true, Complete: &Histogram{Buckets: []Bucket{{time.Hour, 1}}}}
	of := func(after time.Duration, task Task) *Sample {
		in := other
		in.Complete = &Histogram{Buckets: []Bucket{{time.Hour, int64(after)}}}
		s := sample(after, in, task)
		s.Runs[0].Graph = &graph.Drawing{Components: []graph.Box{{Component: "in", Kind: "spout"}, {Component: "coordinator", Kind: "coordinator"}}}
		s.Runs[0].Batches = &Batches{Latency: metrics.Latency{Count: 7}}
		return s
	}
	before, now := of(0, took(1000, 0)), of(time.Second, took(1000, 50))
	d := Compare(before, now).Detail("words")
	second := time.Second
	require.Equal(t, metrics.Latency{Count: 50, P50: second, P99: second, P999: second, Longest: second}, d.Batches.InWindow)
	require.EqualValues(t, 7, d.Batches.Latency.Count)
	now.Runs[0].Batches.Now = &metrics.BatchesNow{Batches: make([]metrics.BatchInfo, 3)}
	point, _ := Compare(before, now).Point("words")
	require.Equal(t, 3, point.Batches)
	require.Zero(t, now.Runs[0].Batches.InWindow, "a sample is not changed")
	require.Zero(t, Compare(now, of(2*time.Second, took(1000, 50))).Detail("words").Batches.InWindow, "nothing was committed")
	moved := took(3, 0)
	moved.Node = "b"
	require.EqualValues(t, 3, Compare(now, of(2*time.Second, moved)).Detail("words").Batches.InWindow.Count, "where it is now it has begun in the window")
}
