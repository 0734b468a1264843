package sim

import (
	"fmt"
	"slices"

	"github.com/egretstream/egret/topology"
)

// featureNames are what there is to be among the scenes of many seeds.
var featureNames = []string{
	"1 component", "2 components", "3 components", "4 components", "5 components", "6 components", "only spouts",
	"shuffle", "local-or-shuffle", "fields", "several fields", "global", "all", "partial-key", "none", "direct", "custom",
	"several streams", "stream without subscriber", "several spouts", "at-least-once", "at-most-once",
	"bounded source", "endless source", "empty split", "source without splits", "stalling source", "source that repeats", "prompt source", "queue",
	"retained tuples", "joined tuples", "100 anchors", "held until the end", "calls", "calls in order", "own messages", "ticks", "dead letters heard",
	"parallelism 4", "tasks share bits", "parcels of one", "parcels of 256", "one message pending", "windows by bytes", "100 times as slow",
	"mixed keys", "values of all kinds", "no text", "big text", "hot key", "encoded", "store", "liveness phase", "drain", "stop",
}

// features returns what there was in a run.
func (rec *record) featuresAtEnd() []string {
	s := rec.scene
	n, spouts := 0, 0
	for i := range s.parts {
		p := &s.parts[i]
		if p.mourns != nil {
			rec.saw("dead letters heard")
			continue
		}
		n++
		rec.sawPart(i, p)
		if p.spout() {
			spouts++
		}
	}
	has := func(feature string, is bool) {
		if is {
			rec.saw(feature)
		}
	}
	word := "components"
	if n == 1 {
		word = "component"
	}
	rec.saw(fmt.Sprintf("%d %s", n, word))
	rec.saw(s.guarantee.String())
	has("only spouts", n == spouts)
	has("several spouts", spouts > 1)
	has("tasks share bits", s.wide())
	has("parcels of one", s.set.ParcelSize == 1)
	has("parcels of 256", s.set.ParcelSize == 256)
	has("one message pending", s.set.MaxPending == 1)
	has("windows by bytes", s.set.QueuedBytes < 64<<20 && s.texts.size >= 40)
	has("100 times as slow", s.slow)
	has("mixed keys", s.texts.mixed)
	has("values of all kinds", s.texts.odd)
	has("no text", s.texts.size == 0)
	has("big text", s.texts.big > 0)
	has("hot key", s.texts.hot && s.texts.keys > 1)
	has("encoded", s.set.AlwaysEncode)
	has("store", rec.store != nil)
	has("drain", rec.drained)
	has("stop", rec.stopped)
	var all []string
	for _, f := range featureNames {
		if rec.features[f] {
			all = append(all, f)
		}
	}
	return all
}

func (rec *record) sawPart(i int, p *part) {
	has := func(feature string, is bool) {
		if is {
			rec.saw(feature)
		}
	}
	for _, e := range p.inputs {
		rec.saw(e.grouping.String())
		has("several fields", e.several && (e.grouping == topology.Fields || e.grouping == topology.PartialKey))
	}
	has("several streams", p.streams > 1)
	for stream := range p.streams {
		heard := slices.ContainsFunc(rec.scene.parts, func(to part) bool {
			return slices.ContainsFunc(to.inputs, func(e edge) bool { return e.from == i && e.stream == stream })
		})
		has("stream without subscriber", !heard)
	}
	has("parallelism 4", p.parallel == 4)
	if !p.spout() {
		has("retained tuples", p.act == holding)
		has("joined tuples", p.act == holding && p.together)
		has("held until the end", p.act == holding && p.every == 0)
		has("calls", p.act == calling)
		has("calls in order", p.act == inOrder)
		has("ticks", p.act == ticking)
		has("own messages", (p.act == ticking || p.act == counting) && p.streams > 0)
		return
	}
	has("queue", p.queue != nil)
	if p.queue != nil {
		return
	}
	has("prompt source", p.prompt)
	has("endless source", p.endless)
	has("bounded source", !p.endless)
	has("source without splits", len(p.splits) == 0)
	has("empty split", slices.Contains(p.splits, 0))
}
