package node

import (
	"errors"
	"slices"
	"strings"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/topology"
)

// mostTasks is how many numbers of tasks a plan may have: an entry of the log has at most
// 1 MiB, and each takes some 90 bytes.
const mostTasks = 10_000

// Complete makes of what somebody has submitted what the log can take: the components
// of the topology and its fingerprint, or a refusal, and then spec is as it was. A
// fingerprint in spec is that of another program, which must have the same topology.
func Complete(topologies []*topology.Topology, spec *cluster.Spec) *cluster.Refusal {
	def := find(topologies, spec.Topology)
	if def == nil {
		var names []string
		for _, t := range topologies {
			names = append(names, t.Name())
		}
		return Refuse(cluster.ErrUnknown, "the program of this node has no topology %q: it has %s", spec.Topology, strings.Join(names, ", ")).Error
	}
	g, err := topology.ParseGuarantee(spec.Guarantee)
	if err != nil {
		return Refuse(ErrParameter, "topology %s: %v", spec.Topology, err).Error
	}
	plan, err := def.Build(topology.Options{Params: spec.Params, Parallel: spec.Parallel, Guarantee: g})
	switch {
	case errors.Is(err, topology.ErrComponent):
		return Refuse(ErrComponent, "topology %s: %v", spec.Topology, err).Error
	case err != nil: // each value that can make it so was given
		return Refuse(ErrParameter, "topology %s: %v", spec.Topology, err).Error
	}
	if n := len(plan.Tasks); n > mostTasks {
		return Refuse(ErrParameter, "topology %s: %d tasks, and %d are the most in a cluster", spec.Topology, n, mostTasks).Error
	}
	if f := plan.Fingerprint(); spec.Fingerprint != "" && spec.Fingerprint != f {
		return Refuse(ErrFingerprint, "the program of this node has another topology %q than the one that submits (fingerprints %s and %s): run the same program on all nodes",
			spec.Topology, f, spec.Fingerprint).Error
	}
	full := SpecOf(plan, spec.Params, spec.Flags, plan.Guarantee.String())
	full.Parallel = spec.Parallel
	*spec = *full
	return nil
}

// Complete is the function of this name, and checks the flags as well.
func (p *Program) Complete(spec *cluster.Spec) *cluster.Refusal {
	if r := Complete(p.Topologies, spec); r != nil || p.Check == nil {
		return r
	}
	if err := p.Check(spec); err != nil {
		return Refuse(ErrParameter, "%v", err).Error
	}
	return nil
}

// find returns the topology with a name, or nil.
func find(topologies []*topology.Topology, name string) *topology.Topology {
	i := slices.IndexFunc(topologies, func(t *topology.Topology) bool { return t.Name() == name })
	if i < 0 {
		return nil
	}
	return topologies[i]
}
