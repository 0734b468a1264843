package node

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A part is what this node has of a run: whether it could have tasks of it, and the
// supervisor of those that it has.
//
//	seen --can run it, has tasks--> running --others' plans--> running
//	                                   | done, failed, forgotten, by itself
//	                                   v
//	                                stopping --Over--> over
type part struct {
	run     cluster.Run
	def     *topology.Topology
	cannot  string         // why no task can be here
	placed  *cluster.Plan  // that its tasks live in
	sup     actor.Ref      // nil: not running
	plan    *topology.Plan // the same, as it was built
	metrics []*metrics.Task
	names   metrics.Names         // of the bolts' own metrics
	had     map[tuple.TaskID]bool // tasks that are here or were

	own      map[tuple.TaskID]task.Peer // lives of tasks that are here
	far      map[tuple.TaskID]farLife   // and elsewhere
	ended    bool
	drain    bool   // the supervisor was told to
	halted   uint64 // the Halt that the supervisor was told; 0: none
	rest     uint64 // the same, when all has come to rest
	stopping bool
	over     bool
	err      string // why it is over, if nobody has stopped it

	saving *task.SavePositions // that the log does not have yet
	said   time.Duration       // when it was last asked to

	recording *recording // nil: nothing is waited for
}

type farLife struct {
	life tuple.Incarnation
	at   cluster.Home
}

func newPart(run cluster.Run) *part {
	return &part{run: run, had: map[tuple.TaskID]bool{}, own: map[tuple.TaskID]task.Peer{}, far: map[tuple.TaskID]farLife{}}
}

// follow does what the log says.
func (p *part) follow(a *Agent, sub *cluster.Submission) {
	p.seeSaved(a, sub)
	p.seeRecord(a, sub)
	if !sub.Status.Runs() {
		p.stop(a)
		return
	}
	if p.def == nil && p.cannot == "" {
		p.check(a, sub)
	}
	if p.cannot != "" || sub.Plan == nil || p.stopping || p.over {
		return
	}
	if p.placed == nil || p.placed.Epoch != sub.Plan.Epoch {
		p.replan(a, sub)
	}
	if p.sup == nil {
		return
	}
	switch {
	case sub.Status.Ends():
		if sub.Status == cluster.Stopping && p.ended {
			p.halt(a, cluster.AtEnd) // until the log has all that they have done
		} else {
			p.halt(a, 0)
		}
		if !p.drain {
			p.drain = true
			a.ctx.Send(p.sup, task.DrainBy{Deadline: drainFor})
		}
	case sub.Next != nil:
		p.halt(a, sub.NextAt)
	case sub.Status == cluster.Inactive:
		p.halt(a, inactive)
	default:
		p.halt(a, 0)
	}
}

const (
	inactive = cluster.AtEnd - 1 // the Halt of a run that is inactive
	drainFor = 30 * time.Second
)

func (p *part) halt(a *Agent, n uint64) {
	if p.halted == n {
		return
	}
	p.halted, p.rest, a.dirty = n, 0, true
	a.ctx.Send(p.sup, task.Halt{N: n})
}

// check finds out whether this node's program can run what was submitted.
func (p *part) check(a *Agent, sub *cluster.Submission) {
	a.dirty = true
	spec := sub.Spec
	if refusal := a.Program.Complete(&spec); refusal != nil {
		p.cannot = fmt.Sprintf("node %s: %s", a.Self.Name, refusal.Text)
		return
	}
	p.def = find(a.Program.Topologies, sub.Topology)
}

// build makes a plan with the tasks of placed.
func (p *part) build(sub *cluster.Submission, placed *cluster.Plan) (*topology.Plan, error) {
	g, err := topology.ParseGuarantee(sub.Guarantee)
	if err != nil {
		return nil, err
	}
	o := topology.Options{Params: sub.Params, Parallel: map[string]int{}, Guarantee: g, Epoch: placed.Epoch}
	for i, c := range sub.Components {
		o.Parallel[c.Name] = placed.Components[i].Parallel
		o.First = append(o.First, placed.Components[i].First)
	}
	for _, t := range placed.Tasks {
		o.Tasks = append(o.Tasks, topology.Task{Component: t.Component, Index: t.Index})
	}
	return p.def.Build(o)
}

