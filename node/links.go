package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// A peer is another node, as an agent knows it.
type peer struct {
	ref     actor.Ref // of the Link
	home    cluster.Home
	addr    string
	up      bool
	refused bool
	down    time.Duration // since when there is no connection
	reset   []cluster.RunEpoch
}

// A note is what an agent says to another one: one of its fields.
type note struct {
	Report *cluster.Report `json:"report,omitempty"`
	Save   *save           `json:"save,omitempty"`
	Change *change         `json:"change,omitempty"`
	Head   *head           `json:"head,omitempty"`
	Ask    *asked          `json:"ask,omitempty"`
	Answer *answered       `json:"answer,omitempty"`
	Counts *counts         `json:"counts,omitempty"`
}

type (
	// asked is a request for who leads.
	asked struct {
		ID      uint64   `json:"id"`
		Request *Request `json:"request"`
	}
	// answered is the answer, which is passed on when the log has come to Applied where
	// it was asked: what was changed is seen there.
	answered struct {
		ID      uint64  `json:"id"`
		Answer  *Answer `json:"answer"`
		Applied uint64  `json:"applied,omitempty"`
	}
	// save asks who leads to make positions durable. The log is the answer.
	save struct {
		Run       cluster.Run        `json:"run"`
		Positions []cluster.Position `json:"positions"`
	}
)

