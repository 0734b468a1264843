package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/mutation"
)

// Patience says how long a Coordinator waits for what. Zero values stand for the
// defaults.
type Patience struct {
	Settle  time.Duration // a node has been alive for so long before tasks are moved to it; default 10 s
	Quiet   time.Duration // a run may take to come to rest before a plan is forced; default 10 s
	Begin   time.Duration // for reports of all nodes, of who begins to lead and for a new run; default 1 s
	Down    time.Duration // a link between living nodes may be down; default 10 s
	Between time.Duration // two moves that only make things even; default 1 s
}

// A Coordinator is what the node that leads the log thinks with: it compares what is
// agreed on with what is the case, and says which entries would bring them together.
//
// It keeps nothing that the log does not have but what it has heard since it leads, so
// that another node can take over at any moment. An entry that it has asked for and
// that does not come is asked for again.
//
// Owner: the agent of the node that leads.
type Coordinator struct {
	Patience
	Lost []Home // processes that are taken for gone at the last look, although the membership does not say so

	self  Home
	began time.Duration
	now   time.Duration // at the last call that says what time it is

	members []Member
	since   map[Home]time.Duration // alive and not lost without a break
	boots   map[NodeID]Boot        // the last that was a member
	reports map[Home]heard
	news    []Home // have reported since the last look, so now

	s     State // that was seen last
	runs  map[Run]*book
	total map[Home]int // tasks of all runs that are on a process, or soon will be
	asked map[string]asking
	moved time.Duration // when something was last moved to make things even

	// There is nothing to do before something has changed, or it is time to wake.
	changed bool
	some    bool // books have changed
	wake    time.Duration
}

// A heard is the last report of a process.
type heard struct {
	*Report
	at time.Duration
}

// A book is what a Coordinator keeps of a run.
type book struct {
	*Submission
	plan, next *Plan // that homes, target were made from
	homes      []hosted
	target     []hosted // of the next plan, or the present one
	seen       time.Duration
	nextAt     uint64        // the proposal
	asked      time.Duration // when it was seen
	still      time.Duration // until then nothing is moved to make it even: it does not come to rest
	changed    bool          // it may be decided in another way
}

// An asking is an entry that is waited for.
type asking struct {
	until time.Duration
	plan  *Plan // that it would put in force; or nil
}

// NewCoordinator returns the coordinator of a node that begins to lead at a time.
func NewCoordinator(self Home, now time.Duration, p Patience) *Coordinator {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&p.Settle, 10*time.Second)
	def(&p.Quiet, 10*time.Second)
	def(&p.Begin, time.Second)
	def(&p.Down, 10*time.Second)
	def(&p.Between, time.Second)
	return &Coordinator{
		Patience: p, self: self, began: now, now: now, changed: true,
		since: map[Home]time.Duration{}, boots: map[NodeID]Boot{}, reports: map[Home]heard{},
		runs: map[Run]*book{}, total: map[Home]int{}, asked: map[string]asking{}, moved: math.MinInt64 / 2,
	}
}

// Members takes in how the membership is at the moment.
func (c *Coordinator) Members(now time.Duration, all []Member) {
	c.now = now
	if slices.Equal(c.members, all) {
		return
	}
	c.members, c.changed = slices.Clone(all), true
	alive := map[Home]bool{}
	for _, m := range all {
		c.boots[m.Node] = max(c.boots[m.Node], m.Boot)
		if !m.Alive {
			continue
		}
		alive[m.Home] = true
		if _, known := c.since[m.Home]; !known {
			c.since[m.Home] = now
		}
	}
	maps.DeleteFunc(c.since, func(h Home, _ time.Duration) bool { return !alive[h] })
	maps.DeleteFunc(c.reports, func(h Home, _ heard) bool { return !alive[h] && h.Boot <= c.boots[h.Node] })
}

// Report takes in what a node says of itself.
func (c *Coordinator) Report(r *Report) {
	old := c.reports[r.Home]
	if old.Report != nil && r.Applied < old.Applied {
		return // it was late on its way
	}
	c.reports[r.Home] = heard{r, old.at}
	c.news = append(c.news, r.Home)
	if old.Report == nil || !r.sameLinks(old.Report, c.Down) {
		c.changed = true
		return
	}
	for run := range r.differs(old.Report) {
		if b := c.runs[run]; b != nil {
			b.changed, c.some = true, true
		}
	}
}