// replan goes over to the plan that the log has now.
func (p *part) replan(a *Agent, sub *cluster.Submission) {
	if p.sup == nil && !slices.ContainsFunc(sub.Plan.Tasks, func(t cluster.Task) bool { return t.Home == a.Self.Home }) {
		return
	}
	a.dirty = true
	plan, err := p.build(sub, sub.Plan)
	if err != nil {
		p.over, p.err = true, fmt.Sprintf("node %s: %v", a.Self.Name, err)
		return
	}
	p.placed, p.plan, p.ended, p.rest = sub.Plan, plan, false, 0
	for id := len(p.metrics); id < len(plan.Tasks); id++ {
		n := plan.Node(tuple.TaskID(id))
		p.metrics = append(p.metrics, metrics.NewTask(plan.TaskName(tuple.TaskID(id)), len(n.Streams), len(n.Inputs)))
		p.metrics[id].Own.Names = &p.names
	}
	share := &task.Share{Run: uint32(p.run), First: sub.First, Over: a.ctx.Self(), MaxParcel: maxParcel}
	for id, t := range sub.Plan.Tasks {
		if t.Home == a.Self.Home {
			p.had[tuple.TaskID(id)] = true
		}
		share.Here = append(share.Here, t.Home == a.Self.Home)
		share.Retired = append(share.Retired, t.Home.Node == 0)
		share.Epoch = append(share.Epoch, t.Epoch)
	}
	p.forget(a, sub.Plan)
	a.connect()
	positions := map[string]map[string]string{}
	for at := range sub.Positions.All() {
		if positions[at.Component] == nil {
			positions[at.Component] = map[string]string{}
		}
		positions[at.Component][at.Split] = at.Position
	}
	if p.sup == nil {
		set, err := a.Program.Settings(p.run, &sub.Spec)
		if err != nil {
			p.over, p.err = true, fmt.Sprintf("node %s: %v", a.Self.Name, err)
			return
		}
		set.Share, set.Positions, set.Continued = share, positions, set.Continued || sub.Positions.Len() > 0 || sub.Record != nil && sub.Record.Committed > 0
		p.sup = a.ctx.Spawn(plan.Topology, task.NewSupervisor(plan, set, p.metrics, func(error) {}))
		a.ctx.Watch(p.sup)
	} else {
		a.ctx.Send(p.sup, &task.Replan{Plan: plan, Share: share, Metrics: p.metrics, Positions: positions})
	}
	if a.Program.Started != nil {
		a.Program.Started(p.run, plan)
	}
	// What is known of others is said behind the plan, and others who are in it now hear
	// of what is here.
	if mutation.Is(mutation.LivesSaidOnce) {
		return
	}
	p.tellFar(a, slices.Collect(maps.Keys(p.far)))
	for _, home := range p.homes(a) {
		p.tellLives(a, home, slices.Collect(maps.Keys(p.own)))
	}
}

// maxParcel is how many bytes of a parcel may travel between nodes.
const maxParcel = 8 << 20

// forget lets go of lives that a plan has ended.
func (p *part) forget(a *Agent, plan *cluster.Plan) {
	over := func(id tuple.TaskID, life tuple.Incarnation) bool {
		return int(id) < len(plan.Tasks) && life < incarnation(plan.Tasks[id].Epoch)
	}
	for _, id := range slices.Sorted(maps.Keys(p.own)) {
		if over(id, p.own[id].Life) {
			p.gone(a, id)
		}
	}
	maps.DeleteFunc(p.far, func(id tuple.TaskID, l farLife) bool { return over(id, l.life) })
}

// gone takes in that the life of a task that was here is over.
func (p *part) gone(a *Agent, id tuple.TaskID) {
	a.tellLinks(Route{Run: uint32(p.run), Task: id})
	a.tellLinks(Gone{Run: uint32(p.run), Task: id, Life: p.own[id].Life})
	delete(p.own, id)
}

