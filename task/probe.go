package task

import (
	"context"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A Probe is told what the tasks of a run do, for tests and for chaos/live. Its functions
// are called by several tasks at the same time, and for one task one after the other.
// They keep no row and no tuple, and must not wait, except Tick. All are set, but for
// Message, Spawned, Tick and Collected.
type Probe struct {
	// Tree says that messages first to first+n-1 of a batch are about to be emitted
	// as one tree: the next n calls of Message.
	Tree func(tree tuple.TreeID, b *spout.Batch, first, n int)
	// Message says that a task emits a message of its own, or emits it again. If it is
	// nil, the messages of a tree are emitted together, as without a probe.
	Message func(task tuple.TaskID, stream int, r *tuple.Row)
	// Emit says that a task emits a tuple while it executes one.
	Emit func(task tuple.TaskID, stream int, r *tuple.Row)
	// Send says that a parcel of one tuple, that of the last call of Emit or Message,
	// is on its way. It is not called for parcels of several tuples.
	Send func(p *tuple.Parcel)
	// Recode says that q travels instead of p.
	Recode func(p, q *tuple.Parcel)
	// Take says that a bolt task begins with a parcel, and Executed that it is done.
	Take, Executed func(p *tuple.Parcel)
	// Failed says that a tuple of the parcel in hand has failed: by an error, one made
	// by bolt.Reject if it was a misuse, or a *PanicError.
	Failed func(p *tuple.Parcel, err error)
	// Spawned says that a life of a task begins; the supervisor calls it.
	Spawned func(p Peer)
	// Learned says that a task has heard of the present life of another and where it is.
	Learned func(task tuple.TaskID, p Peer)
	// Tick returns true when a task of a bolt is to tick once, beside its interval,
	// and false when it will not be asked to again. It may wait until alive ends.
	Tick func(alive context.Context, task tuple.TaskID, b bolt.Bolt) bool
	// Retain says that the tuple of the parcel in hand is retained as h, and Settled
	// that h is acked, or failed if err is not nil. Void says that nothing comes of h,
	// since its Execute has failed.
	Retain  func(p *tuple.Parcel, h bolt.Owner)
	Settled func(task tuple.TaskID, h bolt.Owner, err error)
	Void    func(task tuple.TaskID, h bolt.Owner)
	// Anchored says that a task emits a tuple that comes of retained ones.
	Anchored func(task tuple.TaskID, stream int, r *tuple.Row, to []*bolt.Held)
	// Away says by how much the calls of Async have grown that are under way.
	Away func(task tuple.TaskID, by int)
	// Own says that a task calls "Tick", "Flush" or "Finish", and with "" that it is back.
	Own func(task tuple.TaskID, during string)
	// Collected says that a task emits a message of its own in such a call; Tree tells of
	// it when the call is over, or enough have come together.
	Collected func(task tuple.TaskID)
}

type hookKey struct{}

// WithHook returns a context that makes a run which is started with it call hook
// with its plan and settings before it begins, so that hook can change them. An
// error of it is that of the start.
func WithHook(ctx context.Context, hook func(*topology.Plan, *Settings) error) context.Context {
	return context.WithValue(ctx, hookKey{}, hook)
}

// Hook calls what WithHook has left in ctx, if anything.
func Hook(ctx context.Context, plan *topology.Plan, set *Settings) error {
	if hook, is := ctx.Value(hookKey{}).(func(*topology.Plan, *Settings) error); is {
		return hook(plan, set)
	}
	return nil
}

// A probed is an outbox whose tuples are told to the probe.
type probed struct{ *outbox }

func (t probed) Put(stream int, r *tuple.Row) {
	if t.own == nil { // else publish tells
		t.c.set.Probe.Emit(t.c.id, stream, r)
	}
	t.outbox.Put(stream, r)
	if probe := t.c.set.Probe; t.own != nil && probe.Collected != nil {
		probe.Collected(t.c.id)
	}
}

// Anchored returns a sink whose tuples are told to the probe.
func (t probed) Anchored(hs []*bolt.Held) bolt.Sink {
	return probedAnchor{t.outbox.Anchored(hs), t.outbox, hs}
}

// A probedAnchor is the sink of a collector that Anchor has made.
type probedAnchor struct {
	bolt.Sink
	out *outbox
	to  []*bolt.Held
}

func (t probedAnchor) Put(stream int, r *tuple.Row) {
	t.out.c.set.Probe.Anchored(t.out.c.id, stream, r, t.to)
	t.Sink.Put(stream, r)
}

// sink returns where the collector of a bolt puts its tuples.
func (o *outbox) sink() bolt.Sink {
	if o.c.set.Probe != nil {
		return probed{o}
	}
	return o
}

// probeRun is run, one message at a time.
func (o *outbox) probeRun(probe *Probe, seg *spout.Segment, cells []tuple.Cell, n int, a *anchor) {
	w := len(seg.Kinds)
	if n == 1 {
		row := tuple.RowOf(seg.Kinds)
		row.Cells = cells
		probe.Message(o.c.id, seg.Stream, &row)
		o.spread(seg, cells, 1, a)
		return
	}
	for i := range n {
		b := a
		if a != nil {
			b = new(*a)
			b.index += uint16(i)
		}
		o.probeRun(probe, seg, cells[i*w:(i+1)*w], 1, b)
	}
}

// A tickNow is what the probe has returned to a bolt task.
type tickNow struct{ tick bool }

// askProbe waits, elsewhere, until the probe wants a tick.
func (t *boltTask) askProbe(alive context.Context) {
	probe, id, b := t.set.Probe, t.id, t.bolt
	t.ctx.Block(func() any { return tickNow{probe.Tick(alive, id, b)} })
}

func (t *boltTask) tickNow(m tickNow) {
	if _, is := t.bolt.(bolt.Ticker); !is || !m.tick || t.phase != working {
		return
	}
	if t.out.kept > 0 {
		t.owed = true
	} else {
		t.callTick()
	}
	if !t.dead {
		t.askProbe(t.alive)
	}
}

func (t *boltTask) probeFailed(p *tuple.Parcel, err error) {
	if probe := t.set.Probe; probe != nil {
		probe.Failed(p, err)
	}
}
