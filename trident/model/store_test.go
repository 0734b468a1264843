package model

import "slices"

// A cell is what a store keeps of a key.
type cell struct {
	txid        int
	value, prev uint64
}

// A table is all that a store has.
type table struct {
	fence attempt
	inc   int
	last  [groups]stamp
	cells [keys]cell
}

// A store has a part that is durable, and a tail that a crash may take away.
type store struct {
	synced table
	tail   []table // after each transaction
	older  []table // what was durable once
}

// seen is the store as who asks it now sees it.
func (s *store) seen() *table {
	if n := len(s.tail); n > 0 {
		return &s.tail[n-1]
	}
	return &s.synced
}

func (s *store) sync() {
	if len(s.tail) == 0 {
		return
	}
	s.older = append(s.older, s.synced)
	s.synced = *s.seen()
	s.tail = s.tail[:0]
}

type opKind uint8

const (
	joining opKind = iota
	writing
	copying
)

// An op is a transaction on its way, which its task may not live to see.
type op struct {
	kind   opKind
	task   *task
	store  *store
	at     attempt
	round  *round // joining
	txid   int
	tuples []message
	expect [groups]stamp // writing: what the task has left there; joining: what it finds
	co     *coordinator  // copying

	applied, told bool
	touched       uint // groups
	values        []message
}

// work does the next thing of an op: the transaction, then the sync.
func (w *world) work(i int) {
	o := w.ops[i]
	if o.kind == copying {
		w.ops = slices.Delete(w.ops, i, i+1)
		w.copied(o)
		return
	}
	if !o.applied {
		t := *o.store.seen()
		if ok := o.kind == joining && w.joinStore(&t, o) || o.kind == writing && w.writeStore(&t, o); !ok {
			w.ops = slices.Delete(w.ops, i, i+1)
			return
		}
		o.applied = true
		if o.kind == joining {
			o.expect = t.last
		}
		o.store.tail = append(o.store.tail, t)
		if o.kind == writing && w.off.has(wroteBeforeDurable) || o.kind == joining && w.off.has(joinedEarly) {
			w.finish(o)
		}
		return
	}
	w.ops = slices.Delete(w.ops, i, i+1)
	o.store.sync()
	w.finish(o)
}

// joinStore raises the fence, compares what the store has with what the record
// says, and undoes what is not committed.
func (w *world) joinStore(t *table, o *op) bool {
	if !w.off.has(noFence) {
		if w.less(o.at, t.fence) || o.at == t.fence && o.task.inc != t.inc {
			if w.resets && !w.off.has(fencedWaits) {
				w.reportAt(o.task, o.at, control{kind: fenced, fence: t.fence.epoch})
			}
			return false
		}
		t.fence, t.inc = o.at, o.task.inc
	}
	c := o.round.committed
	undo := w.off.has(noCheck)
	for g := range groups {
		if g%2 != o.task.id%2 {
			continue
		}
		told := o.round.last[w.slot(o.task.id)][g]
		switch have := t.last[g]; {
		case w.off.has(noCheck), have == told, have.txid == told.txid && w.off.has(txidOnly):
		case have.txid == c+1 && (!w.fixed || o.round.fixed || w.off.has(aheadUnfixed)):
			undo = true
		default:
			w.saw["a store that lost"]++
			w.tell("task %d.%d: group %d of its store is at %v, the record says %v, committed %d", o.task.id, o.task.inc, g, have, told, c)
			w.reportAt(o.task, o.at, control{kind: mismatch})
			return false
		}
	}
	if !undo || w.fixed || w.off.has(noUndo) {
		return true
	}
	for k := range t.cells {
		if t.cells[k].txid > c {
			t.cells[k] = cell{txid: c, value: t.cells[k].prev}
			w.saw["undone"]++
			w.tell("task %d.%d undoes key %d: %x", o.task.id, o.task.inc, k, t.cells[k].value)
		}
	}
	for g := range groups {
		if t.last[g].txid > c {
			t.last[g] = o.round.last[w.slot(o.task.id)][g]
			if w.off.has(undoToTxid) {
				t.last[g].txid = c
			}
		}
	}
	return true
}

