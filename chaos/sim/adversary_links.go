package sim

import (
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/task"
)

// classOf is the class of a message between actors.
func classOf(msg any) chaos.Class {
	switch c := chaos.Class(task.Class(msg)); c {
	case chaos.Parcel, chaos.Report, chaos.StillQueued, chaos.Held, chaos.Lost, chaos.Limit, chaos.Ask, chaos.Peers, chaos.End, chaos.Dry:
		return c
	}
	return chaos.Control
}

// rule is asked about each message: a World's OnSend.
func (a *adversary) rule(from, to actor.Ref, msg any) (v Verdict) {
	if from == nil {
		return v
	}
	a.meet(to)
	a.count(chaos.Messages, a.counts[chaos.Messages].n+1)
	if _, is := msg.(*task.End); is {
		a.count(chaos.Ends, a.counts[chaos.Ends].n+1)
	}
	if len(a.links) == 0 || a.over {
		return v
	}
	class := classOf(msg)
	for _, h := range a.links {
		if h.Class == class && a.holds(h) && a.between(h, from, to) {
			a.interfere(h, msg, &v)
		}
	}
	return v
}

// between reports whether a fault is for the link between two actors. Who is no
// task, as the supervisor, is meant by * alone.
func (a *adversary) between(h *harm, from, to actor.Ref) bool {
	return h.To == (chaos.Who{}) || a.is(h.Who, from) && a.is(h.To, to)
}

func (a *adversary) is(w chaos.Who, ref actor.Ref) bool {
	id, known := a.known[ref]
	if !known {
		return w.Component == "*"
	}
	t := a.topo.Tasks[id]
	return w.Is(a.topo.Components[t.Component].Name, t.Index)
}

// happens draws whether a fault is done now.
func (h *harm) happens() bool {
	return h.Rate == 0 || h.chance.IntN(1_000_000) < int(h.Rate)
}

// late draws for how long, short times as often as long ones.
func (h *harm) late() time.Duration {
	return h.Least + time.Duration(h.chance.Int64N(int64(h.Most-h.Least)>>h.chance.IntN(8)+1))
}

// interfere loses, repeats, delays and disorders a message of a class that may be.
func (a *adversary) interfere(h *harm, msg any, v *Verdict) {
	if h.Kind == chaos.Lose && (h.Class == chaos.Report) {
		a.loseEntries(h, msg.(*acker.Report))
		return
	}
	if v.Drop || !h.happens() {
		return
	}
	switch h.Kind {
	case chaos.Lose:
		v.Drop = true
		if h.Class != chaos.Limit && h.Class != chaos.Ask && a.tell.lost != nil {
			a.tell.lost(1)
		}
	case chaos.Repeat:
		v.Copies++
		if m, is := msg.(*task.Limit); is {
			m.Parcels = nil // they can have only one owner
		}
		v.Behind = v.Behind || h.Class == chaos.End || h.Class == chaos.Dry
	case chaos.Delay, chaos.Reorder:
		d := h.late()
		v.Delay += d
		v.Loose = v.Loose || h.Kind == chaos.Reorder
		a.silent(d)
	}
	a.did(h.Kind, h.Class)
}

// loseEntries loses entries of a report: the tuples were executed, but nobody says
// so. What has failed is not lost without them.
func (a *adversary) loseEntries(h *harm, m *acker.Report) {
	kept := m.Entries[:0]
	for _, e := range m.Entries {
		if !h.happens() {
			kept = append(kept, e)
			continue
		}
		a.did(h.Kind, h.Class)
		if a.tell.lost != nil {
			a.tell.lost(1)
		}
	}
	m.Entries = kept
}

// timer says how late a timer comes: a World's OnTimer.
func (a *adversary) timer(ref actor.Ref, msg any) (late time.Duration) {
	if len(a.timers) == 0 {
		return 0
	}
	class := chaos.Timer
	if task.Class(msg) == "tick" {
		class = chaos.Tick
	}
	for _, h := range a.timers {
		if h.Class != class || !a.holds(h) || !a.between(h, ref, ref) || !h.happens() {
			continue
		}
		d := h.late()
		late += d
		if class == chaos.Timer { // it may be the one that says what is queued
			a.silent(d)
		}
		a.did(h.Kind, h.Class)
	}
	return late
}
