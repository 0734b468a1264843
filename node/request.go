package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/tuple"
)

// A Request is what a person or a program wants of the cluster. Any node takes it.
type Request struct {
	Op       string         `json:"op"`
	Topology string         `json:"topology,omitempty"`
	Spec     *cluster.Spec  `json:"spec,omitempty"`     // submit
	Status   cluster.Status `json:"status,omitempty"`   // status
	Parallel map[string]int `json:"parallel,omitempty"` // rebalance
	Node     cluster.NodeID `json:"node,omitempty"`     // drain
	On       bool           `json:"on,omitempty"`       // drain
	Cancel   bool           `json:"cancel,omitempty"`   // rebalance: drop the one that waits
	Preview  bool           `json:"preview,omitempty"`  // say what would move, and do nothing
	State    string         `json:"state,omitempty"`    // query
	Keys     []string       `json:"keys,omitempty"`     // query: as text,
	Stored   [][]byte       `json:"stored,omitempty"`   // or as stores have them
}

// What can be asked for.
const (
	OpState     = "state"     // what is agreed on, and who is there; answered by the node itself
	OpSubmit    = "submit"    // a topology
	OpSetStatus = "status"    // activate, deactivate, stop, kill
	OpRebalance = "rebalance" // tasks of components
	OpDrain     = "drain"     // a node, or no more
	OpForget    = "forget"    // a node that will not come back
	OpStats     = "stats"     // of a topology's tasks on all nodes
	OpQuery     = "query"     // committed values of keys of a state; the host of the node that is asked reads them
	OpLeave     = "leave"     // the node that is asked, which its host does; it ends when its tasks have gone
)

// An Answer is what has become of a Request.
type Answer struct {
	Error  *cluster.Refusal `json:"error,omitempty"`
	Run    cluster.Run      `json:"run,omitempty"`    // submit,
	Before cluster.Run      `json:"before,omitempty"` // and the run that it goes on from; 0: none
	Moves  []Move           `json:"moves,omitempty"`
	State  *View            `json:"state,omitempty"`
	Stats  *Stats           `json:"stats,omitempty"`
	Values []Value          `json:"values,omitempty"` // query: of Keys,
	Stored [][]byte         `json:"stored,omitempty"` // or of Stored, as stores have them; nil: nothing
	// Elsewhere is the address of the node that alone can read the state; of query.
	Elsewhere string `json:"elsewhere,omitempty"`
}

// A Value is what a state has for a key.
type Value struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value,omitempty"` // nil: nothing
}

// A Move is one task's.
type Move struct {
	Task string       `json:"task"`
	From cluster.Home `json:"from"` // zero: it is new
	To   cluster.Home `json:"to"`   // zero: it is retired
}

// A View is the cluster as one node sees it.
type View struct {
	Self        cluster.Home          `json:"self"`
	Cluster     string                `json:"cluster"`
	Leader      cluster.NodeID        `json:"leader"` // 0: none, so nothing can be changed
	Applied     uint64                `json:"applied"`
	Members     []MemberView          `json:"members"`
	Nodes       []cluster.Node        `json:"nodes"`            // those that the log knows, alive or not
	Voters      []cluster.NodeID      `json:"voters,omitempty"` // of the log, as the node's host knows
	Submissions []*cluster.Submission `json:"submissions"`
	// Committed are the batches of exactly-once topologies that were committed last.
	Committed map[cluster.Run]tuple.TxID `json:"committed,omitempty"`
}

// A MemberView is one node.
type MemberView struct {
	cluster.Member
	Draining bool `json:"draining,omitempty"`
	Tasks    int  `json:"tasks"`
}

