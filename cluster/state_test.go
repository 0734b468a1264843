package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/batch"
	"github.com/egretstream/egret/tuple"
)

// The format of entries and of a snapshot. A log that was written with it is read by
// later versions: what is here may only be added to, by new kinds.
func TestFormat(t *testing.T) {
	m := &machine{t: t}
	two := plan(words().Components)
	next := moved(two.inForce(3), 2, Home{0xb2, 1})
	var text strings.Builder
	for _, e := range []Entry{
		{DrainNode: &DrainNode{0xb2, true}},
		{Found: &Found{"5eed"}},
		{SawNode: &SawNode{0xa1, "alpha", "10.0.0.1:7000", 1}},
		{SawNode: &SawNode{0xb2, "beta", "10.0.0.2:7000", 3}},
		{Submit: &Submit{words(), clock}},
		{SetPlan: &SetPlan{"words", 1, 0, two}},
		{Commit: &Commit{"words", 1, positions("lines", tuple.NewIncarnation(2, 1), "book", "atlas")}},
		begins(1, tuple.NewIncarnation(2, 1)),
		{Batches: &Batches{"words", 1, batch.Entry{Epoch: 1, Fix: &batch.Fix{Tx: 1, Ranges: map[string]batch.Ranges{"lines": {"book": {From: "", To: "7", Messages: 7}}}}}}},
		{Batches: &Batches{"words", 1, batch.Entry{Epoch: 1, Commit: &batch.Commit{Tx: 1, Round: 1, Positions: map[string]batch.Positions{"lines": {"book": "7"}}}}}},
		{Batches: &Batches{"words", 1, batch.Entry{Epoch: 1, Commit: &batch.Commit{Tx: 1, Round: 1}}}},
		begins(2, tuple.NewIncarnation(1, 9)),
		{SetStatus: &SetStatus{"words", 1, Inactive, clock}},
		{DrainNode: &DrainNode{0xb2, true}},
		{ProposeNext: &ProposeNext{"words", 1, 2, moved(two.inForce(2), 2, Home{0xb2, 1}), "for the golden file"}},
		{CancelNext: &CancelNext{"words", 1, 2}},
		{ProposeNext: &ProposeNext{"words", 1, 2, moved(two.inForce(2), 4, Home{0xb2, 1}), "again"}},
		{Switch: &Switch{"words", 1, 2}},
		{Commit: &Commit{"words", 1, positions("lines", tuple.NewIncarnation(1, 7), "book")}},
		{SetPlan: &SetPlan{"words", 1, 2, next}},
		{ForgetNode: &ForgetNode{0xb2}},
		{Submit: &Submit{Spec{Topology: "short", Components: []Component{{Name: "a", Parallel: 1}}}, clock}},
		{Finish: &Finish{"short", 4, Failed, "it was too short", clock}},
		{Forget: &Forget{"words", 1}},
		{SawNode: &SawNode{0xc3, "gamma", "10.0.0.3:7000", 1}},
		{ForgetNode: &ForgetNode{0xc3}},
	} {
		data, err := e.Encode()
		require.NoError(t, err)
		write(&text, string(data), m.apply(e))
	}
	for _, line := range []string{
		`{"promote":{"node":"00000000000000a1"}}`,
		`{"drain-node":{"node":"00000000000000a1","on":true,"until":7}}`,
		`{"drain-node":{"node":"a1","on":true}}`,
		`{"found":{"cluster":"x"},"forget-node":{"node":"00000000000000a1"}}`,
	} {
		write(&text, line, m.Apply(m.Applied+1, []byte(line)))
	}
	golden(t, "entries.txt", text.String())
	var pretty bytes.Buffer
	require.NoError(t, json.Indent(&pretty, []byte(m.snapshot()), "", "  "))
	golden(t, "snapshot.json", pretty.String()+"\n")
}

// begins is an entry for the record of batches of run 1 of words.
func begins(epoch uint32, life tuple.Incarnation) Entry {
	return Entry{Batches: &Batches{"words", 1, batch.Entry{Epoch: epoch, Begin: true, Life: life}}}
}

