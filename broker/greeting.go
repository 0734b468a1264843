package broker

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/egretstream/egret/cluster"
)

// A Greeting is the payload of a Hello: what each end of a new connection says first.
type Greeting struct {
	Cluster string       `json:"cluster"`
	Version string       `json:"version"` // of the program, for people
	From    cluster.Home `json:"from"`
	To      cluster.Home `json:"to"` // boot 0: it does not know yet

	// Epoch is the one in which the sender's link to To is, 0 if it has none or has
	// forgotten it; Last is the last one in which it ever was.
	Epoch    uint64 `json:"epoch"`
	Last     uint64 `json:"last"`
	Received uint64 `json:"received"` // frames, in Epoch
}

// Why a peer is refused. Trying again helps if the world has changed.
var (
	// ErrCluster reports a node of another cluster.
	ErrCluster = errors.New("another cluster")
	// ErrNode reports a node that is not the one that was expected, or expected another.
	ErrNode = errors.New("another node")
	// ErrOver reports a process of a node that has a later one.
	ErrOver = errors.New("an old process")
)

// ParseGreeting reads the payload of a Hello. Fields of later versions are passed over.
func ParseGreeting(b []byte) (g Greeting, err error) {
	if len(b) > mostGreeting {
		return g, fmt.Errorf("%w: a hello of %d bytes, and %d are the most", ErrFrame, len(b), mostGreeting)
	}
	if err := json.Unmarshal(b, &g); err != nil {
		return Greeting{}, fmt.Errorf("%w: hello: %w", ErrFrame, err)
	}
	if g.From.Node == 0 || g.From.Boot == 0 || g.Epoch != 0 && g.Epoch != g.Last {
		return Greeting{}, fmt.Errorf("%w: hello from %v in epoch %d, the last was %d", ErrFrame, g.From, g.Epoch, g.Last)
	}
	return g, nil
}

const mostGreeting = 4 << 10

// refuses returns why an end does not talk to who has sent g.
func (l *Link) refuses(g *Greeting) error {
	switch {
	case g.Cluster != l.Cluster:
		return fmt.Errorf("%w: node %v is of cluster %s, and this node is of cluster %s", ErrCluster, g.From.Node, g.Cluster, l.Cluster)
	case g.From.Node != l.peer.Node:
		return fmt.Errorf("%w: it is %v, and %v should be there", ErrNode, g.From.Node, l.peer.Node)
	case g.To.Node != l.Self.Node:
		return fmt.Errorf("%w: %v looks for %v, and this is %v", ErrNode, g.From.Node, g.To.Node, l.Self.Node)
	case g.From.Boot < l.peer.Boot:
		return fmt.Errorf("%w: it is process %d of node %v, and process %d is there", ErrOver, g.From.Boot, g.From.Node, l.peer.Boot)
	case g.To.Boot > l.Self.Boot:
		return fmt.Errorf("%w: node %v knows process %d of this node, and this is process %d", ErrOver, g.From.Node, g.To.Boot, l.Self.Boot)
	}
	return nil
}

// agree returns the epoch in which a connection is used on which a and b were said. It
// is the same for both ends, whichever of them is a.
//
// An end that has come to an epoch by a connection on which the other has heard nothing
// is there alone. The other one follows it, so that nothing is lost.
func agree(a, b *Greeting) uint64 {
	own, other := a.Epoch, b.Epoch
	if a.To.Boot != b.From.Boot { // it is of a link to a process that is over
		own = 0
	}
	if b.To.Boot != a.From.Boot {
		other = 0
	}
	switch {
	case own != 0 && own == other:
		return own
	case own > b.Last:
		return own
	case other > a.Last:
		return other
	default:
		return max(a.Last, b.Last) + 1
	}
}
