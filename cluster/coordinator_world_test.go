package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A world is a cluster seen from above: all that is true, however slowly it gets about.
type world struct {
	t       *rapid.T
	now     time.Duration
	states  []State // after each entry
	nodes   []*being
	members []Member // as whoever leads sees them
	cut     map[[2]NodeID]time.Duration
	resets  map[[2]NodeID][]RunEpoch
	leader  *being
	c       *Coordinator
	first   map[uint64]time.Duration // when this leader saw a proposal first
	got     map[Home]*Report         // that this leader has got
	flight  [][]byte                 // entries that are under way to the log
	ended   map[Run]bool             // its input has
	asked   int
	asleep  *Coordinator // has had the same, and looks at everything each time
}

// A being is the present process of a node.
type being struct {
	Home
	up, hangs bool
	applied   int // of states
	cannot    map[string]bool
	rests     map[Run]uint64
	ends      map[Run]uint32
	over      map[Run]string // with an error
	late      []*Report      // under way to who leads
}

func newBeing(n NodeID, boot Boot) *being {
	return &being{Home: Home{n, boot}, up: true, cannot: map[string]bool{}, rests: map[Run]uint64{}, ends: map[Run]uint32{}, over: map[Run]string{}}
}

func (w *world) state() *State          { return &w.states[len(w.states)-1] }
func (w *world) sees(b *being) *State   { return &w.states[b.applied] }
func (w *world) bool(label string) bool { return rapid.Bool().Draw(w.t, label) }
func (w *world) some(label string) *being {
	return w.nodes[rapid.IntRange(0, len(w.nodes)-1).Draw(w.t, label)]
}
func nodePair(a, b *being) [2]NodeID        { return [2]NodeID{min(a.Node, b.Node), max(a.Node, b.Node)} }
func (w *world) connected(a, b *being) bool { _, cut := w.cut[nodePair(a, b)]; return !cut }

func (w *world) enter(e Entry) error {
	data, err := e.Encode()
	require.NoError(w.t, err)
	return w.log(data)
}

func (w *world) log(data []byte) error {
	s := *w.state()
	r := s.Apply(s.Applied+1, data)
	w.states = append(w.states, s)
	return r.Err
}

// lead makes a node lead.
func (w *world) lead(b *being) {
	w.leader, w.c = b, NewCoordinator(b.Home, w.now, Patience{})
	w.asleep = NewCoordinator(b.Home, w.now, Patience{})
	w.first, w.got = map[uint64]time.Duration{}, map[Home]*Report{}
	w.tell()
	for _, o := range w.nodes {
		o.late = nil
	}
}

func (w *world) tell() {
	w.c.Members(w.now, w.members)
	w.asleep.Members(w.now, w.members)
}

// notice brings the membership up to date about a node.
func (w *world) notice(b *being) {
	i := int(b.Node) - 1
	w.members[i] = Member{Home: b.Home, Addr: fmt.Sprint("h:", b.Node), Alive: b.up, Weight: 1}
	w.tell()
}

// report has a process say how it is.
func (w *world) report(b *being) *Report {
	s := w.sees(b)
	r := &Report{Home: b.Home, Applied: s.Applied}
	for _, sub := range s.Submissions {
		if !sub.Status.Runs() {
			continue
		}
		x := RunReport{Run: sub.Run, Err: b.over[sub.Run]}
		_, x.Over = b.over[sub.Run]
		if b.cannot[sub.Topology] {
			x.Cannot = "no"
		}
		if sub.Plan != nil && !x.Over && slices.ContainsFunc(sub.Plan.Tasks, func(t Task) bool { return t.Home == b.Home }) {
			x.Epoch = sub.epoch()
			x.Ended = b.ends[sub.Run] == sub.epoch()
		}
		if sub.Next != nil && b.rests[sub.Run] == sub.NextAt {
			x.Rest = sub.NextAt
		}
		r.Runs = append(r.Runs, x)
	}
	for i, o := range w.nodes {
		if o == b || w.members[i].Node == 0 {
			continue
		}
		l := LinkReport{To: w.members[i].Home}
		since, cut := w.cut[nodePair(b, o)]
		if !o.up || l.To != o.Home {
			l.Refused, l.Down = !o.hangs || l.To != o.Home, time.Millisecond
		} else if cut {
			l.Down = w.now - since + 1
		}
		l.Reset = slices.DeleteFunc(slices.Clone(w.resets[[2]NodeID{b.Node, o.Node}]), func(e RunEpoch) bool {
			for _, sub := range s.Submissions {
				if sub.Run == e.Run && sub.Plan != nil {
					return sub.Plan.Renewed(b.Home, e.Epoch) || sub.Plan.Renewed(l.To, e.Epoch)
				}
			}
			return true
		})
		if l.Down > 0 || len(l.Reset) > 0 {
			r.Links = append(r.Links, l)
		}
	}
	return r
}

