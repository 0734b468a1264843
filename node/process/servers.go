package process

import (
	"context"
	"time"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/node"
)

// serversEvery is how often who leads looks whether the right nodes vote.
const serversEvery = 500 * time.Millisecond

// keepServers sees to it, on the node that leads, that all members get the log and the
// right ones vote. One change is asked for at a time.
func (p *Process) keepServers(ctx context.Context) {
	began := time.Now()
	since := map[cluster.NodeID]time.Duration{} // alive without a break
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(serversEvery):
		}
		now := time.Since(began)
		p.mu.Lock()
		members, leads := p.members, p.leads
		p.mu.Unlock()
		p.ageMembers(since, members, now)
		if !leads.Me {
			continue
		}
		p.change(members, since, now)
	}
}

func (p *Process) change(members []cluster.Member, since map[cluster.NodeID]time.Duration, now time.Duration) {
	do := func(ask func(done func(error))) bool {
		done := make(chan error, 1)
		ask(func(err error) { done <- err })
		err := <-done
		if err != nil {
			p.log.Debug("a change of the voters has failed: " + err.Error())
		}
		return err == nil
	}
	servers := map[cluster.NodeID]cluster.Server{}
	voters, eligible := 0, 0
	for _, s := range p.keeper.Servers() {
		servers[s.Node] = s
		if s.Voter {
			voters++
		}
	}
	for _, m := range members {
		if m.Alive && m.Keeps {
			eligible++
		}
	}
	want := 1
	if eligible >= 5 {
		want = 5
	} else if eligible >= 3 {
		want = 3
	}
	for _, m := range members {
		s, known := servers[m.Node]
		if m.Alive && !known {
			do(func(done func(error)) { p.keeper.AddNonvoter(m.Node, m.Addr, done) })
			return
		}
		if m.Alive && m.Keeps && !s.Voter && voters < want && now-since[m.Node] >= 10*time.Second {
			do(func(done func(error)) { p.keeper.AddVoter(m.Node, m.Addr, done) })
			return
		}
	}
}

func (p *Process) ageMembers(since map[cluster.NodeID]time.Duration, members []cluster.Member, now time.Duration) {
	alive := map[cluster.NodeID]bool{}
	for _, m := range members {
		if !m.Alive {
			continue
		}
		alive[m.Node] = true
		if _, known := since[m.Node]; !known {
			since[m.Node] = now
		}
	}
	for id := range since {
		if !alive[id] {
			delete(since, id)
		}
	}
}

// complete fills in what the node knows of a topology that is submitted.
func (p *Process) complete(q *node.Request) *cluster.Refusal { return nil }