func write(text *strings.Builder, entry string, r Result) {
	fmt.Fprintf(text, "%s\n", entry)
	if refusal, ok := errors.AsType[*Refusal](r.Err); ok {
		said, _, _ := strings.Cut(refusal.Text, " (json:") // which is not ours
		fmt.Fprintf(text, "\trefused, %s: %s\n", refusal.Reason, said)
	}
	if r.Epoch != 0 {
		fmt.Fprintf(text, "\tepoch %d\n", r.Epoch)
	}
	if r.Old != 0 {
		fmt.Fprintf(text, "\told positions: %d\n", r.Old)
	}
}

func TestFound(t *testing.T) {
	m := &machine{t: t}
	m.refused(ErrUnknown, Entry{Submit: &Submit{words(), clock}})
	m.refused(ErrInvalid, Entry{Found: &Found{}})
	m.must(Entry{Found: &Found{"c1"}})
	require.Contains(t, m.refused(ErrRunning, Entry{Found: &Found{"c2"}}), "c1")
	require.Equal(t, "c1", m.Cluster)
}

func TestSubmit(t *testing.T) {
	m := founded(t)
	run := Run(m.must(Entry{Submit: &Submit{words(), clock.In(time.FixedZone("", 3600))}}).Epoch)
	sub := m.Submission("words")
	require.Equal(t, Submission{Spec: words(), Run: run, Status: Active, Since: clock, Submitted: clock}, *sub)
	require.Contains(t, m.refused(ErrRunning, Entry{Submit: &Submit{words(), clock}}), "kill it")

	m.must(Entry{Commit: &Commit{"words", run, positions("lines", 1, "a")}})
	m.must(Entry{Finish: &Finish{"words", run, Failed, "a reason", clock}})
	require.Equal(t, "a reason", m.Submission("words").Reason)
	second := Run(m.must(Entry{Submit: &Submit{words(), clock}}).Epoch)
	require.Greater(t, second, run)
	require.Empty(t, m.Submission("words").Reason)
	require.Equal(t, 1, m.Submission("words").Positions.Len(), "it goes on where the failed run was")

	m.must(Entry{Finish: &Finish{"words", second, Done, "", clock}})
	m.must(Entry{Submit: &Submit{words(), clock}})
	require.Zero(t, m.Submission("words").Positions.Len(), "it begins anew after one that is done")

	require.Equal(t, Inactive.Runs(), true)
	for name, spoil := range map[string]func(s *Spec){
		"name":      func(s *Spec) { s.Topology = "" },
		"nothing":   func(s *Spec) { s.Components = nil },
		"no name":   func(s *Spec) { s.Components[1].Name = "" },
		"same name": func(s *Spec) { s.Components[1].Name = "lines" },
		"no tasks":  func(s *Spec) { s.Components[1].Parallel = 0 },
		"too many":  func(s *Spec) { s.Components[1].Parallel = 4097 },
		"back":      func(s *Spec) { s.Components[1].To = []int{1} },
		"beyond":    func(s *Spec) { s.Components[1].To = []int{3} },
	} {
		t.Run(name, func(t *testing.T) {
			m := founded(t)
			s := words()
			spoil(&s)
			m.refused(ErrInvalid, Entry{Submit: &Submit{s, clock}})
		})
	}
	// The year is five digits in UTC only.
	m = founded(t)
	late, err := time.Parse(time.RFC3339, "9999-12-31T23:59:59-08:00")
	require.NoError(t, err)
	m.refused(ErrInvalid, Entry{Submit: &Submit{words(), late}})
}

