package egret

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/egretstream/egret/node"
)

// A Cluster says how nodes are reached, as commands have it by their flags. The zero
// Cluster is that of the node on this machine.
type Cluster struct {
	// Node is host:port of any node. "": what the variable EGRET_NODE says, else 127.0.0.1:7101.
	Node string
	// SecretFile is a file with the secret of the cluster, which others may not read. "": the
	// variable EGRET_SECRET; without that it is a cluster without a secret. What is said to
	// nodes, and who they are, is guarded by keys that are made of the secret.
	SecretFile string
	// Timeout is how long to wait for an answer at most, 0: 15 s.
	Timeout time.Duration
}

// Query asks for committed values of a state of an exactly-once topology. It is for
// trident.Query, which knows the types; keys and values are as stores have them, nil is no
// value. If the node that is asked cannot read the state, the one that can is asked. A new
// leader is waited for. A call takes about 700 KB of keys. It is good for several goroutines.
func (c Cluster) Query(ctx context.Context, topology, state string, keys [][]byte) ([][]byte, error) {
	l := &client{node: cmp.Or(c.Node, os.Getenv(nodeVariable), defaultNode), secret: c.SecretFile, timeout: c.Timeout}
	if _, _, err := net.SplitHostPort(l.node); err != nil {
		return nil, fmt.Errorf("the node of a Cluster is %q: use host:port, as in %s", l.node, defaultNode)
	}
	if c.Timeout < 0 {
		return nil, errors.New("the timeout of a Cluster is below 0")
	}
	ctx, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	defer l.close()
	a, err := l.query(ctx, &node.Request{Topology: topology, State: state, Stored: keys})
	if err != nil {
		return nil, err
	}
	return a.Stored, nil
}
