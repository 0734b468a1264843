package sim

import (
	"slices"

	"github.com/egretstream/egret/topology"
)

// batchFeatures are what there is to be among the runs of many seeds.
var batchFeatures = []string{
	"opaque spout", "transactional spout", "spout without splits", "spout that begins late", "state behind a state", "two states", "state without values before",
	"state is read", "state is read behind it", "batch of its own is gathered", "flood", "no room", "encoded",
	"round after: death", "round after: failure", "round after: timeout", "round after: unknown entry",
	"ranges fixed", "batch found again", "batch begun again", "undone", "unsynced write lost", "fenced write", "stale join", "stale tuple", "stale marker", "stale order", "stale answer", "stale entry", "gap in a store",
	"join lost", "begin lost", "write lost", "settled lost", "joined lost", "emitted lost", "ready lost", "wrote lost", "run goes on", "loss told",
}

// sawScene books what there is in the scene.
func (b *batchBook) sawScene() {
	s := b.run.s
	has := func(feature string, is bool) {
		if is {
			b.saw(feature)
		}
	}
	states := 0
	for i := range s.parts {
		p := &s.parts[i]
		has("state without values before", p.plain)
		has("state is read", p.reads >= 0)
		has("batch of its own is gathered", p.kind == gathering)
		for _, e := range p.inputs {
			has("state behind a state", p.state() && s.parts[e.from].state())
			has("state is read behind it", p.reads == e.from)
		}
		if p.state() {
			states++
		}
		if p.spout() {
			has("opaque spout", p.replay == topology.Opaque)
			has("transactional spout", p.replay == topology.Transactional)
			has("spout without splits", len(p.splits) == 0)
			has("spout that begins late", len(p.gates) > 0 && slices.Max(p.gates) == 0)
		}
	}
	has("two states", states > 1)
	has("flood", s.flood)
	has("encoded", s.set.AlwaysEncode)
	for _, m := range b.run.ms {
		has("no room", m.Throttled.Load() > 0)
	}
}