func TestStatus(t *testing.T) {
	m, run, _ := running(t)
	set := func(to Status) Entry { return Entry{SetStatus: &SetStatus{"words", run, to, clock.Add(time.Hour)}} }
	m.refused(ErrUnknown, Entry{SetStatus: &SetStatus{"other", run, Inactive, clock}})
	m.refused(ErrStale, Entry{SetStatus: &SetStatus{"words", run + 1, Inactive, clock}})
	m.refused(ErrInvalid, set(Done))
	m.refused(ErrInvalid, set("sleepy"))
	m.must(set(Active))
	require.Equal(t, clock, m.Submission("words").Since, "it was so before")
	m.must(set(Inactive))
	require.Equal(t, clock.Add(time.Hour), m.Submission("words").Since)
	require.Equal(t, clock, m.Submission("words").Began())
	require.Equal(t, clock, (&Submission{Since: clock}).Began(), "of an earlier build")
	m.refused(ErrRunning, Entry{Forget: &Forget{"words", run}})
	m.must(set(Active))
	m.must(set(Ending))
	m.refused(ErrEnded, set(Active))
	m.refused(ErrEnded, Entry{Finish: &Finish{"words", run, Failed, "it was killed before", clock}})
	m.must(Entry{Forget: &Forget{"words", run}})
	m.refused(ErrUnknown, Entry{Forget: &Forget{"words", run}})
	require.Empty(t, m.Submissions)

	m, run, epoch := running(t)
	m.refused(ErrInvalid, Entry{Finish: &Finish{"words", run, Active, "", clock}})
	m.must(Entry{ProposeNext: &ProposeNext{"words", run, epoch, m.Submission("words").Plan, ""}})
	m.must(Entry{Finish: &Finish{"words", run, Done, "", clock}})
	require.Nil(t, m.Submission("words").Next)
	m.refused(ErrEnded, set(Active))
	m.refused(ErrEnded, Entry{Finish: &Finish{"words", run, Failed, "", clock}})
	m.refused(ErrEnded, Entry{SetPlan: &SetPlan{"words", run, epoch, m.Submission("words").Plan}})
	require.Contains(t, m.refused(ErrEnded, set(Stopping)), "is done")
	m.refused(ErrStale, Entry{SetStatus: &SetStatus{"words", run + 1, Ending, clock}})
	m.must(set(Ending))
	require.Nil(t, m.Submission("words"), "it had ended before it was killed")
}

// One that is stopped leaves what it has done to the next one of its name.
func TestStop(t *testing.T) {
	m, run, epoch := running(t)
	life := tuple.NewIncarnation(epoch, 1)
	set := func(to Status) Entry { return Entry{SetStatus: &SetStatus{"words", run, to, clock}} }
	finish := func(as Status) Entry { return Entry{Finish: &Finish{"words", run, as, "30 messages were open", clock}} }
	m.must(Entry{Commit: &Commit{"words", run, positions("lines", life, "a")}})
	require.Contains(t, m.refused(ErrRunning, finish(Stopped)), "nobody has stopped it")
	m.must(Entry{ProposeNext: &ProposeNext{"words", run, epoch, m.Submission("words").Plan, ""}})
	m.must(set(Stopping))
	require.True(t, m.Submission("words").Status.Runs())
	for _, to := range []Status{Active, Inactive} {
		require.Contains(t, m.refused(ErrEnded, set(to)), "is being stopped")
	}
	m.must(set(Stopping))
	m.refused(ErrEnded, finish(Done))
	m.refused(ErrEnded, finish(Failed))
	m.refused(ErrRunning, Entry{Forget: &Forget{"words", run}})
	m.refused(ErrRunning, Entry{Submit: &Submit{words(), clock}})
	m.must(finish(Stopped))
	require.Equal(t, "30 messages were open", m.Submission("words").Reason)
	require.Nil(t, m.Submission("words").Next)
	require.False(t, m.Submission("words").Status.Runs())
	m.must(Entry{Commit: &Commit{"words", run, positions("lines", life, "b")}})
	m.refused(ErrEnded, set(Active))
	m.must(set(Stopping))
	require.Equal(t, Stopped, m.Submission("words").Status, "it is so already")

	var again State
	require.NoError(t, again.Restore([]byte(m.snapshot())))
	require.Equal(t, Stopped, again.Submission("words").Status)

	other := words()
	other.Fingerprint, other.Components = "of a later program", chain(1, 1, 1, 1)
	other.Components[0].Name, other.Components[0].Spout = "lines", true
	second := Run(m.must(Entry{Submit: &Submit{other, clock}}).Epoch)
	require.Equal(t, 2, m.Submission("words").Positions.Len())
	require.Equal(t, Active, m.Submission("words").Status)

	// Who has changed his mind can have it forgotten: while it is being stopped, or later.
	run = second
	m.must(set(Stopping))
	m.must(set(Ending))
	m.refused(ErrEnded, finish(Stopped))
	m.refused(ErrEnded, set(Stopping))
	m.must(Entry{Forget: &Forget{"words", run}})
	m, run, _ = running(t)
	m.must(set(Stopping))
	m.must(finish(Stopped))
	m.must(Entry{Forget: &Forget{"words", run}})
	m.must(Entry{Submit: &Submit{words(), clock}})
	require.Zero(t, m.Submission("words").Positions.Len())
}