// Decide appends to out what is to be entered into the log now. wall is the time of day.
func (c *Coordinator) Decide(now time.Duration, s *State, wall time.Time, out []Entry) []Entry {
	if s.Cluster == "" {
		return out
	}
	c.now = now
	for _, h := range c.news {
		if r, known := c.reports[h]; known {
			c.changed = c.changed || len(r.Links) > 0 && now >= r.at+c.stale()
			c.reports[h] = heard{r.Report, now}
		}
	}
	c.news = c.news[:0]
	c.see(s)
	everything := c.changed || now >= c.wake
	if !everything && !c.some {
		return out
	}
	c.some = false
	if everything {
		c.changed, c.wake = false, math.MaxInt64
		maps.DeleteFunc(c.asked, func(_ string, a asking) bool { return a.until <= now })
		c.look()
		out = c.meet(out)
	}
	for _, sub := range s.Submissions {
		b := c.runs[sub.Run]
		if !everything && !b.changed {
			continue
		}
		b.changed = false
		e := c.decide(b, wall)
		if e == nil {
			continue
		}
		_, kind := e.changes()
		var plan *Plan
		if e.SetPlan != nil {
			plan = e.SetPlan.Plan
		}
		// The next of its kind is for another state of the run.
		if c.ask(fmt.Sprintf("run %d %s %d %d %s", sub.Run, sub.Status, sub.epoch(), sub.NextAt, kind), plan) {
			out = append(out, *e)
			if e.ProposeNext != nil && e.ProposeNext.Why == WhyEven {
				c.moved = now
			}
		}
	}
	return out
}

// meet appends to out that there are processes which the log does not know.
func (c *Coordinator) meet(out []Entry) []Entry {
	for _, m := range c.members {
		if !m.Alive {
			continue
		}
		if n, known := c.s.Node(m.Node); (!known || n.Boot < m.Boot || n.Addr != m.Addr || n.Name != m.Name) && n.Boot <= m.Boot &&
			c.ask(fmt.Sprintf("node %v %s %s", m.Home, m.Addr, m.Name), nil) {
			out = append(out, Entry{SawNode: &SawNode{Node: m.Node, Name: m.Name, Addr: m.Addr, Boot: m.Boot}})
		}
	}
	return out
}

// past reports whether a time has come. If not, it will be looked again then.
func (c *Coordinator) past(at time.Duration) bool {
	if c.now >= at {
		return true
	}
	c.wake = min(c.wake, at)
	return false
}

// again is after how long an entry that has not come is asked for again.
const again = 2 * time.Second

// ask reports whether an entry about something may be asked for now: not while it is
// waited for, unless the plan that it has would be of no use any more.
func (c *Coordinator) ask(what string, plan *Plan) bool {
	if a, waits := c.asked[what]; waits && !c.past(a.until) &&
		(a.plan == nil || !slices.ContainsFunc(a.plan.Tasks, func(t Task) bool { return t.Home.Node != 0 && c.gone(t.Home) })) {
		return false
	}
	c.asked[what] = asking{c.now + again, plan}
	c.past(c.now + again)
	return true
}

// see takes in a state.
func (c *Coordinator) see(s *State) {
	old := c.s
	c.s = *s
	same := len(s.Nodes) == len(old.Nodes) && (len(s.Nodes) == 0 || &s.Nodes[0] == &old.Nodes[0]) && len(s.Submissions) == len(c.runs)
	for _, sub := range s.Submissions {
		b := c.runs[sub.Run]
		if b == nil {
			b = &book{seen: c.now}
			c.runs[sub.Run] = b
			same = false
		} else if b.Status != sub.Status || b.NextAt != sub.NextAt || b.Plan != sub.Plan || b.Next != sub.Next {
			same = false
		}
		b.Submission = sub // which has its positions too, and these change all the time
	}
	if same {
		return
	}
	c.changed = true
	clear(c.total)
	maps.DeleteFunc(c.runs, func(_ Run, b *book) bool { return s.Submission(b.Topology) != b.Submission })
	for _, b := range c.runs {
		if b.plan != b.Plan || b.next != b.Next {
			b.plan, b.next = b.Plan, b.Next
			b.homes = b.Plan.hosts()
			b.target = b.homes
			if b.Next != nil {
				b.target = b.Next.hosts()
			}
		}
		if b.Status.Runs() {
			for _, h := range b.target {
				c.total[h.Home] += h.tasks
			}
		}
	}
}

