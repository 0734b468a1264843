package task

import (
	"slices"
	"time"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// How a supervisor has a part of a run, whose other tasks are on other nodes.
//
// It starts and stops the tasks that the plan puts here, counts their lives, and says
// so to who is over it, who tells the other nodes. Of tasks elsewhere it hears in the
// same way, and tells its own: so all that a task knows of another it knows from its
// own supervisor, wherever the other is.

// A Share is the part of a run that one node has. Its slices are by TaskID.
type Share struct {
	Run       uint32    // names the run between nodes
	First     uint32    // the epoch of its first plan
	Over      actor.Ref // is told *Lives, Ended, AtRest, *SavePositions and Over
	MaxParcel int       // bytes of a parcel that may travel
	Here      []bool    // is the task on this node?
	Epoch     []uint32  // of the plan that put the task where it is, or retired it
	Retired   []bool    // it is nowhere, and will never be again
}

// To who is over a supervisor.
type (
	// Lives says which lives of its tasks are the present ones, and where they can be
	// reached on this node.
	Lives struct {
		Run   uint32
		Peers []Peer
	}
	// Ended says whether all its tasks have ended their input and are done, in a plan.
	Ended struct {
		Run   uint32
		Epoch uint32
		Yes   bool
	}
	// SavePositions asks that positions be made durable. Saved is the answer; while there
	// is none, no other comes.
	SavePositions struct {
		Run       uint32
		Positions []Position
	}
	// Over says that nothing of the run is left here, and why it has ended by itself, if
	// so.
	Over struct {
		Run uint32
		Err error
	}
)

// From who is over it.
type (
	// Replan tells a supervisor of a plan that takes the place of its own. Positions are
	// the committed ones, by component and split.
	Replan struct {
		Plan      *topology.Plan
		Share     *Share
		Metrics   []*metrics.Task // by TaskID, the former ones included
		Positions map[string]map[string]string
	}
	// Elsewhere says which lives of tasks of other nodes are the present ones. A Ref is
	// the link to the node. What is of a plan that is not the present one is not kept, so
	// all of it is to be said again behind a Replan.
	Elsewhere struct{ Peers []Peer }
	// Saved answers SavePositions: so many were refused, since later ones were there.
	Saved struct{ Refused int }
)

// base is the life that a task begins with.
func (s *Supervisor) base(id tuple.TaskID) tuple.Incarnation {
	share := s.part
	switch {
	case share == nil:
		return tuple.NewIncarnation(s.plan.Epoch, 1)
	case share.Retired[id]: // every node says the same, or reports would be taken for old
		return tuple.NewIncarnation(share.Epoch[id], 0)
	}
	return tuple.NewIncarnation(share.Epoch[id], 1)
}

// here reports whether a task is on this node.
func (s *Supervisor) here(id tuple.TaskID) bool {
	return s.part == nil || s.part.Here[id]
}

// tell sends a message to all tasks that are here.
func (s *Supervisor) tell(msg any) {
	for id := range s.children {
		if c := &s.children[id]; c.ref != nil && !c.far {
			s.ctx.Send(c.ref, msg)
		}
	}
}

// sayTo sends a message to a task, wherever it is.
func (s *Supervisor) sayTo(id tuple.TaskID, msg any) {
	c := &s.children[id]
	if c.waits {
		return
	}
	if c.far {
		if c.ref == nil {
			return
		}
		msg = &Far{s.part.Run, msg}
	}
	s.ctx.Send(c.ref, msg)
}

// sayLives tells the other nodes of lives that have begun here.
func (s *Supervisor) sayLives(peers []Peer) {
	if share := s.part; share != nil && len(peers) > 0 {
		s.ctx.Send(share.Over, &Lives{share.Run, peers})
	}
}

// sayEnded tells whether all tasks that are here have ended, anew in each plan.
func (s *Supervisor) sayEnded() {
	share := s.part
	if share == nil || s.stopping > 0 {
		return
	}
	if said := (Ended{share.Run, s.plan.Epoch, s.running == 0}); said != s.saidEnded {
		s.saidEnded = said
		s.ctx.Send(share.Over, said)
	}
}

// elsewhere takes in lives of tasks of other nodes.
func (s *Supervisor) elsewhere(m *Elsewhere) {
	news := make([]Peer, 0, len(m.Peers))
	for _, p := range m.Peers {
		if int(p.Task) >= len(s.children) || s.here(p.Task) {
			continue // of a plan that is not this one
		}
		c := &s.children[p.Task]
		if p.Life < c.life || p.Life == c.life && c.ref != nil {
			continue
		}
		c.life, c.ref, c.far = p.Life, p.Ref, true
		news = append(news, Peer{Task: p.Task, Life: p.Life, Ref: p.Ref, Far: true})
	}
	if len(news) > 0 {
		s.tell(&Peers{Peers: news})
	}
}

// replan goes over to another plan. Tasks that stay where they are go on; those that
// were here and are not in it any more are stopped. One that has another life here begins
// it when the one before has ended.
func (s *Supervisor) replan(m *Replan) {
	if s.stopping > 0 || m.Plan.Epoch <= s.plan.Epoch {
		return
	}
	s.plan, s.ms, s.part = m.Plan, m.Metrics, m.Share // the settings, which tasks read, keep the first
	s.keep.renew(m.Positions)
	for id := len(s.children); id < len(s.plan.Tasks); id++ {
		s.children = append(s.children, child{far: true, gone: true})
	}
	var moved, begin []tuple.TaskID
	for i := range s.children {
		id, c := tuple.TaskID(i), &s.children[i]
		life := s.base(id)
		if life <= c.life {
			continue
		}
		moved = append(moved, id)
		s.release(id)
		s.children[id] = child{life: life, far: !s.here(id), gone: !s.here(id), ended: !s.here(id)}
		if !s.here(id) {
			continue
		}
		s.running++
		if s.parts(id) {
			s.children[id].waits, s.children[id].gone = true, true
		} else {
			begin = append(begin, id)
		}
	}
	for _, id := range begin {
		s.spawn(id)
	}
	news := &replanned{plan: s.plan}
	for _, id := range moved {
		if mutation.Is(mutation.MoveUntold) {
			break
		}
		c := &s.children[id]
		news.peers = append(news.peers, Peer{Task: id, Life: c.life, Ref: c.ref, Far: c.far})
	}
	for i := range s.children {
		if id := tuple.TaskID(i); s.children[i].ref != nil && !s.children[i].far && !slices.Contains(begin, id) {
			s.ctx.Send(s.children[i].ref, news)
		}
	}
	all := &Peers{Peers: s.peers()}
	for _, id := range begin {
		s.ctx.Send(s.children[id].ref, all)
	}
	s.sayLives(s.own(begin))
	s.sayEnded()
}

// own returns peers of tasks that are here.
func (s *Supervisor) own(ids []tuple.TaskID) []Peer {
	peers := make([]Peer, len(ids))
	for i, id := range ids {
		peers[i] = Peer{Task: id, Life: s.children[id].life, Ref: s.children[id].ref}
	}
	return peers
}

// halt has the tasks emit nothing new, or lets them go on.
func (s *Supervisor) halt(n uint64) {
	s.halted = n
	s.halts++
	clear(s.restedTasks)
	s.tell(halt{n})
	s.seeRest()
}

// seeRest looks every so often whether everything has come to rest.
func (s *Supervisor) seeRest() {
	if s.halted == 0 || s.stopping > 0 {
		return
	}
	for id := range s.children {
		c := &s.children[id]
		if c.waits || c.ref != nil && !c.far && !c.gone && !c.ended && s.restedTasks[tuple.TaskID(id)] != c.life {
			s.ctx.After(restLook, lookRest{s.halts})
			return
		}
	}
	s.keep.write()
	if s.open() > 0 || s.keep.busy || len(s.keep.changed) > 0 {
		s.ctx.After(restLook, lookRest{s.halts})
		return
	}
	s.ctx.Send(s.part.Over, AtRest{s.part.Run, s.halted})
	s.ctx.After(restAgain, lookRest{s.halts}) // it may be lost with who leads
}

// A lookRest is the timer of the halts-th Halt. Its N would not tell which, since the same
// may come again, and then each would go on for ever.
type lookRest struct{ halts int }

const (
	restLook  = 2 * time.Millisecond
	restAgain = 200 * time.Millisecond
)

// share handles what comes from who is over it, and of coming to rest. It returns
// false for anything else.
func (s *Supervisor) share(msg any) bool {
	switch msg := msg.(type) {
	case *Replan:
		s.replan(msg)
	case *Elsewhere:
		s.elsewhere(msg)
	case Halt:
		s.halt(msg.N)
	case lookParting:
		s.seeParting(msg)
	case lookRest:
		if msg.halts == s.halts {
			s.seeRest()
		}
	case rested:
		if msg.n == s.halted && msg.life == s.children[msg.task].life {
			s.restedTasks[msg.task] = msg.life
		}
	case Saved:
		s.keep.savedFar(msg)
	default:
		return false
	}
	return true
}