// Reasons beside those of package cluster.
const (
	ErrNoQuorum    cluster.Reason = "no-quorum"   // nobody leads, so nothing can be agreed on, and nothing was done
	ErrUnsure      cluster.Reason = "unsure"      // it may have been done, or may yet be
	ErrBusy        cluster.Reason = "busy"        // too much is waiting, and nothing was done
	ErrFailed      cluster.Reason = "failed"      // for a reason that asking again does not change
	ErrNotPlaced   cluster.Reason = "not-placed"  // the topology has no tasks yet
	ErrComponent   cluster.Reason = "component"   // there is no such component
	ErrFingerprint cluster.Reason = "fingerprint" // another program
	ErrParameter   cluster.Reason = "parameter"   // unknown, or with a value that cannot be
	ErrState       cluster.Reason = "state"       // the topology has no such state
)

// A pending is a request or a proposal that waits.
type pending struct {
	reply  func(*Answer)
	done   func(cluster.Result, error)
	until  time.Duration
	answer *answered // for reply, when the log is as far here
}

// Refuse returns an answer that says why something was not done.
func Refuse(why cluster.Reason, format string, args ...any) *Answer {
	return &Answer{Error: &cluster.Refusal{Reason: why, Text: fmt.Sprintf(format, args...)}}
}

// failed makes an answer of an error. One that is no refusal is not expected, and asking
// again would not help.
func failed(err error) *Answer {
	if r, ok := errors.AsType[*cluster.Refusal](err); ok {
		return &Answer{Error: r}
	}
	return Refuse(ErrFailed, "%v", err)
}

// ask takes a request from this node's own door.
func (a *Agent) ask(m Ask) {
	r := m.Request
	switch {
	case r.Op == OpState:
		m.Reply(&Answer{State: a.view()})
	case a.lead != nil:
		a.serve(r, m.Reply)
	case a.leads.Node == 0:
		m.Reply(Refuse(ErrNoQuorum, "no node leads, since more than half of the voters cannot be reached: what runs goes on, and nothing can be changed"))
	default:
		id := a.id()
		if !a.note(a.leads.Node, &note{Ask: &asked{id, r}}) {
			m.Reply(Refuse(ErrNoQuorum, "node %v leads, and there is no way to it from this one", a.leads.Node))
			return
		}
		a.asks[id] = &pending{reply: m.Reply, until: a.ctx.Now() + askFor}
	}
}

// askedBy takes a request that another node has passed on.
func (a *Agent) askedBy(from cluster.Home, m *asked) {
	reply := func(answer *Answer) {
		to := &answered{ID: m.ID, Answer: answer}
		if m.Request.Op != OpStats {
			to.Applied = a.state.Applied
		}
		a.note(from.Node, &note{Answer: to})
	}
	if a.lead == nil {
		reply(Refuse(ErrNoQuorum, "who leads has just changed: try again"))
		return
	}
	a.serve(m.Request, reply)
}

// answer takes the answer to a request that was passed on.
func (a *Agent) answer(m *answered) {
	if w := a.asks[m.ID]; w != nil && w.reply != nil {
		w.answer = m
		a.answerSeen()
	}
}

// answerSeen passes on the answers to what can be seen in the log as it is here.
func (a *Agent) answerSeen() {
	for _, id := range slices.Sorted(maps.Keys(a.asks)) {
		if w := a.asks[id]; w.answer != nil && w.answer.Applied <= a.state.Applied {
			delete(a.asks, id)
			w.reply(w.answer.Answer)
		}
	}
}

