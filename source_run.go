package egret

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/graph"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// localNode is the name of the process of a run without a cluster.
const localNode = "local"

// A runSource is a run that is looked at.
type runSource struct {
	*Running
	drawn func() *graph.Drawing
}

func newRunSource(r *Running) *runSource {
	return &runSource{Running: r, drawn: sync.OnceValue(func() *graph.Drawing { return graph.Draw(r.plan) })}
}

// thisNode is this process as a node.
func thisNode(name string, began time.Time, tasks int) view.Node {
	n := view.Node{
		Node: name, Alive: true, Tasks: tasks, Up: time.Since(began),
		CPU: processTime(), Memory: residentMemory(), Cores: runtime.GOMAXPROCS(0),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		n.Version = version(info)
	}
	return n
}

func (s *runSource) Sample(context.Context) (*view.Sample, error) {
	run := view.Run{
		Topology: s.plan.Topology, Guarantee: s.plan.Guarantee.String(), Status: "running", Began: s.began,
		Settings: s.config.shown(), Graph: s.drawn(), Streams: view.Streams(s.plan),
	}
	select {
	case <-s.over:
		run.Status, run.Ended = "done", true
		if s.err != nil {
			run.Status, run.Reason = "failed", s.err.Error()
		}
	default:
		if s.ending.Load() {
			run.Status = "ending"
		}
	}
	run.Troubles = s.events.book.allTroubles()
	for id, m := range s.ms {
		t := view.Read(s.plan, tuple.TaskID(id), m)
		t.Node = localNode
		run.Tasks = append(run.Tasks, t)
		if s.plan.Components[s.plan.Tasks[id].Component].Coordinates {
			run.Batches = view.ReadBatches(m)
		}
	}
	return &view.Sample{
		At: time.Now(), Quorum: true, Nodes: []view.Node{thisNode(localNode, s.began, len(s.ms))}, Runs: []view.Run{run},
	}, nil
}

// known says whether it is this run that is meant.
func (s *runSource) known(topology string) error {
	if topology == s.plan.Topology {
		return nil
	}
	return &web.Error{Code: web.Unknown, Text: fmt.Sprintf("there is no topology %q here: this is a run of %s", topology, s.plan.Topology)}
}

func (s *runSource) Errors(_ context.Context, topology string) ([]view.Error, error) {
	if err := s.known(topology); err != nil {
		return nil, err
	}
	return s.events.book.all(), nil
}

func (s *runSource) Act(_ context.Context, a *view.Action) (*view.Effect, error) {
	if a.Topology == "" || a.Do != "stop" && a.Do != "kill" {
		return nil, &web.Error{Code: web.NotHere, Text: fmt.Sprintf("this is a run in one process, which knows stop and kill alone: for %s submit the topology to a cluster (node, submit)", a.Do)}
	}
	if err := s.known(a.Topology); err != nil {
		return nil, err
	}
	select {
	case <-s.over:
		return nil, &web.Error{Code: web.Refused, Text: "the run has ended"}
	default:
	}
	open := amount.Of(s.Stats().Open, "open message")
	text, done := fmt.Sprintf("reads no more input and finishes %s, within %v; then the run ends", open, s.config.StopTimeout), s.Drain
	if a.Do == "kill" {
		text, done = fmt.Sprintf("the run ends at once, with %s", open), s.Stop
	}
	if !a.Preview {
		done()
	}
	return &view.Effect{Done: !a.Preview, Text: s.plan.Topology + ": " + text}, nil
}

func (s *runSource) Oldest(ctx context.Context, topology string, n int) ([]view.Tree, error) {
	if err := s.known(topology); err != nil {
		return nil, err
	}
	return s.oldest(ctx, n)
}

func (s *runSource) Tap(ctx context.Context, tap view.Tap, yield func(*view.Tapped) bool) error {
	return s.tap(ctx, tap, yield)
}

// shown is what a run was set up with, as people may see it.
func (c *Config) shown() map[string]string {
	all := map[string]string{}
	for name, values := range c.Params {
		all[name] = withoutSecrets(name, values)
	}
	for component, n := range c.Parallel {
		all["parallel "+component] = strconv.Itoa(n)
	}
	for _, x := range []struct {
		name  string
		value any
	}{
		{"max-pending", c.MaxPending}, {"max-replays", c.MaxReplays}, {"message-timeout", c.MessageTimeout},
		{"stuck-after", c.StuckAfter}, {"on-stuck", c.OnStuck}, {"stop-timeout", c.StopTimeout}, {"state", c.StateDir},
	} {
		if text := fmt.Sprint(x.value); text != "" {
			all[x.name] = text
		}
	}
	if c.Guarantee != nil && *c.Guarantee == topology.ExactlyOnce {
		all["batch-size"], all["batch-interval"] = strconv.Itoa(c.BatchSize), c.BatchInterval.String()
	}
	return all
}
