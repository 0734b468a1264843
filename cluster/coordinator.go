package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Pace says how patient a Coordinator is. Zero values stand for the defaults.
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
	self    Home
	began   time.Duration
	members []Member
	since   map[Home]time.Duration // alive without a break
	reports map[Home]*Report
	seen    map[Run]time.Duration    // when a run was first looked at
	quiet   map[uint64]time.Duration // when a proposal was
	asked   map[string]time.Duration // until when an entry is waited for, by what it is about
	moved   time.Duration            // when something was last moved to make things even
	Lost    []Home                   // processes that are taken for gone, at the last look
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
		Patience: p, self: self, began: now,
		since: map[Home]time.Duration{}, reports: map[Home]*Report{}, seen: map[Run]time.Duration{},
		quiet: map[uint64]time.Duration{}, asked: map[string]time.Duration{},
	}
}

// Members takes in how the membership is at the moment.
func (c *Coordinator) Members(now time.Duration, all []Member) {
	c.members = all
	alive := map[Home]bool{}
	for _, m := range all {
		if !m.Alive {
			continue
		}
		alive[m.Home] = true
		if _, known := c.since[m.Home]; !known {
			c.since[m.Home] = now
		}
	}
	maps.DeleteFunc(c.since, func(h Home, _ time.Duration) bool { return !alive[h] })
	maps.DeleteFunc(c.reports, func(h Home, _ *Report) bool { return !alive[h] })
}

// Report takes in what a node says of itself.
func (c *Coordinator) Report(r *Report) { c.reports[r.Home] = r }

// Decide appends to out what is to be entered into the log now. wall is the time of day.
func (c *Coordinator) Decide(now time.Duration, s *State, wall time.Time, out []Entry) []Entry {
	if s.Cluster == "" {
		return out
	}
	c.look()
	for _, m := range c.members {
		if !m.Alive {
			continue
		}
		if n, known := s.Node(m.Node); (!known || n.Boot < m.Boot || n.Addr != m.Addr || n.Name != m.Name) && n.Boot <= m.Boot &&
			c.ask(now, "node "+m.Node.String()) {
			out = append(out, Entry{SawNode: &SawNode{Node: m.Node, Name: m.Name, Addr: m.Addr, Boot: m.Boot}})
		}
	}
	runs := map[Run]bool{}
	for _, sub := range s.Submissions {
		runs[sub.Run] = true
		if _, known := c.seen[sub.Run]; !known {
			c.seen[sub.Run] = now
		}
		if e := c.decide(now, s, sub, wall); e != nil && c.ask(now, fmt.Sprintf("run %d %d", sub.Run, sub.epoch())) {
			out = append(out, *e)
		}
	}
	maps.DeleteFunc(c.seen, func(r Run, _ time.Duration) bool { return !runs[r] })
	maps.DeleteFunc(c.asked, func(_ string, until time.Duration) bool { return until <= now })
	return out
}

// again is after how long an entry that has not come is asked for again.
const again = 2 * time.Second

// ask reports whether an entry about something may be asked for now.
func (c *Coordinator) ask(now time.Duration, what string) bool {
	if until, waits := c.asked[what]; waits && now < until {
		return false
	}
	c.asked[what] = now + again
	return true
}

// Answered says that an entry has come or was refused: the next one about the same run
// need not wait.
func (c *Coordinator) Answered() { clear(c.asked) }

// look finds the processes that are taken for gone although the membership does not
// know it yet: nobody listens there, says this node, or more than half of the others do;
// or a link stays down between nodes that are alive, then the end that more complain of.
func (c *Coordinator) look() {
	refused, down := map[Home]int{}, map[Home]int{}
	own := map[Home]bool{}
	for _, r := range c.reports {
		for _, l := range r.Links {
			if l.Refused {
				refused[l.To]++
				own[l.To] = own[l.To] || r.Home == c.self
			}
			if l.Down >= c.Down {
				down[l.To]++
				down[r.Home] += 0
			}
		}
	}
	c.Lost = c.Lost[:0]
	for h, n := range refused {
		if own[h] || 2*n > len(c.since)-1 {
			c.Lost = append(c.Lost, h)
		}
	}
	worst, most := Home{}, 0
	for _, h := range slices.SortedFunc(maps.Keys(down), compareHomes) {
		if n := down[h]; h != c.self && n >= most && n > 0 {
			worst, most = h, n
		}
	}
	if most > 0 && !slices.Contains(c.Lost, worst) {
		c.Lost = append(c.Lost, worst)
	}
	slices.SortFunc(c.Lost, compareHomes)
}

