package bench

import (
	"fmt"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
)

// fields returns the names of a stream: what it carries, then its stamps.
func (s stamps) fields(what string) []string {
	return []string{what, "emitted", "due"}[:1+int(s)]
}

// shapes are the topologies by name.
var shapes = map[string]func(*topology.Builder, *Setup, *probe){
	"null":      defineNull,
	"identity":  defineIdentity,
	"wordcount": defineWordcount,
}

// define returns the topology of s, observed by p.
func (s *Setup) define(p *probe) *topology.Topology {
	if s.exact() {
		return s.defineExact(p)
	}
	return topology.New("bench-"+s.Topology, func(b *topology.Builder) { shapes[s.Topology](b, s, p) })
}

// stamps returns what the messages of s carry. Only a word count without
// latencies has none: the null topology has two fields in any case.
func (s *Setup) stamps() stamps {
	switch {
	case s.Rate > 0:
		return emittedDue
	case s.Latency || s.Topology != "wordcount":
		return emitted
	default:
		return noStamp
	}
}

func (s *Setup) source(p *probe) spout.Source {
	if s.Rate > 0 {
		return &paced{readers: s.Spouts, rate: s.Rate, end: int64(s.passes) * lineCount, clock: p.clock}
	}
	return eager(s, p.clock)
}

func defineNull(b *topology.Builder, s *Setup, p *probe) {
	st := s.stamps()
	lines := b.Spout("lines", s.source(p)).Emits(st.fields("line")...).Parallel(s.Spouts)
	b.Bolt("null", func() bolt.Bolt { return &nullBolt{p.sink(st)} }, lines.LocalOrShuffle()).Parallel(s.Bolts)
}

func defineIdentity(b *topology.Builder, s *Setup, p *probe) {
	st := s.stamps()
	copied := each(identity)
	if st == emittedDue {
		copied = identityDue
	}
	lines := b.Spout("lines", s.source(p)).Emits(st.fields("line")...).Parallel(s.Spouts)
	same := b.Bolt("identity", func() bolt.Bolt { return copied }, lines.Shuffle()).Emits(st.fields("line")...).Parallel(s.Bolts)
	b.Bolt("null", func() bolt.Bolt { return &nullBolt{p.sink(st)} }, same.Shuffle()).Parallel(s.Bolts)
}

func defineWordcount(b *topology.Builder, s *Setup, p *probe) {
	st := s.stamps()
	splits := [...]each{noStamp: split, emitted: splitEmitted, emittedDue: splitDue}
	lines := b.Spout("lines", s.source(p)).Emits(st.fields("line")...).Parallel(s.Spouts)
	words := b.Bolt("split", func() bolt.Bolt { return splits[st] }, lines.Shuffle()).Emits(st.fields("word")...).Parallel(s.Bolts)
	b.Bolt("count", func() bolt.Bolt { return &countBolt{p.counter(), p.sink(st)} }, words.By("word")).Parallel(s.Bolts)
}

// Topologies returns the measured topologies as ordinary ones, to be run and
// watched: bench-null, bench-identity and bench-wordcount. They have no end
// unless the parameter passes says so.
func Topologies() []*topology.Topology {
	var all []*topology.Topology
	for _, name := range []string{"null", "identity", "wordcount"} {
		all = append(all, topology.New("bench-"+name, func(b *topology.Builder) {
			s := &Setup{
				Topology: name,
				Spouts:   b.Int("spouts", 2, "tasks of the spout"),
				Bolts:    b.Int("bolts", 2, "tasks of each bolt"),
				Rate:     b.Float("rate", 0, "messages/s over all spouts; 0: as many as go through"),
				passes:   b.Int("passes", 0, "how often each spout reads the 4,096 lines; 0: for ever"),
			}
			if err := s.check(); err != nil {
				b.Check(err)
				return
			}
			if s.passes < 0 {
				b.Check(fmt.Errorf("%d passes: use 0 (for ever) or more", s.passes))
				return
			}
			shapes[name](b, s, newProbe())
		}))
	}
	return all
}
