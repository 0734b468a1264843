package sim

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/topology"
)

// The most tuples that may come of a message on the average, in a scene of usual
// width and in one of more than 64 tasks.
const (
	mostComes     = 40
	mostComesWide = 150
)

// drawParts draws one to six components: spouts first, then bolts, each of which
// listens to somebody before it.
func (s *scene) drawParts(r *rand.Rand) {
	n := one(r, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 6, 6)
	spouts := 1
	for spouts < min(n, 3) && chance(r, 25) {
		spouts++
	}
	for i := range spouts {
		s.parts = append(s.parts, s.drawSpout(r, i))
	}
	if spouts > 1 && chance(r, 25) {
		s.parts[r.IntN(spouts)].splits = nil
	}
	for i := range n - spouts {
		last := i == n-spouts-1
		p := part{name: fmt.Sprintf("b%d", i+1), parallel: one(r, 1, 1, 2, 2, 3, 3, 4)}
		switch {
		case !last:
			p.streams = one(r, 0, 1, 1, 1, 2, 2, 3)
		case chance(r, 10):
			p.streams = 1 // to which nobody listens
		}
		s.subscribe(r, &p, s.speaker(r))
		for from := range s.parts { // diamonds and edges that skip layers
			if s.parts[from].streams > 0 && chance(r, 20) {
				s.subscribe(r, &p, from)
			}
		}
		s.drawBolt(r, &p)
		s.parts = append(s.parts, p)
	}
	s.drawWide(r)
	s.tame()
	s.drawDirect(r)
	s.drawSpeeds(r)
}

func (s *scene) drawSpout(r *rand.Rand, i int) part {
	p := part{
		name: "s" + strconv.Itoa(i), parallel: one(r, 1, 1, 1, 2, 2, 3, 4), streams: 1 + r.IntN(3),
		prompt: chance(r, 40), perCall: one(r, 1, 3, 16, 256), wait: one[time.Duration](r, 0, 0, 100*time.Microsecond, 20*time.Millisecond),
	}
	for range one(r, 1, 1, 2, 2, 3, 5) {
		p.splits = append(p.splits, 10+r.IntN(400))
	}
	if chance(r, 10) {
		p.splits = append(p.splits, 0) // which ends at once
	}
	if chance(r, 20) {
		p.stall, p.stallIn = around(r, time.Millisecond, 10*time.Second), 3+r.IntN(40)
	}
	if chance(r, 40) {
		p.again = 1 + r.IntN(20)
	}
	p.endless = chance(r, 20)
	return p
}

// speaker returns whom a new bolt listens to: mostly one to whom nobody listens yet.
func (s *scene) speaker(r *rand.Rand) int {
	heard := make([]bool, len(s.parts))
	for i := range s.parts {
		for _, e := range s.parts[i].inputs {
			heard[e.from] = true
		}
	}
	var all, alone []int
	for i := range s.parts {
		if s.parts[i].streams > 0 {
			all = append(all, i)
			if !heard[i] {
				alone = append(alone, i)
			}
		}
	}
	if len(alone) > 0 && chance(r, 85) {
		return one(r, alone...)
	}
	return one(r, all...)
}

func (s *scene) subscribe(r *rand.Rand, p *part, from int) {
	e := edge{from: from, stream: r.IntN(s.parts[from].streams), grouping: one(r,
		topology.Shuffle, topology.Shuffle, topology.LocalOrShuffle, topology.Fields, topology.Fields, topology.All, topology.Global,
		topology.PartialKey, topology.None, topology.Custom)}
	e.several = chance(r, 40)
	for _, other := range p.inputs {
		if other.from == e.from && other.stream == e.stream {
			return
		}
	}
	p.inputs = append(p.inputs, e)
}

// drawWide makes one scene in 20 so wide that tasks share the bits of a ledger's
// masks: one component of up to 80 tasks, or several of more than 64 in all.
func (s *scene) drawWide(r *rand.Rand) {
	switch x := r.IntN(100); {
	case x < 4:
		s.parts[r.IntN(len(s.parts))].parallel = 66 + r.IntN(15)
	case x < 8:
		for i := range s.parts {
			s.parts[i].parallel = 66/len(s.parts) + 1 + r.IntN(3)
		}
	}
}

// wide reports whether tasks share bits.
func (s *scene) wide() bool {
	n := 0
	for i := range s.parts {
		n += s.parts[i].parallel
	}
	return n > 64
}

