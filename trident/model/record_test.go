package model

import "slices"

// fixing are the ranges of a txid, recorded before its commit.
type fixing struct {
	txid  int
	spans [splits]span
}

// A record is what is durable of the batch group, besides its stores.
type record struct {
	epoch, committed int
	life             int // of the coordinator that has begun the epoch
	positions        [splits]int
	fixed            fixing
	last             [2][groups]stamp
	place            [maxTasks]int // which copy is the state
	since            [maxTasks]int // the first life that may open it
	stopped          string
	stoppedAt        int
}

func (r *record) done() bool { return read(r.positions) }

type entryKind uint8

const (
	epoch entryKind = iota
	fixes
	commits
	places
	stopped
)

// An entry is on its way to the record.
type entry struct {
	kind      entryKind
	co        *coordinator
	seq       int
	epoch     int
	txid      int
	positions [splits]int
	fixed     fixing
	last      [2][groups]stamp
	task      int
	from      int // the copy that it is a copy of
	copy      int
	why       string
	again     bool // it was applied, and comes once more
}

func (w *world) append(co *coordinator, e entry) {
	co.seq++
	co.pending = true
	e.co, e.seq = co, co.seq
	if e.kind != epoch {
		e.epoch = co.epoch
	}
	w.entries = append(w.entries, e)
	if w.left > 0 && w.chance(20) {
		w.bag = append(w.bag, control{kind: unanswered, co: co, seq: e.seq})
	}
}

// apply is the one point at which entries are compared.
func (w *world) apply(i int) {
	e := w.entries[i]
	if e.again && w.left > 0 && !w.chance(20) {
		return // late
	}
	if e.again || w.left == 0 || !w.chance(8) {
		w.entries = slices.Delete(w.entries, i, i+1)
	} else {
		w.entries[i].again = true
	}
	ok := w.accepts(e)
	r := &w.record
	if ok {
		switch e.kind {
		case epoch:
			r.epoch, r.life = e.epoch, e.co.life
		case fixes:
			r.fixed = e.fixed
		case commits:
			r.committed, r.positions, r.last, r.fixed = e.txid, e.positions, e.last, e.fixed
			w.remember(e)
		case places:
			w.moved(e)
		case stopped:
			r.stopped, r.stoppedAt = e.why, e.txid
		}
	}
	w.tell("entry %d of epoch %d, txid %d: %v, %v", e.kind, e.epoch, e.txid, ok, r.positions)
	if w.left > 0 && w.chance(20) {
		w.bag = append(w.bag, control{kind: unanswered, co: e.co, seq: e.seq})
		return
	}
	w.bag = append(w.bag, control{kind: answered, co: e.co, seq: e.seq, ok: ok, entry: e, after: *r})
}

func (w *world) accepts(e entry) bool {
	r := &w.record
	if r.stopped != "" {
		return false
	}
	if e.kind == epoch {
		return e.epoch > r.epoch && e.co.life >= r.life
	}
	if e.kind == places && w.off.has(moveUnconditional) {
		return true
	}
	if e.epoch != r.epoch && !w.off.has(noEpoch) {
		return false
	}
	switch e.kind {
	case fixes:
		return e.txid == r.committed+1 && (r.fixed.txid != e.txid || r.fixed == e.fixed || w.off.has(fixChanges))
	case commits:
		return e.txid == r.committed+1 || w.off.has(noTxid)
	case places:
		return e.txid == r.committed && e.from == r.place[e.task]
	}
	return true
}

// answer tells a coordinator what became of its entry.
func (w *world) answer(co *coordinator, c control) {
	if c.seq != co.seq {
		return
	}
	if c.kind == unanswered {
		if w.off.has(unknownIsRefused) && co.round != nil {
			w.beginRound(co, "an entry without an answer")
			return
		}
		w.saw["unanswered"]++
		w.tell("epoch %d ends: it does not know what became of its entry", co.epoch)
		co.over = true
		return
	}
	co.pending = false
	if !c.ok {
		w.saw["refused by the record"]++
		w.tell("epoch %d ends: its entry was refused", co.epoch)
		co.over = true
		return
	}
	co.progress = w.steps
	switch e := c.entry; e.kind {
	case epoch:
		after := c.after
		if w.off.has(readBeforeEpoch) {
			after = co.before
		}
		if co.rival != 0 && (co.rival >= e.epoch || co.rival == co.epoch) {
			w.tell("epoch %d of a fence is of another record", co.rival)
			co.epoch = e.epoch
			w.append(co, entry{kind: stopped, why: "store"})
			return
		}
		co.rival = 0
		co.epoch = e.epoch
		w.learn(co)
		co.fixed = after.fixed
		co.round = &round{committed: after.committed, positions: after.positions, last: after.last}
		w.beginRound(co, "a new epoch")
	case fixes:
		co.fixed = e.fixed
	case commits:
		r := *co.round
		r.committed, r.positions, r.last = e.txid, e.positions, e.last
		co.round, co.fixed = &r, e.fixed
		for i := range w.tasks {
			if w.readers>>i&1 != 0 {
				w.send(control{kind: committed, to: i, inc: co.view[i], at: co.at, txid: e.txid})
			}
		}
	case places:
		w.learn(co)
		w.beginRound(co, "a state has moved")
	}
}

// learn is what the plan says of lives. Those of earlier plans have other copies.
func (w *world) learn(co *coordinator) {
	for i, inc := range w.record.since {
		if !w.off.has(viewBehindPlan) {
			co.known[i] = max(co.known[i], inc)
		}
	}
}

// appoint makes a new coordinator. The one before may go on.
func (w *world) appoint() {
	w.coordinators = slices.DeleteFunc(w.coordinators, func(co *coordinator) bool { return co.over })
	w.appointed++
	co := &coordinator{failures: map[int]int{}, before: w.record, life: w.appointed}
	for i := range w.tasks {
		co.known[i] = 1 + w.r.IntN(w.current[i].inc) // news travels
	}
	w.coordinators = append(w.coordinators, co)
	w.append(co, entry{kind: epoch, epoch: w.record.epoch + 1})
}