// serve does what is asked for, on the node that leads.
func (a *Agent) serve(r *Request, reply func(*Answer)) {
	then := func(e cluster.Entry, good func(cluster.Result) *Answer) {
		a.propose(e, func(result cluster.Result, err error) {
			switch {
			case err != nil:
				reply(failed(err))
			case result.Err != nil:
				reply(failed(result.Err))
			default:
				reply(good(result))
			}
		})
	}
	fine := func(cluster.Result) *Answer { return &Answer{} }
	switch r.Op {
	case OpSubmit:
		if r.Spec == nil {
			reply(Refuse(cluster.ErrInvalid, "a topology is submitted without its spec"))
			return
		}
		then(cluster.Entry{Submit: &cluster.Submit{Spec: *r.Spec, At: a.wall()}}, func(result cluster.Result) *Answer {
			return &Answer{Run: cluster.Run(result.Epoch), Before: result.Before}
		})
	case OpDrain:
		a.drainNode(r, reply, then)
	case OpForget:
		then(cluster.Entry{ForgetNode: &cluster.ForgetNode{Node: r.Node}}, fine)
	case OpSetStatus, OpRebalance, OpStats:
		sub := a.state.Submission(r.Topology)
		switch {
		case sub == nil:
			reply(Refuse(cluster.ErrUnknown, "there is no topology %q; egret list shows those that there are", r.Topology))
		case r.Op == OpRebalance:
			a.rebalance(r, sub, reply, then)
		case r.Op == OpStats:
			reply(&Answer{Stats: a.lead.stats(sub)})
		default:
			then(cluster.Entry{SetStatus: &cluster.SetStatus{Topology: sub.Topology, Run: sub.Run, Status: r.Status, At: a.wall()}}, fine)
		}
	default:
		reply(Refuse(cluster.ErrInvalid, "node %s does not know what %q is: do all nodes run the same version?", a.Self.Name, r.Op))
	}
}

type proposing func(cluster.Entry, func(cluster.Result) *Answer)

// rebalance gives components other numbers of tasks, or evens out what there is.
func (a *Agent) rebalance(r *Request, sub *cluster.Submission, reply func(*Answer), then proposing) {
	switch {
	case !sub.Status.Runs():
		reply(Refuse(cluster.ErrEnded, "topology %q is %s and has no tasks", sub.Topology, sub.Status))
		return
	case r.Cancel:
		a.cancel(r, sub, reply, then)
		return
	case sub.Plan == nil:
		reply(Refuse(ErrNotPlaced, "topology %q has no tasks yet, since no node has been found for them: egret status shows when it has", sub.Topology))
		return
	case sub.Next != nil: // also for who only wants to know what would move
		reply(failed(changing(sub)))
		return
	}
	nodes := a.lead.c.Candidates(&a.state, sub)
	var plan *cluster.Plan
	var err error
	if len(r.Parallel) > 0 {
		plan, err = cluster.Resize(sub.Components, sub.Plan, nodes, r.Parallel)
	} else {
		plan, err = cluster.Place(sub.Components, sub.Plan, nodes)
	}
	if err != nil {
		if errors.Is(err, cluster.ErrUnknown) {
			err = &cluster.Refusal{Reason: ErrComponent, Text: fmt.Sprintf("topology %q: %v", sub.Topology, err)}
		} else if errors.Is(err, cluster.ErrInvalid) {
			err = &cluster.Refusal{Reason: ErrParameter, Text: err.Error()}
		}
		reply(failed(err))
		return
	}
	if len(plan.Tasks) > mostTasks {
		reply(Refuse(ErrParameter, "topology %q would have %d numbers of tasks, those that are retired counted, and %d are the most", sub.Topology, len(plan.Tasks), mostTasks))
		return
	}
	moves := movesOf(sub, plan)
	if r.Preview || len(moves) == 0 {
		reply(&Answer{Moves: moves})
		return
	}
	then(cluster.Entry{ProposeNext: &cluster.ProposeNext{Topology: sub.Topology, Run: sub.Run, Base: sub.Plan.Epoch, Plan: plan, Why: cluster.WhyAsked}},
		func(cluster.Result) *Answer { return &Answer{Moves: moves} })
}

