package sim

import (
	"time"

	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/tuple"
)

// What a plan does to user code, that code does itself: it asks at each call.

// armed is a fault that the next call, or the Nth tuple, of a task gets.
type armed struct {
	*harm
	left int // tuples, with that one
}

// arm arms a fault for the next call that it is for; once, if the one before has not
// come to a call yet.
func (a *adversary) arm(id tuple.TaskID, h *harm) {
	for _, x := range a.armed[id] {
		if x.harm == h {
			return
		}
	}
	a.armed[id] = append(a.armed[id], &armed{h, h.Times})
}

// strikes returns the fault of a kind that was armed for a call of a task, which
// takes it. No call is "": a tuple, or any call of a kind that names none.
func (a *adversary) strikes(k chaos.Kind, id tuple.TaskID, in chaos.Call) *harm {
	for i, x := range a.armed[id] {
		if x.Kind != k || x.Call != in {
			continue
		}
		if x.left--; x.left > 0 {
			continue
		}
		a.armed[id] = append(a.armed[id][:i:i], a.armed[id][i+1:]...)
		return x.harm
	}
	return nil
}

// hits returns the lasting fault of a kind that a task has with something of which
// x is a hash; nil: none. The same x is hit at each time, and with a lower rate at
// least as rarely.
func (a *adversary) hits(k chaos.Kind, id tuple.TaskID, x uint64) *harm {
	t := a.topo.Tasks[id]
	for _, h := range a.code {
		if h.Kind != k || !h.Who.Is(a.topo.Components[t.Component].Name, t.Index) {
			continue
		}
		if (h.Rate == 0 || mix(x, hashOf(string(k)), 0)%1_000_000 < uint64(h.Rate)) && a.holds(h) {
			return h
		}
	}
	return nil
}

// saves is asked at each call of a store: it says how much longer the call takes,
// and whether it is to fail.
func (a *adversary) saves() (late time.Duration, fails bool) {
	for _, h := range a.links {
		if h.Class != chaos.Save || !a.holds(h) || !h.happens() {
			continue
		}
		if h.Kind == chaos.Lose {
			fails = true
			continue
		}
		late += h.late()
		a.did(h.Kind, h.Class)
	}
	return late, fails
}
