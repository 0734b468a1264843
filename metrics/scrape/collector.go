// Package scrape shows the metrics of a run to Prometheus, and serves them.
// It is not for use outside Egret; docs/metrics.md says what there is.
//
//	task --counts--> metrics.Task <--reads-- Collector <--Collect-- registry <--GET /metrics-- Server
//
// Everything happens when somebody asks: nothing is prepared, and a task does not
// notice.
package scrape

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A Run is what a Collector shows.
type Run struct {
	Plan            *topology.Plan
	Tasks           []*metrics.Task // by TaskID; nil: of a cluster, one that this process has never had
	Here            []bool          // which of them it has now; nil: all
	Began           time.Time       // of the counters
	Started         time.Time       // of the topology; zero: when its counters did
	MaxPendingBytes int
	PerTask         bool // not added up by component, with a label for the task
}

// A Collector reads the metrics of one run when it is asked for them. Any number
// may ask at the same time.
type Collector struct {
	Run
	descs map[string]*prometheus.Desc // of the engine's metrics; never changed
	build []string
}

// New returns the collector of a run.
func New(r Run) *Collector {
	c := &Collector{Run: r, descs: map[string]*prometheus.Desc{}, build: build()}
	for _, f := range ofRun {
		c.descs[f.name] = c.desc(f.name, f.help, f.labels...)
	}
	for _, f := range ofComponents {
		labels := []string{"component"}
		if r.PerTask && f.name != tasks {
			labels = append(labels, "task")
		}
		c.descs[f.name] = c.desc(f.name, f.help, append(labels, f.labels...)...)
	}
	return c
}

func (c *Collector) desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, prometheus.Labels{"topology": c.Plan.Topology})
}

// Describe gives one description, so that a registry refuses a second run of the
// same name. The others cannot be known: bolts have metrics of their own.
func (c *Collector) Describe(out chan<- *prometheus.Desc) { out <- c.descs[up] }

// Collect reads everything.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	level := func(name string, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(c.descs[name], prometheus.GaugeValue, v, labels...)
	}
	level(up, 1)
	started := c.Started
	if started.IsZero() {
		started = c.Began
	}
	level(uptime, time.Since(started).Seconds())
	level(buildInfo, 1, c.build...)
	level(maxPendingBytes, float64(c.MaxPendingBytes))
	for i := range c.Plan.Components {
		n := &c.Plan.Components[i]
		if c.Here != nil {
			all, here := c.part(i)
			level(tasks, float64(len(here)), n.Name)
			if len(all) > 0 {
				c.collect(out, n, all, here, n.Name)
			}
			continue
		}
		level(tasks, float64(n.Parallel), n.Name)
		all := c.Tasks[n.First : n.First+tuple.TaskID(n.Parallel)]
		if !c.PerTask {
			c.collect(out, n, all, all, n.Name)
			continue
		}
		for k := range all {
			c.collect(out, n, all[k:k+1], all[k:k+1], n.Name, strconv.Itoa(k))
		}
	}
}

// part returns the tasks of a component that this process has or had, and those that it has.
func (c *Collector) part(component int) (all, here []*metrics.Task) {
	for id, m := range c.Tasks {
		if m != nil && c.Plan.Tasks[id].Component == component {
			all = append(all, m)
			if c.Here[id] {
				here = append(here, m)
			}
		}
	}
	return all, here
}

