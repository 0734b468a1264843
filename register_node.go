package egret

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egretstream/egret/cluster"
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
		r := scrape.Run{Plan: p.Plan, Tasks: make([]*metrics.Task, len(p.Plan.Tasks)), Here: make([]bool, len(p.Plan.Tasks)), Began: c.began, Started: p.Began, MaxPendingBytes: c.runs.pendingBytes(p.Run)}
		for _, t := range p.Tasks {
			r.Tasks[t.ID], r.Here[t.ID] = t.Metrics, t.Here
		}
		scrape.New(r).Collect(out)
	}
}

// A clusterCollector shows Prometheus the cluster, as this node sees it.
type clusterCollector struct{ *clusterSource }

var (
	clusterQuorum     = prometheus.NewDesc("egret_cluster_quorum", "1 if this node knows who leads, so that things can be changed; else 0.", nil, nil)
	clusterNodes      = prometheus.NewDesc("egret_cluster_nodes", "Nodes of the cluster, as this node sees them.", []string{"state"}, nil)
	clusterTopologies = prometheus.NewDesc("egret_cluster_topologies", "Topologies of the cluster, as far as this node knows.", []string{"status"}, nil)
)

// Values of the label status, beside those of package cluster.
var topologyStatuses = []string{"running", "waiting", "changing"}

func (c *clusterCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{clusterQuorum, clusterNodes, clusterTopologies} {
		out <- d
	}
}

func (c *clusterCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), partTime)
	defer cancel()
	v, err := c.view(ctx)
	if err != nil {
		return // it ends
	}
	x := c.whole(v)
	level := func(d *prometheus.Desc, n int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	quorum := 0
	if x.Quorum {
		quorum = 1
	}
	level(clusterQuorum, quorum)
	states := map[string]int{alive: 0, dead: 0}
	for _, m := range members(v) {
		if m.State != left {
			states[m.State]++
		}
	}
	for state, n := range states {
		level(clusterNodes, n, state)
	}
	statuses := map[string]int{}
	for _, s := range []cluster.Status{cluster.Inactive, cluster.Stopping, cluster.Ending, cluster.Stopped, cluster.Done, cluster.Failed} {
		statuses[string(s)] = 0
	}
	for _, s := range topologyStatuses {
		statuses[s] = 0
	}
	for i := range x.Runs {
		statuses[x.Runs[i].Status]++
	}
	for status, n := range statuses {
		level(clusterTopologies, n, status)
	}
}