// comes returns how many tuples come of a message of a part on the average.
func (s *scene) comes(spout int) float64 {
	in := make([]float64, len(s.parts)) // executions
	total := 0.0
	for to := spout; to < len(s.parts); to++ {
		for _, e := range s.parts[to].inputs {
			p := &s.parts[e.from]
			out := in[e.from]
			switch {
			case e.from == spout:
				out = 1
			case p.act == flatting:
				out *= 1.5
			case p.act == filtering:
				out /= 2
			}
			switch out /= float64(p.streams); e.grouping {
			case topology.All:
				out *= float64(s.parts[to].parallel)
			case topology.Custom:
				out *= float64(s.parts[to].parallel) / 2
			}
			in[to] += out
		}
		total += in[to]
	}
	return total
}

// tame makes scenes simpler in which too much comes of a message.
func (s *scene) tame() {
	most := float64(mostComes)
	if s.wide() {
		most = mostComesWide
	}
	for i := range s.parts {
		if !s.parts[i].spout() {
			continue
		}
		for to := len(s.parts) - 1; to > i && s.comes(i) > most; to-- {
			for k := range s.parts[to].inputs {
				if e := &s.parts[to].inputs[k]; e.grouping == topology.All || e.grouping == topology.Custom {
					e.grouping = topology.Fields
				}
			}
		}
	}
}

// drawDirect makes some of the streams direct that have one subscriber.
func (s *scene) drawDirect(r *rand.Rand) {
	for i := range s.parts {
		p := &s.parts[i]
		p.direct = make([]int, p.streams)
		for stream := range p.streams {
			var only *edge
			subscribers, tasks := 0, 0
			for to := range s.parts {
				for k := range s.parts[to].inputs {
					if e := &s.parts[to].inputs[k]; e.from == i && e.stream == stream {
						only, tasks = e, s.parts[to].parallel
						subscribers++
					}
				}
			}
			if subscribers == 1 && chance(r, 20) && !(p.act == calling || p.act == inOrder) { // calls only emit
				only.grouping, p.direct[stream] = topology.Direct, tasks
			}
		}
	}
}

// drawSpeeds makes bolts steady, and some a hundred times as slow as who sends to
// them.
func (s *scene) drawSpeeds(r *rand.Rand) {
	for i := range s.parts {
		if p := &s.parts[i]; !p.spout() && chance(r, 40) {
			p.least = p.spend / 2
		}
	}
	last := len(s.parts) - 1
	if s.parts[last].spout() || !chance(r, 12) {
		return
	}
	to := last
	for to > 0 && !s.parts[to-1].spout() && chance(r, 50) {
		to--
	}
	slow, from := &s.parts[to], &s.parts[s.parts[to].inputs[0].from]
	slow.spend, slow.least, s.slow = 30*time.Millisecond, 20*time.Millisecond, true
	from.wait, from.spend, from.least = min(from.wait, 200*time.Microsecond), min(from.spend, 200*time.Microsecond), 0
}

// fit cuts the number of messages so that about so many tuples are executed, and
// draws how many of them wait until everything is healed.
func (s *scene) fit(tuples int) {
	const sample = 16
	total := 0
	for i := range s.parts {
		p := &s.parts[i]
		if !p.spout() {
			continue
		}
		cost := 0
		for n := range uint64(sample) {
			id := mix(uint64(i), 0, n)
			cost += len(s.descend(i, id, streamOf(id, p.streams)))
		}
		for _, n := range p.splits {
			total += n * (1 + cost/sample)
		}
	}
	if total <= tuples {
		return
	}
	for i := range s.parts {
		for k, n := range s.parts[i].splits {
			if n > 0 {
				s.parts[i].splits[k] = max(2, n*tuples/total)
			}
		}
	}
}

// drawGates holds back some of the messages of most scenes with faults until
// everything is healed, and the ends of their splits with them. It has numbers of
// its own, so that the rest of a scene does not depend on it.
func (s *scene) drawGates() {
	r := rand.New(rand.NewPCG(s.seed, 0x67617465))
	s.last = chaos.Fault{Kind: one(r, chaos.Drain, chaos.Drain, chaos.Drain, chaos.Stop), When: chaos.At(0)}
	if s.last.Kind == chaos.Drain && chance(r, 20) {
		s.last.Most = around(r, time.Millisecond, time.Second)
	}
	gated := chance(r, 70)
	for i := range s.parts {
		p := &s.parts[i]
		if !p.spout() {
			continue
		}
		if p.queue != nil {
			p.endless = false
		}
		for _, n := range p.splits {
			gate := n
			if (gated || p.endless) && n > 0 {
				gate = n - 1 - r.IntN(max(1, n/3))
			}
			p.gates = append(p.gates, gate)
		}
	}
}

// endless reports whether a source of the scene has no end.
func (s *scene) endless() bool {
	for i := range s.parts {
		if s.parts[i].endless {
			return true
		}
	}
	return false
}