// hear gives a report to who leads.
func (w *world) hear(r *Report) {
	if old := w.got[r.Home]; old != nil && r.Applied < old.Applied {
		return
	}
	w.got[r.Home] = r
	w.c.Report(r)
	w.asleep.Report(r)
}

// decide has who leads decide, and looks at what it says.
func (w *world) decide() {
	s := w.sees(w.leader)
	for _, sub := range s.Submissions {
		if _, seen := w.first[sub.NextAt]; !seen {
			w.first[sub.NextAt] = w.now
		}
	}
	entries := w.c.Decide(w.now, s, clock, nil)
	w.asleep.changed = true
	require.Equal(w.t, w.asleep.Decide(w.now, s, clock, nil), entries, "it has slept when there was something to do")
	for _, e := range entries {
		w.asked++
		w.judge(s, e)
		data, err := e.Encode()
		require.NoError(w.t, err)
		w.flight = append(w.flight, data)
	}
}

// alive is what who leads can know of a process: nil if it has been told that it lives,
// and otherwise why it may be taken for gone.
func (w *world) doubts(h Home) (doubts []string) {
	if h == w.leader.Home {
		return nil
	}
	m := w.members[h.Node-1]
	if m.Home != h || !m.Alive {
		doubts = append(doubts, "the membership knows it no more")
	}
	if n, _ := w.sees(w.leader).Node(h.Node); n.Boot > h.Boot {
		doubts = append(doubts, "the log knows a later one")
	}
	for _, r := range w.got {
		for _, l := range r.Links {
			switch {
			case l.To == h && l.Refused:
				doubts = append(doubts, "it is refused")
			case (l.To == h || r.Home == h) && l.Down >= 10*time.Second:
				doubts = append(doubts, "a link is down")
			}
		}
	}
	return doubts
}

func (w *world) can(h Home, run Run) bool {
	r, known := w.got[h].of(run)
	return known && r.Cannot == "" && !r.Over
}

func find(s *State, topology string, run Run) *Submission {
	if sub := s.Submission(topology); sub != nil && sub.Run == run {
		return sub
	}
	return nil
}