// A hosted is a process that has tasks of a plan.
type hosted struct {
	Home
	tasks  int
	oldest uint32 // epoch of one of them
}

// hosts returns the processes that have tasks of a plan, in order.
func (p *Plan) hosts() (all []hosted) {
	if p == nil {
		return nil
	}
	at := map[Home]int{}
	for _, t := range p.Tasks {
		if t.Home.Node == 0 {
			continue
		}
		i, known := at[t.Home]
		if !known {
			i = len(all)
			at[t.Home] = i
			all = append(all, hosted{t.Home, 0, t.Epoch})
		}
		all[i].tasks++
		all[i].oldest = min(all[i].oldest, t.Epoch)
	}
	slices.SortFunc(all, func(a, b hosted) int { return compareHomes(a.Home, b.Home) })
	return all
}

// of returns what a process has of the tasks of a plan.
func of(all []hosted, h Home) (hosted, bool) {
	i, found := slices.BinarySearchFunc(all, h, func(a hosted, h Home) int { return compareHomes(a.Home, h) })
	if !found {
		return hosted{}, false
	}
	return all[i], true
}

func compareHomes(a, b Home) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Boot, b.Boot))
}

// Candidates returns the nodes that can have tasks of a run: what they say, or that
// they have some.
func (c *Coordinator) Candidates(s *State, sub *Submission) (all []Candidate) {
	c.see(s)
	b := c.runs[sub.Run]
	if b == nil {
		return nil
	}
	for _, m := range c.members {
		if _, alive := c.since[m.Home]; !alive || c.gone(m.Home) {
			continue
		}
		x, known := c.reports[m.Home].of(sub.Run)
		// One with which it is over while the run is ending keeps what it has.
		_, has := of(b.homes, m.Home)
		if x.Cannot != "" || x.Over && (!b.Status.Ends() || !has) || !known && !has {
			continue
		}
		own := hosted{}
		if b.Status.Runs() {
			own, _ = of(b.target, m.Home)
		}
		n, _ := s.Node(m.Node)
		all = append(all, Candidate{Home: m.Home, Weight: m.Weight, Draining: n.Draining || x.Over, Load: c.total[m.Home] - own.tasks})
	}
	if b.Local {
		return b.only(all)
	}
	return all
}

// heard reports whether all living nodes have said what they think of a run.
func (c *Coordinator) heard(run Run) bool {
	for _, m := range c.members {
		if _, alive := c.since[m.Home]; !alive || c.gone(m.Home) {
			continue
		}
		if _, known := c.reports[m.Home].of(run); !known {
			return false
		}
	}
	return true
}

// decide returns what is to be done about one run, nil for nothing.
func (c *Coordinator) decide(b *book, wall time.Time) *Entry {
	if !b.Status.Runs() || !c.past(max(b.seen, c.began)+c.Begin) && !c.heard(b.Run) {
		return nil
	}
	if b.Plan == nil {
		return c.begin(b, wall)
	}
	if err := c.error(b); err != "" && !b.Status.Ends() {
		return &Entry{Finish: &Finish{Topology: b.Topology, Run: b.Run, Status: Failed, Reason: err, At: wall}}
	}
	if e := c.repair(b); e != nil {
		return e
	}
	switch {
	case c.ended(b) && b.Status.Ends():
		return c.over(b, wall)
	case c.ended(b):
		return &Entry{Finish: &Finish{Topology: b.Topology, Run: b.Run, Status: Done, At: wall}}
	case b.Next != nil:
		return c.carryOn(b)
	case b.Status.Ends():
		return nil
	}
	return c.improve(b)
}