// A source that another version does not have leaves no positions behind, so the state can be
// restored with that version in it.
func TestNextRunWithoutASource(t *testing.T) {
	m, run, epoch := running(t)
	life := tuple.NewIncarnation(epoch, 1)
	m.must(Entry{Commit: &Commit{"words", run, positions("lines", life, "a", "b")}})
	m.must(Entry{SetStatus: &SetStatus{"words", run, Stopping, clock}})
	m.must(Entry{Finish: &Finish{"words", run, Stopped, "", clock}})
	other := words()
	other.Components[0].Name = "rows"
	r := m.must(Entry{Submit: &Submit{other, clock}})
	require.Equal(t, run, r.Before)
	require.Zero(t, m.Submission("words").Positions.Len())
	var again State
	require.NoError(t, again.Restore([]byte(m.snapshot())))
	require.Zero(t, m.must(Entry{Submit: &Submit{Spec{Topology: "other", Components: chain(1)}, clock}}).Before)
}

// Who goes on with states that one node has is placed there, whether it had a place itself
// before it ended or not.
func TestNextRunStaysWithItsStates(t *testing.T) {
	local := exactWords()
	local.Local = true
	for _, status := range []Status{Stopped, Failed} {
		m, run, epoch := running(t)
		sub := *m.Submission("words")
		sub.Local = true
		m.put(&sub)
		seat := sub.Seat()
		require.NotZero(t, seat)
		end := func() {
			if status == Stopped {
				m.must(Entry{SetStatus: &SetStatus{"words", run, Stopping, clock}})
			}
			m.must(Entry{Finish: &Finish{"words", run, status, "", clock}})
		}
		m.must(begins(1, tuple.NewIncarnation(epoch, 1)))
		m.must(commits(1, 1))
		end()
		for range 2 {
			run = Run(m.must(Entry{Submit: &Submit{local, clock}}).Epoch)
			require.Nil(t, m.Submission("words").Plan)
			require.Equal(t, seat, m.Submission("words").Seat())
			var all []Candidate
			for n := range NodeID(4) {
				all = append(all, Candidate{Home: Home{n + 1, 1}})
			}
			only := m.Submission("words").only(all)
			require.Len(t, only, 1)
			require.Equal(t, seat, only[0].Node)
			require.Empty(t, m.Submission("words").only([]Candidate{{Home: Home{9, 1}}}))
			end()
		}
		m.must(Entry{Submit: &Submit{exactWords(), clock}})
		require.Zero(t, m.Submission("words").Seat(), "its states are elsewhere now")
	}
}