// judge says what must never be asked for.
func (w *world) judge(s *State, e Entry) {
	t := w.t
	placed := func(sub *Submission, p *Plan) {
		require.NoError(t, checkPlan(sub.Components, p, false))
		require.NoError(t, checkStep(sub.Plan, p))
		others := false // there is a node that is not draining
		for _, m := range w.members {
			n, _ := s.Node(m.Node)
			b := w.nodes[m.Node-1]
			others = others || b.Home == m.Home && b.up && !n.Draining && w.can(m.Home, sub.Run) && len(w.doubts(m.Home)) == 0
		}
		for id, task := range p.Tasks {
			if task.Epoch != 0 || task.Home.Node == 0 {
				continue
			}
			if sub.Plan != nil && id < len(sub.Plan.Tasks) && sub.Plan.Tasks[id].Home == task.Home {
				continue // another life in its place
			}
			m := w.members[task.Home.Node-1]
			require.True(t, m.Home == task.Home && m.Alive || task.Home == w.leader.Home, "task %d goes to %v, which is gone", id, task.Home)
			own := w.got[w.leader.Home]
			require.False(t, own != nil && slices.ContainsFunc(own.Links, func(l LinkReport) bool {
				return l.To == task.Home && (l.Refused || l.Down >= 10*time.Second)
			}), "task %d goes to %v, where nobody answers", id, task.Home)
			_, has := of(sub.Plan.hosts(), task.Home)
			_, said := w.got[task.Home].of(sub.Run)
			require.True(t, w.can(task.Home, sub.Run) || has && !said || sub.Status == Ending, "task %d goes to %v, which cannot run it", id, task.Home)
			n, _ := s.Node(task.Home.Node)
			require.False(t, n.Draining && others, "task %d goes to %v, which is draining", id, task.Home)
		}
	}
	switch {
	case e.SetPlan != nil:
		sub := find(s, e.SetPlan.Topology, e.SetPlan.Run)
		placed(sub, e.SetPlan.Plan)
		if sub.Plan == nil {
			return
		}
		changes := false
		for id, task := range e.SetPlan.Plan.Tasks {
			was := sub.Plan.Tasks[id]
			if task == was {
				continue
			}
			changes = true
			if task.Home == was.Home {
				require.True(t, w.complained(was, sub.Run), "task %d gets another life without need", id)
				continue
			}
			r, _ := w.got[was.Home].of(sub.Run)
			require.True(t, len(w.doubts(was.Home)) > 0 || r.Cannot != "" || r.Over, "task %d is taken from %v, which lives", id, was.Home)
		}
		require.True(t, changes, "the new plan is the old one")
	case e.ProposeNext != nil:
		sub := find(s, e.ProposeNext.Topology, e.ProposeNext.Run)
		require.Nil(t, sub.Next)
		require.NotEqual(t, Ending, sub.Status)
		placed(sub, e.ProposeNext.Plan)
		n := moves(sub.Plan, e.ProposeNext.Plan)
		require.Positive(t, n)
		for id, task := range e.ProposeNext.Plan.Tasks {
			from, _ := s.Node(sub.Plan.Tasks[id].Home.Node)
			require.True(t, task == sub.Plan.Tasks[id] || from.Draining || n == 1, "a task leaves a node that is not draining")
		}
	case e.Switch != nil:
		sub := find(s, e.Switch.Topology, e.Switch.Run)
		require.NotEqual(t, Ending, sub.Status)
		for _, h := range sub.Plan.hosts() {
			r, _ := w.got[h.Home].of(sub.Run)
			require.True(t, r.Rest == sub.NextAt || r.Ended && r.Epoch == sub.epoch() || w.now-w.first[sub.NextAt] >= 10*time.Second && sub.Why != evenly,
				"%v is not at rest", h.Home)
		}
	case e.Finish != nil && e.Finish.Status == Done:
		sub := find(s, e.Finish.Topology, e.Finish.Run)
		for _, h := range sub.Plan.hosts() {
			b := w.nodes[h.Node-1]
			require.True(t, b.Home != h.Home || b.ends[sub.Run] == sub.epoch(), "%v has not ended", h.Home)
		}
	case e.Finish != nil:
		sub := find(s, e.Finish.Topology, e.Finish.Run)
		bad := slices.ContainsFunc(w.nodes, func(b *being) bool { return b.over[sub.Run] != "" })
		none := sub.Plan == nil && !slices.ContainsFunc(w.members, func(m Member) bool { return w.can(m.Home, sub.Run) && len(w.doubts(m.Home)) == 0 })
		require.True(t, bad || none, "it is said to have failed: %s", e.Finish.Reason)
	case e.Forget != nil:
		sub := find(s, e.Forget.Topology, e.Forget.Run)
		require.Equal(t, Ending, sub.Status)
		for _, h := range sub.Plan.hosts() {
			r, _ := w.got[h.Home].of(sub.Run)
			require.True(t, r.Over || r.Ended && r.Epoch == sub.epoch() || len(w.doubts(h.Home)) > 0, "%v is still at it", h.Home)
		}
	}
}

// complained reports whether somebody has lost what was for a task, or what it sent.
func (w *world) complained(task Task, run Run) bool {
	for _, r := range w.got {
		for _, l := range r.Links {
			if (r.Home == task.Home || l.To == task.Home) && slices.ContainsFunc(l.Reset, func(e RunEpoch) bool { return e.Run == run && e.Epoch >= task.Epoch }) {
				return true
			}
		}
	}
	return false
}

// live has a process do what the log says.
func (w *world) live(b *being, lags bool) {
	if !b.up {
		return
	}
	last := len(w.states) - 1
	if lags && last > b.applied {
		last = rapid.IntRange(b.applied, last).Draw(w.t, "applied")
	}
	b.applied = last
	if lags && w.bool("is slow") {
		return
	}
	for _, sub := range w.sees(b).Submissions {
		_, over := b.over[sub.Run]
		_, has := of(sub.Plan.hosts(), b.Home)
		if !sub.Status.Runs() || over || !has {
			continue
		}
		if sub.Next != nil {
			b.rests[sub.Run] = sub.NextAt
		}
		if w.ended[sub.Run] {
			b.ends[sub.Run] = sub.epoch()
		}
		if sub.Status == Ending {
			b.over[sub.Run] = ""
		}
	}
}

