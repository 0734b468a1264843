package cluster

// A Pace is how quickly a cluster notices that a node is gone. All nodes of a cluster
// have the same.
type Pace int

const (
	// Calm is for machines that are busy or far from each other: a dead node is noticed
	// within about three seconds, and there is a new leader after about one.
	Calm Pace = iota
	// Quick is for a quiet network between machines that have time: a dead node is
	// noticed in less than a second. A node that is only slow is taken for dead sooner.
	Quick
)

// String returns the word for it: calm or quick.
func (p Pace) String() string {
	if p == Quick {
		return "quick"
	}
	return "calm"
}