// fits is what a write compares, in its own transaction.
func (w *world) fits(t *table, o *op) bool {
	if t.fence != o.at || t.inc != o.task.inc && !w.off.has(fenceNoIncarnation) {
		return false
	}
	for _, m := range o.tuples {
		g := groupOf(m.key)
		switch n := t.last[g].txid; {
		case w.off.has(anyOlder):
			if n > o.txid || n == o.txid && !w.fixed && !w.off.has(noUndo) {
				return false
			}
		case w.off.has(equalsBefore):
			if n != o.txid-1 {
				return false
			}
		case t.last[g] != o.expect[g]:
			return false
		}
	}
	return true
}

func (w *world) writeStore(t *table, o *op) bool {
	if !w.off.has(noFence) && !w.off.has(fenceOutside) && !w.fits(t, o) {
		w.saw["refused by a store"]++
		w.tell("task %d.%d: a write of txid %d in round %v is refused", o.task.id, o.task.inc, o.txid, o.at)
		return false
	}
	var first, skip [keys]bool
	for _, m := range o.tuples {
		c := &t.cells[m.key]
		if !first[m.key] {
			first[m.key] = true
			switch {
			case w.fixed:
				skip[m.key] = c.txid == o.txid
				if skip[m.key] {
					w.saw["skipped"]++
				}
			case c.txid == o.txid:
				c.value = c.prev // Storm's rule
			default:
				c.prev = c.value
			}
			c.txid = o.txid
		}
		if !skip[m.key] {
			c.value += m.value
		}
		o.touched |= 1 << groupOf(m.key)
	}
	for g := range groups {
		if o.touched>>g&1 != 0 {
			t.last[g] = stamp{o.at, o.txid}
		}
	}
	for k, ok := range first {
		if ok {
			w.tell("task %d.%d writes key %d in txid %d of round %v: %x", o.task.id, o.task.inc, k, o.txid, o.at, t.cells[k].value)
			o.values = append(o.values, message{at: o.at, txid: o.txid, key: keyBehind(k), id: -1, value: mix(t.cells[k].value, k)})
		}
	}
	return true
}

// finish tells the task, if it is still there and in the same round.
func (w *world) finish(o *op) {
	t := o.task
	if o.told || w.life(t.id, t.inc) != t || t.at != o.at {
		return
	}
	o.told = true
	if o.kind == joining {
		t.expect = o.expect
		w.report(t, control{kind: joined})
		return
	}
	t.writing, t.written = false, o.txid
	for g := range groups {
		if o.touched>>g&1 != 0 { // of the others it has seen nothing to believe
			t.expect[g] = stamp{o.at, o.txid}
		}
	}
	if w.shape == behind && t.id < w.b {
		for _, m := range o.values {
			w.put(t, owner(w.b, m.key), m)
			t.batch(o.txid).sent |= 1 << owner(w.b, m.key)
		}
	}
	w.mark(t, o.txid)
	w.report(t, control{kind: wrote, txid: o.txid, owned: o.touched})
	w.write(t)
}

// crash takes away a part of what is not durable, and the answers of what was under way.
func (w *world) crash(s *store) {
	if n := len(s.tail); n > 0 {
		keep := w.r.IntN(n + 1)
		rest := s.tail[keep:]
		s.tail = s.tail[:keep]
		torn := *s.seen()
		s.sync()
		if len(rest) > 0 && w.off.has(noChecksum) {
			for k, c := range rest[0].cells {
				if c != torn.cells[k] { // half of it: the previous value is missing
					torn = rest[0]
					torn.cells[k].prev = 0
					break
				}
			}
			s.synced = torn
		}
	}
	w.ops = slices.DeleteFunc(w.ops, func(o *op) bool { return o.store == s && o.applied })
}

// rewind makes a store what it was once.
func (w *world) rewind(s *store, same bool) bool {
	var all []table
	for _, t := range s.older {
		if !same || t.fence == s.seen().fence && t.inc == s.seen().inc {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return false
	}
	s.synced = all[w.r.IntN(len(all))]
	s.tail = nil
	w.ops = slices.DeleteFunc(w.ops, func(o *op) bool { return o.store == s && o.applied })
	w.storeFault = true
	return true
}