// begin places the tasks of a new run.
func (c *Coordinator) begin(b *book, wall time.Time) *Entry {
	if b.Status.Ends() {
		return c.over(b, wall)
	}
	plan, err := Place(b.Components, nil, c.Candidates(&c.s, b.Submission))
	if err == nil {
		return &Entry{SetPlan: &SetPlan{Topology: b.Topology, Run: b.Run, Plan: plan}}
	}
	if why := c.cannot(b.Run); why != "" && c.heard(b.Run) && c.past(b.seen+c.Settle) {
		return &Entry{Finish: &Finish{Topology: b.Topology, Run: b.Run, Status: Failed, Reason: "no node can run it: " + why, At: wall}}
	}
	return nil
}

// over is for a run that has done what it had to before it is stopped or forgotten.
func (c *Coordinator) over(b *book, wall time.Time) *Entry {
	if b.Status == Stopping {
		return &Entry{Finish: &Finish{Topology: b.Topology, Run: b.Run, Status: Stopped, Reason: c.error(b), At: wall}}
	}
	return &Entry{Forget: &Forget{Topology: b.Topology, Run: b.Run}}
}

// cannot says why nodes cannot run a run, each reason once.
func (c *Coordinator) cannot(run Run) string {
	var whys []string
	for _, r := range c.reports {
		if x, known := r.of(run); known && x.Cannot != "" && !slices.Contains(whys, x.Cannot) {
			whys = append(whys, x.Cannot)
		}
	}
	slices.Sort(whys)
	return strings.Join(whys, "; ")
}

// error says why a part of a run has ended by itself, if one has: that of the first
// process, so that all who ask get the same.
func (c *Coordinator) error(b *book) (why string) {
	first := Home{}
	for h, r := range c.reports {
		if x, known := r.of(b.Run); known && x.Over && x.Err != "" && (why == "" || compareHomes(h, first) < 0) {
			why, first = x.Err, h
		}
	}
	return why
}

// serves reports whether a process that has tasks of a run can go on with them. When
// the run is ending, one with which it is over has done so.
func (c *Coordinator) serves(b *book, h Home) bool {
	x, _ := c.reports[h].of(b.Run)
	return !c.gone(h) && x.Cannot == "" && (!x.Over || b.Status.Ends())
}

// Fails says why a process that is not gone cannot go on with its tasks of a run; "": it can.
func (c *Coordinator) Fails(run Run, h Home) string {
	x, _ := c.reports[h].of(run)
	switch {
	case c.gone(h):
		return ""
	case x.Over:
		return cmp.Or(x.Err, "its part of the topology is over")
	}
	return x.Cannot
}

// repair gives new lives to tasks whose process is gone, or whose messages were given
// up on a link that could not be resumed. All that lives stays where it is.
func (c *Coordinator) repair(b *book) *Entry {
	fails := func(h hosted) bool { return !c.serves(b, h.Home) }
	renew := c.reset(b)
	if (len(renew) > 0 || slices.ContainsFunc(b.homes, fails)) && c.all(b) {
		plan, err := Repair(b.Components, b.Plan, c.Candidates(&c.s, b.Submission))
		if err == nil {
			for i := range plan.Tasks {
				if t := &plan.Tasks[i]; t.Epoch <= renew[t.Home] && !mutation.Is(mutation.ResetKeepsEpoch) {
					t.Epoch = 0 // another life in the same place
				}
			}
			return &Entry{SetPlan: &SetPlan{Topology: b.Topology, Run: b.Run, Base: b.Plan.Epoch, Plan: plan}}
		}
		// Nobody is left; it stays as it is until somebody comes.
	}
	if b.Next != nil && slices.ContainsFunc(b.target, fails) {
		return &Entry{CancelNext: &CancelNext{Topology: b.Topology, Run: b.Run, Base: b.Plan.Epoch}}
	}
	return nil
}

// all reports whether it is known of all processes with tasks of a run whether they live.
func (c *Coordinator) all(b *book) bool {
	return !slices.ContainsFunc(b.homes, func(h hosted) bool {
		_, alive := c.since[h.Home]
		return !alive && !c.gone(h.Home)
	})
}

