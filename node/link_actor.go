package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

const (
	ackAfter    = 20 * time.Millisecond
	mostWritten = 512 << 10 // bytes that a connection may hold
	writeAfter  = 64 << 10  // bytes that do not wait for the mailbox to run dry
	// With so much in the control lane, what is said again anyway is dropped.
	repeatable = 1 << 20
)

// A Link is the actor of what is between this process and another node: tasks and the
// agent give it what is for there, and it gives them what comes from there.
//
// All that is sent arrives, in the order in which it was sent by one of them to one of
// them (but for parcels and what follows them, which may be overtaken by the rest), or
// the agent gets a LinkReset. An agent that hears of a new process of the peer sends
// Expect before anything that is for that one.
type Link struct {
	ctx    actor.Context
	agent  actor.Ref
	link   *broker.Link
	conn   Conn // nil: there is none
	routes map[place]actor.Ref

	waiting bool // a timer is set, to ack
	fresh   int  // bytes queued since the last write
	grants  []broker.Grant
	counts  Counts
}

// A place is a task of a run.
type place struct {
	run  uint32
	task tuple.TaskID
}

type ackNow struct{}

// NewLink returns the link to a node. The agent is told what becomes of it.
func NewLink(c broker.LinkConfig, agent actor.Ref) *Link {
	return &Link{agent: agent, link: broker.NewLink(c), routes: map[place]actor.Ref{}}
}

// Start is called once, before anything else.
func (l *Link) Start(ctx actor.Context) { l.ctx = ctx }

// Receive handles one message.
func (l *Link) Receive(ctx actor.Context, msg any) {
	l.ctx = ctx
	switch m := msg.(type) {
	case *task.Far:
		l.far(m)
	case *Note:
		l.queue(broker.Control, broker.Note, 0, broker.Sender{}, m.Payload)
	case Arrived:
		if m.Conn == l.conn {
			l.arrived(m.Frames)
		}
	case Wrote:
		if m.Conn == l.conn {
			l.link.Wrote(m.Bytes)
		}
	case ackNow:
		l.waiting = false
		l.link.Idle()
	case Connected:
		if l.conn != nil {
			l.hangUp(errors.New("another connection takes its place"), false)
		}
		l.conn = m.Conn
		l.conn.Write([][]byte{l.link.Hello()})
	case Broken:
		if m.Conn == l.conn {
			l.hangUp(m.Err, m.Refused)
		}
	case Route:
		l.route(m)
	case Gone:
		l.link.ForgetSender(broker.Sender{Run: m.Run, Task: m.Task, Life: m.Life})
	case Expect:
		before := l.link.Peer()
		if l.link.Expect(m.Boot) {
			l.reset(before, fmt.Sprintf("process %d of the node has begun", m.Boot))
		}
	case Forget:
		l.giveUp("it was given up")
	case Count:
		ctx.Send(l.agent, l.count())
	default:
		panic(fmt.Sprintf("link got a %T", msg))
	}
}

// Turn writes what has been queued.
func (l *Link) Turn(ctx actor.Context) (more bool) {
	l.ctx = ctx
	l.write()
	return false
}

// Stopped is called once, as the last thing.
func (l *Link) Stopped(actor.Context) {
	if l.conn != nil {
		l.conn.Close()
	}
}

func (l *Link) route(m Route) {
	at := place{m.Run, m.Task}
	if m.Ref == nil {
		delete(l.routes, at)
	} else {
		l.routes[at] = m.Ref
	}
}

// far queues what a task says to a task of the other node.
func (l *Link) far(m *task.Far) {
	lane := broker.Control
	switch msg := m.Msg.(type) {
	case *task.Encoded:
		l.queue(broker.Data, broker.Parcel, m.Run, broker.Sender{Run: m.Run, Task: msg.From, Life: msg.FromLife}, msg.Bytes)
		return
	case *task.End, *task.Dry:
		lane = broker.Data // behind the parcels
	case *acker.Report:
		if control, _ := l.link.Bytes(); control > repeatable && len(msg.Entries)+len(msg.Fails)+len(msg.Lost) == 0 {
			return
		}
	case *task.Ask:
		if control, _ := l.link.Bytes(); control > repeatable {
			return
		}
	}
	b, err := task.AppendMessage(make([]byte, 0, 64), m.Msg)
	if err != nil {
		panic(err)
	}
	if r, ok := m.Msg.(*acker.Report); ok && len(b) > l.link.MaxFrame-broker.HeaderSize && len(r.Fails) > 1 {
		first, rest := split(r)
		l.far(&task.Far{Run: m.Run, Msg: first})
		l.far(&task.Far{Run: m.Run, Msg: rest})
		return
	}
	l.queue(lane, broker.Task, m.Run, broker.Sender{}, b)
}

// split divides a report whose texts are too much for one frame. A ledger must hear of a
// fail not later than of the entry of its parcel.
func split(r *acker.Report) (first, rest *acker.Report) {
	half := len(r.Fails) / 2
	first = &acker.Report{From: r.From, FromLife: r.FromLife, To: r.To, ToLife: r.ToLife, View: r.View, Fails: r.Fails[:half]}
	second := *r
	second.Fails = r.Fails[half:]
	return first, &second
}