// homes returns the other processes that have tasks of the run.
func (p *part) homes(a *Agent) (all []cluster.Home) {
	seen := map[cluster.Home]bool{a.Self.Home: true, {}: true}
	for _, t := range p.placed.Tasks {
		if !seen[t.Home] {
			seen[t.Home] = true
			all = append(all, t.Home)
		}
	}
	return all
}

// tellFar tells the supervisor of lives of tasks elsewhere.
func (p *part) tellFar(a *Agent, ids []tuple.TaskID) {
	if p.sup == nil || len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	m := &task.Elsewhere{}
	for _, id := range ids {
		l := p.far[id]
		if to := a.links[l.at.Node]; to != nil {
			m.Peers = append(m.Peers, task.Peer{Task: id, Life: l.life, Ref: to.ref, Far: true})
		}
	}
	a.ctx.Send(p.sup, m)
}

// heard takes in lives of tasks on another node.
func (p *part) heard(a *Agent, from cluster.Home, peers []task.Peer) {
	var news []tuple.TaskID
	for _, peer := range peers {
		if peer.Life > p.far[peer.Task].life {
			p.far[peer.Task] = farLife{peer.Life, from}
			news = append(news, peer.Task)
		}
	}
	p.tellFar(a, news)
}

// stop ends what is here of a run that the log has ended.
func (p *part) stop(a *Agent) {
	if p.sup == nil {
		if x, has := p.look(a); has {
			a.past[p.run] = x
		}
		delete(a.parts, p.run)
	} else if !p.stopping {
		p.stopping = true
		a.ctx.Send(p.sup, task.Stop{})
	}
}

func (p *part) name() string {
	if p.def == nil {
		return ""
	}
	return p.def.Name()
}

// report says how the part is.
func (p *part) report(sub *cluster.Submission) cluster.RunReport {
	r := cluster.RunReport{Run: p.run, Cannot: p.cannot, Over: p.over, Err: p.err}
	if p.placed != nil {
		r.Epoch, r.Ended = p.placed.Epoch, p.ended
	}
	if sub.Next != nil && p.halted == sub.NextAt || sub.Status == cluster.Stopping && p.halted == cluster.AtEnd && p.ended {
		r.Rest = p.rest
	}
	return r
}

// over takes in that nothing of a run is left here.
func (a *Agent) over(m task.Over) {
	p := a.parts[cluster.Run(m.Run)]
	if p == nil {
		return
	}
	a.dirty = true
	a.ctx.Stop(p.sup)
	p.sup, p.over = nil, true
	for _, id := range slices.Sorted(maps.Keys(p.own)) {
		p.gone(a, id)
	}
	if a.Program.Ended != nil {
		a.Program.Ended(p.run)
	}
	switch {
	case p.stopping:
		p.stop(a)
	case m.Err != nil:
		p.err = fmt.Sprintf("node %s: %v", a.Self.Name, m.Err) // others may have what it lacks, such as a file
		a.Tell("a topology has stopped on this node", "topology", p.name(), "error", m.Err.Error())
	}
}

// lives takes in that lives of tasks have begun here.
func (a *Agent) lives(m *task.Lives) {
	p := a.parts[cluster.Run(m.Run)]
	if p == nil || p.placed == nil {
		return
	}
	var ids []tuple.TaskID
	for _, peer := range m.Peers {
		if peer.Life < p.own[peer.Task].Life {
			continue
		}
		if was := p.own[peer.Task]; was.Life != 0 && was.Life < peer.Life {
			a.tellLinks(Gone{Run: m.Run, Task: peer.Task, Life: was.Life})
		}
		p.own[peer.Task] = peer
		ids = append(ids, peer.Task)
		a.tellLinks(Route{Run: m.Run, Task: peer.Task, Ref: peer.Ref})
	}
	for _, home := range p.homes(a) {
		p.tellLives(a, home, ids)
	}
}
