package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/broker"
	"github.com/egretstream/egret/metrics"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A halves is one run on two nodes, whose agents and links are two hubs.
type halves struct {
	t        *testing.T
	w        *World
	top      *topology.Topology
	set      *task.Settings
	hubs     [2]*hub
	refs     [2]actor.Ref
	at       []int    // node of each task
	epoch    []uint32 // by task
	tasks    []topology.Task
	first    []tuple.TaskID
	parallel map[string]int
	ms       [2][]*metrics.Task
	executed map[int64]int
	spawned  map[string]int // lives that have begun
	saved    map[string]map[string]string
	heavy    int  // bytes of text in every fiftieth message
	most     int  // bytes of a parcel that may travel
	local    bool // tuples stay on their node if they can
	pairs    bool // two spouts on one node, each with a bolt of its own on the other
	dead     []*task.DeadLetter
	notices  []string
	refuse   bool // positions: later lives have saved them
}

type hub struct {
	h       *halves
	n       int
	sup     actor.Ref
	routes  map[tuple.TaskID]actor.Ref
	ended   bool
	endedIn uint32
	rested  uint64
	over    bool
	err     error
	parcels int
	tuples  int                        // in them
	of      map[tuple.TaskID]int       // the same, by their receiver
	lives   map[tuple.TaskID]task.Peer // of the other
}

type (
	across struct{ msg any }
	gossip struct{ peers []task.Peer }
)

func receiver(msg any) tuple.TaskID {
	switch m := msg.(type) {
	case *task.Encoded:
		return m.To
	case *acker.Report:
		return m.To
	case *task.Limit:
		return m.To
	case *task.Ask:
		return m.To
	case *task.End:
		return m.To
	case *task.Dry:
		return m.To
	}
	panic(fmt.Sprintf("%T travels", msg))
}

func (b *hub) Start(actor.Context) {}
func (b *hub) Receive(ctx actor.Context, msg any) {
	other := b.h.refs[1-b.n]
	switch m := msg.(type) {
	case *task.Lives:
		for _, p := range m.Peers {
			b.routes[p.Task] = p.Ref
		}
		ctx.Send(other, gossip{m.Peers})
	case gossip:
		var peers []task.Peer
		for _, p := range m.peers {
			peers = append(peers, task.Peer{Task: p.Task, Life: p.Life, Ref: ctx.Self(), Far: true})
		}
		for _, p := range peers {
			b.lives[p.Task] = p
		}
		ctx.Send(b.sup, &task.Elsewhere{Peers: peers})
	case *task.Replan:
		ctx.Send(b.sup, m)
		all := &task.Elsewhere{}
		for _, id := range slices.Sorted(maps.Keys(b.lives)) {
			all.Peers = append(all.Peers, b.lives[id])
		}
		ctx.Send(b.sup, all)
	case *task.Far:
		if l, is := m.Msg.(*task.Limit); is {
			require.Empty(b.h.t, l.Parcels, "cells do not travel")
		}
		ctx.Send(other, across{m.Msg})
	case across:
		if e, is := m.msg.(*task.Encoded); is {
			b.parcels++
			b.tuples += e.Tuples
			b.of[e.To] += e.Tuples
		}
		if ref := b.routes[receiver(m.msg)]; ref != nil {
			ctx.Send(ref, m.msg)
		}
	case task.Halt:
		ctx.Send(b.sup, m)
	case *task.SavePositions:
		for _, p := range m.Positions {
			if b.h.saved[p.Component] == nil {
				b.h.saved[p.Component] = map[string]string{}
			}
			b.h.saved[p.Component][p.Split] = p.Position
		}
		if b.h.refuse {
			ctx.Send(b.sup, task.Saved{Refused: len(m.Positions)})
			return
		}
		ctx.Send(b.sup, task.Saved{})
	case task.Ended:
		b.ended, b.endedIn = m.Yes, m.Epoch
	case task.AtRest:
		b.rested = m.N
	case task.Over:
		b.over, b.err = true, m.Err
	}
}
func (b *hub) Turn(actor.Context) bool { return false }
func (b *hub) Stopped(actor.Context)   {}

const shareMessages = 400

func newHalves(t *testing.T, seed uint64) *halves {
	return (&halves{t: t, most: 1 << 20}).begin(seed)
}

