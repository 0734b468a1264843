package node

import (
	"slices"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/topology"
)

// SpecOf returns what a topology is submitted with whose plan was built with these
// parameters. guarantee is empty for that of the definition.
func SpecOf(plan *topology.Plan, params map[string][]string, flags map[string]string, guarantee string) *cluster.Spec {
	s := &cluster.Spec{Topology: plan.Topology, Fingerprint: plan.Fingerprint(), Params: params, Flags: flags, Guarantee: guarantee, Dropped: plan.Dropped}
	for i := range plan.Components {
		n := &plan.Components[i]
		c := cluster.Component{Name: n.Name, Parallel: n.Parallel, Spout: n.Reads(), One: n.Coordinates, State: n.Stateful, FromHere: n.FromHere}
		for _, r := range n.Outputs {
			if !slices.Contains(c.To, r.To) {
				c.To = append(c.To, r.To)
			}
		}
		slices.Sort(c.To)
		s.Local = s.Local || n.Local
		s.Components = append(s.Components, c)
	}
	return s
}
