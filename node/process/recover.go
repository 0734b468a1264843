package process

import (
	"errors"
	"fmt"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/cluster/consensus"
)

// Remains are what a data directory still has of a cluster.
type Remains struct {
	Node    cluster.NodeID
	Cluster string
	consensus.Remains
	State cluster.State
}

// Recover makes the node of a data directory, which must not be running, the only one of a
// new cluster, if sure says so; see [consensus.Recover]. It returns the id of that.
func Recover(data string, sure func(Remains) bool) (id string, err error) {
	if is, err := consensus.IsNode(data); err != nil {
		return "", err
	} else if !is {
		return "", fmt.Errorf("%s is not the directory of a node: it has no node.json", data)
	}
	node, err := consensus.Identify(data)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	m := &recovering{machine{post: func(cluster.State) {}}, node}
	err = consensus.Recover(node, m, func(r consensus.Remains) bool {
		return sure(Remains{node.Home().Node, node.Cluster(), r, m.state})
	})
	return node.Cluster(), err
}

// A recovering machine is one whose snapshot belongs to the cluster that its node has now.
type recovering struct {
	machine
	node *consensus.Identity
}

func (m *recovering) Snapshot() ([]byte, error) {
	s := m.state
	if err := s.Recover(m.node.Cluster()); err != nil {
		return nil, err
	}
	return readable(&s)
}
