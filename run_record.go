package egret

import (
	"fmt"
	"maps"
	"slices"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/state/disk"
	"github.com/egretstream/egret/topology"
)

// A program changes from run to run, and the record of its batches goes on. What has only
// got another name would be read from its beginning once more, or begin in the middle.

// fit refuses a plan that the record of an earlier run in dir does not fit. It has the
// record forget states that the plan has Dropped.
func fit(records *disk.Records, p *topology.Plan, dir string) error {
	r := records.Record()
	unfit := func(remedy, format string, args ...any) error {
		return fmt.Errorf("topology %s: the record of batches in %s, of which %d is the last one, %s: give it the name that it had; %s; or start over, with --reset or another state directory, and with empty states",
			p.Topology, dir, r.Committed, fmt.Sprintf(format, args...), remedy)
	}
	sources, states := map[string]bool{}, map[string]bool{}
	for i := range p.Components {
		n := &p.Components[i]
		sources[n.Name], states[n.Name] = n.Source != nil, n.Stateful
	}
	for _, name := range slices.Sorted(maps.Keys(r.Positions)) {
		if !sources[name] && !slices.Contains(p.Dropped, name) {
			return unfit(fmt.Sprintf("if it was left out on purpose, say Dropped(%q) in the definition", name),
				"has positions of source %q, which the topology does not have", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Fixed)) {
		if !sources[name] && slices.ContainsFunc(slices.Collect(maps.Values(r.Fixed[name])), func(r batch.Range) bool { return r.Messages > 0 }) {
			return unfit("let a run of the version that had it come to its end, and leave it out then",
				"has messages of source %q in batch %d, which states may have written, and the topology does not have it", name, r.Committed+1)
		}
	}
	var dropped []string
	for _, name := range slices.Sorted(maps.Keys(r.Last)) {
		switch {
		case states[name]:
		case slices.Contains(p.Dropped, name):
			dropped = append(dropped, name)
		default:
			return unfit(fmt.Sprintf("if it was left out on purpose, say Dropped(%q) in the definition, and it is forgotten for good", name),
				"has batches of state %q, which the topology does not have", name)
		}
	}
	for i := range p.Components {
		if n := &p.Components[i]; n.Stateful && r.Committed > 0 && r.Last[n.Name] == nil && !n.FromHere {
			return unfit("if it is new, and is to begin in the middle of the input, say FromHere of it",
				"does not know state %q, which the topology has", n.Name)
		}
	}
	if dropped == nil {
		return nil
	}
	return records.Forget(dropped)
}