func compareHomes(a, b Home) int {
	switch {
	case a.Node != b.Node && a.Node < b.Node, a.Node == b.Node && a.Boot < b.Boot:
		return -1
	case a == b:
		return 0
	}
	return 1
}

// lives reports whether a process may have tasks.
func (c *Coordinator) lives(h Home) bool {
	_, alive := c.since[h]
	return alive && !slices.Contains(c.Lost, h)
}

// Candidates returns the nodes that can have tasks of a run, by what they say.
func (c *Coordinator) Candidates(s *State, sub *Submission) (all []Candidate) {
	load := map[Home]int{}
	for _, other := range s.Submissions {
		if other != sub && other.Plan != nil && other.Status.Runs() {
			for _, t := range other.Plan.Tasks {
				load[t.Home]++
			}
		}
	}
	for _, m := range c.members {
		r := c.reports[m.Home]
		if r == nil || !c.lives(m.Home) {
			continue
		}
		if run, known := r.of(sub.Run); !known || run.Cannot != "" {
			continue
		}
		n, _ := s.Node(m.Node)
		all = append(all, Candidate{Home: m.Home, Weight: m.Weight, Draining: n.Draining, Load: load[m.Home]})
	}
	return all
}

// heard reports whether all living nodes have said what they think of a run, or have
// had the time to.
func (c *Coordinator) heard(now time.Duration, run Run) bool {
	if now-max(c.seen[run], c.began) >= c.Begin {
		return true
	}
	for _, m := range c.members {
		if !c.lives(m.Home) {
			continue
		}
		r := c.reports[m.Home]
		if r == nil {
			return false
		}
		if _, known := r.of(run); !known {
			return false
		}
	}
	return true
}

// decide returns what is to be done about one run, nil for nothing.
func (c *Coordinator) decide(now time.Duration, s *State, sub *Submission, wall time.Time) *Entry {
	if !sub.Status.Runs() || !c.heard(now, sub.Run) {
		return nil
	}
	if sub.Plan == nil {
		return c.begin(now, s, sub, wall)
	}
	if err := c.failure(sub); err != "" {
		return &Entry{Finish: &Finish{Topology: sub.Topology, Run: sub.Run, Status: Failed, Reason: err, At: wall}}
	}
	if e := c.repair(s, sub); e != nil {
		return e
	}
	if c.all(sub, func(r RunReport) bool {
		return r.Epoch == sub.Plan.Epoch && (r.Ended || r.Over && sub.Status == Ending)
	}) {
		if sub.Status == Ending {
			return &Entry{Forget: &Forget{Topology: sub.Topology, Run: sub.Run}}
		}
		return &Entry{Finish: &Finish{Topology: sub.Topology, Run: sub.Run, Status: Done, At: wall}}
	}
	if sub.Next != nil {
		return c.carryOn(now, sub)
	}
	if sub.Status == Ending {
		return nil
	}
	return c.improve(now, s, sub)
}