func (h *halves) begin(seed uint64) *halves {
	t := h.t
	*h = halves{t: t, heavy: h.heavy, most: h.most, local: h.local, pairs: h.pairs, executed: map[int64]int{}, spawned: map[string]int{}, saved: map[string]map[string]string{}, parallel: map[string]int{}}
	h.w = New(Config{Seed: seed, Links: Links{}})
	values := make([]int64, shareMessages)
	for i := range values {
		values[i] = int64(i)
	}
	h.top = topology.New("halves", func(b *topology.Builder) {
		if h.pairs {
			for i, name := range []string{"one", "two"} {
				in := b.Spout(name, spout.Slice(values...)).Emits("n")
				b.Bolt("of-"+name, bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
					h.executed[in.Int64("n")+int64(i)*shareMessages]++
					return nil
				}), in.Shuffle())
			}
			return
		}
		n := b.Spout("numbers", spout.Slice(values...)).Emits("n").Parallel(2)
		twice := b.Bolt("pass", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			text := ""
			if in.Int64("n")%50 == 7 {
				text = strings.Repeat("x", h.heavy)
			}
			out.Emit(in.Int64("n"), text)
			return nil
		}), h.group(n)).Emits("n", "text").Parallel(3)
		b.Bolt("sink", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			h.executed[in.Int64("n")]++
			return nil
		}), h.sink(twice)).Parallel(2)
	})
	set := newStage(t, seed, nothing).scene.set
	set.Event = func(e task.Event) {
		switch e := e.(type) {
		case *task.DeadLetter:
			h.dead = append(h.dead, e)
		case *task.Notice:
			h.notices = append(h.notices, e.Text)
		}
	}
	set.Store, set.Probe = nil, nil
	if !h.pairs {
		set.MaxPending = 24
	}
	h.set = &set
	plan := h.plan(1)
	for id := range plan.Tasks {
		if h.pairs {
			h.at = append(h.at, min(1, len(plan.Node(tuple.TaskID(id)).Inputs)))
		} else {
			h.at = append(h.at, id%2)
		}
		h.epoch = append(h.epoch, 1)
	}
	h.tasks = plan.Tasks
	for i := range plan.Components {
		h.first = append(h.first, plan.Components[i].First)
	}
	for n := range h.hubs {
		h.hubs[n] = &hub{h: h, n: n, routes: map[tuple.TaskID]actor.Ref{}, of: map[tuple.TaskID]int{}, lives: map[tuple.TaskID]task.Peer{}}
		h.refs[n] = h.w.Spawn(fmt.Sprintf("hub%d", n), h.hubs[n])
	}
	for n := range h.hubs {
		s := *h.set
		s.Share = h.share(n)
		s.Probe = nil
		h.hubs[n].sup = h.w.Spawn(fmt.Sprintf("sup%d", n), task.NewSupervisor(plan, &s, h.metrics(n, plan), func(error) {}))
	}
	return h
}

func (h *halves) group(s *topology.Component) topology.Subscription {
	if h.local {
		return s.LocalOrShuffle()
	}
	return s.Shuffle()
}

func (h *halves) sink(s *topology.Component) topology.Subscription {
	if h.local {
		return s.LocalOrShuffle()
	}
	return s.By("n")
}

func (h *halves) plan(epoch uint32) *topology.Plan {
	plan, err := h.top.Build(topology.Options{Epoch: epoch, Tasks: h.tasks, First: h.first, Parallel: h.parallel})
	require.NoError(h.t, err)
	return plan
}

func (h *halves) metrics(n int, plan *topology.Plan) []*metrics.Task {
	for id := len(h.ms[n]); id < len(plan.Tasks); id++ {
		c := plan.Node(tuple.TaskID(id))
		h.ms[n] = append(h.ms[n], metrics.NewTask(plan.TaskName(tuple.TaskID(id)), len(c.Streams), len(c.Inputs)))
	}
	return h.ms[n]
}

func (h *halves) share(n int) *task.Share {
	s := &task.Share{Run: 7, First: 1, Over: h.refs[n], MaxParcel: h.most, Epoch: slices.Clone(h.epoch)}
	for _, at := range h.at {
		s.Here, s.Retired = append(s.Here, at == n), append(s.Retired, at < 0)
	}
	return s
}

// replan moves tasks, or gives "pass" and "sink" others.
func (h *halves) replan(epoch uint32) {
	plan := h.plan(epoch)
	for n := range h.hubs {
		h.w.Send(h.refs[n], &task.Replan{Plan: plan, Share: h.share(n), Metrics: h.metrics(n, plan), Positions: h.saved})
	}
}

func (h *halves) run(until func() bool) {
	require.NoError(h.t, h.w.Run(until, Limit{Time: time.Hour}))
	require.True(h.t, until())
}

func (h *halves) restarts() (n int64) {
	for i := range h.ms {
		for _, m := range h.ms[i] {
			n += m.Restarts.Load()
		}
	}
	return n
}

func (h *halves) lost() (n int64) {
	for i := range h.ms {
		for _, m := range h.ms[i] {
			n += m.Lost.Load() + m.TimedOut.Load()
		}
	}
	return n
}

