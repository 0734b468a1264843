package task

import (
	"fmt"
	"slices"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// How a living task takes in a plan that was made for others.
//
// A component whose parallelism has changed has new tasks, with numbers of their own;
// the old ones are dead, and no life of theirs will come. A task that was moved has a
// later life. Both are news of deaths (R4). Mostly a plan changes when nothing is open,
// so that nothing is lost by it; if not, the ledgers know what is.

// replanned gives a task the new plan and who lives where in it.
type replanned struct {
	plan  *topology.Plan
	peers []Peer // that are new, or were moved, or are no more
}

// replan takes in a plan of the same topology.
func (c *core) replan(m *replanned) {
	if c.round != nil {
		c.leaveRound()
	}
	c.plan = m.plan
	c.node = m.plan.Node(c.id)
	n := len(m.plan.Tasks)
	for id := len(c.peers); id < n; id++ {
		c.peers = append(c.peers, Peer{Task: tuple.TaskID(id)})
	}
	c.reports.grow(n)
	for _, p := range m.peers { // the old ones first, while their pairs are there
		if c.peers[p.Task].Life != 0 {
			c.learn(p)
		}
	}
	err := c.out.replan()
	if c.onReplan != nil {
		c.onReplan()
	}
	if err == nil {
		for _, p := range m.peers {
			c.learn(p)
		}
	}
	early := c.early
	c.early = nil
	for _, msg := range early {
		c.self.Receive(c.ctx, msg)
	}
	if err != nil {
		c.fail(fmt.Errorf("%s: %w", c.m.Name, err), true, true)
	}
}

// tooEarly keeps what is said by a life of a later plan, or by a task that knows that
// plan, until it is known here too: it came by another way. What comes of a parcel must
// go to the lives of the plan in which it was sent, and by the way that it has there.
//
// It is bounded by the first limits of those lives.
func (c *core) tooEarly(msg any) bool {
	if c.set.Share == nil {
		return false
	}
	epoch := c.plan.Epoch
	switch m := msg.(type) {
	case *Encoded:
		epoch = max(m.Plan, m.FromLife.Epoch())
	case *tuple.Parcel:
		epoch = max(m.Plan, m.FromLife.Epoch())
	case *Limit:
		epoch = m.FromLife.Epoch()
	case *Ask:
		epoch = m.FromLife.Epoch()
	case *End:
		epoch = m.FromLife.Epoch()
	case *Dry:
		epoch = m.FromLife.Epoch()
	case *Order:
		epoch = m.latest()
	case *Answer:
		epoch = m.FromLife.Epoch()
	case *acker.Report:
		epoch = m.FromLife.Epoch()
		for _, d := range m.View {
			epoch = max(epoch, d.Life.Epoch())
		}
	}
	if epoch <= c.plan.Epoch && (len(c.early) == 0 || !inOrder(msg)) {
		return false
	}
	if _, is := msg.(*Order); is { // the last one says all
		c.early = slices.DeleteFunc(c.early, func(m any) bool { _, is := m.(*Order); return is })
	}
	if !mutation.Is(mutation.EarlyDropped) {
		c.early = append(c.early, msg)
	}
	return true
}

// inOrder reports whether a message must not overtake others of its sender.
func inOrder(msg any) bool {
	switch msg.(type) {
	case *Encoded, *tuple.Parcel, *End, *Dry:
		return true
	}
	return false
}

func (r *reporter) grow(n int) {
	r.open = append(r.open, make([]*acker.Report, n-len(r.open))...)
}

// replan builds the routes anew that lead to other tasks than before. What is open or
// kept for tasks that are no more has been dropped.
func (o *outbox) replan() error {
	c := o.c
	n := len(c.plan.Tasks)
	o.byTask = append(o.byTask, make([]*pair, n-len(o.byTask))...)
	wanted := make([]bool, n)
	before := slices.Clone(o.pairs)
	for _, r := range c.node.Outputs {
		to := &c.plan.Components[r.To]
		for i := range to.Parallel {
			id := to.First + tuple.TaskID(i)
			wanted[id] = true
			if o.byTask[id] == nil {
				o.pair(id)
			}
		}
	}
	o.pairs = slices.DeleteFunc(o.pairs, func(pr *pair) bool {
		if wanted[pr.task] {
			return false
		}
		o.unkeep(len(pr.kept)) // untracked ones: nobody is left to take them
		o.byTask[pr.task] = nil
		return true
	})
	at := make([]int, len(c.node.Streams))
	for i := range c.node.Outputs {
		def := &c.node.Outputs[i]
		s := &o.streams[def.Stream]
		r := &s.routes[at[def.Stream]]
		at[def.Stream]++
		to := &c.plan.Components[def.To]
		if same(r, to) {
			r.Route = def
			continue
		}
		for k := range r.lanes {
			l := &r.lanes[k]
			l.listed, l.open = false, nil
		}
		o.live = slices.DeleteFunc(o.live, func(l *lane) bool { return l.route == r })
		if r.held {
			o.held--
			o.unkeep(1)
		}
		next := o.route(def)
		if err := next.choice.setup(c, def); err != nil {
			return err
		}
		next.each = !next.any() && def.Grouping != topology.Global
		*r = next
		for k := range r.lanes {
			r.lanes[k].route = r
		}
	}
	for _, pr := range o.pairs {
		if pr.done && !slices.Contains(before, pr) {
			o.endTo(pr)
		}
	}
	o.nearest()
	o.release()
	return nil
}

// same reports whether a route leads to the tasks of a component as it is now.
func same(r *route, to *topology.Node) bool {
	return len(r.lanes) == to.Parallel && r.lanes[0].pair.task == to.First
}

// pair makes the pair with a task.
func (o *outbox) pair(id tuple.TaskID) {
	p := &o.c.peers[id]
	o.byTask[id] = &pair{task: id, bit: acker.Bit(id), ref: p.Ref, link: o.link(p), pace: pace{at: o.c.now}, done: o.c.ended}
	o.pairs = append(o.pairs, o.byTask[id])
}

// route makes a route with its lanes, whose pairs are there.
func (o *outbox) route(def *topology.Route) route {
	to := &o.c.plan.Components[def.To]
	r := route{Route: def, lanes: make([]lane, to.Parallel), home: o.c.plan.Tasks[o.c.id].Index % to.Parallel}
	for k := range r.lanes {
		r.lanes[k] = lane{pair: o.byTask[to.First+tuple.TaskID(k)], input: def.Input, stream: def.Stream, size: o.size}
	}
	if def.Grouping == topology.Fields {
		r.owner = make([]uint16, tuple.KeyGroups)
		for g := range r.owner {
			r.owner[g] = uint16(tuple.Owner(g, to.Parallel))
		}
	}
	return r
}

// replanned takes in other senders. Those that are no more have ended.
func (t *boltTask) replanned() {
	component := t.plan.Tasks[t.id].Component
	for id := len(t.index); id < len(t.plan.Tasks); id++ {
		t.index = append(t.index, -1)
	}
	now := t.plan.Senders(component)
	for i, id := range t.senders {
		if !slices.Contains(now, id) && !t.eof[i] {
			t.eof[i] = true
			t.open--
		}
	}
	for _, id := range now {
		i := t.index[id]
		if i < 0 {
			t.index[id] = int32(len(t.senders))
			t.senders = append(t.senders, id)
			t.eof, t.dry = append(t.eof, false), append(t.dry, false)
			t.empty = append(t.empty, nil)
			t.window.Add()
			t.open++
		} else if t.gone[id] && t.eof[i] {
			t.eof[i] = false
			t.open++
		}
	}
	for i, id := range t.senders {
		if t.gone == nil {
			t.gone = map[tuple.TaskID]bool{}
		}
		if t.gone[id] = !slices.Contains(now, id); t.gone[id] {
			t.dry[i] = true
		}
	}
	t.arrived++
	if t.round != nil { // which the task has left
		t.throwAway()
	}
}