// changing says what a topology waits for.
func changing(sub *cluster.Submission) error {
	what := "it can be dropped by egret rebalance " + sub.Topology + " --cancel"
	switch sub.Why {
	case cluster.WhyDrain:
		what = "it empties a node, until egret drain NODE --off says otherwise"
	case cluster.WhyEven:
		what = "it is dropped by itself if that takes more than 10 s"
	}
	return &cluster.Refusal{Reason: cluster.ErrRunning, Text: fmt.Sprintf("topology %q is being changed already (%s), when nothing is open: wait for it; %s", sub.Topology, sub.Why, what)}
}

// cancel drops a change that somebody has asked for and that waits. One that the cluster
// wants by itself would come again.
func (a *Agent) cancel(r *Request, sub *cluster.Submission, reply func(*Answer), then proposing) {
	switch {
	case sub.Next == nil:
		reply(Refuse(cluster.ErrStale, "topology %q is not being changed", sub.Topology))
	case sub.Why != cluster.WhyAsked:
		reply(failed(changing(sub)))
	case r.Preview:
		reply(&Answer{})
	default:
		then(cluster.Entry{CancelNext: &cluster.CancelNext{Topology: sub.Topology, Run: sub.Run, Base: sub.Plan.Epoch}}, func(cluster.Result) *Answer { return &Answer{} })
	}
}

// drainNode has a node emptied, or lets it have tasks again.
func (a *Agent) drainNode(r *Request, reply func(*Answer), then proposing) {
	if _, known := a.state.Node(r.Node); !known {
		reply(Refuse(cluster.ErrUnknown, "there is no node %v; egret members shows those that there are", r.Node))
		return
	}
	var moves []Move
	for _, sub := range a.state.Submissions {
		if !r.On || sub.Plan == nil || !sub.Status.Runs() {
			continue
		}
		nodes := a.lead.c.Candidates(&a.state, sub)
		for i := range nodes {
			nodes[i].Draining = nodes[i].Draining || nodes[i].Node == r.Node
		}
		if plan, err := cluster.Vacate(sub.Components, sub.Plan, nodes); err == nil {
			moves = append(moves, movesOf(sub, plan)...)
		}
	}
	if r.Preview {
		reply(&Answer{Moves: moves})
		return
	}
	then(cluster.Entry{DrainNode: &cluster.DrainNode{Node: r.Node, On: r.On}}, func(cluster.Result) *Answer { return &Answer{Moves: moves} })
}

// movesOf lists what a plan changes.
func movesOf(sub *cluster.Submission, plan *cluster.Plan) (all []Move) {
	for id, t := range plan.Tasks {
		m := Move{Task: fmt.Sprintf("%s/%d", sub.Components[t.Component].Name, t.Index), To: t.Home}
		if id < len(sub.Plan.Tasks) {
			m.From = sub.Plan.Tasks[id].Home
		}
		if m.From == m.To { // perhaps a number that nobody has
			continue
		}
		all = append(all, m)
	}
	return all
}

// view is how this node sees the cluster.
func (a *Agent) view() *View {
	v := &View{Self: a.Self.Home, Cluster: a.Cluster, Leader: a.leads.Node, Applied: a.state.Applied, Submissions: a.state.Submissions, Nodes: a.state.Nodes}
	for _, sub := range a.state.Submissions {
		if sub.Record != nil {
			if v.Committed == nil {
				v.Committed = map[cluster.Run]tuple.TxID{}
			}
			v.Committed[sub.Run] = sub.Record.Committed
		}
	}
	tasks := map[cluster.Home]int{}
	for _, sub := range a.state.Submissions {
		if sub.Plan == nil || !sub.Status.Runs() {
			continue
		}
		for _, t := range sub.Plan.Tasks {
			tasks[t.Home]++
		}
	}
	for _, m := range a.members {
		n, _ := a.state.Node(m.Node)
		if l := a.linkOf(m.Home); l != nil && l.refused {
			m.Alive = false // nobody listens there; the membership will find out
		}
		v.Members = append(v.Members, MemberView{Member: m, Draining: n.Draining, Tasks: tasks[m.Home]})
	}
	return v
}