func TestPlans(t *testing.T) {
	m, run, epoch := running(t)
	first := m.Submission("words").Plan
	require.Equal(t, epoch, first.Epoch)
	for _, task := range first.Tasks {
		require.Equal(t, epoch, task.Epoch)
	}
	other := Home{7, 1}
	m.refused(ErrStale, Entry{SetPlan: &SetPlan{"words", run, 0, plan(words().Components)}})
	m.refused(ErrStale, Entry{SetPlan: &SetPlan{"words", run, epoch + 1, moved(first, 1, other)}})
	m.refused(ErrStale, Entry{Switch: &Switch{"words", run, epoch}})
	m.refused(ErrStale, Entry{CancelNext: &CancelNext{"words", run, epoch}})

	// One that waits, and is in the way of another.
	m.must(Entry{ProposeNext: &ProposeNext{"words", run, epoch, moved(first, 1, other), "a move"}})
	require.Contains(t, m.refused(ErrRunning, Entry{ProposeNext: &ProposeNext{"words", run, epoch, moved(first, 2, other), ""}}), "a move")
	m.refused(ErrStale, Entry{Switch: &Switch{"words", run, epoch + 1}})
	require.Same(t, first, m.Submission("words").Plan)
	second := m.must(Entry{Switch: &Switch{"words", run, epoch}}).Epoch
	sub := m.Submission("words")
	require.Greater(t, second, epoch)
	require.Equal(t, second, sub.Plan.Epoch)
	require.Nil(t, sub.Next)
	require.Empty(t, sub.Why)
	for id, task := range sub.Plan.Tasks {
		if id == 1 {
			require.Equal(t, Task{1, 0, other, second}, task)
		} else {
			require.Equal(t, first.Tasks[id], task)
		}
	}
	m.refused(ErrStale, Entry{Switch: &Switch{"words", run, epoch}})

	// A plan in force at once cancels what waits.
	m.must(Entry{ProposeNext: &ProposeNext{"words", run, second, moved(sub.Plan, 2, other), "late"}})
	third := m.must(Entry{SetPlan: &SetPlan{"words", run, second, moved(sub.Plan, 3, other)}}).Epoch
	require.Nil(t, m.Submission("words").Next)
	m.refused(ErrStale, Entry{Switch: &Switch{"words", run, third}})
	m.refused(ErrStale, Entry{Switch: &Switch{"words", run, second}})

	m.must(Entry{ProposeNext: &ProposeNext{"words", run, third, moved(m.Submission("words").Plan, 2, other), "no"}})
	m.must(Entry{CancelNext: &CancelNext{"words", run, third}})
	require.Nil(t, m.Submission("words").Next)

	// All is refused without a first plan.
	m = founded(t)
	run = Run(m.must(Entry{Submit: &Submit{words(), clock}}).Epoch)
	m.refused(ErrStale, Entry{ProposeNext: &ProposeNext{"words", run, 0, plan(words().Components), ""}})
	m.State.Epoch = math.MaxUint32
	m.refused(ErrFull, Entry{SetPlan: &SetPlan{"words", run, 0, plan(words().Components)}})
}

// The spec follows a plan with another parallelism, which never comes by surprise.
func TestPlanOfAnotherParallelism(t *testing.T) {
	m, run, epoch := running(t)
	before := m.State
	wider, err := Resize(words().Components, before.Submission("words").Plan, nodes(2), map[string]int{"split": 3})
	require.NoError(t, err)
	m.refused(ErrInvalid, Entry{SetPlan: &SetPlan{"words", run, epoch, wider}})
	m.must(Entry{ProposeNext: &ProposeNext{"words", run, epoch, wider, "wider"}})
	require.Equal(t, 2, m.Submission("words").Components[1].Parallel)
	second := m.must(Entry{Switch: &Switch{"words", run, epoch}}).Epoch
	sub := m.Submission("words")
	require.Equal(t, 3, sub.Components[1].Parallel)
	require.Equal(t, map[string]int{"split": 3, "count": 2}, sub.Parallel)
	require.Equal(t, map[string]int{"count": 2}, before.Submission("words").Parallel)
	require.Equal(t, words(), before.Submission("words").Spec)
	for id := 1; id <= 2; id++ {
		require.Equal(t, Task{1, id - 1, Home{}, second}, sub.Plan.Tasks[id], "it is retired")
	}
}

