package process

import (
	"context"
	"time"

	"github.com/egretstream/egret/cluster"
)

// serversEvery is how often who leads looks whether the right nodes vote.
const serversEvery = 500 * time.Millisecond

// keepServers sees to it, on the node that leads, that all members get the log and the
// right ones vote. One change is asked for at a time.
func (p *Process) keepServers(ctx context.Context) {
	began := time.Now()
	var steady cluster.Steady
	tick := time.NewTicker(serversEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Since(began)
		p.mu.Lock()
		members, leads := p.members, p.leads
		p.mu.Unlock()
		servers := p.keeper.Servers()
		steady.See(now, servers, members)
		if !leads.Me {
			continue
		}
		c, wanted := cluster.Voters(p.self.Node, servers, members, steady.Since(), now)
		if !wanted {
			continue
		}
		done := make(chan error, 1)
		p.changeServers(c, func(err error) { done <- err })
		if err := <-done; err != nil {
			p.log.Debug("a change of the servers of the log has failed: "+err.Error(), "change", c.String())
		} else {
			p.log.Info("the servers of the log have changed", "change", c.String())
		}
	}
}

func (p *Process) changeServers(c cluster.VoterChange, done func(error)) {
	switch c.Do {
	case cluster.AddServer:
		p.keeper.AddNonvoter(c.Node, c.Addr, done)
	case cluster.PromoteServer:
		p.keeper.AddVoter(c.Node, c.Addr, done)
	case cluster.DemoteServer:
		p.keeper.Demote(c.Node, done)
	case cluster.RemoveServer:
		p.keeper.Remove(c.Node, done)
	}
}