func (h *halves) quiet(n uint64) {
	for i := range h.hubs {
		h.w.Send(h.refs[i], task.Halt{N: n})
	}
	h.run(func() bool { return h.hubs[0].rested == n && h.hubs[1].rested == n })
}

func (h *halves) resume() {
	for i := range h.hubs {
		h.w.Send(h.refs[i], task.Halt{})
	}
}

func (h *halves) finish(exactly bool) {
	h.run(func() bool { return h.hubs[0].ended && h.hubs[1].ended })
	for i := range h.hubs {
		h.w.Send(h.hubs[i].sup, task.Stop{})
	}
	h.run(func() bool { return h.hubs[0].over && h.hubs[1].over })
	require.Len(h.t, h.executed, shareMessages-len(h.dead), "nothing is lost")
	for _, n := range h.executed {
		if exactly {
			require.Equal(h.t, 1, n, "nothing is replayed")
		}
	}
	if !h.local {
		require.Positive(h.t, h.hubs[0].parcels+h.hubs[1].parcels)
	}
}

// Half of the tasks of each component is on another node.
func TestHalves(t *testing.T) {
	for seed := range uint64(30) {
		newHalves(t, seed).finish(true)
	}
}

// A task that does nothing for long never holds up the connection: it is sent no more than
// its pair may have under way, and another pair has all the same what it wants.
func TestStuckTaskHoldsUpNobody(t *testing.T) {
	for seed := range uint64(20) {
		h := (&halves{t: t, most: 1 << 20, pairs: true}).begin(seed)
		stuck, other := h.first[2], h.first[3]
		if seed%2 == 1 {
			stuck, other = other, stuck
		}
		b := h.hubs[1]
		h.run(func() bool { return b.routes[stuck] != nil && b.routes[other] != nil })
		until := h.w.Now() + 10*time.Second
		h.w.Freeze(b.routes[stuck], 10*time.Second)
		executed := func(at tuple.TaskID) int64 { return h.ms[1][at].Inputs[0].Executed.Load() }
		h.run(func() bool { return executed(other) == shareMessages })
		require.Less(t, h.w.Now(), until, "and the first still does nothing")
		require.Zero(t, executed(stuck))
		require.GreaterOrEqual(t, b.of[stuck], broker.FirstLimit)
		require.Less(t, b.of[stuck], broker.FirstLimit+h.set.ParcelSize, "it may overshoot by a parcel less a tuple")
		h.run(func() bool { return len(h.executed) == 2*shareMessages })
		require.GreaterOrEqual(t, h.w.Now(), until)
		from := h.ms[0][other-2] // spouts come first
		require.Zero(t, from.Lost.Load()+from.TimedOut.Load())
	}
}

// What is too large to travel is dead, with an error that names both sizes; what came
// with it in one parcel goes on, and so does the connection.
func TestTooLargeToTravel(t *testing.T) {
	dead := 0
	for seed := range uint64(20) {
		h := (&halves{t: t, heavy: 3000, most: 2000}).begin(seed)
		h.finish(true)
		dead += len(h.dead)
		for _, d := range h.dead {
			require.Equal(t, int64(7), d.Values[0].Int64()%50)
			require.NotContains(t, h.executed, d.Values[0].Int64())
			require.Regexp(t, `a parcel of 3,\d\d\d bytes, most of them of one tuple, is for another node, and at most 2,000 may travel`, d.Err)
		}
		require.LessOrEqual(t, len(h.dead), shareMessages/50)
	}
	require.Positive(t, dead)
}

// Local-or-shuffle leaves tuples on their node as long as somebody there takes them, also
// when that is another one than before; and if nobody is there, all others get some.
func TestLocalBetweenNodes(t *testing.T) {
	for seed := range uint64(20) {
		h := (&halves{t: t, most: 1 << 20, local: true}).begin(seed)
		h.run(func() bool { return len(h.executed) > 50 })
		far := h.hubs[0].tuples + h.hubs[1].tuples // until who is near was known, or for want of room
		require.Less(t, far, len(h.executed)/2, "without looking it would be about as many as were executed, on two ways")
		h.quiet(1)
		for id, task := range h.tasks {
			if task.Component > 0 && h.at[id] == 0 {
				h.at[id], h.epoch[id] = 1, 2
			}
		}
		h.replan(2)
		h.resume()
		h.finish(true)
		require.Positive(t, h.hubs[1].parcels, "from the spout that has stayed")
		for id, task := range h.tasks {
			if task.Component == 1 {
				require.Positive(t, h.ms[1][id].Inputs[0].Executed.Load(), "task %d", id)
			}
		}
	}
}