// step is something that happens.
func (w *world) step() {
	w.now += time.Duration(rapid.SampledFrom([]int{0, 1, 100, 500, 1000, 3000, 11000}).Draw(w.t, "pass")) * time.Millisecond
	b := w.some("node")
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(w.t, "topology")
	sub := w.state().Submission(name)
	enter := func(e Entry) { _ = w.enter(e) } // as good as it can
	switch what := rapid.SampledFrom([]string{
		"log", "all live", "all report", "submit", "log", "all live", "all report", "crash", "notice", "status", "drain", "resize", "cut", "heal",
		"submit", "log", "log twice", "drop", "start", "lead", "end", "fail", "live", "live", "report", "report", "lost", "late", "late", "notice",
	}).Draw(w.t, "what"); what {
	case "crash":
		if b != w.leader && b.up {
			b.up, b.hangs, b.late = false, w.bool("hangs"), nil
		}
	case "start":
		if !b.up {
			next := newBeing(b.Node, b.Boot+1)
			if w.bool("other program") {
				next.cannot["a"] = true
			}
			w.nodes[b.Node-1] = next
			w.clear(b.Node)
		}
	case "notice":
		w.notice(b)
	case "cut":
		if o := w.some("other"); o != b && b.up && o.up && w.connected(b, o) {
			w.cut[nodePair(b, o)] = w.now
		}
	case "heal":
		o := w.some("other")
		if w.connected(b, o) || o == b {
			break
		}
		delete(w.cut, nodePair(b, o))
		if w.bool("reset") {
			for _, p := range [][2]*being{{b, o}, {o, b}} {
				for _, sub := range w.sees(p[0]).Submissions {
					if sub.Plan != nil && sub.Status.Runs() && p[0].up && p[1].up {
						key := [2]NodeID{p[0].Node, p[1].Node}
						w.resets[key] = append(w.resets[key], RunEpoch{sub.Run, sub.epoch()})
					}
				}
			}
		}
	case "lead":
		if b.up {
			w.lead(b)
		}
	case "submit":
		if sub == nil || !sub.Status.Runs() {
			enter(Entry{Submit: &Submit{Spec{Topology: name, Components: chain(rapid.SliceOfN(rapid.IntRange(1, 4), 1, 2).Draw(w.t, "parallel")...)}, clock}})
		}
	case "status":
		if sub != nil {
			enter(Entry{SetStatus: &SetStatus{name, sub.Run, rapid.SampledFrom([]Status{Active, Inactive, Ending}).Draw(w.t, "status"), clock}})
		}
	case "drain":
		enter(Entry{DrainNode: &DrainNode{b.Node, w.bool("on")}})
	case "resize":
		if mine := w.sees(w.leader).Submission(name); mine != nil && mine.Plan != nil && mine.Status.Runs() {
			p, err := Resize(mine.Components, mine.Plan, w.c.Candidates(w.sees(w.leader), mine), map[string]int{"c0": rapid.IntRange(1, 4).Draw(w.t, "parallel")})
			w.asleep.Candidates(w.sees(w.leader), mine)
			if err == nil {
				enter(Entry{ProposeNext: &ProposeNext{name, mine.Run, mine.epoch(), p, "rebalance"}})
			}
		}
	case "end":
		if sub != nil && rapid.IntRange(0, 2).Draw(w.t, "really") == 0 {
			w.ended[sub.Run] = true
		}
	case "fail":
		if sub != nil && sub.Plan != nil && b.up && rapid.IntRange(0, 4).Draw(w.t, "really") == 0 {
			if _, has := of(sub.Plan.hosts(), b.Home); has {
				b.over[sub.Run] = "a mistake"
			}
		}
	case "live":
		w.live(b, true)
	case "all live":
		for _, o := range w.nodes {
			w.live(o, false)
		}
	case "report", "lost", "late":
		if what == "late" && len(b.late) > 0 {
			w.hear(b.late[0])
			b.late = b.late[1:]
		} else if b.up {
			b.late = append(b.late, w.report(b))
			if what == "lost" {
				b.late = nil
			}
		}
	case "all report":
		w.reports()
	case "log", "log twice", "drop":
		if len(w.flight) == 0 {
			break
		}
		i := rapid.IntRange(0, len(w.flight)-1).Draw(w.t, "entry")
		if what != "drop" {
			_ = w.log(w.flight[i])
		}
		if what != "log twice" {
			w.flight = slices.Delete(w.flight, i, i+1)
		}
	}
	w.live(w.leader, false)
	w.hear(w.report(w.leader))
	w.decide()
}

func (w *world) clear(n NodeID) {
	for key := range w.resets {
		if key[0] == n || key[1] == n {
			delete(w.resets, key)
		}
	}
	for key := range w.cut {
		if key[0] == n || key[1] == n {
			delete(w.cut, key)
		}
	}
}

func (w *world) reports() {
	for _, b := range w.nodes {
		if b.up && (b == w.leader || w.connected(b, w.leader)) {
			b.late = nil
			w.hear(w.report(b))
		}
	}
}