// queue hands a frame over. One for which there is no room is lost, and a link that has
// lost something is dead.
func (l *Link) queue(lane broker.Lane, kind broker.Kind, run uint32, from broker.Sender, payload []byte) {
	if err := l.link.Queue(lane, kind, run, from, payload); err != nil {
		l.giveUp(err.Error())
		return
	}
	if l.fresh += len(payload); l.fresh >= writeAfter {
		l.write()
	}
}

// write hands to the connection what it takes, and tells tasks what they may send.
func (l *Link) write() {
	l.fresh = 0
	if l.conn != nil {
		if pieces := l.link.Write(nil, mostWritten); len(pieces) > 0 {
			l.conn.Write(pieces)
		}
	}
	l.grants = l.link.Raise(l.grants[:0])
	for _, g := range l.grants {
		if ref := l.routes[place{g.Run, g.Task}]; ref != nil {
			l.ctx.Send(ref, task.Credit{Link: l.ctx.Self(), Life: g.Life, Bytes: g.Limit, Empty: g.Empty})
		}
	}
}

// arrived takes frames of the present connection.
func (l *Link) arrived(frames [][]byte) {
	conn := l.conn
	for _, b := range frames {
		l.counts.FramesIn++
		l.counts.BytesIn += uint64(len(b))
		if err := l.frame(b); err != nil {
			l.hangUp(err, false)
		}
		if l.conn != conn {
			return // what is left came by a connection that is over
		}
	}
	if l.link.Owes() && !l.waiting {
		l.waiting = true
		l.ctx.After(ackAfter, ackNow{})
	}
}

// frame takes one frame. An error means that the connection is bad.
func (l *Link) frame(b []byte) error {
	f, err := broker.ParseFrame(b)
	if err != nil {
		l.counts.Corrupt++
		return err
	}
	if f.Kind == broker.Hello {
		return l.greeted(f.Payload)
	}
	deliver, err := l.link.Arrived(&f)
	if err != nil || !deliver {
		return err
	}
	if err := l.deliver(&f); err != nil {
		// It counts as arrived, and nobody has got it.
		l.counts.Corrupt++
		l.giveUp(fmt.Sprintf("%v has sent what this program cannot read: do all nodes run the same program? %v", l.link.Peer(), err))
	}
	return nil
}

func (l *Link) greeted(payload []byte) error {
	g, err := broker.ParseGreeting(payload)
	if err != nil {
		l.counts.Corrupt++
		return err
	}
	before := l.link.Peer()
	outcome, err := l.link.Greeted(g)
	if outcome == broker.Reset {
		l.tellReset(before, "the other end has forgotten the link")
	}
	if err == nil {
		l.ctx.Send(l.agent, LinkUp{l.link.Peer(), outcome == broker.Resumed, l.link.Last()})
	}
	return err
}

// deliver gives a frame to whom it is for.
func (l *Link) deliver(f *broker.Frame) error {
	switch f.Kind {
	case broker.Note:
		l.ctx.Send(l.agent, &Note{l.link.Peer(), f.Payload})
	case broker.Parcel:
		h, err := tuple.HeadOf(f.Payload)
		if err != nil {
			return err
		}
		l.give(f.Run, h.To, &task.Encoded{From: h.From, FromLife: h.FromLife, To: h.To, Plan: h.Plan, Input: h.Input, Tuples: h.Tuples, Bytes: f.Payload})
	case broker.Task:
		msg, err := task.DecodeMessage(f.Payload)
		if err != nil {
			return err
		}
		switch m := msg.(type) {
		case *acker.Report:
			l.give(f.Run, m.To, m)
		case *task.Limit:
			l.give(f.Run, m.To, m)
		case *task.Ask:
			l.give(f.Run, m.To, m)
		case *task.End:
			l.give(f.Run, m.To, m)
		case *task.Dry:
			l.give(f.Run, m.To, m)
		case *task.Order:
			l.give(f.Run, m.To, m)
		case *task.Answer:
			l.give(f.Run, m.To, m)
		case *task.Peers:
			l.ctx.Send(l.agent, &Lives{l.link.Peer(), f.Run, m.Peers})
		default:
			return fmt.Errorf("nobody takes a %T", msg)
		}
	}
	return nil
}

// give sends a message to a task. One that is not here has moved or ended, which its
// peers hear of by other ways.
func (l *Link) give(run uint32, to tuple.TaskID, msg any) {
	if ref := l.routes[place{run, to}]; ref != nil {
		l.ctx.Send(ref, msg)
	} else {
		l.counts.Unrouted++
	}
}

// hangUp ends the connection, if there is one, and says why. The link goes on.
func (l *Link) hangUp(err error, refused bool) {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
	l.link.Broken()
	l.ctx.Send(l.agent, LinkDown{l.link.Peer(), err, refused})
}

// giveUp forgets the link; what is behind it is dead.
func (l *Link) giveUp(why string) {
	l.link.Forget()
	l.reset(l.link.Peer(), why)
}

func (l *Link) reset(peer cluster.Home, why string) {
	l.tellReset(peer, why)
	if l.conn != nil {
		l.hangUp(errors.New(why), false)
	}
}

func (l *Link) tellReset(peer cluster.Home, why string) {
	l.counts.Resets++
	l.ctx.Send(l.agent, LinkReset{peer, why})
}

func (l *Link) count() Counts {
	c := l.counts
	c.Peer, c.Resent, c.Repeated = l.link.Peer(), l.link.Resent(), l.link.Repeated()
	c.Control, c.Data = l.link.Bytes()
	c.FramesOut, c.BytesOut = l.link.Written()
	return c
}
