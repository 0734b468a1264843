package egret

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/graph"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/node/process"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// A nodeSource is what one node alone has. Others of the cluster ask for it.
type nodeSource struct {
	p     *process.Process
	runs  *nodeProgram
	began time.Time

	mu    sync.Mutex
	drawn map[cluster.Run]drawnPlan // of those that the last sample had
}

// A drawnPlan is what is made of a plan once.
type drawnPlan struct {
	plan    *topology.Plan
	graph   *graph.Drawing
	streams []view.Stream
}

func newNodeSource(p *process.Process, runs *nodeProgram) *nodeSource {
	return &nodeSource{p: p, runs: runs, began: time.Now()}
}

// drawings returns those of the parts, and forgets others.
func (s *nodeSource) drawings(parts []node.Part) map[cluster.Run]drawnPlan {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := map[cluster.Run]drawnPlan{}
	for i := range parts {
		d, plan := s.drawn[parts[i].Run], parts[i].Plan
		if d.plan != plan {
			d = drawnPlan{plan, graph.Draw(plan), view.Streams(plan)}
		}
		now[parts[i].Run] = d
	}
	s.drawn = now
	return now
}

// Sample is of this node and of its own tasks. Those that it has no more have no Node.
func (s *nodeSource) Sample(ctx context.Context) (*view.Sample, error) {
	parts, err := s.p.Parts(ctx)
	if err != nil {
		return nil, err
	}
	name, tasks := nodeName(s.p.Home().Node), 0
	x := &view.Sample{At: time.Now(), Cluster: s.p.Cluster()}
	drawings := s.drawings(parts)
	for i := range parts {
		part := &parts[i]
		d := drawings[part.Run]
		r := view.Run{Topology: part.Plan.Topology, Run: runName(part.Run), Guarantee: part.Plan.Guarantee.String(), Graph: d.graph, Streams: d.streams}
		for _, t := range part.Tasks {
			v := view.Read(part.Plan, t.ID, t.Metrics)
			if t.Here {
				v.Node = name
				tasks++
			}
			if t.Life != 0 {
				v.Life = t.Life.String()
			}
			r.Tasks = append(r.Tasks, v)
			if t.Here && part.Plan.Node(t.ID).Coordinates {
				r.Batches = view.ReadBatches(t.Metrics)
			}
		}
		x.Runs = append(x.Runs, r)
	}
	for _, r := range s.runs.troubles() {
		if at := slices.IndexFunc(x.Runs, func(o view.Run) bool { return o.Run == r.Run }); at >= 0 {
			x.Runs[at].Troubles = r.Troubles
		} else { // it leads, and has nothing else of it
			x.Runs = append(x.Runs, r)
		}
	}
	x.Nodes = []view.Node{thisNode(name, s.began, tasks)}
	x.Nodes[0].ID = name
	return x, nil
}

// nodeName is what nodes call each other; people have other names for them.
func nodeName(id cluster.NodeID) string { return id.String() }

func runName(run cluster.Run) string { return strconv.FormatUint(uint64(run), 10) }

func (s *nodeSource) Errors(_ context.Context, topology string) ([]view.Error, error) {
	all := s.runs.errors(topology)
	for i := range all {
		all[i].Node = cmp.Or(all[i].Node, nodeName(s.p.Home().Node)) // or the one that has died
	}
	return all, nil
}

// Tap taps the tasks that are here.
func (s *nodeSource) Tap(ctx context.Context, want view.Tap, yield func(*view.Tapped) bool) error {
	run, part := s.runs.part(want.Topology)
	if part == nil {
		return &web.Error{Code: web.NotHere, Text: fmt.Sprintf("nothing of the topology %s is here", want.Topology)}
	}
	plan := s.partOf(ctx, run).Plan
	if plan == nil {
		return &web.Error{Code: web.NotHere, Text: fmt.Sprintf("nothing of the topology %s is here yet", want.Topology)}
	}
	part.tapable.Do(func() {
		part.taps.plan = func() *topology.Plan { return plan } // later ones have the same components and streams
		part.taps.set = func(now task.Taps) { s.p.ToRun(run, now) }
		part.taps.emitted = func(component, stream int) (n int64) {
			within, cancel := context.WithTimeout(context.Background(), partTime)
			defer cancel()
			now := s.partOf(within, run)
			for _, t := range now.Tasks {
				if now.Plan.Tasks[t.ID].Component == component {
					n += t.Metrics.Streams[stream].Emitted.Load()
				}
			}
			return n
		}
	})
	return part.taps.look(ctx, part.over, want, yield)
}

// partOf returns what is here of a run, or nothing.
func (s *nodeSource) partOf(ctx context.Context, run cluster.Run) node.Part {
	parts, _ := s.p.Parts(ctx) // an error: the node ends, or whoever looks has gone
	for _, p := range parts {
		if p.Run == run {
			return p
		}
	}
	return node.Part{}
}

func (s *nodeSource) Act(_ context.Context, a *view.Action) (*view.Effect, error) {
	return nil, &web.Error{Code: web.NotHere, Text: fmt.Sprintf("a node by itself does not %s: ask the cluster", a.Do)}
}