// ended reports whether a run has nothing more to do anywhere. One that is ending does
// not wait for tasks that nobody can take any more. Of one that is stopping it is not enough
// that all tasks have ended: the log may lack positions of theirs.
func (c *Coordinator) ended(b *book) bool {
	for _, h := range b.homes {
		x, _ := c.reports[h.Home].of(b.Run)
		if x.Ended && (b.Status != Stopping || x.Rest == AtEnd || mutation.Is(mutation.StopUnsaved)) && (x.Epoch == b.Plan.Epoch || mutation.Is(mutation.StaleReport)) || b.Status.Ends() && (x.Over || c.gone(h.Home)) {
			continue
		}
		return false
	}
	return true
}

// carryOn puts the next plan in force when everything is at rest, or when that takes
// too long. One that would only make things more even is dropped instead, and so is
// one that nobody wants any more.
//
// A process whose tasks have all ended must come to rest like any other: until then the
// log may lack positions of theirs, and whoever goes on with their splits reads them again.
func (c *Coordinator) carryOn(b *book) *Entry {
	if b.nextAt != b.NextAt {
		b.nextAt, b.asked = b.NextAt, c.now
	}
	drop := &Entry{CancelNext: &CancelNext{Topology: b.Topology, Run: b.Run, Base: b.Plan.Epoch}}
	if b.Status.Ends() {
		return drop
	}
	if b.Why == WhyEven || b.Why == WhyDrain {
		for _, t := range b.Next.Tasks {
			if n, _ := c.s.Node(t.Home.Node); n.Draining && t.Epoch == 0 {
				return drop // it has begun to drain since
			}
		}
	}
	if b.Why == WhyDrain && !c.emptied(b) {
		return drop // it drains no more
	}
	resting := mutation.Is(mutation.SwitchUnrested) || !slices.ContainsFunc(b.homes, func(h hosted) bool {
		x, _ := c.reports[h.Home].of(b.Run)
		return x.Rest != b.NextAt
	})
	switch {
	case !resting && !c.past(b.asked+c.Quiet):
		return nil
	case !resting && b.Why == WhyEven:
		b.still = b.asked + 11*c.Quiet
		return drop
	}
	return &Entry{Switch: &Switch{Topology: b.Topology, Run: b.Run, Base: b.Plan.Epoch}}
}

// emptied reports whether the next plan of a run takes a task from a node that is draining.
func (c *Coordinator) emptied(b *book) bool {
	for id, t := range b.Plan.Tasks {
		if n, _ := c.s.Node(t.Home.Node); n.Draining && t.Home != b.Next.Tasks[id].Home {
			return true
		}
	}
	return false
}

// Why a plan is proposed.
const (
	WhyAsked = "rebalance" // somebody has asked for it
	WhyEven  = "even out"  // a task moves to a node which has fewer
	WhyDrain = "drain"     // a node is emptied
)

// improve empties nodes that are draining, and lets nodes that have come have their
// share, one task after the other.
func (c *Coordinator) improve(b *book) *Entry {
	if !c.all(b) {
		return nil
	}
	nodes := c.Candidates(&c.s, b.Submission)
	propose := func(p *Plan, why string) *Entry {
		return &Entry{ProposeNext: &ProposeNext{Topology: b.Topology, Run: b.Run, Base: b.Plan.Epoch, Plan: p, Why: why}}
	}
	if slices.ContainsFunc(nodes, func(n Candidate) bool {
		_, has := of(b.homes, n.Home)
		return n.Draining && has
	}) {
		p, err := Vacate(b.Components, b.Plan, nodes)
		if err == nil && slices.ContainsFunc(p.Tasks, func(t Task) bool { return t.Epoch == 0 }) {
			return propose(p, WhyDrain)
		}
		return nil
	}
	if !c.past(c.began+c.Settle) || !c.past(b.still) || !c.past(c.moved+c.Between) {
		return nil
	}
	nodes = slices.DeleteFunc(nodes, func(n Candidate) bool { return n.Draining || !c.past(c.since[n.Home]+c.Settle) })
	if p := Improve(b.Components, b.Plan, nodes); p != nil {
		return propose(p, WhyEven)
	}
	return nil
}
