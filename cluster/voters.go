package cluster

// A Server is a node that the log is copied to.
type Server struct {
	Node  NodeID
	Addr  string // where it was when it was added
	Voter bool   // it counts for agreement; the others only listen
}
