package egret

import (
	"fmt"

	"github.com/egretstream/egret/actor"
)

// A guard is the parent of a run's supervisor. It exists so that a mistake of
// Egret's own in the supervisor ends the run with an error, and does not leave
// Wait waiting for ever.
type guard struct {
	supervisor actor.Behavior
	ended      func(error)
	ref        actor.Ref
}

func (g *guard) Start(ctx actor.Context) {
	g.ref = ctx.Spawn("supervisor", g.supervisor)
	ctx.Watch(g.ref)
}

func (g *guard) Receive(ctx actor.Context, msg any) {
	end, is := msg.(actor.Terminated)
	if !is {
		ctx.Send(g.ref, msg)
		return
	}
	if end.Err != nil {
		g.ended(fmt.Errorf("the supervisor has ended (this is a bug in Egret): %w", end.Err))
	}
}

func (g *guard) Turn(actor.Context) bool { return false }
func (g *guard) Stopped(actor.Context)   {}
