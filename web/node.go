package web

import (
	"net/http"
)

// NodePath is below which nodes ask each other what each alone has:
//
//	GET  /node/v1/sample                           view.Sample, of this node and its own tasks
//	GET  /node/v1/topologies/{topology}/errors     as in the API, and so are those that follow
//	GET  /node/v1/topologies/{topology}/open
//	GET  /node/v1/topologies/{topology}/letters
//	POST /node/v1/topologies/{topology}/letters
//	GET  /node/v1/topologies/{topology}/tap
//
// A Client asks. Nodes are of one version, or of the one before.
const NodePath = "/node/v1/"

// A Node answers what other nodes ask this one. It asks nobody who he is.
type Node struct{ server *Server }

// NewNode returns what answers for a source, which is this node's own.
func NewNode(c Config) *Node {
	s := &Server{Config: c, mux: http.NewServeMux(), lookers: make(chan struct{}, mostLookers), watch: unwatched(c.Source, c.Log)}
	s.handle([]route{
		{"GET " + NodePath + "sample", (*Server).sample},
		{"GET " + NodePath + "topologies/{topology}/errors", (*Server).errors},
		{"GET " + NodePath + "topologies/{topology}/open", (*Server).open},
		{"GET " + NodePath + "topologies/{topology}/letters", (*Server).letters},
		{"POST " + NodePath + "topologies/{topology}/letters", (*Server).settle},
		{"GET " + NodePath + "topologies/{topology}/tap", (*Server).tap},
	})
	return &Node{s}
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
