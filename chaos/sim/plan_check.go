package sim

import (
	"slices"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/topology"
)

// Which classes of messages may come twice, and which in any order within their
// pair. The others follow one another, or count how often they come.
var (
	repeated   = []chaos.Class{chaos.Limit, chaos.Ask, chaos.StillQueued, chaos.Held, chaos.Lost, chaos.Peers, chaos.End, chaos.Dry}
	disordered = []chaos.Class{chaos.Report, chaos.StillQueued, chaos.Held, chaos.Lost, chaos.Limit, chaos.Ask, chaos.Peers}
)

// chooses reports whether a custom grouping sends to a part.
func (p *part) chooses() bool {
	return slices.ContainsFunc(p.inputs, func(e edge) bool { return e.grouping == topology.Custom })
}
