package egret

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egretstream/egret/bench"
	"github.com/egretstream/egret/bench/pair"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// benchRunner runs topologies for package bench, with metrics as a program in
// service has them.
func benchRunner(ctx context.Context, t *topology.Topology, g topology.Guarantee, dir string, page bool) bench.Running {
	c := Config{Guarantee: &g, StateDir: dir, Metrics: prometheus.NewRegistry()}
	if page {
		c.HTTP.Address = "127.0.0.1:0"
	}
	r, err := Start(ctx, t, c)
	if err != nil {
		return bench.Running{
			Stats: func() bench.Counts { return bench.Counts{} },
			Wait:  func() (bench.Counts, error) { return bench.Counts{}, err },
		}
	}
	return bench.Running{
		Page:  r.URL(),
		Stats: func() bench.Counts { return r.Stats().bench() },
		Wait: func() (bench.Counts, error) {
			s, err := r.Wait()
			return s.bench(), err
		},
	}
}

func (s *Stats) bench() bench.Counts {
	c := bench.Counts{Emitted: s.Input, Acked: s.Acked, Failed: s.Failed, ExecutedBy: map[string]int64{}, AckLatency: s.Latency}
	if b := s.Batches; b != nil {
		c.Acked, c.Batches = b.Messages, b.Committed
	}
	for _, t := range s.Tasks {
		for _, in := range t.Inputs {
			c.Executed += in.Executed
			c.ExecutedBy[t.Component] += in.Executed
		}
	}
	return c
}

// benchHalver runs one of two halves of a topology for package bench, with the settings
// of a run on one machine.
func benchHalver(ctx context.Context, t *topology.Topology, g topology.Guarantee, s bench.Side) (*bench.Half, error) {
	c := Config{Guarantee: &g}.withDefaults()
	plan, err := t.Build(topology.Options{Guarantee: &g, Epoch: 1})
	if err != nil {
		return nil, err
	}
	told := &events{topology: plan.Topology, logger: plainLogger(c.Logger)}
	began := time.Now()
	var ms []*metrics.Task
	set := c.settings()
	set.Event, set.Began = told.tell, began
	for id := range plan.Tasks {
		n := plan.Node(tuple.TaskID(id))
		ms = append(ms, metrics.NewTask(plan.TaskName(tuple.TaskID(id)), len(n.Streams), len(n.Inputs)))
	}
	h, err := pair.Start(ctx, pair.Config{Peer: s.Peer, Secret: s.Secret, Plan: plan, Settings: set, Metrics: ms, Drain: c.StopTimeout})
	if err != nil {
		return nil, err
	}
	stats := func() bench.Counts { return readStats(plan, ms, time.Since(began)).bench() }
	return &bench.Half{
		Running: bench.Running{Stats: stats, Wait: func() (bench.Counts, error) {
			err := h.Wait()
			return stats(), err
		}},
		Addr:  h.Addr(),
		Wire:  func() uint64 { return h.Counts().BytesOut },
		Close: h.Close,
	}, nil
}
