package acker

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/tuple"
)

// A world is a small engine around a ledger that keeps to the rules: a spout
// task 0 sends to bolt tasks 1 and 2, those send to 3 and 4, and the spout task
// sends to 3 as well. Tasks die and live again, notices and reports take any time
// and any order. Each tree's truth is kept beside: what is yet to be executed,
// and which lives were sent a part of it.
type world struct {
	t     *rapid.T
	l     *Ledger[*truth]
	edges tuple.EdgeID
	tasks [5]*life
	trees []*truth

	parcels []parcel
	reports []*Report
	notices []notice
}

type life struct {
	id     tuple.TaskID
	life   tuple.Incarnation
	dead   map[tuple.TaskID]tuple.Incarnation // its view
	report *Report                            // open, to go out later
	held   []held
}

type held struct {
	Entry
	edge tuple.EdgeID // of the parcel that was held
}

type truth struct {
	seq     uint64
	undone  int     // parcels that are not executed to the end
	touched []Death // lives that were sent a part
	failed  bool
	said    bool // to be lost, by a task
	verdict int
}

type parcel struct {
	tree *truth
	to   Death
	edge tuple.EdgeID
}

type notice struct {
	to int
	d  Death
}

var receivers = [...][]tuple.TaskID{{1, 2, 3}, {3, 4}, {3, 4}, nil, nil}

func newWorld(t *rapid.T) *world {
	w := &world{t: t}
	w.l = NewLedger[*truth](Config{Life: 1, Sends: func(from, to tuple.TaskID) bool { return slices.Contains(receivers[from], to) }})
	for i := range w.tasks {
		w.tasks[i] = w.born(tuple.TaskID(i), 1)
	}
	return w
}

func (w *world) born(id tuple.TaskID, n tuple.Incarnation) *life {
	k := &life{id: id, life: n, dead: map[tuple.TaskID]tuple.Incarnation{}}
	k.report = w.blank(k)
	return k
}

// blank returns an empty report under the present view of k.
func (w *world) blank(k *life) *Report {
	r := &Report{From: k.id, FromLife: k.life, ToLife: 1}
	for _, to := range receivers[k.id] {
		if n := k.dead[to]; n > 0 {
			r.View = append(r.View, Death{to, n})
		}
	}
	return r
}

func (w *world) pick(n int) int { return rapid.IntRange(0, n-1).Draw(w.t, "pick") }

// take removes one of a list, any one.
func take[T any](w *world, s *[]T) T {
	i := w.pick(len(*s))
	v := (*s)[i]
	*s = slices.Delete(*s, i, i+1)
	return v
}

// send makes an edge to one of the receivers of k, in the life after the last
// one that k knows to be dead.
func (w *world) send(k *life, tree *truth) (e tuple.EdgeID, mask uint64) {
	to := receivers[k.id][w.pick(len(receivers[k.id]))]
	p := parcel{tree, Death{to, k.dead[to] + 1}, 0}
	w.edges += 0x9e3779b97f4a7c15
	p.edge = w.edges ^ w.edges>>29
	tree.undone++
	tree.touched = append(tree.touched, p.to)
	w.parcels = append(w.parcels, p)
	return p.edge, Bit(to)
}

func (w *world) emit() {
	tree := &truth{seq: w.l.Next()}
	w.trees = append(w.trees, tree)
	var e Entry
	for range 1 + w.pick(3) {
		edge, bit := w.send(w.tasks[0], tree)
		e.Xor ^= edge
		e.Mask |= bit
	}
	require.Equal(w.t, tree.seq, w.l.Open(0, e.Xor, e.Mask, tree))
}

func (w *world) execute() {
	p := take(w, &w.parcels)
	k := w.tasks[p.to.Task]
	if k.life != p.to.Life {
		if p.to.Life > k.life {
			w.parcels = append(w.parcels, p) // not born yet
		}
		return
	}
	e := Entry{Seq: p.tree.seq, Xor: p.edge}
	if len(receivers[k.id]) > 0 {
		for range w.pick(3) {
			edge, bit := w.send(k, p.tree)
			e.Xor ^= edge
			e.Mask |= bit
		}
	}
	if w.pick(3) == 0 {
		k.held = append(k.held, held{e, p.edge})
		return
	}
	w.finish(k, p.tree, e)
}

func (w *world) finish(k *life, tree *truth, e Entry) {
	tree.undone--
	if w.pick(10) == 0 {
		tree.failed = true
		k.report.Fails = append(k.report.Fails, Fail{Seq: e.Seq, Index: uint16(w.pick(3))})
	}
	k.report.Entries = append(k.report.Entries, e)
}

func (w *world) release(k *life) {
	if len(k.held) > 0 {
		h := take(w, &k.held)
		w.finish(k, w.trees[h.Seq-1], h.Entry)
	}
}

