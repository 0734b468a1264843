package model

import "slices"

// A harm is a kind of fault.
type harm uint8

const (
	killing    harm = iota
	replacing       // the coordinator, which goes on
	unreading       // a split cannot be read, or can again
	unlisting       // a split is not there, or is there again
	corrupting      // a tuple cannot be read
	crashing        // a store, with what it has not synced
	moving          // a state is to move
	harms
	// With stores that may lose what they have acknowledged.
	ageing  // a store is as it was once, and its task begins anew
	rewound // a store is as it was once in the same round, and its task lives
)

// fault does some harm.
func (w *world) fault() {
	if w.resets && !w.storeFault && w.chance(4) {
		w.loseRecord()
		return
	}
	if w.unfix && !w.storeFault && w.record.fixed.txid == w.record.committed+1 {
		w.loseFix()
		return
	}
	h := w.likely
	if w.chance(2) {
		h = harm(w.r.IntN(int(harms)))
	}
	i := w.r.IntN(w.tasks)
	if h >= crashing {
		for w.states>>i&1 == 0 {
			i = w.r.IntN(w.tasks)
		}
	}
	if h == crashing && w.stores {
		h = []harm{crashing, ageing, rewound}[w.r.IntN(3)]
	}
	switch h {
	case killing:
		w.kill(i, w.chance(2))
	case replacing:
		w.tell("the coordinator is replaced")
		w.appoint()
	case unreading:
		s := w.r.IntN(splits)
		w.unreadable[s] = !w.unreadable[s]
		w.tell("split %d cannot be read: %v", s, w.unreadable[s])
	case unlisting:
		s := w.r.IntN(splits)
		w.unlisted[s] = !w.unlisted[s]
		w.tell("split %d is not there: %v", s, w.unlisted[s])
	case corrupting:
		w.corrupt++
	case crashing:
		w.tell("the store of task %d crashes", i)
		w.crash(w.current[i].copy)
		if w.chance(2) {
			w.kill(i, w.chance(2))
		}
	case moving:
		if w.moving == 0 && !w.memory {
			w.moving = i
		}
	case ageing:
		if w.rewind(w.current[i].copy, false) {
			w.tell("the store of task %d is an older one", i)
			w.kill(i, w.chance(2))
		}
	case rewound:
		if w.rewind(w.current[i].copy, true) {
			w.tell("the store of task %d has lost something, and its task lives", i)
		}
	}
}

// loseRecord has a new run begin, on the states of the one before.
func (w *world) loseRecord() {
	w.tell("the record is lost, at txid %d of epoch %d", w.record.committed, w.record.epoch)
	w.saw["a lost record"]++
	w.record = record{place: w.record.place, since: w.record.since}
	w.history = nil
	w.beginAnew()
}

// loseFix has a new run begin, with a record from before the ranges of the next batch.
func (w *world) loseFix() {
	w.tell("the record has no ranges of txid %d any more", w.record.fixed.txid)
	w.saw["a lost fix"]++
	w.record.fixed = fixing{}
	w.beginAnew()
}

// beginAnew has a new run begin with another record, on the states of the one before.
func (w *world) beginAnew() {
	w.storeFault = true
	for _, co := range w.coordinators {
		co.over = true
	}
	w.entries, w.moving = nil, 0
	for i := range w.tasks {
		w.kill(i, w.chance(2))
	}
	w.appoint()
}

// heal ends what does not end by itself.
func (w *world) heal() {
	w.tell("healed")
	w.unreadable, w.unlisted, w.corrupt = [splits]bool{}, [splits]bool{}, 0
}

// kill ends an incarnation for all others. A zombie does not know that.
func (w *world) kill(i int, zombie bool) {
	old := w.current[i]
	w.tell("task %d.%d dies; zombie: %v", i, old.inc, zombie)
	w.saw["a death"]++
	if w.memory && w.kind[i] == state {
		w.copies[i] = append(w.copies[i], &store{})
		w.record.place[i] = len(w.copies[i]) - 1
		w.record.since[i] = old.inc + 1
		w.storeFault = true
	}
	w.current[i] = w.newTask(i, old.inc+1)
	w.lives[i] = append(w.lives[i], w.current[i])
	if !zombie {
		w.lives[i] = slices.DeleteFunc(w.lives[i], func(t *task) bool { return t == old })
	}
}

// move is what a coordinator does for a planned move. It says whether it is busy with it.
func (w *world) move(co *coordinator) bool {
	if w.moving == 0 {
		return false
	}
	busy := w.off.has(moveBusy)
	switch {
	case co.moving == 0:
		if co.next-1 != co.committed && !busy {
			return false // what is in flight is committed first
		}
		co.moving, co.from, co.quiet = w.moving, w.record.place[w.moving], co.committed
		t := w.current[co.moving]
		w.ops = append(w.ops, &op{kind: copying, task: t, store: t.copy, co: co, txid: co.moves})
	case co.copy != 0:
		w.append(co, entry{kind: places, txid: co.quiet, task: co.moving, from: co.from, copy: co.copy})
		co.moving, co.copy = 0, 0
		return true
	}
	return !busy
}

// copied has made a durable copy of a store.
func (w *world) copied(o *op) {
	o.store.sync()
	i := o.task.id
	w.copies[i] = append(w.copies[i], &store{synced: o.store.synced})
	w.tell("the state of task %d is copied, at %v", i, o.store.synced.last)
	w.bag = append(w.bag, control{kind: copyDone, co: o.co, seq: o.txid, copy: len(w.copies[i]) - 1})
}

// moved is the plan's entry: from here on the copy is the state.
func (w *world) moved(e entry) {
	w.record.place[e.task] = e.copy
	w.moving = 0
	w.saw["moved"]++
	w.tell("copy %d is the state of task %d", e.copy, e.task)
	w.kill(e.task, w.chance(2))
	w.record.since[e.task] = w.current[e.task].inc
}
