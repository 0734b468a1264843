package model

import (
	"fmt"
	"slices"
)

// A result is what became of a run. fine and halted are as they should be.
type result struct {
	outcome string
	detail  string
	steps   int
	rounds  int
	record  record
}

const (
	fine     = "fine"
	halted   = "halted" // stopped with a sentence, and for a reason
	lost     = "lost"
	doubled  = "doubled"
	both     = "lost and doubled"
	wrong    = "wrong" // a value that no order of commits gives
	stuck    = "stuck"
	needless = "stopped" // without a reason
	broken   = "broken"  // what the rules claim does not hold
)

func (r result) good() bool { return r.outcome == fine || r.outcome == halted }

// A reading is a value of state A that was shown for output.
type reading struct {
	key   int
	value uint64
}

// remember keeps the messages of a txid, as the record says them.
func (w *world) remember(e entry) {
	before := [splits]int{}
	if n := e.txid - 1; n <= len(w.history) {
		for _, ids := range w.history[:n] {
			for _, id := range ids {
				before[id/perSplit]++
			}
		}
		w.history = w.history[:n]
	}
	var ids []int
	for s := range splits {
		for p := before[s]; p < e.positions[s]; p++ {
			ids = append(ids, s*perSplit+p)
		}
	}
	w.history = append(w.history, ids)
}

// observe reads for output: what is not known as committed is not shown.
func (w *world) observe() {
	if w.fixed || !w.chance(4) {
		return
	}
	key := w.r.IntN(keys)
	c := w.current[owner(w.a, key)].copy.seen().cells[key]
	if c.txid > max(0, w.record.committed-w.r.IntN(2)) && !w.off.has(liveUncommitted) {
		c.value = c.prev
	}
	w.observed = append(w.observed, reading{key, c.value})
}

// fold is the oracle: all that is committed, txid by txid, in one place.
func (w *world) fold() (a, b [keys]uint64, shown [keys][]uint64) {
	for k := range keys {
		shown[k] = []uint64{0}
	}
	for _, ids := range w.history {
		before := a
		var touched [keys]bool
		for _, id := range ids {
			k := keyOf(id)
			if w.shape == reads {
				b[k] += mix(before[k], id)
			}
			a[k] += once(id)
			touched[k] = true
		}
		for k, ok := range touched {
			if !ok {
				continue
			}
			shown[k] = append(shown[k], a[k])
			if w.shape == behind {
				b[keyBehind(k)] += mix(a[k], k)
			}
		}
	}
	return a, b, shown
}

// stands returns a state as far as it is committed.
func (w *world) stands(first int) (all [keys]uint64) {
	for k := range keys {
		c := w.current[owner(first, k)].copy.seen().cells[k]
		all[k] = c.value
		if c.txid > w.record.committed {
			all[k] = c.prev
		}
	}
	return all
}

// agrees is what the next join would find.
func (w *world) agrees() bool {
	for i := range w.tasks {
		if w.kind[i] != state {
			continue
		}
		for g := range groups {
			have, told := w.current[i].copy.seen().last[g], w.record.last[w.slot(i)][g]
			if g%2 == i%2 && have != told && have.txid != w.record.committed+1 {
				return false
			}
		}
	}
	return true
}

func (w *world) judge() result {
	r := result{steps: w.steps, rounds: w.attempted, record: w.record}
	r.outcome, r.detail = w.verdict()
	w.tell("%s %s", r.outcome, r.detail)
	return r
}

func (w *world) verdict() (outcome, detail string) {
	switch {
	case w.wrong != "":
		return broken, w.wrong
	case w.markers > maxBatches && w.off == 0:
		return broken, fmt.Sprint(w.markers, " markers on a link")
	case w.idle && w.faults == 0 && w.poison < 0:
		return stuck, "no progress, without any fault"
	case w.record.stopped == "store" && w.storeFault:
		return halted, "a store has lost something"
	case w.record.stopped == "poison" && w.poisonFor < 0:
		if w.record.stoppedAt != w.record.committed+1 {
			return needless, fmt.Sprintf("by txid %d, and %d is committed", w.record.stoppedAt, w.record.committed)
		}
		if w.fixed || w.storeFault {
			return halted, "poison"
		}
	case w.record.stopped != "":
		return needless, w.record.stopped
	case !w.record.done():
		return stuck, fmt.Sprint("committed ", w.record.committed)
	case w.storeFault && !w.agrees() && !w.off.has(noCheck):
		return halted, "the next join finds what a store has lost"
	}
	a, b, shown := w.fold()
	have := w.stands(w.a)
	if have != a {
		less, more := 0, 0
		for id := range splits * perSplit {
			n, want := have[keyOf(id)]>>(2*id)&3, a[keyOf(id)]>>(2*id)&3
			if n < want {
				less++
			} else if n > want {
				more++
			}
		}
		switch {
		case less > 0 && more > 0:
			return both, fmt.Sprint(less, " and ", more)
		case less > 0:
			return lost, fmt.Sprint(less)
		}
		return doubled, fmt.Sprint(more)
	}
	if w.record.done() {
		for id := range splits * perSplit {
			if a[keyOf(id)]>>(2*id)&3 != 1 {
				return wrong, fmt.Sprintf("the record passes over message %d", id)
			}
		}
	}
	if w.b > 0 && w.stands(w.b) != b {
		return wrong, "values of state B"
	}
	if !w.storeFault {
		for _, o := range w.observed {
			if !slices.Contains(shown[o.key], o.value) {
				return wrong, fmt.Sprintf("key %d was shown as %x", o.key, o.value)
			}
		}
	}
	if w.record.stopped != "" {
		return halted, "poison"
	}
	return fine, ""
}
