package egret

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/egretstream/egret/metrics/scrape"
)

// register shows the run's metrics in Config.Metrics, until unregister is called.
func (r *Running) register() (unregister func(), err error) {
	to := r.config.Metrics
	if to == nil {
		return func() {}, nil
	}
	c := r.collector()
	if err := to.Register(c); err != nil {
		if _, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
			return nil, fmt.Errorf("config: Metrics has a topology %s already, which is running: use another registry or another name", r.plan.Topology)
		}
		return nil, fmt.Errorf("config: Metrics: register topology %s: %w", r.plan.Topology, err)
	}
	return func() { to.Unregister(c) }, nil
}

func (r *Running) collector() *scrape.Collector {
	return scrape.New(scrape.Run{
		Plan: r.plan, Tasks: r.ms, Began: r.began, PerTask: r.config.MetricsPerTask,
		MaxPendingBytes: r.config.MaxPendingBytes,
	})
}

// newRegistry returns what a command serves: the process, and what will run in it.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}