func TestPlansThatDoNotHold(t *testing.T) {
	for name, spoil := range map[string]func(p *Plan){
		"components":   func(p *Plan) { p.Components = p.Components[:2] },
		"no tasks":     func(p *Plan) { p.Components[0].Parallel = 0 },
		"too many":     func(p *Plan) { p.Components[2].Parallel = 3 },
		"beyond":       func(p *Plan) { p.Components[2].First = 1 << 31 },
		"left out":     func(p *Plan) { p.Tasks = p.Tasks[:4] },
		"homeless":     func(p *Plan) { p.Tasks[1].Home = Home{} },
		"no boot":      func(p *Plan) { p.Tasks[1].Home.Boot = 0 },
		"no node":      func(p *Plan) { p.Tasks[1].Home.Node = 0 },
		"other":        func(p *Plan) { p.Tasks[1].Component = 2 },
		"index":        func(p *Plan) { p.Tasks[1].Index = 1 },
		"extra":        func(p *Plan) { p.Tasks = append(p.Tasks, Task{0, 0, Home{1, 1}, 0}) },
		"no component": func(p *Plan) { p.Tasks = append(p.Tasks, Task{3, 0, Home{}, 0}) },
		"negative":     func(p *Plan) { p.Tasks = append(p.Tasks, Task{0, -1, Home{}, 0}) },
		"forged":       func(p *Plan) { p.Tasks[1].Home.Node, p.Tasks[1].Epoch = 7, 2 },
		"future":       func(p *Plan) { p.Tasks[1].Epoch = 9 },
	} {
		t.Run(name, func(t *testing.T) {
			m, run, epoch := running(t)
			p := plan(words().Components)
			spoil(p)
			m.refused(ErrInvalid, Entry{SetPlan: &SetPlan{"words", run, epoch, p}})
			m.refused(ErrInvalid, Entry{ProposeNext: &ProposeNext{"words", run, epoch, p, ""}})
		})
	}
	m, run, epoch := running(t)
	m.refused(ErrInvalid, Entry{SetPlan: &SetPlan{"words", run, epoch, nil}})
	huge := plan(words().Components)
	huge.Tasks = append(huge.Tasks, make([]Task, mostTasks)...)
	require.ErrorIs(t, checkPlan(words().Components, huge, true), ErrInvalid)
	// Ids of other components, by way of a plan that is sound in itself.
	p := plan(words().Components)
	p.Components[1].First, p.Components[2].First = 3, 1
	for id := 1; id < 5; id++ {
		p.Tasks[id].Component = 3 - p.Tasks[id].Component
	}
	require.NoError(t, checkPlan(words().Components, p, true))
	require.Contains(t, m.refused(ErrInvalid, Entry{SetPlan: &SetPlan{"words", run, epoch, p}}), "to another component")
	// And a retired id that is dropped.
	wider, err := Resize(words().Components, m.Submission("words").Plan, nodes(2), map[string]int{"count": 3})
	require.NoError(t, err)
	m.must(Entry{ProposeNext: &ProposeNext{"words", run, epoch, wider, ""}})
	epoch = m.must(Entry{Switch: &Switch{"words", run, epoch}}).Epoch
	sub := m.Submission("words")
	m.refused(ErrInvalid, Entry{SetPlan: &SetPlan{"words", run, epoch, plan(sub.Components)}})
}

// R12: a commit of an earlier life changes nothing.
func TestCommit(t *testing.T) {
	m, run, epoch := running(t)
	life := tuple.NewIncarnation(epoch, 1)
	require.Zero(t, m.must(Entry{Commit: &Commit{"words", run, positions("lines", life, "b", "a")}}).Old)
	before := m.State
	r := m.must(Entry{Commit: &Commit{"words", run, append(positions("lines", life-1, "a", "b", "c"), positions("lines", life+1, "d")...)}})
	require.Equal(t, 2, r.Old)
	sub := m.Submission("words")
	require.Equal(t, 4, sub.Positions.Len())
	require.Equal(t, 2, before.Submission("words").Positions.Len())
	at, ok := sub.Positions.At("lines", "a")
	require.True(t, ok)
	require.Equal(t, Position{"lines", "a", "at " + life.String(), life}, at)

	m.refused(ErrStale, Entry{Commit: &Commit{"words", run + 1, positions("lines", life, "a")}})
	m.refused(ErrInvalid, Entry{Commit: &Commit{"words", run, positions("other", life, "a")}})
	m.refused(ErrInvalid, Entry{Commit: &Commit{"words", run, positions("lines", tuple.NewIncarnation(epoch+1, 1), "a")}})
	// What was finished is finished, though the run is over.
	m.must(Entry{Finish: &Finish{"words", run, Failed, "", clock}})
	m.must(Entry{Commit: &Commit{"words", run, positions("lines", life, "e")}})
	require.Equal(t, 5, m.Submission("words").Positions.Len())
}

