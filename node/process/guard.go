package process

import (
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/node"
)

// A guard sees to it that the death of the agent is heard: a node without one still leads
// the log and says that it is well, so its process has to end.
type guard struct {
	*node.Agent
	died *death
}

// A death is that of the agent, which happens once at most.
type death struct {
	once sync.Once
	came chan struct{} // closed with it
	err  error         // written before
}

func (g *guard) Receive(ctx actor.Context, msg any) {
	defer g.watch()
	g.Agent.Receive(ctx, msg)
}

func (g *guard) Turn(ctx actor.Context) bool {
	defer g.watch()
	return g.Agent.Turn(ctx)
}

func (g *guard) watch() {
	r := recover()
	if r == nil {
		return
	}
	g.died.once.Do(func() {
		g.died.err = fmt.Errorf("the agent of this node has died by a bug of Egret: %v\n%s", r, debug.Stack())
		close(g.died.came)
	})
	panic(r)
}

// Died returns a channel that is closed if the node has died by a bug. Who has started it
// then calls Close, and ends; Err says why.
func (p *Process) Died() <-chan struct{} { return p.died.came }

// Err is why the node has died.
func (p *Process) Err() error {
	select {
	case <-p.died.came:
		return p.died.err
	default:
		return nil
	}
}
