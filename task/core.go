package task

import (
	"fmt"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A core is what spout and bolt tasks have in common. Owner: the task's actor.
type core struct {
	plan *topology.Plan
	set  *Settings
	id   tuple.TaskID
	life tuple.Incarnation
	node *topology.Node
	m    *metrics.Task
	sup  actor.Ref

	component string // node and plan may change with the plan, and what they call the task does not
	number    int    // of its component's

	ctx actor.Context // of the call that is running
	now time.Duration // when it began, or later

	peers   []Peer // by TaskID; Life is the one known to live
	out     outbox
	reports reporter
	origin  *origin // nil: at most once, or nothing of one's own to track
	batches batchPool
	letters []*DeadLetter // to be replayed, given before Start
	expects bool          // there may be more of them: Letters says when this task may end
	dead    bool          // this life has ended; everything that comes is dropped
	ended   bool          // the end of input has been passed on
	onDeath func(tuple.TaskID)
	// onReplan, if not nil, is called when plan and outbox are those of another plan.
	onReplan func()
	// replaces, if not nil, says of a call that lasts too long whether the life ends for it
	// where that is wanted.
	replaces func(*blockedCall) bool

	call     *call
	blocked  blockedCalls
	kind     callKind        // of the last call
	seen     bool            // the supervisor has looked into the parcel in hand, and may look on
	replaced bool            // another life has taken the place of this one
	refused  *metrics.Shared // what it says then

	round *round // of an exactly-once topology, else nil

	self   actor.Behavior // the task
	early  []any          // what lives of a later plan have said
	halt   uint64         // which Halt emits nothing new; 0: none
	rested uint64         // the last one of which AtRest was said
}

func (c *core) setup(plan *topology.Plan, set *Settings, p Peer, peers []Peer, m *metrics.Task, sup actor.Ref) {
	c.plan, c.set, c.id, c.life, c.m, c.sup = plan, set, p.Task, p.Life, m, sup
	c.call, c.refused = new(call), &m.Refused
	c.node = plan.Node(p.Task)
	c.component, c.number = c.node.Name, plan.Tasks[p.Task].Index
	if plan.Guarantee == topology.ExactlyOnce {
		c.round = newRound(plan)
	}
	c.peers = append([]Peer(nil), peers...)
	// Its own entry has no Ref: the one it came with is that of the life before, which
	// would be kept by it, with the one before that, and so on.
	c.peers[c.id] = Peer{Task: c.id, Life: c.life}
}

func (c *core) tracked() bool { return c.plan.Guarantee == topology.AtLeastOnce }

// start is the first part of both kinds' Start. It returns false if that has
// ended this life, and the run.
func (c *core) start(ctx actor.Context, self actor.Behavior) bool {
	c.self = self
	c.enter(ctx)
	if err := c.out.setup(c, ctx.Rand().Uint64()); err != nil {
		c.fail(fmt.Errorf("%s: %w", c.m.Name, err), true, true)
		return false
	}
	c.reports.setup(c)
	if c.tracked() {
		c.after(c.set.MessageTimeout/4, check{})
	}
	return true
}

func (c *core) enter(ctx actor.Context) {
	c.ctx, c.now = ctx, ctx.Now()
}

func (c *core) after(d time.Duration, msg any) { c.ctx.After(max(d, 0), msg) }

func (c *core) newOrigin() *origin {
	o := &origin{c: c}
	o.setup()
	return o
}

// A bolt task makes its origin when it first has a message of its own.
func (c *core) ensureOrigin() {
	if c.origin == nil && c.tracked() {
		c.origin = c.newOrigin()
	}
}

// learn takes in that the life of a task is the present one. News of a newer
// life is news of a death: rule R4 happens here, in one step.
func (c *core) learn(p Peer) {
	known := &c.peers[p.Task]
	if p.Task == c.id || p.Life < known.Life {
		return
	}
	if p.Life > known.Life {
		if !mutation.Is(mutation.ReportUnderNewView) {
			c.reports.flush() // what is waiting goes out under the old view
		}
		c.reports.forget(p.Task, p.Life) // a dead ledger needs no report
		c.reports.lostTo(p.Task)         // edges made and not yet reported
		c.out.dropTo(p.Task, p.Life)     // parcels, total and limit of the pair
		known.Life, known.Ref, known.Far = p.Life, nil, p.Far
		if c.onDeath != nil {
			c.onDeath(p.Task)
		}
		c.reports.see(p.Task, p.Life-1) // the view is raised last
		if c.origin != nil && !mutation.Is(mutation.MissLost) {
			c.origin.ledger.Lost(c.now, acker.Death{Task: p.Task, Life: p.Life - 1})
		}
	}
	if p.Ref != nil && known.Ref == nil {
		known.Ref, known.Far = p.Ref, p.Far
		c.out.found(p)
		c.reports.flushTo(p.Task)
		if r := c.round; r != nil && r.unheard && p.Task == r.lead {
			c.joined()
		}
		if probe := c.set.Probe; probe != nil {
			probe.Learned(c.id, p)
		}
	}
}

// current reports whether a message between two lives is of the present ones,
// learning of newer ones by the way.
func (c *core) current(from tuple.TaskID, fromLife, toLife tuple.Incarnation) bool {
	if fromLife > c.peers[from].Life {
		c.learn(Peer{Task: from, Life: fromLife})
	}
	if fromLife < c.peers[from].Life || toLife != c.life {
		c.m.Refused.Add(1)
		return false
	}
	return true
}

// receive handles what both kinds of task understand. It returns false for
// anything else.
func (c *core) receive(msg any) bool {
	switch msg := msg.(type) {
	case *Limit:
		if c.current(msg.From, msg.FromLife, msg.ToLife) || mutation.Is(mutation.LimitOfAnyLife) {
			c.out.limit(msg)
		}
	case *acker.Report:
		if msg.FromLife > c.peers[msg.From].Life {
			c.learn(Peer{Task: msg.From, Life: msg.FromLife})
		}
		if c.origin == nil || msg.ToLife != c.life {
			c.m.Refused.Add(1)
			break
		}
		// A report of a dead life counts: it says what was done before the death.
		c.origin.ledger.Report(c.now, msg)
		c.origin.learned = c.origin.ledger.Learned(c.origin.learned[:0])
		for _, d := range c.origin.learned {
			c.learn(Peer{Task: d.Task, Life: d.Life + 1})
		}
	case *Peers:
		for _, p := range msg.Peers {
			c.learn(p)
		}
		c.out.nearest()
	case *replanned:
		c.replan(msg)
	case Credit:
		c.out.credit(msg)
	case halt:
		c.halt, c.rested = msg.n, 0
	case ask:
		c.out.ask()
	case Taps:
		c.out.tapped(msg)
	case *openAsked:
		c.sayOpen(msg)
	case press:
		if c.origin != nil {
			c.origin.press()
		}
	case *Letters:
		c.expects = c.expects && !msg.Last
		if len(msg.Letters) == 0 {
			break
		}
		if c.ensureOrigin(); c.origin != nil && !c.ended {
			c.origin.again = append(c.origin.again, msg.Letters...)
			c.out.wet()
		}
	case buried:
		c.origin.stored(msg)
	case bury:
		c.origin.storing = false
		c.origin.store()
	case lookBlocked:
		c.lookBlocked()
	case actor.Stack:
		c.hasStack(msg.Text)
	case replay:
		// The turn that follows finds what is due.
		if c.origin != nil && msg.at == c.origin.alarm {
			c.origin.alarm = 0
		}
	default:
		return false
	}
	return true
}

// mayEnd reports whether no letters are to come. If they are, others do not wait for
// them with what they hold: it may be what keeps the letters from coming.
func (c *core) mayEnd() bool {
	if c.expects && c.tracked() {
		c.out.dry()
	}
	return !c.expects
}

// end passes the end of input on and tells the supervisor, once.
func (c *core) end() {
	if c.ended {
		return
	}
	c.ended = true
	c.out.end()
	c.ctx.Send(c.sup, ended{c.id, c.life})
}

// fail ends this life: what it has reported is sent, everything else is lost.
func (c *core) fail(err error, fatal, own bool) {
	c.dies(failed{err: err, fatal: fatal, own: own})
}

// dies is fail with all that can be said of it.
func (c *core) dies(why failed) {
	if c.dead {
		return
	}
	c.dead = true
	c.reports.flush()
	c.out.publish()
	why.task, why.life = c.id, c.life
	c.ctx.Send(c.sup, why)
	c.ctx.Stop(c.ctx.Self())
}