func TestNodes(t *testing.T) {
	m, _, _ := running(t)
	m.refused(ErrUnknown, Entry{DrainNode: &DrainNode{2, true}})
	m.refused(ErrInvalid, Entry{SawNode: &SawNode{0, "zero", "", 1}})
	m.refused(ErrInvalid, Entry{SawNode: &SawNode{9, "zero", "", 0}})
	for _, id := range []NodeID{math.MaxUint64, 2, 1 << 63, 1} {
		m.must(Entry{SawNode: &SawNode{id, id.String(), "h:1", 2}})
	}
	for i, id := range []NodeID{1, 2, 1 << 63, math.MaxUint64} {
		require.Equal(t, id, m.Nodes[i].ID)
		n, known := m.Node(id)
		require.True(t, known)
		require.Equal(t, m.Nodes[i], n)
	}
	_, known := m.Node(3)
	require.False(t, known)
	m.must(Entry{DrainNode: &DrainNode{2, true}})
	m.refused(ErrStale, Entry{SawNode: &SawNode{2, "old", "h:1", 1}})
	m.must(Entry{SawNode: &SawNode{2, "two", "h:2", 3}})
	n, _ := m.Node(2)
	require.Equal(t, Node{2, "two", "h:2", 3, true}, n)
	m.must(Entry{DrainNode: &DrainNode{2, false}})
	n, _ = m.Node(2)
	require.False(t, n.Draining)
	require.Contains(t, m.refused(ErrRunning, Entry{ForgetNode: &ForgetNode{2}}), "words")
	m.must(Entry{ForgetNode: &ForgetNode{1 << 63}})
	m.refused(ErrUnknown, Entry{ForgetNode: &ForgetNode{1 << 63}})
	require.Len(t, m.Nodes, 3)
}

func TestUnread(t *testing.T) {
	m := founded(t)
	for _, tt := range []struct {
		entry string
		want  Reason
		kind  string
	}{
		{``, ErrCorrupt, ""},
		{`null`, ErrCorrupt, ""},
		{`{}`, ErrCorrupt, ""},
		{`{"found":null}`, ErrCorrupt, ""},
		{`[]`, ErrCorrupt, ""},
		{"\x00\xff", ErrCorrupt, ""},
		{`{"drain-node":{"node":"0000000000000001","on":true}`, ErrCorrupt, ""},
		{`{"drain-node":{"node":"0000000000000001","on":true}}{}`, ErrCorrupt, ""},
		{`{"drain-node":{"node":"1","on":true}}`, ErrCorrupt, ""},
		{`{"drain-node":{"node":"000000000000000g","on":true}}`, ErrCorrupt, ""},
		{`{"drain-node":{"node":1,"on":true}}`, ErrCorrupt, ""},
		{`{"drain-node":{"node":"0000000000000001","on":true,"more":1}}`, ErrNewer, "drain-node"},
		{`{"promote":{}}`, ErrNewer, "promote"},
		{`{"` + strings.Repeat("é", 100) + `":{}}`, ErrNewer, strings.Repeat("é", 20)},
	} {
		before := m.State
		r := m.Apply(m.Applied+1, []byte(tt.entry))
		require.ErrorIs(t, r.Err, tt.want, tt.entry)
		require.Equal(t, tt.kind, r.Kind)
		require.Equal(t, Unread{before.Unread.Count + 1, 2, m.Applied, tt.kind}, m.Unread)
		before.Unread, before.Applied = m.Unread, m.Applied
		require.Equal(t, before, m.State)
	}
	_, err := Entry{}.Encode()
	require.ErrorIs(t, err, ErrInvalid)
	_, err = Entry{Found: &Found{"a"}, ForgetNode: &ForgetNode{1}}.Encode()
	require.ErrorIs(t, err, ErrInvalid)
}

func TestAppliedOnce(t *testing.T) {
	m := founded(t)
	r := m.Apply(m.Applied, []byte(`{"found":{"cluster":"c2"}}`))
	require.ErrorIs(t, r.Err, ErrStale)
	require.Equal(t, State{Cluster: "c1", Applied: 1}, m.State)
}