func (w *world) flush(k *life) {
	if k.id != 0 {
		w.reports = append(w.reports, k.report)
	}
	k.report = w.blank(k)
}

// kill ends a life: what the task had is gone, and what it sent may be.
func (w *world) kill(id tuple.TaskID) {
	d := Death{id, w.tasks[id].life}
	w.tasks[id] = w.born(id, d.Life+1)
	for i := range w.tasks {
		w.notices = append(w.notices, notice{i, d})
	}
	if w.pick(2) == 0 {
		w.reports = slices.DeleteFunc(w.reports, func(r *Report) bool { return r.From == id && w.pick(2) == 0 })
	}
}

// learn does at once what a task must do when it hears of a death.
func (w *world) learn(k *life, d Death) {
	if k.dead[d.Task] >= d.Life {
		return
	}
	if slices.Contains(receivers[k.id], d.Task) {
		for _, h := range k.held {
			if h.Mask&Bit(d.Task) != 0 {
				k.report.Lost = append(k.report.Lost, h.Seq)
				w.trees[h.Seq-1].said = true
			}
		}
		w.flush(k)
	}
	k.dead[d.Task] = d.Life
	if slices.Contains(receivers[k.id], d.Task) {
		k.report = w.blank(k)
	}
	if k.id == 0 {
		w.l.Lost(0, d)
	}
}

func (w *world) settle() {
	for _, d := range w.l.Learned(nil) {
		w.learn(w.tasks[0], d)
	}
	for _, v := range w.l.Drain(nil) {
		tree := v.Message
		tree.verdict++
		require.Equal(w.t, 1, tree.verdict, "tree %d has two verdicts", v.Seq)
		require.Equal(w.t, tree.seq, v.Seq)
		dead := slices.ContainsFunc(tree.touched, func(d Death) bool { return d.Life <= w.l.lastDead(d.Task) })
		switch v.Outcome {
		case Done:
			require.Zero(w.t, tree.undone, "tree %d is done and has work left", v.Seq)
			require.False(w.t, dead, "tree %d is done and a life that worked on it is known to be dead", v.Seq)
			require.Equal(w.t, tree.failed, len(v.Fails) > 0, "tree %d: a failure is missing", v.Seq)
		case Lost:
			// What a task said is lost may be so by a death that the ledger has not heard of.
			require.True(w.t, dead || tree.said, "tree %d is given back and nothing that worked on it died", v.Seq)
		default:
			require.Fail(w.t, "there is no timeout here")
		}
	}
}

func (w *world) step(kills bool) {
	k := w.tasks[1+w.pick(4)]
	switch w.pick(12) {
	case 0, 1:
		w.emit()
	case 2, 3, 4, 5:
		if len(w.parcels) > 0 {
			w.execute()
		}
	case 6, 7:
		w.flush(k)
	case 8:
		w.release(k)
	case 9:
		if len(w.reports) > 0 {
			w.l.Report(0, take(w, &w.reports))
		}
	case 10:
		if len(w.notices) > 0 {
			n := take(w, &w.notices)
			w.learn(w.tasks[n.to], n.d)
		}
	case 11:
		if kills && w.pick(2) == 0 {
			w.kill(k.id)
		}
	}
	w.settle()
}

// rest lets everything arrive that is still on its way.
func (w *world) rest() {
	for {
		switch {
		case len(w.notices) > 0:
			n := take(w, &w.notices)
			w.learn(w.tasks[n.to], n.d)
		case len(w.parcels) > 0:
			w.execute()
		case len(w.reports) > 0:
			w.l.Report(0, take(w, &w.reports))
		default:
			moved := false
			for _, k := range w.tasks[1:] {
				for len(k.held) > 0 {
					w.release(k)
				}
				if len(k.report.Entries)+len(k.report.Lost) > 0 {
					w.flush(k)
					moved = true
				}
			}
			if !moved {
				return
			}
		}
		w.settle()
	}
}

// With deaths: nothing is called done that is not, nothing is given back without
// need, and, the twin, nothing is left open at rest though there is no timeout.
func TestProtocolWithDeaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(100, 400).Draw(t, "steps") {
			w.step(true)
		}
		w.rest()
		w.l.check(t)
		for _, tree := range w.trees {
			require.Equal(t, 1, tree.verdict, "tree %d has no verdict: undone %d, touched %v", tree.seq, tree.undone, tree.touched)
		}
		require.Zero(t, w.l.Len())
	})
}

// Without deaths every tree is done, at the very report that completes it.
func TestProtocolWithoutDeaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(100, 400).Draw(t, "steps") {
			w.step(false)
		}
		w.rest()
		for _, tree := range w.trees {
			require.Equal(t, 1, tree.verdict)
			require.Zero(t, tree.undone)
		}
		require.Zero(t, w.l.Len())
		require.Zero(t, w.l.Stale())
		require.Empty(t, w.l.deaths)
	})
}
