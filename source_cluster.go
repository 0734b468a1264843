package egret

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/node/process"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// partTime is how long a node may take to say what it has. One that takes longer is silent.
const partTime = time.Second

// A partSource is what one node alone has: this one, or another by web.Client.
type partSource interface {
	Sample(ctx context.Context) (*view.Sample, error)
	Errors(ctx context.Context, topology string) ([]view.Error, error)
	Open(ctx context.Context, topology string, n int) ([]view.OpenTree, error)
	Places(ctx context.Context, topology string, of []view.Sought) ([]view.OpenPlace, error)
	Tap(ctx context.Context, tap view.Tap, yield func(*view.Tapped) bool) error
	Letters(ctx context.Context, topology, component string, n int) ([]view.Letter, error)
	Settle(ctx context.Context, topology string, ids []string, replay bool) (*view.Effect, error)
}

// A clusterSource is a cluster as one node sees it: what is agreed on, as this node knows it,
// and what all nodes that live say they have. So it needs no quorum.
type clusterSource struct {
	p      *process.Process
	own    *nodeSource
	client *http.Client // to control services

	mu     sync.Mutex
	closed bool
	known  map[string]view.Run // what does not change, of runs that the last sample had
}

func newClusterSource(p *process.Process, own *nodeSource) *clusterSource {
	return &clusterSource{
		p: p, own: own,
		client: &http.Client{Transport: &http.Transport{
			DialContext:     func(ctx context.Context, _, addr string) (net.Conn, error) { return p.DialControl(ctx, addr) },
			IdleConnTimeout: 10 * time.Second, MaxIdleConnsPerHost: 4,
		}},
	}
}

// close ends what is there for other nodes. Nothing can be sampled any more.
func (s *clusterSource) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.client.CloseIdleConnections()
}

// view asks how this node sees the cluster.
func (s *clusterSource) view(ctx context.Context) (*node.View, error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, errors.New("the node ends")
	}
	a := s.p.Ask(ctx, &node.Request{Op: node.OpState})
	if a.State == nil {
		return nil, fmt.Errorf("this node does not say what it knows: %w", a.Error)
	}
	return a.State, nil
}

// A partAnswer is what one node has said.
type partAnswer[T any] struct {
	from  *node.MemberView
	value T
	err   error
}

// askAll asks all nodes that live, at the same time, and returns when all have answered or
// partTime is over.
func askAll[T any](ctx context.Context, s *clusterSource, v *node.View, ask func(context.Context, partSource) (T, error)) []partAnswer[T] {
	return askWithin(ctx, partTime, s, v, ask)
}

// askWithin is askAll with another time.
func askWithin[T any](ctx context.Context, d time.Duration, s *clusterSource, v *node.View, ask func(context.Context, partSource) (T, error)) []partAnswer[T] {
	ctx, cancel := context.WithTimeoutCause(ctx, d, fmt.Errorf("no answer within %v", d))
	defer cancel()
	var all []partAnswer[T]
	for i := range v.Members {
		if v.Members[i].Alive {
			all = append(all, partAnswer[T]{from: &v.Members[i]})
		}
	}
	var asked sync.WaitGroup
	for i := range all {
		asked.Go(func() {
			a := &all[i]
			a.value, a.err = ask(ctx, s.at(v, a.from))
			if a.err != nil && ctx.Err() != nil {
				a.err = context.Cause(ctx)
			}
		})
	}
	asked.Wait()
	return all
}

// at returns what a node has.
func (s *clusterSource) at(v *node.View, m *node.MemberView) partSource {
	if m.Home == v.Self {
		return s.own
	}
	return &web.Client{HTTP: s.client, Addr: m.Addr}
}

// Sample joins what is agreed on with what each node says.
func (s *clusterSource) Sample(ctx context.Context) (*view.Sample, error) {
	v, err := s.view(ctx)
	if err != nil {
		return nil, err
	}
	whole := s.whole(v)
	names := nodeNames(v)
	var parts []*view.Sample
	for _, a := range askAll(ctx, s, v, func(ctx context.Context, p partSource) (*view.Sample, error) { return p.Sample(ctx) }) {
		id := nodeName(a.from.Node)
		if a.err == nil && (len(a.value.Nodes) != 1 || a.value.Nodes[0].ID != id) {
			a.err = errors.New("another node has its address now")
		}
		if a.err != nil {
			if at := slices.IndexFunc(whole.Nodes, func(n view.Node) bool { return n.ID == id }); at >= 0 {
				whole.Nodes[at].Silent = a.err.Error()
			}
			continue
		}
		rename(a.value, names[a.from.Node])
		parts = append(parts, a.value)
	}
	whole.At = time.Now()
	s.remember(view.Join(whole, parts...))
	return whole, nil
}

// rename gives the node of a part the name that people have for it.
func rename(part *view.Sample, name string) {
	part.Nodes[0].Node = name
	for i := range part.Runs {
		for k := range part.Runs[i].Tasks {
			if t := &part.Runs[i].Tasks[k]; t.Node != "" {
				t.Node = name
			}
		}
	}
}

// remember fills in what does not change of runs whose nodes are silent at the moment, and
// keeps it of the others.
func (s *clusterSource) remember(whole *view.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := map[string]view.Run{}
	for i := range whole.Runs {
		r := &whole.Runs[i]
		if k := s.known[r.Run]; r.Graph == nil {
			r.Graph, r.Streams, r.Guarantee = k.Graph, k.Streams, k.Guarantee
		}
		now[r.Run] = view.Run{Graph: r.Graph, Streams: r.Streams, Guarantee: r.Guarantee, Settings: r.Settings}
	}
	s.known = now
}

// submission returns what is agreed on of a topology.
func (s *clusterSource) submission(ctx context.Context, topology string) (*node.View, *cluster.Submission, error) {
	v, err := s.view(ctx)
	if err != nil {
		return nil, nil, err
	}
	sub := submission(v, topology)
	if sub == nil {
		return nil, nil, &web.Error{Code: web.Unknown, Text: unknownTopology(v, topology).Error()}
	}
	return v, sub, nil
}

// gather asks all nodes for what each has of a topology. It is an error if none answers.
func gather[T any](ctx context.Context, s *clusterSource, topology string, ask func(context.Context, partSource) ([]T, error), name func(of *T, id, name string)) ([]T, error) {
	v, _, err := s.submission(ctx, topology)
	if err != nil {
		return nil, err
	}
	names := nodeNames(v)
	all, answered := []T{}, false
	var errs []error
	for _, a := range askAll(ctx, s, v, ask) {
		if a.err != nil {
			errs = append(errs, a.err)
			continue
		}
		answered = true
		for i := range a.value {
			name(&a.value[i], nodeName(a.from.Node), names[a.from.Node])
		}
		all = append(all, a.value...)
	}
	if !answered {
		return nil, errors.Join(errs...)
	}
	return all, nil
}

// Errors are those of all nodes.
func (s *clusterSource) Errors(ctx context.Context, topology string) ([]view.Error, error) {
	all, err := gather(ctx, s, topology,
		func(ctx context.Context, p partSource) ([]view.Error, error) { return p.Errors(ctx, topology) },
		func(e *view.Error, id, name string) {
			if e.Node == id { // else it is of one that has died
				e.Node = name
			}
		})
	slices.SortFunc(all, func(x, y view.Error) int {
		return cmp.Or(y.Last.Compare(x.Last), cmp.Compare(x.Component, y.Component), cmp.Compare(x.Text, y.Text))
	})
	return all, err
}
