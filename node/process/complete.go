package process

import (
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
)

// complete fills in what the node knows of a topology that is submitted.
func (p *Process) complete(q *node.Request) *cluster.Refusal {
	if q.Spec == nil {
		return node.Refuse(cluster.ErrInvalid, "a topology is submitted, and nothing is said of it").Error
	}
	return p.config.Program.Complete(q.Spec)
}
