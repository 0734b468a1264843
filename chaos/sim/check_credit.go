package sim

import (
	"time"

	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A creditBook is what the pairs of a run have sent and may send, and what waits at
// each receiver.
type creditBook struct {
	pairs map[acquaintance]*pairBook
	all   []acquaintance // in order of their first word
	wait  map[*proc]int  // tuples that wait for a life
}

// A pairBook is what a pair has sent and may send. The limit that was said counts,
// whether it has arrived or not.
type pairBook struct{ sent, limit uint64 }

func newCreditBook() creditBook {
	return creditBook{pairs: map[acquaintance]*pairBook{}, wait: map[*proc]int{}}
}

func (c *creditBook) pair(k acquaintance) *pairBook {
	p := c.pairs[k]
	if p == nil {
		p = &pairBook{limit: broker.FirstLimit}
		c.pairs[k] = p
		c.all = append(c.all, k)
	}
	return p
}

// parcel checks that nobody sends more than it may: nothing while the total is at the
// limit. So a queue is bounded by the limits.
func (rec *record) parcel(m *tuple.Parcel, to *proc) {
	rec.check(chaos.Credit)
	p := rec.pairs.pair(acquaintance{m.From, m.To, m.FromLife, m.ToLife})
	if p.sent >= p.limit {
		rec.violate(chaos.Credit, "%s sends %d tuples to %s, and has sent %d of %d", rec.plan.TaskName(m.From), m.Len(), rec.plan.TaskName(m.To), p.sent, p.limit)
	}
	if m.Len() == 0 || m.Len() > rec.scene.set.ParcelSize {
		rec.violate(chaos.Credit, "%s sends a parcel of %d tuples", rec.plan.TaskName(m.From), m.Len())
	}
	p.sent += uint64(m.Len())
	rec.pairs.wait[to] += m.Len()
	if !rec.scene.own { // there nobody tells what was taken
		rec.waits(m.To, rec.pairs.wait[to])
	}
	rec.edges.parcel(rec.w.Now(), m)
	for i := range m.Slots {
		if t := rec.trees.open[m.Slots[i].Tree]; t != nil {
			t.sent = rec.w.Now()
		}
	}
	rec.tracked(m)
}

// waits checks what waits for a task: the window of its life and a parcel less one
// tuple for each sender. A sender that has died takes along what nobody counts any
// more, so then there is nothing to compare.
func (rec *record) waits(t tuple.TaskID, n int) {
	senders := rec.plan.Senders(rec.plan.Tasks[t].Component)
	for _, s := range senders {
		if rec.edges.lives[s].Restart() > 1 {
			return
		}
	}
	rec.check(chaos.Credit)
	if most := len(senders) * (rec.window(rec.plan.Tasks[t].Component) + rec.scene.set.ParcelSize - 1); n > most {
		rec.violate(chaos.Credit, "%d tuples wait for %s, and it has room for %d of %d senders", n, rec.plan.TaskName(t), most, len(senders))
	}
}

// window is the largest window that a task of a part can have: room for 100 ms of
// its work, and for QueuedBytes of text, but 64 to 8192 tuples.
func (rec *record) window(component int) int {
	most := 8192
	p := rec.part(component)
	if p == nil {
		return most
	}
	if least := time.Duration(float64(p.least) * rec.scene.quickest()); least > 0 {
		most = min(most, int(100*time.Millisecond/least)+1)
	}
	if s := rec.scene; s.texts.size > 0 && s.texts.big == 0 && s.set.QueuedBytes > 0 {
		most = min(most, s.set.QueuedBytes/s.texts.size+1)
	}
	return max(most, broker.FirstLimit)
}

// part returns the part that a component of the plan is; nil: one that hears of
// letters.
func (rec *record) part(component int) *part {
	name := rec.plan.Components[component].Name
	for i := range rec.scene.parts {
		if p := &rec.scene.parts[i]; p.name == name && p.mourns == nil {
			return p
		}
	}
	return nil
}

// taken books that a tuple is executed.
func (rec *record) taken(b *simBolt) { rec.pairs.wait[b.proc]-- }

// limit checks what a sender is told.
func (rec *record) limit(m *task.Limit) {
	rec.check(chaos.Credit)
	p := rec.pairs.pair(acquaintance{m.To, m.From, m.ToLife, m.FromLife})
	if most := p.sent + uint64(rec.window(rec.plan.Tasks[m.From].Component)); m.Total > most {
		rec.violate(chaos.Credit, "%s is told %d, and has sent %d, and the window is %d at most", rec.plan.TaskName(m.To), m.Total, p.sent, most-p.sent)
	}
	p.limit = max(p.limit, m.Total)
}

// tracked checks that each tuple of a tracked parcel belongs to a tree.
func (rec *record) tracked(p *tuple.Parcel) {
	if rec.plan.Guarantee != topology.AtLeastOnce {
		return
	}
	rec.check(chaos.Routing)
	n := uint32(0)
	for _, s := range p.Slots {
		n += s.Count
	}
	refs := p.Len() - len(p.Lists)
	for _, list := range p.Lists {
		refs += len(list)
		if len(list) >= 100 {
			rec.saw("100 anchors")
		}
	}
	if int(n) != refs || len(p.Refs) != p.Len() {
		rec.violate(chaos.Routing, "%d tuples of %d messages, but the trees count %d", p.Len(), refs, n)
	}
}

// creditAtEnd checks that at rest every pair of the living may send again.
func (rec *record) creditAtEnd() {
	for _, k := range rec.pairs.all {
		if rec.edges.lives[k.from] != k.fromLife || rec.edges.lives[k.to] != k.toLife {
			continue
		}
		if k.fromLife.Restart() > 1 {
			continue // it may not have been known where it lives: then it asks when it needs more
		}
		rec.twin(chaos.Credit)
		if p := rec.pairs.pairs[k]; p.limit <= p.sent {
			rec.violate(chaos.Credit, "at rest, %s has sent %d tuples to %s, and may send %d", rec.plan.TaskName(k.from), p.sent, rec.plan.TaskName(k.to), p.limit)
		}
	}
}
