package egret

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/metrics/scrape"
	"github.com/egretstream/egret/node"
)

// A partsCollector shows Prometheus what a node has of the runs that go on.
type partsCollector struct{ *nodeSource }

// Describe says nothing: runs come and go.
func (c *partsCollector) Describe(chan<- *prometheus.Desc) {}

func (c *partsCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), partTime)
	defer cancel()
	parts, err := c.p.Parts(ctx)
	if err != nil {
		return // it ends
	}
	last := map[string]*node.Part{} // one that ends may still be beside the next
	for i := range parts {
		last[parts[i].Plan.Topology] = &parts[i]
	}
	for i := range parts {
		p := &parts[i]
		if p.Over || last[p.Plan.Topology] != p {
			continue
		}
		r := scrape.Run{Plan: p.Plan, Tasks: make([]*metrics.Task, len(p.Plan.Tasks)), Here: make([]bool, len(p.Plan.Tasks)), Began: c.began, MaxPendingBytes: c.runs.pendingBytes(p.Run)}
		for _, t := range p.Tasks {
			r.Tasks[t.ID], r.Here[t.ID] = t.Metrics, t.Here
		}
		scrape.New(r).Collect(out)
	}
}
