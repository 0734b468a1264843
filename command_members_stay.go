package egret

import (
	"strings"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
)

// staying says which tasks of a node stay there whatever is asked for: no other node has
// their states.
func staying(v *node.View, id cluster.NodeID) (n int, why string) {
	var whys []string
	for _, s := range v.Submissions {
		if s.Plan == nil || !s.Status.Runs() || s.Seat() != id {
			continue
		}
		its := 0
		for _, t := range s.Plan.Tasks {
			if t.Home.Node == id {
				its++
			}
		}
		n += its
		text := amount.Of(its, "task") + " of " + s.Topology + " stay: their states are here alone"
		if its == 1 {
			text = "1 task of " + s.Topology + " stays: its states are here alone"
		}
		whys = append(whys, text)
	}
	return n, strings.Join(whys, "; ")
}

// besides is one of two ways to speak of tasks: without some that stay, or beside them.
func besides(stay int, without, beside string) string {
	if stay > 0 {
		return beside
	}
	return without
}