// connect keeps a link to every node that is alive or has tasks of a run that is here,
// and lets go of others.
func (a *Agent) connect() {
	wanted := map[cluster.NodeID]bool{}
	for _, m := range a.members {
		if !m.Alive || m.Node == a.Self.Node {
			continue
		}
		wanted[m.Node] = true
		a.keep(m.Home, m.Addr)
	}
	for _, run := range slices.Sorted(maps.Keys(a.parts)) {
		p := a.parts[run]
		if p.placed == nil {
			continue
		}
		for _, home := range p.homes(a) {
			wanted[home.Node] = true
			if n, known := a.state.Node(home.Node); known && a.links[home.Node] == nil {
				a.keep(home, n.Addr)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.links)) {
		if !wanted[id] {
			l := a.links[id]
			a.Network.Drop(l.home)
			a.ctx.Stop(l.ref)
			delete(a.links, id)
		}
	}
}

// keep has a link to a process.
func (a *Agent) keep(to cluster.Home, addr string) {
	l := a.links[to.Node]
	if l != nil && (to.Boot < l.home.Boot || to.Boot == l.home.Boot && addr == l.addr) {
		return
	}
	if l == nil {
		l = &peer{home: to, addr: addr, down: a.ctx.Now()}
		l.ref = a.ctx.Spawn("link "+to.String(), NewLink(broker.LinkConfig{
			Cluster: a.Cluster, Version: a.Version, Self: a.Self.Home, Peer: to, Last: a.lasts[to],
		}, a.ctx.Self()))
		a.links[to.Node] = l
		for _, run := range slices.Sorted(maps.Keys(a.parts)) {
			p := a.parts[run]
			for _, id := range slices.Sorted(maps.Keys(p.own)) {
				a.ctx.Send(l.ref, Route{Run: uint32(run), Task: id, Ref: p.own[id].Ref})
			}
		}
	} else {
		if to.Boot > l.home.Boot {
			a.ctx.Send(l.ref, Expect{to.Boot})
		}
		a.Network.Drop(l.home)
	}
	l.home, l.addr, l.refused = to, addr, false
	a.Network.Keep(to, addr, l.ref)
}

// linkOf returns the link to a process, nil if there is none.
func (a *Agent) linkOf(home cluster.Home) *peer {
	if l := a.links[home.Node]; l != nil && l.home == home {
		return l
	}
	return nil
}

// tellLinks tells all links of a task of this node.
func (a *Agent) tellLinks(msg any) {
	for _, id := range slices.Sorted(maps.Keys(a.links)) {
		a.ctx.Send(a.links[id].ref, msg)
	}
}

func (a *Agent) linkUp(m LinkUp) {
	l := a.links[m.Peer.Node]
	if l == nil {
		return
	}
	if m.Peer.Boot > l.home.Boot {
		a.Network.Drop(l.home)
		l.home = m.Peer
		a.Network.Keep(l.home, l.addr, l.ref)
	}
	l.up, l.refused, a.dirty = true, false, true
	a.lasts[l.home] = m.Epoch
	if m.Resumed {
		return
	}
	// The other end may know nothing yet.
	for _, run := range slices.Sorted(maps.Keys(a.parts)) {
		if p := a.parts[run]; p.placed != nil && slices.Contains(p.homes(a), l.home) {
			p.tellLives(a, l.home, slices.Collect(maps.Keys(p.own)))
		}
	}
}

func (a *Agent) linkDown(m LinkDown) {
	l := a.links[m.Peer.Node]
	if l == nil || m.Peer.Boot < l.home.Boot {
		return
	}
	if l.up {
		l.down = a.ctx.Now()
	}
	if l.up || m.Refused != l.refused {
		a.dirty = true
	}
	l.up, l.refused = false, m.Refused
}

// linkReset takes in that something is lost between this process and another one. If
// both have tasks of a run, one of them must get others; the coordinator hears of it
// until there is another plan.
func (a *Agent) linkReset(m LinkReset) {
	l := a.links[m.Peer.Node]
	if l == nil {
		return
	}
	a.dirty = true
	for _, run := range slices.Sorted(maps.Keys(a.parts)) {
		p := a.parts[run]
		if p.placed != nil && p.sup != nil && len(p.own) > 0 && !mutation.Is(mutation.ResetIgnored) && slices.Contains(p.homes(a), m.Peer) {
			l.reset = append(l.reset, cluster.RunEpoch{Run: run, Epoch: p.placed.Epoch})
		}
	}
	a.Tell("what was under way to another node is lost", "node", m.Peer.String(), "reason", m.Why)
}

// report says how a link is, and whether that is worth saying.
func (l *peer) report(a *Agent) (r cluster.LinkReport, ill bool) {
	l.reset = slices.DeleteFunc(l.reset, func(e cluster.RunEpoch) bool {
		p := a.parts[e.Run]
		return p == nil || p.placed == nil || p.placed.Renewed(a.Self.Home, e.Epoch) || p.placed.Renewed(l.home, e.Epoch)
	})
	r = cluster.LinkReport{To: l.home, Reset: l.reset}
	if !l.up {
		r.Refused, r.Down = l.refused, a.ctx.Now()-l.down
	}
	return r, !l.up || len(l.reset) > 0
}

// note sends a note to a node. It is false if there is no way.
func (a *Agent) note(to cluster.NodeID, n *note) bool {
	l := a.links[to]
	if l == nil {
		return false
	}
	b, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	a.ctx.Send(l.ref, &Note{Payload: b})
	return true
}

// noted takes in what another agent says.
func (a *Agent) noted(m *Note) {
	var n note
	if err := json.Unmarshal(m.Payload, &n); err != nil {
		a.Tell("a node says what cannot be read: do all run the same version?", "node", m.From.String(), "error", err.Error())
		return
	}
	switch {
	case n.Report != nil && a.lead != nil && n.Report.Home == m.From:
		a.lead.c.Report(n.Report)
	case n.Save != nil && a.lead != nil:
		a.lead.save(n.Save)
	case n.Change != nil && a.lead != nil:
		a.lead.change(m.From, n.Change)
	case n.Head != nil:
		a.heardHead(n.Head)
	case n.Ask != nil:
		a.askedBy(m.From, n.Ask)
	case n.Answer != nil:
		a.answer(n.Answer)
	case n.Counts != nil && a.lead != nil:
		a.lead.count(m.From, n.Counts)
	}
}

// farLives takes in which lives of tasks on another node are the present ones.
func (a *Agent) farLives(m *Lives) {
	p := a.parts[cluster.Run(m.Run)]
	if p == nil {
		p = newPart(cluster.Run(m.Run)) // the log is late here
		a.parts[p.run] = p
	}
	p.heard(a, m.From, m.Peers)
}

// tellLives tells another process of lives of tasks that are here.
func (p *part) tellLives(a *Agent, to cluster.Home, ids []tuple.TaskID) {
	l := a.linkOf(to)
	if l == nil || len(ids) == 0 {
		return // it hears of all when there is a link
	}
	slices.Sort(ids)
	m := &task.Peers{}
	for _, id := range ids {
		m.Peers = append(m.Peers, task.Peer{Task: id, Life: p.own[id].Life})
	}
	a.ctx.Send(l.ref, &task.Far{Run: uint32(p.run), Msg: m})
}

func (p *peer) String() string { return fmt.Sprintf("%v at %s", p.home, p.addr) }