// Members come and go, links break, reports and entries are late or lost, another node
// leads: nothing is asked for that must not be, and when it is quiet everything is as it
// should be, and stays so.
func TestCoordinatorWorld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, states: make([]State, 1), cut: map[[2]NodeID]time.Duration{}, resets: map[[2]NodeID][]RunEpoch{}, ended: map[Run]bool{}}
		require.NoError(t, w.enter(Entry{Found: &Found{"c"}}))
		n := rapid.IntRange(1, 4).Draw(t, "nodes")
		w.members = make([]Member, n)
		for i := range n {
			w.nodes = append(w.nodes, newBeing(NodeID(i+1), 1))
			w.members[i] = Member{Home: w.nodes[i].Home, Addr: fmt.Sprint("h:", i+1), Alive: true, Weight: 1}
		}
		w.nodes[0].applied = 1
		w.lead(w.nodes[0])
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			w.step()
		}
		w.rest()
	})
}

// rest lets everything come to rest.
func (w *world) rest() {
	heals := w.bool("all links heal")
	if heals {
		clear(w.cut)
	}
	for _, b := range w.nodes {
		w.notice(b)
	}
	quiet := 0
	for i := range 1200 { // ten minutes
		w.now += 500 * time.Millisecond
		for _, data := range w.flight {
			_ = w.log(data)
		}
		w.flight = nil
		for _, b := range w.nodes {
			w.live(b, false)
		}
		w.reports()
		asked := w.asked
		w.decide()
		if asked == w.asked {
			quiet++
		} else {
			quiet = 0
		}
		if i > 400 && quiet > 250 {
			break
		}
	}
	require.Greater(w.t, quiet, 250, "it never comes to rest")
	s := w.state()
	var up []Home // those that can be led
	for _, b := range w.nodes {
		if b.up && (b == w.leader || w.connected(b, w.leader)) {
			up = append(up, b.Home)
		}
	}
	for _, sub := range s.Submissions {
		require.NotEqual(w.t, Ending, sub.Status, "%s is not forgotten", sub.Topology)
		if !sub.Status.Runs() {
			continue
		}
		var able []Home
		drains := map[Home]bool{}
		others := false
		for _, h := range up {
			b := w.nodes[h.Node-1]
			if b.over[sub.Run] != "" {
				require.Fail(w.t, "it has failed, and nobody has noticed")
			}
			if b.cannot[sub.Topology] {
				continue
			}
			able = append(able, h)
			n, _ := s.Node(h.Node)
			drains[h] = n.Draining
			if !slices.Contains(w.c.Lost, h) {
				others = others || !n.Draining
			}
		}
		require.Nil(w.t, sub.Next, "%s waits for its next plan", sub.Topology)
		if len(able) == 0 || len(able) == 1 && slices.Contains(w.c.Lost, able[0]) {
			continue
		}
		require.NotNil(w.t, sub.Plan, "%s was never placed", sub.Topology)
		require.False(w.t, w.ended[sub.Run], "%s is not done", sub.Topology)
		hosts := sub.Plan.hosts()
		var nodes []Candidate
		for _, h := range hosts {
			if len(able) > 0 && !slices.ContainsFunc(able, func(h Home) bool { return !slices.Contains(w.c.Lost, h) }) {
				continue
			}
			require.Contains(w.t, able, h.Home, "tasks are on %v", h.Home)
			require.False(w.t, drains[h.Home] && others, "%v is not empty", h.Home)
			for _, o := range hosts {
				a, b := w.nodes[h.Node-1], w.nodes[o.Node-1]
				require.True(w.t, a == b || w.connected(a, b), "%v and %v have tasks of a run, and there is no way", h.Home, o.Home)
				for _, e := range w.resets[[2]NodeID{h.Node, o.Node}] {
					require.True(w.t, e.Run != sub.Run || sub.Plan.Renewed(h.Home, e.Epoch) || sub.Plan.Renewed(o.Home, e.Epoch), "a reset is forgotten")
				}
			}
		}
		load := map[Home]int{}
		for _, other := range s.Submissions {
			if other != sub && other.Status.Runs() {
				for _, h := range other.Plan.hosts() {
					load[h.Home] += h.tasks
				}
			}
		}
		for _, h := range able {
			if !drains[h] && !slices.Contains(w.c.Lost, h) {
				nodes = append(nodes, Candidate{Home: h, Weight: 1, Load: load[h]})
			}
		}
		if len(nodes) > 0 {
			require.Nil(w.t, Improve(sub.Components, sub.Plan, nodes), "%s is not even", sub.Topology)
		}
	}
}
