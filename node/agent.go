package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/cluster"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A Config says what an agent has to do with.
type Config struct {
	Self     cluster.Member
	Cluster  string // its id
	Version  string // of the program, for people
	Program  Program
	Log      Log
	Network  Network
	Patience cluster.Patience
	Began    time.Time // when the host's clock showed 0
	// Tell is told what people should hear of. It is called from the agent and must not
	// wait.
	Tell func(text string, args ...any)
}

// A Program is what a node can run.
type Program struct {
	Topologies []*topology.Topology
	// Check, if not nil, says what is wrong with the flags that a topology is submitted
	// with, so that nobody has to find that out when it runs.
	Check func(spec *cluster.Spec) error
	// Settings returns what a run is set up with on this node, without its Share.
	Settings func(run cluster.Run, spec *cluster.Spec) (*task.Settings, error)
	// Started, if not nil, is told of the part of a run that is on this node when it
	// begins and each time it has another plan, and Ended when nothing of it is left.
	Started func(run cluster.Run, plan *topology.Plan)
	Ended   func(run cluster.Run)
	// Lost, if not nil, is told on the node that leads what runs have lost with processes.
	Lost func(*Loss)
	// Query, if not nil, reads committed values of a state of a topology. It is called by
	// the host of the agent, from any goroutine, and may wait.
	Query func(ctx context.Context, s *cluster.Submission, q *Request) *Answer
}

// A Log is how an agent asks for entries. The state after each comes as a Logged.
type Log interface {
	// Propose asks for an entry and returns at once. A Proposed with id tells what has
	// become of it, unless that is never known.
	Propose(id uint64, entry []byte)
}

// A Network makes connections to other nodes.
type Network interface {
	// Keep keeps a connection to a process at an address, and makes another one when it
	// breaks. It tells the link by Connected, Arrived, Wrote and Broken.
	Keep(to cluster.Home, addr string, link actor.Ref)
	// Drop ends that.
	Drop(to cluster.Home)
}

// What an agent hears from its host.
type (
	// Logged is the state after entries were applied on this node.
	Logged struct{ State cluster.State }
	// Proposed tells what has become of an entry that was asked for.
	Proposed struct {
		ID     uint64
		Result cluster.Result
		Err    error // the log could not take it, as a *cluster.Refusal
	}
	// Leads says which node leads the log, as far as this one knows.
	Leads struct {
		Node cluster.NodeID // 0: none
		Me   bool
		Term uint64
	}
	// Members is how the membership is at the moment.
	Members struct{ All []cluster.Member }
	// An Ask is a request by a person or a program, to be answered once by Reply, which
	// must not wait.
	Ask struct {
		Request *Request
		Reply   func(*Answer)
	}
)

// look is the timer of the agent.
type look struct{}

const (
	lookEvery   = 100 * time.Millisecond
	reportEvery = 500 * time.Millisecond
	sayAgain    = 500 * time.Millisecond // positions that have not come back from the log
	aloneAfter  = 3 * time.Second        // without a leader, then it is said
	askFor      = 10 * time.Second       // then an answer is not waited for any more
)

// An Agent is one node's part in the cluster: it starts, changes and stops the parts of
// runs that the log puts here, tells other nodes what they have to know of them, and
// coordinates the cluster as long as the node leads the log.
type Agent struct {
	Config
	ctx     actor.Context
	state   cluster.State
	members []cluster.Member
	leads   Leads
	lead    *lead // nil: another node leads, or none

	parts map[cluster.Run]*part
	past  map[cluster.Run]Part // of runs that have ended, as long as the log knows them
	links map[cluster.NodeID]*peer
	lasts map[cluster.Home]uint64 // the last epoch of a link, which may have gone

	reported   time.Duration // when the last report was sent
	counted    time.Duration // when counts were
	leaderless time.Duration // since when nobody leads
	alone      bool          // that was said
	dirty      bool          // there is something new to report
	asks       map[uint64]*pending
	ids        uint64 // the last that was given to a proposal or ask
}

// NewAgent returns the behaviour of a node's agent.
func NewAgent(c Config) *Agent {
	if c.Tell == nil {
		c.Tell = func(string, ...any) {}
	}
	return &Agent{Config: c, parts: map[cluster.Run]*part{}, past: map[cluster.Run]Part{}, links: map[cluster.NodeID]*peer{}, lasts: map[cluster.Home]uint64{}, asks: map[uint64]*pending{}}
}

func (a *Agent) Start(ctx actor.Context) {
	a.ctx = ctx
	ctx.After(lookEvery, look{})
}

