package pair

import (
	"errors"
	"fmt"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/node"
	"github.com/egretstream/egret/task"
)

// An agent is what is over the supervisor and the link of a half: it tells the other
// one, and its own tasks, who lives where.
type agent struct {
	half   *Half
	set    *task.Settings
	config broker.LinkConfig
	begun  chan<- actor.Ref // gets the link

	link, sup actor.Ref
	asked     []count
}

type (
	drain struct{}
	count struct{ reply func(node.Counts) }
)

func (a *agent) Start(ctx actor.Context) {
	c := &a.half.config
	a.link = ctx.Spawn("link", node.NewLink(a.config, ctx.Self()))
	a.set.Share.Over = ctx.Self()
	a.sup = ctx.Spawn(c.Plan.Topology, task.NewSupervisor(c.Plan, a.set, c.Metrics, func(error) {}))
	ctx.Watch(a.link)
	ctx.Watch(a.sup)
	a.begun <- a.link
}

func (a *agent) Receive(ctx actor.Context, msg any) {
	switch m := msg.(type) {
	case *task.Lives:
		news := &task.Peers{}
		for _, p := range m.Peers {
			ctx.Send(a.link, node.Route{Run: m.Run, Task: p.Task, Ref: p.Ref})
			news.Peers = append(news.Peers, task.Peer{Task: p.Task, Life: p.Life})
		}
		ctx.Send(a.link, &task.Far{Run: m.Run, Msg: news})
	case *node.Lives:
		there := &task.Elsewhere{}
		for _, p := range m.Peers {
			there.Peers = append(there.Peers, task.Peer{Task: p.Task, Life: p.Life, Ref: a.link, Far: true})
		}
		ctx.Send(a.sup, there)
	case *task.SavePositions: // nobody goes on where this run was
		ctx.Send(a.sup, task.Saved{})
	case task.Ended:
		if m.Yes {
			a.half.end(nil)
		}
	case drain:
		ctx.Send(a.sup, task.DrainBy{Deadline: a.half.config.Drain})
	case task.Stop:
		ctx.Send(a.sup, m)
	case task.Over:
		a.over(m.Err)
	case count:
		a.asked = append(a.asked, m)
		ctx.Send(a.link, node.Count{})
	case node.Counts:
		a.asked[0].reply(m)
		a.asked = a.asked[1:]
	case node.LinkUp, task.AtRest: // it was expected; it was not asked for
	case node.LinkDown:
		a.half.end(fmt.Errorf("the connection to the other process is broken: %w", m.Err))
	case node.LinkReset:
		a.half.end(fmt.Errorf("what was under way to the other process is lost: %s", m.Why))
	case actor.Terminated:
		a.over(errors.Join(m.Err, errors.New("an actor has ended that must not")))
	default:
		panic(fmt.Sprintf("agent got a %T", msg))
	}
}

// over takes in that no task is left.
func (a *agent) over(err error) {
	a.half.end(err)
	select {
	case <-a.half.over:
	default:
		close(a.half.over)
	}
}

func (a *agent) Turn(actor.Context) bool { return false }

func (a *agent) Stopped(actor.Context) { /* its children are stopped with it */ }
