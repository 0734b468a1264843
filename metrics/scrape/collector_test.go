package scrape

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// counted is a run that has counted something: a spout, and a bolt of n tasks that
// gets the same stream in two groupings.
func counted(n int) Run {
	s := &tuple.Schema{Component: "in", Stream: "default", Fields: []string{"n"}}
	plan := &topology.Plan{Topology: "counted", Components: []topology.Node{
		{Name: "out", Parallel: n, Inputs: []topology.Input{{From: 1, Stream: s}, {From: 1, Stream: s}}},
	}}
	r := Run{Plan: plan, Began: time.Now()}
	for i := range n {
		m := metrics.NewTask(fmt.Sprintf("out/%d", i), 0, 2)
		m.Inputs[0].Acked.Add(1)
		m.Inputs[1].Acked.Add(10)
		m.Throttled.Add(int64(time.Second / 2))
		for k := range 100 {
			m.Execute.Record(time.Duration(k)*time.Millisecond, 1)
		}
		r.Tasks = append(r.Tasks, m)
	}
	return r
}

func registry(t require.TestingT, r Run) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	require.NoError(t, reg.Register(New(r)))
	return reg
}

// Two groupings of one stream are one series, or the registry would refuse both.
func TestTwoGroupingsOfAStream(t *testing.T) {
	all, err := registry(t, counted(3)).Gather()
	require.NoError(t, err)
	for _, f := range all {
		if f.GetName() == executed {
			require.Len(t, f.Metric, 2)
			require.Equal(t, 33.0, f.Metric[0].Counter.GetValue())
			require.Equal(t, 0.0, f.Metric[1].Counter.GetValue())
		}
		if f.GetName() == throttled {
			require.Equal(t, 1.5, f.Metric[0].Counter.GetValue())
		}
	}
}

// Counters and histograms say since when they count.
func TestCreatedTimestamps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := counted(1)
		_, err := r.Tasks[0].Own.Counter("x_total", "X.")
		require.NoError(t, err)
		time.Sleep(time.Hour)
		all, err := registry(t, r).Gather()
		require.NoError(t, err)
		for _, f := range all {
			for _, m := range f.Metric {
				switch {
				case m.Counter != nil:
					require.True(t, r.Began.Equal(m.Counter.CreatedTimestamp.AsTime()), f.GetName())
				case m.Histogram != nil:
					require.True(t, r.Began.Equal(m.Histogram.CreatedTimestamp.AsTime()), f.GetName())
				case f.GetName() == uptime:
					require.Equal(t, 3600.0, m.Gauge.GetValue())
				}
			}
		}
	})
}

// A scrape of a run of 1,000 tasks.
func BenchmarkScrape(b *testing.B) {
	for _, perTask := range []bool{false, true} {
		b.Run(fmt.Sprintf("pertask=%v", perTask), func(b *testing.B) {
			r := counted(1000)
			r.PerTask = perTask
			reg := registry(b, r)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := reg.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