// Who is halted again and again does not look for rest more and more often.
func TestHaltAgain(t *testing.T) {
	h := newHalves(t, 1)
	h.run(func() bool { return len(h.executed) > 50 })
	timers := func() int { // a while after the last Halt
		h.quiet(9)
		until := h.w.Now() + time.Second
		h.run(func() bool { return h.w.Now() >= until })
		return h.w.Left().Timers
	}
	before := timers()
	for range 20 {
		h.quiet(8)
		h.quiet(9)
	}
	require.LessOrEqual(t, timers(), before)
	h.resume()
	h.finish(true)
}

// Tasks that are moved when nothing is open lose nothing, and the others stay.
func TestMoveQuietly(t *testing.T) {
	for seed := range uint64(30) {
		h := newHalves(t, seed)
		h.run(func() bool { return len(h.executed) > 50 })
		h.quiet(1)
		before := len(h.executed)
		for _, id := range []int{0, 3, 6} { // a spout's, a bolt's, a sink's
			h.at[id], h.epoch[id] = 1-h.at[id], 2
		}
		h.replan(2)
		h.resume()
		h.finish(true)
		require.Less(t, before, shareMessages)
		require.Zero(t, h.lost())
		require.Zero(t, h.restarts())
	}
}

// A component is given other tasks, twice.
func TestResizeQuietly(t *testing.T) {
	for seed := range uint64(30) {
		h := newHalves(t, seed)
		for k, size := range []int{5, 3} {
			h.run(func() bool { return len(h.executed) > 50+100*k })
			h.quiet(uint64(k + 1))
			h.resize(1, "pass", size, uint32(k+2))
			h.resize(2, "sink", size-1, uint32(k+2))
			h.replan(uint32(k + 2))
			h.resume()
		}
		h.finish(true)
		require.Zero(t, h.lost())
	}
}

func (h *halves) resize(component int, name string, size int, epoch uint32) {
	h.tasks = slices.Clone(h.tasks)
	h.first = slices.Clone(h.first)
	for id, task := range h.tasks {
		if task.Component == component {
			if h.at[id] >= 0 {
				h.epoch[id], h.at[id] = epoch, -1
			}
		}
	}
	// The new tasks share their bits in masks with the old ones.
	for old := int(h.first[component]); (len(h.tasks)-old)%64 != 0; {
		h.tasks = append(h.tasks, topology.Task{Component: component, Index: 0})
		h.at, h.epoch = append(h.at, -1), append(h.epoch, epoch)
	}
	h.first[component] = tuple.TaskID(len(h.tasks))
	h.parallel[name] = size
	for i := range size {
		h.tasks = append(h.tasks, topology.Task{Component: component, Index: i})
		h.at, h.epoch = append(h.at, i%2), append(h.epoch, epoch)
	}
}

// The same in the middle of everything: what is lost is replayed.
func TestMoveAndResizeLoudly(t *testing.T) {
	lost := int64(0)
	for seed := range uint64(30) {
		h := newHalves(t, seed)
		h.run(func() bool { return len(h.executed) > 20 })
		for k := range 3 {
			epoch := uint32(k + 2)
			h.run(func() bool { return len(h.executed) > 20+60*k })
			switch (int(seed) + k) % 3 {
			case 0:
				id := int(seed) % len(h.at)
				if h.at[id] >= 0 {
					h.at[id], h.epoch[id] = 1-h.at[id], epoch
				}
			case 1:
				h.resize(1, "pass", 2+k, epoch)
			case 2:
				h.resize(2, "sink", 4-k, epoch)
			}
			h.replan(epoch)
		}
		h.finish(false)
		lost += h.lost()
	}
	require.Positive(t, lost)
}

// Who leads must hear of an end in the plan that is there: one in an earlier plan says
// nothing of tasks that have come since.
func TestShareEndsInEachPlan(t *testing.T) {
	h := newHalves(t, 1)
	for epoch := range uint32(2) {
		if epoch > 0 {
			h.replan(epoch + 1)
		}
		h.run(func() bool {
			return h.hubs[0].ended && h.hubs[1].ended && h.hubs[0].endedIn == epoch+1 && h.hubs[1].endedIn == epoch+1
		})
	}
	h.finish(true)
}

// Positions that later lives have saved, on other nodes, are counted. It is not said that
// another run has them: that is what moving a task looks like.
func TestPositionsOfLaterLives(t *testing.T) {
	h := newHalves(t, 1)
	h.refuse = true
	h.finish(true)
	stale := int64(0)
	for i := range h.ms {
		for _, m := range h.ms[i] {
			stale += m.Stale.Load()
		}
	}
	require.Positive(t, stale)
	require.Empty(t, h.notices)
}
