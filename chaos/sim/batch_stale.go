package sim

import (
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// Whatever is dropped, since it is of an attempt or a life that is over, is counted.

// hears has a life of a task receive a message, and checks that it is counted if it is
// surely stale. The counters of what has come are those of its task.
func (b *batchBook) hears(p *proc, msg any, receive func()) {
	what, n := b.stale(p, msg)
	l := b.run.lives[p]
	if n == 0 || l == nil || b.run.s.does("hang") { // a life that was replaced may be at work in a call
		receive()
		return
	}
	count := &b.run.ms[l.task].StaleBatches[what]
	want, text := count.Load()+int64(n), describeBatch(msg) // while it is what it was
	receive()
	b.check(chaos.Rounds)
	b.saw("stale " + what.String())
	if count.Load() < want {
		b.violate(chaos.Rounds, "%s gets a stale %v, and counts none: %s", p.label, what, text)
	}
}

// stale returns of how many and what a message is that p has to drop; it may be one that
// it drops if that is 0.
func (b *batchBook) stale(p *proc, msg any) (what metrics.StaleKind, n int) {
	at, known := b.joined[p]
	switch m := msg.(type) {
	case *tuple.Parcel:
		switch {
		case m.Batch.Attempt == at:
		case m.Marker:
			return metrics.StaleMarker, 1
		default:
			return metrics.StaleTuple, m.Len()
		}
	case *task.Order:
		if known && m.Attempt.Less(at) {
			return metrics.StaleOrder, 1
		}
	case *task.Answer:
		if known && m.Attempt.Less(at) {
			return metrics.StaleAnswer, 1
		}
	}
	return 0, 0
}

// refusedAtEnd checks that what stores have refused is counted, also of calls of lives that
// were over.
func (b *batchBook) refusedAtEnd() {
	for _, what := range []metrics.StaleKind{metrics.StaleJoin, metrics.StaleWrite} {
		var n int64
		for _, m := range b.run.counted {
			n += m.StaleBatches[what].Load()
		}
		b.twin(chaos.Rounds)
		if n != int64(b.refused[what]) {
			b.violate(chaos.Rounds, "stores have refused %d of what is a stale %v, and %d are counted", b.refused[what], what, n)
		}
	}
}
