package bench

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/tuple"
)

// A probe is what one run of a topology is observed with. Its last bolts write
// into sinks of their own; they are read when the run has ended.
type probe struct {
	clock *clock
	phase func(from, until int64) // is told both, too; nil: nobody is
	from  atomic.Int64            // only messages stamped since then count
	until atomic.Int64            // and before then

	mu     sync.Mutex // factories run on the goroutines of several tasks
	sinks  []*sink
	counts []counts // of every incarnation of a counting task
	sum    string   // of an exactly-once count, when it has ended
}

func newProbe() *probe { return probeBy(newClock()) }

func probeBy(c *clock) *probe {
	p := &probe{clock: c}
	p.from.Store(math.MaxInt64)
	p.until.Store(math.MaxInt64)
	return p
}

// begin and finish bound the timed phase. Messages under way at its end still
// count, or the slowest would be missing.
func (p *probe) begin() {
	p.from.Store(p.clock.now())
	p.tell()
}

func (p *probe) finish() {
	p.until.Store(p.clock.now())
	p.tell()
}

func (p *probe) tell() {
	if p.phase != nil {
		p.phase(p.from.Load(), p.until.Load())
	}
}

func (p *probe) sink(s stamps) *sink {
	k := &sink{probe: p, stamps: s}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sinks = append(p.sinks, k)
	return k
}

func (p *probe) counter() counts {
	c := counts{}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts = append(p.counts, c)
	return c
}

// latencies returns how old messages got, from their emission and from when they
// were due.
func (p *probe) latencies() (emitted, due *Latency) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var e, d []*metrics.Histogram
	for _, s := range p.sinks {
		e, d = append(e, &s.emitted), append(d, &s.due)
	}
	return latency(metrics.Read(e...)), latency(metrics.Read(d...))
}

// digest must not be called before the run has ended: the tasks own the counts.
func (p *probe) digest() string {
	if p.sum != "" {
		return p.sum
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return digest(p.counts)
}

// A sink measures the stamped tuples that reach one task.
type sink struct {
	probe        *probe
	stamps       stamps
	emitted, due metrics.Histogram
}

func (s *sink) observe(in tuple.Tuple) {
	if s.stamps == noStamp {
		return
	}
	if at := in.Int64("emitted"); at != 0 {
		s.record(in, at)
	}
}

func (s *sink) record(in tuple.Tuple, at int64) {
	if at < s.probe.from.Load() || at >= s.probe.until.Load() {
		return
	}
	now := s.probe.clock.now()
	s.emitted.Record(time.Duration(now-at), 1)
	if s.stamps == emittedDue {
		s.due.Record(time.Duration(now-in.Int64("due")), 1)
	}
}

// A nullBolt is the end of a tuple.
type nullBolt struct{ sink *sink }

func (b *nullBolt) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	b.sink.observe(in)
	return nil
}

// each is a bolt without state.
type each func(in tuple.Tuple, out *bolt.Collector) error

func (f each) Execute(in tuple.Tuple, out *bolt.Collector) error { return f(in, out) }

func identity(in tuple.Tuple, out *bolt.Collector) error {
	out.Emit(in.String("line"), in.Int64("emitted"))
	return nil
}

func identityDue(in tuple.Tuple, out *bolt.Collector) error {
	out.Emit(in.String("line"), in.Int64("emitted"), in.Int64("due"))
	return nil
}

// split emits the words of a line, splitEmitted and splitDue with the stamps of
// the line.
func split(in tuple.Tuple, out *bolt.Collector) error {
	for word, rest := cut(in.String("line")); word != ""; word, rest = cut(rest) {
		out.Emit(word)
	}
	return nil
}

func splitEmitted(in tuple.Tuple, out *bolt.Collector) error {
	at := in.Int64("emitted")
	for word, rest := cut(in.String("line")); word != ""; word, rest = cut(rest) {
		out.Emit(word, at)
	}
	return nil
}

func splitDue(in tuple.Tuple, out *bolt.Collector) error {
	at, due := in.Int64("emitted"), in.Int64("due")
	for word, rest := cut(in.String("line")); word != ""; word, rest = cut(rest) {
		out.Emit(word, at, due)
	}
	return nil
}

// A countBolt counts words.
type countBolt struct {
	counts counts
	sink   *sink
}

func (b *countBolt) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	b.counts.add(in.String("word"))
	b.sink.observe(in)
	return nil
}