func (a *Agent) Receive(ctx actor.Context, msg any) {
	a.ctx = ctx
	switch msg := msg.(type) {
	case Logged:
		a.logged(msg.State)
	case Members:
		a.members = msg.All
		if a.lead != nil {
			a.lead.c.Members(ctx.Now(), msg.All)
		}
		a.connect()
	case Leads:
		a.leader(msg)
	case Proposed:
		a.proposed(msg)
	case look:
		ctx.After(lookEvery, look{})
		a.look()
	case saveNow:
		if a.lead != nil {
			a.lead.saveNow()
		}
	case Ask:
		a.ask(msg)
	case Look:
		msg.Reply(a.looked())
	case ToRun:
		a.toRun(msg)
	case *task.Lives:
		a.lives(msg)
	case task.Ended:
		if p := a.parts[cluster.Run(msg.Run)]; p != nil && p.placed != nil && p.placed.Epoch == msg.Epoch {
			p.ended, a.dirty = msg.Yes, true
			if sub := a.submission(p.run); sub != nil {
				p.follow(a, sub)
			}
		}
	case task.AtRest:
		if p := a.parts[cluster.Run(msg.Run)]; p != nil && p.halted == msg.N {
			a.dirty = a.dirty || p.rest != msg.N
			p.rest = msg.N
		}
	case *task.SavePositions:
		a.save(msg)
	case *task.SaveRecord:
		a.saveRecord(msg)
	case task.Over:
		a.over(msg)
	case actor.Terminated: // a supervisor, whose Over came before if it has ended in good order
		for _, run := range slices.Sorted(maps.Keys(a.parts)) {
			if p := a.parts[run]; p.sup == msg.Ref {
				err := msg.Err
				if err == nil {
					err = task.ErrKilled
				}
				a.over(task.Over{Run: uint32(run), Err: fmt.Errorf("the supervisor has died: %w", err)})
			}
		}
	case LinkUp:
		a.linkUp(msg)
	case LinkDown:
		a.linkDown(msg)
	case LinkReset:
		a.linkReset(msg)
	case *Note:
		a.noted(msg)
	case *Lives:
		a.farLives(msg)
	default:
		panic(fmt.Sprintf("agent got a %T", msg))
	}
}

// Turn does what many messages may have made necessary, once.
func (a *Agent) Turn(ctx actor.Context) bool {
	a.ctx = ctx
	if a.dirty {
		a.report()
	}
	a.decide()
	return false
}

// Stopped does nothing: supervisors and links are stopped with the agent.
func (a *Agent) Stopped(actor.Context) {}

func (a *Agent) look() {
	now := a.ctx.Now()
	if now-a.reported >= reportEvery {
		a.dirty = true
	}
	for _, run := range slices.Sorted(maps.Keys(a.parts)) {
		a.parts[run].saveAgain(a, now)
		a.parts[run].recordAgain(a, now)
	}
	for _, id := range slices.Sorted(maps.Keys(a.asks)) {
		w := a.asks[id]
		if now < w.until {
			continue
		}
		delete(a.asks, id)
		err := &cluster.Refusal{Reason: ErrUnsure, Text: fmt.Sprintf("no answer for %v, so it is not known whether this was agreed on: is there a quorum?", askFor)}
		switch {
		case w.answer != nil: // the log is late here
			w.reply(w.answer.Answer)
		case w.done != nil:
			w.done(cluster.Result{}, err)
		default:
			w.reply(failed(err))
		}
	}
	if a.leads.Node == 0 && !a.alone && now-a.leaderless >= aloneAfter {
		a.alone = true
		a.Tell("no node leads: more than half of the voters cannot be reached from here. What runs goes on, and nothing is moved or changed")
	}
	if now-a.counted >= countEvery {
		a.counted = now
		a.tellCounts()
	}
}

// logged takes in the state that the log has come to on this node.
func (a *Agent) logged(s cluster.State) {
	if s.Applied < a.state.Applied {
		return
	}
	a.state = s // most entries are positions, of which there is nothing to report
	a.answerSeen()
	seen := map[cluster.Run]bool{}
	for _, sub := range s.Submissions {
		seen[sub.Run] = true
		p := a.parts[sub.Run]
		if p == nil {
			if !sub.Status.Runs() {
				continue
			}
			p = newPart(sub.Run)
			a.parts[sub.Run] = p
		}
		p.follow(a, sub)
	}
	maps.DeleteFunc(a.past, func(run cluster.Run, _ Part) bool { return !seen[run] })
	for _, run := range slices.Sorted(maps.Keys(a.parts)) {
		if p := a.parts[run]; !seen[run] && uint32(run) <= s.Epoch {
			p.seeSaved(a, nil)
			p.seeRecord(a, nil)
			p.stop(a)
		}
	}
	a.connect()
}

// leader takes in who leads.
func (a *Agent) leader(m Leads) {
	if m.Me && a.lead == nil {
		a.lead = newLead(a)
	} else if !m.Me {
		a.lead = nil
	}
	if m.Node == 0 && a.leads.Node != 0 {
		a.leaderless = a.ctx.Now()
	}
	if m.Node != 0 && a.alone {
		a.alone = false
		a.Tell("there is a quorum again", "leader", m.Node.String())
	}
	a.leads, a.dirty = m, true
}

// report tells the node that leads how this one is.
func (a *Agent) report() {
	if a.leads.Node == 0 {
		a.dirty = false
		return
	}
	r := &cluster.Report{Home: a.Self.Home, Applied: a.state.Applied}
	for _, sub := range a.state.Submissions {
		if p := a.parts[sub.Run]; p != nil {
			r.Runs = append(r.Runs, p.report(sub))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.links)) {
		if x, ill := a.links[id].report(a); ill {
			r.Links = append(r.Links, x)
		}
	}
	if a.lead != nil {
		a.lead.c.Report(r)
	} else if !a.note(a.leads.Node, &note{Report: r}) {
		return // not yet
	}
	a.reported, a.dirty = a.ctx.Now(), false
}

// wall is the time of day.
func (a *Agent) wall() time.Time { return a.Began.Add(a.ctx.Now()) }

// id returns a number for a proposal or an ask.
func (a *Agent) id() uint64 {
	a.ids++
	return a.ids
}

func incarnation(epoch uint32) tuple.Incarnation { return tuple.NewIncarnation(epoch, 1) }
