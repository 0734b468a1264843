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
