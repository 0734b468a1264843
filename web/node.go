package web

import (
	"context"
	"fmt"
	"net/http"

	"github.com/egretstream/egret/view"
)

// NodePath is below which nodes ask each other what each alone has:
//
//	GET  /node/v1/sample                           view.Sample, of this node and its own tasks
//	GET  /node/v1/topologies/{topology}/errors     as in the API, and so are those that follow
//	GET  /node/v1/topologies/{topology}/letters
//	POST /node/v1/topologies/{topology}/letters
//	GET  /node/v1/topologies/{topology}/tap
//	GET  /node/v1/topologies/{topology}/open       []view.OpenTree, of its own tasks  ?n=
//	POST /node/v1/topologies/{topology}/places     []view.Sought: []view.OpenPlace, of its own tasks
//
// A Client asks. Nodes are of one version, or of the one before.
const NodePath = "/node/v1/"

// A Node answers what other nodes ask this one. It asks nobody who he is.
type Node struct{ server *Server }

// A NodeSource is what one node alone has, as a Source is what there is.
type NodeSource interface {
	Source
	// Open returns up to n open trees of this node's tasks, the oldest first.
	Open(ctx context.Context, topology string, n int) ([]view.OpenTree, error)
	// Places returns what this node's tasks have of trees.
	Places(ctx context.Context, topology string, of []view.Sought) ([]view.OpenPlace, error)
}

// NewNode returns what answers for a source. The Config is without its own.
func NewNode(source NodeSource, c Config) *Node {
	c.Source = source
	s := &Server{Config: c, mux: http.NewServeMux(), lookers: make(chan struct{}, mostLookers), watch: unwatched(c.Source, c.Log)}
	s.handle([]route{
		{"GET " + NodePath + "sample", (*Server).sample},
		{"GET " + NodePath + "topologies/{topology}/errors", (*Server).errors},
		{"GET " + NodePath + "topologies/{topology}/letters", (*Server).letters},
		{"POST " + NodePath + "topologies/{topology}/letters", (*Server).settle},
		{"GET " + NodePath + "topologies/{topology}/tap", (*Server).tap},
		{"GET " + NodePath + "topologies/{topology}/open", func(_ *Server, w http.ResponseWriter, r *http.Request) error { return oldest(w, r, source.Open) }},
		{"POST " + NodePath + "topologies/{topology}/places", func(_ *Server, w http.ResponseWriter, r *http.Request) error { return placesOf(source, w, r) }},
	})
	return &Node{s}
}

func placesOf(source NodeSource, w http.ResponseWriter, r *http.Request) error {
	var of []view.Sought
	if err := decode(w, r, &of); err != nil {
		return err
	}
	if len(of) > mostTrees {
		return &Error{Invalid, fmt.Sprintf("there are %d trees: ask for at most %d", len(of), mostTrees)}
	}
	ctx, cancel := within(r, lookTime)
	defer cancel()
	all, err := source.Places(ctx, r.PathValue("topology"), of)
	return listed(w, all, err)
}

func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) { n.server.mux.ServeHTTP(w, r) }

// Close lets go of those who tap.
func (n *Node) Close() { n.server.watch.cancel() }

func (s *Server) sample(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := within(r, lookTime)
	defer cancel()
	sample, err := s.Source.Sample(ctx)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, sample)
	return nil
}
