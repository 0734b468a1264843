package cluster

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
)

// doubts returns why a process may be taken for gone, by what who leads has been told.
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
			require.True(t, r.Rest == sub.NextAt || w.now-w.first[sub.NextAt] >= 10*time.Second && sub.Why != WhyEven,
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
