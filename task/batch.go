package task

import (
	"fmt"
	"slices"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// What the tasks of an exactly-once topology have in common. The rules T1 to T19 are in
// docs/trident-rules.md.

// An Order is what the coordinator of the batches tells a task.
type Order struct {
	From, To         tuple.TaskID
	FromLife, ToLife tuple.Incarnation
	batch.Order
}

// An Answer is what a task tells the coordinator of the batches.
type Answer struct {
	From, To         tuple.TaskID
	FromLife, ToLife tuple.Incarnation
	batch.Answer
}

// A round is what a task knows of the round that it is in.
//
// Invariant: what is open, kept, queued or in hand belongs to the attempt at; before
// the first one there is nothing.
type round struct {
	at        tuple.Attempt
	joined    bool // Joined was answered; until then nothing is taken or sent
	left      bool // another plan has ended it
	committed tuple.TxID
	view      []tuple.Incarnation // by TaskID
	lead      tuple.TaskID        // the coordinator
	unheard   bool                // it was not known where that is when Joined was to be answered
}

func newRound(p *topology.Plan) *round {
	i := p.Coordinator()
	if i < 0 {
		return nil
	}
	return &round{lead: p.Components[i].First}
}

// order reports whether an order is for this life and of the attempt that it is in, or
// of a later one that it is to join.
func (c *core) order(m *Order) bool {
	if !c.current(m.From, m.FromLife, m.ToLife) {
		c.stale(metrics.StaleOrder, 1)
		return false
	}
	r := c.round
	var fits bool
	switch {
	case m.Kind == batch.Join && r.at.Less(m.Attempt):
		fits = len(m.View) == len(c.plan.Tasks) && m.View[c.id] == c.life // else it is of another plan
	case m.Kind == batch.Finish:
		fits = !m.Attempt.Less(r.at)
	default:
		fits = m.Attempt == r.at && (r.joined || m.Kind == batch.Join)
	}
	if !fits {
		c.m.Refused.Add(1)
		c.stale(metrics.StaleOrder, 1)
	}
	return fits
}

// stale counts what is dropped, for its attempt or its life is over.
func (c *core) stale(what metrics.StaleKind, n int) { c.m.StaleBatches[what].Add(int64(n)) }

// enterRound throws away what belongs to earlier rounds and takes in the view of the
// next one (T3, T4). The task has joined it when it says so.
func (c *core) enterRound(m *Order) {
	r := c.round
	r.at, r.joined, r.left, r.unheard, r.committed, r.view = m.Attempt, false, false, false, m.Tx, m.View
	c.out.forget()
	for id, life := range m.View {
		if life > c.peers[id].Life {
			c.learn(Peer{Task: tuple.TaskID(id), Life: life})
		}
	}
}

// leaveRound ends the round for this task, since there is another plan: the next one is
// of that (T1).
func (c *core) leaveRound() {
	c.round.joined, c.round.left, c.round.unheard = false, true, false
	c.out.forget()
}

// latest returns the epoch of the latest plan that an order knows of.
func (m *Order) latest() uint32 {
	epoch := m.FromLife.Epoch()
	for _, life := range m.View {
		epoch = max(epoch, life.Epoch())
	}
	return epoch
}

// joined says that the task is in the round.
func (c *core) joined() {
	if c.round.left {
		return
	}
	c.round.joined = true
	c.round.unheard = !c.answer(&batch.Answer{Kind: batch.Joined, BatchID: tuple.BatchID{Attempt: c.round.at, Tx: c.round.committed}})
}

// answer tells the coordinator something, if it is known where it is. If not, that one
// asks again, or begins a new round.
func (c *core) answer(a *batch.Answer) (said bool) {
	lead := c.round.lead
	if c.peers[lead].Ref == nil {
		return false
	}
	c.say(lead, &Answer{From: c.id, To: lead, FromLife: c.life, ToLife: c.peers[lead].Life, Answer: *a})
	return true
}

func (c *core) batchID(tx tuple.TxID) tuple.BatchID {
	return tuple.BatchID{Attempt: c.round.at, Tx: tx}
}

// Of the outbox.

// enter says of which batch the tuples are that are put from now on. A parcel is of one
// batch, so what is open of another one leaves.
func (o *outbox) enter(id tuple.BatchID) {
	if o.batch != id {
		o.flush(0)
		o.batch = id
	}
}

// mark says on every link that nothing more of a batch will come (T5).
func (o *outbox) mark(id tuple.BatchID) {
	o.enter(id)
	o.flush(0)
	for i := range o.streams {
		for k := range o.streams[i].routes {
			r := &o.streams[i].routes[k]
			for n := range r.lanes {
				if l := &r.lanes[n]; l.pair.marked != id {
					l.pair.marked = id
					p := o.parcel(l)
					p.Begin(make([]tuple.Kind, len(p.Schema.Fields)), 0)
					p.Marker = true
					o.dispatch(l, p)
				}
			}
		}
	}
}

// forget throws away what is open or kept: it is of a round that is over. It was not
// sent, so no limit has to be given back.
func (o *outbox) forget() {
	for _, l := range o.live {
		l.listed = false
		if p := l.open; p != nil {
			p.Reset()
			l.open, l.pair.free = nil, append(l.pair.free, p)
		}
	}
	o.live = o.live[:0]
	for _, pr := range o.pairs {
		n := len(pr.kept)
		for i, p := range pr.kept {
			p.Reset()
			pr.free, pr.kept[i] = append(pr.free, p), nil
		}
		pr.kept, pr.marked = pr.kept[:0], tuple.BatchID{}
		o.unkeep(n)
	}
	o.batch = tuple.BatchID{}
	o.release()
}

// stranger reports whether a parcel is for a life that is not in the round: nobody
// takes it (T4).
func (r *round) stranger(p *tuple.Parcel) bool {
	return r != nil && (p.Batch.Attempt != r.at || int(p.To) >= len(r.view) || r.view[p.To] != p.ToLife)
}

// Of the plan.

// settles reports which inputs of a component wait until batches are committed.
func settles(n *topology.Node) []bool {
	if !slices.ContainsFunc(n.Inputs, func(in topology.Input) bool { return in.Settled }) {
		return nil
	}
	yes := make([]bool, len(n.Inputs))
	for i, in := range n.Inputs {
		yes[i] = in.Settled
	}
	return yes
}

// behind reports whether component c gets what a stateful one emits.
func behind(p *topology.Plan, c int) bool {
	return slices.ContainsFunc(p.Origins(c), func(from int) bool { return p.Components[from].Stateful })
}

// notBatched is an error for a bolt that is not made for batches.
func (c *core) notBatched(what string) error {
	return fmt.Errorf("bolt %s of an exactly-once topology is not %s: build it with package trident, or implement that", c.node.Name, what)
}
