package egret

import (
	"fmt"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/topology"
)

// fit refuses a plan that the record of an earlier run in dir does not fit. It has the
// record forget states that the plan has Dropped.
func fit(records *disk.Records, p *topology.Plan, dir string) error {
	shape := batch.Shape{Dropped: p.Dropped}
	for i := range p.Components {
		n := &p.Components[i]
		if n.Source != nil {
			shape.Sources = append(shape.Sources, n.Name)
		}
		if n.Stateful {
			shape.States = append(shape.States, n.Name)
		}
		if n.FromHere {
			shape.FromHere = append(shape.FromHere, n.Name)
		}
	}
	r := records.Record()
	dropped, misfit := r.Fit(&shape)
	switch {
	case misfit != nil:
		return fmt.Errorf("topology %s: the record of batches in %s, of which %d is the last one, %s: give it the name that it had; %s; or start over, with --reset or another state directory, and with empty states",
			p.Topology, dir, r.Committed, misfit.What, misfit.Remedy)
	case dropped == nil:
		return nil
	}
	return records.Forget(dropped)
}