// begin places the tasks of a new run.
func (c *Coordinator) begin(now time.Duration, s *State, sub *Submission, wall time.Time) *Entry {
	if sub.Status == Ending {
		return &Entry{Forget: &Forget{Topology: sub.Topology, Run: sub.Run}}
	}
	nodes := c.Candidates(s, sub)
	plan, err := Place(sub.Components, nil, nodes)
	if err == nil {
		return &Entry{SetPlan: &SetPlan{Topology: sub.Topology, Run: sub.Run, Plan: plan}}
	}
	if why := c.cannot(sub.Run); why != "" && now-c.seen[sub.Run] >= c.Settle {
		return &Entry{Finish: &Finish{Topology: sub.Topology, Run: sub.Run, Status: Failed, Reason: "no node can run it: " + why, At: wall}}
	}
	return nil
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

// failure says why a part of a run has ended by itself, if one has.
func (c *Coordinator) failure(sub *Submission) string {
	if sub.Status == Ending {
		return ""
	}
	for _, h := range slices.SortedFunc(maps.Keys(c.reports), compareHomes) {
		if x, known := c.reports[h].of(sub.Run); known && x.Over && x.Err != "" {
			return x.Err
		}
	}
	return ""
}

// repair gives new lives to tasks whose process is gone, or whose messages were given
// up on a link that could not be resumed.
func (c *Coordinator) repair(s *State, sub *Submission) *Entry {
	old := sub.Plan
	if sub.Next != nil && !c.homes(sub.Next) {
		return &Entry{CancelNext: &CancelNext{Topology: sub.Topology, Run: sub.Run, Base: old.Epoch}}
	}
	reset := c.reset(sub)
	if c.homes(old) && len(reset) == 0 {
		return nil
	}
	nodes := c.Candidates(s, sub)
	plan, err := Repair(sub.Components, old, nodes)
	if err != nil {
		return nil // nobody is left; it stays as it is until somebody comes
	}
	for i := range plan.Tasks {
		if reset[plan.Tasks[i].Home] {
			plan.Tasks[i].Epoch = 0 // another life in the same place
		}
	}
	return &Entry{SetPlan: &SetPlan{Topology: sub.Topology, Run: sub.Run, Base: old.Epoch, Plan: plan}}
}

// homes reports whether all tasks of a plan have a living process.
func (c *Coordinator) homes(p *Plan) bool {
	return !slices.ContainsFunc(p.Tasks, func(t Task) bool { return t.Home.Node != 0 && !c.lives(t.Home) })
}

// reset returns processes whose tasks of a run need other lives, since a link between
// living ones was given up: of each pair the end that more complain of.
func (c *Coordinator) reset(sub *Submission) map[Home]bool {
	complaints := map[Home]int{}
	for _, r := range c.reports {
		for _, l := range r.Links {
			if slices.Contains(l.Reset, RunEpoch{sub.Run, sub.Plan.Epoch}) {
				complaints[l.To]++
			}
		}
	}
	if len(complaints) == 0 {
		return nil
	}
	worst := slices.MaxFunc(slices.SortedFunc(maps.Keys(complaints), compareHomes), func(a, b Home) int { return complaints[a] - complaints[b] })
	return map[Home]bool{worst: true}
}

// all reports whether something holds for all nodes that have tasks of a run.
func (c *Coordinator) all(sub *Submission, holds func(RunReport) bool) bool {
	for _, t := range sub.Plan.Tasks {
		if t.Home.Node == 0 {
			continue
		}
		r := c.reports[t.Home]
		if r == nil {
			return false
		}
		if x, known := r.of(sub.Run); !known || !holds(x) {
			return false
		}
	}
	return true
}

// carryOn puts the next plan in force when everything is at rest, or when that takes
// too long. One that would only make things more even is dropped instead.
func (c *Coordinator) carryOn(now time.Duration, sub *Submission) *Entry {
	asked, known := c.quiet[sub.NextAt]
	if !known {
		clear(c.quiet)
		c.quiet[sub.NextAt], asked = now, now
	}
	at := &Entry{Switch: &Switch{Topology: sub.Topology, Run: sub.Run, Base: sub.Plan.Epoch}}
	switch {
	case c.all(sub, func(r RunReport) bool { return r.Rest == sub.NextAt || r.Ended && r.Epoch == sub.Plan.Epoch }):
		return at
	case now-asked < c.Quiet:
		return nil
	case sub.Why == evenly:
		c.moved = now + 10*c.Quiet
		return &Entry{CancelNext: &CancelNext{Topology: sub.Topology, Run: sub.Run, Base: sub.Plan.Epoch}}
	}
	return at
}

// evenly is why a plan is proposed that moves a task to a node which has fewer.
const evenly = "even out"

// improve empties nodes that are draining, and lets nodes that have come have their
// share, one task after the other.
func (c *Coordinator) improve(now time.Duration, s *State, sub *Submission) *Entry {
	nodes := c.Candidates(s, sub)
	propose := func(p *Plan, why string) *Entry {
		return &Entry{ProposeNext: &ProposeNext{Topology: sub.Topology, Run: sub.Run, Base: sub.Plan.Epoch, Plan: p, Why: why}}
	}
	for _, n := range nodes {
		if !n.Draining || !slices.ContainsFunc(sub.Plan.Tasks, func(t Task) bool { return t.Home == n.Home }) {
			continue
		}
		if p, err := Vacate(sub.Components, sub.Plan, nodes); err == nil && !slices.EqualFunc(p.Tasks, sub.Plan.Tasks, func(a, b Task) bool { return a.Home == b.Home }) {
			return propose(p, "drain")
		}
		return nil
	}
	if now < c.moved+c.Between || now-c.began < c.Settle {
		return nil
	}
	nodes = slices.DeleteFunc(nodes, func(n Candidate) bool { return n.Draining || now-c.since[n.Home] < c.Settle })
	if p := Improve(sub.Components, sub.Plan, nodes); p != nil {
		c.moved = now
		return propose(p, evenly)
	}
	return nil
}