// collect shows tasks of a component as one. Gauges are those of the tasks that are here.
func (c *Collector) collect(out chan<- prometheus.Metric, n *topology.Node, ms, here []*metrics.Task, labels ...string) {
	with := func(more ...string) []string { return append(labels[:len(labels):len(labels)], more...) }
	sum := func(of func(*metrics.Task) int64) (v float64) {
		for _, m := range ms {
			v += float64(of(m))
		}
		return v
	}
	spread := func(name string, of func(*metrics.Task) *metrics.Histogram) {
		var r metrics.Reading
		for _, m := range ms {
			r.Add(of(m))
		}
		out <- c.spread(c.descs[name], &r, metrics.Seconds, labels)
	}
	for i, s := range n.Streams {
		out <- c.count(c.descs[emitted], sum(func(m *metrics.Task) int64 { return m.Streams[i].Emitted.Load() }), with(s.Stream))
		out <- c.count(c.descs[transferred], sum(func(m *metrics.Task) int64 { return m.Streams[i].Transferred.Load() }), with(s.Stream))
	}
	for i, in := range n.Inputs {
		same := func(o topology.Input) bool { return o.Stream == in.Stream }
		if slices.ContainsFunc(n.Inputs[:i], same) {
			continue // a second grouping of one stream: it has been added to the first
		}
		var acked, failed float64
		for k, o := range n.Inputs {
			if same(o) {
				acked += sum(func(m *metrics.Task) int64 { return m.Inputs[k].Acked.Load() })
				failed += sum(func(m *metrics.Task) int64 { return m.Inputs[k].Failed.Load() })
			}
		}
		out <- c.count(c.descs[executed], acked, with(in.Stream.Component, in.Stream.Stream, "acked"))
		out <- c.count(c.descs[executed], failed, with(in.Stream.Component, in.Stream.Stream, "failed"))
	}
	own := n.Reads() || sum(func(m *metrics.Task) int64 { return m.Messages.Load() + m.Untracked.Load() }) > 0
	for i := range ofTasks {
		s := &ofTasks[i]
		if s.bolts && (n.Reads() || n.Coordinates) || s.spouts && !n.Reads() || s.messages && !own || s.batches && !n.Coordinates {
			continue
		}
		v := sum(s.of) / max(s.per, 1)
		if desc := c.descs[s.name]; s.gauge {
			v = 0
			for _, m := range here {
				v += float64(s.of(m))
			}
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, with(s.values...)...)
		} else {
			out <- c.count(desc, v, with(s.values...))
		}
	}
	if c.Plan.Guarantee == topology.ExactlyOnce {
		for kind := range metrics.StaleKinds {
			out <- c.count(c.descs[stale], sum(func(m *metrics.Task) int64 { return m.StaleBatches[kind].Load() }), with(kind.String()))
		}
	}
	if n.Coordinates {
		for i, cause := range metrics.RoundCauses {
			out <- c.count(c.descs[batchRounds], sum(func(m *metrics.Task) int64 { return m.Batches.Causes[i].Load() }), with(cause))
		}
	} else if !n.Reads() {
		spread(execute, func(m *metrics.Task) *metrics.Histogram { return &m.Execute })
	}
	if own || n.Coordinates {
		spread(complete, func(m *metrics.Task) *metrics.Histogram { return &m.Complete })
	}
	c.own(out, ms, labels)
}

// own shows what bolts count for themselves.
func (c *Collector) own(out chan<- prometheus.Metric, ms []*metrics.Task, labels []string) {
	var defs []metrics.Definition // in the order in which they were made
	same := map[string][]*metrics.Metric{}
	for _, m := range ms {
		for _, x := range m.Own.All() {
			if same[x.Name] == nil {
				defs = append(defs, x.Definition)
			}
			same[x.Name] = append(same[x.Name], x)
		}
	}
	names := []string{"component", "task"}[:len(labels)]
	for _, d := range defs {
		desc := c.desc(ownPrefix+d.Name, d.Help, names...)
		var r metrics.Reading
		var v float64
		for _, x := range same[d.Name] {
			switch d.Kind {
			case metrics.CounterKind:
				v += float64(x.Counter.Load())
			case metrics.GaugeKind:
				v += x.Gauge.Load()
			case metrics.HistogramKind:
				r.Add(x.Histogram)
			}
		}
		switch d.Kind {
		case metrics.CounterKind:
			out <- c.count(desc, v, labels)
		case metrics.GaugeKind:
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
		case metrics.HistogramKind:
			out <- c.spread(desc, &r, d.Unit, labels)
		}
	}
}

func (c *Collector) count(desc *prometheus.Desc, v float64, labels []string) prometheus.Metric {
	return prometheus.MustNewConstMetricWithCreatedTimestamp(desc, prometheus.CounterValue, v, c.Began, labels...)
}

func (c *Collector) spread(desc *prometheus.Desc, r *metrics.Reading, u metrics.Unit, labels []string) prometheus.Metric {
	h := histogram(r, u)
	h.CreatedTimestamp = timestamppb.New(c.Began)
	return &spread{desc, h, prometheus.MakeLabelPairs(desc, labels)}
}

// A spread is a histogram as a registry takes it. The library's own constant
// histograms have either classic or native buckets.
type spread struct {
	desc   *prometheus.Desc
	h      *dto.Histogram
	labels []*dto.LabelPair
}

func (s *spread) Desc() *prometheus.Desc { return s.desc }

func (s *spread) Write(m *dto.Metric) error {
	m.Histogram, m.Label = s.h, s.labels
	return nil
}

// build returns the values of the labels of buildInfo: the versions of Egret and Go.
func build() []string {
	const path = "github.com/egretstream/egret"
	version := "unknown"
	if b, ok := debug.ReadBuildInfo(); ok {
		if b.Main.Path == path {
			version = b.Main.Version
		}
		for _, d := range b.Deps {
			if d.Path == path {
				version = d.Version
			}
		}
	}
	return []string{version, runtime.Version()}
}
