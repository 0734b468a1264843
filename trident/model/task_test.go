package model

import "slices"

// A batch is what a task knows of a txid in its round.
type batch struct {
	txid    int
	markers uint      // senders whose marker has come
	sent    uint      // receivers to whom a tuple has gone
	tuples  []message // to be written, or held by a reader
	commit  bool
	spans   [splits]span // of a spout: from is what is read next
}

// owed is credit that is not given yet.
type owed struct {
	link *link
	txid int
}

// A task is one incarnation.
type task struct {
	id, inc   int
	at        attempt
	joined    bool
	view      [maxTasks]int
	committed int // as far as it knows
	passed    int // complete and handed on up to here
	broken    int // the first txid that failed here, or 0
	batches   [8]batch
	last      [maxTasks]int // marker that came from each sender
	links     []*link
	owed      []owed

	// Spouts.
	begins    []control // that wait for their turn
	begun     int
	open      []int
	owned     uint // splits
	positions [splits]int

	// States.
	copy    *store
	written int
	writing bool
	expect  [groups]stamp // what it has left, or found, in its store
}

func (w *world) newTask(id, inc int) *task {
	t := &task{id: id, inc: inc}
	if w.kind[id] == state {
		t.copy = w.copies[id][w.record.place[id]]
		if w.off.has(openAnyCopy) {
			t.copy = w.copies[id][w.r.IntN(len(w.copies[id]))]
		}
	}
	return t
}

func (t *task) batch(n int) *batch {
	b := &t.batches[n%len(t.batches)]
	if b.txid != n {
		*b = batch{txid: n, tuples: b.tuples[:0]}
	}
	return b
}

// reset throws away all that is of an earlier round.
func (w *world) reset(t *task, at attempt) {
	t.at, t.joined = at, true
	for i := range t.batches {
		t.batches[i].txid = 0
	}
	for _, l := range t.links {
		w.forget(l)
	}
	for _, o := range t.owed {
		w.credit(o.link)
	}
	t.owed, t.begins, t.open, t.broken, t.writing = nil, nil, nil, 0, false
}

// join takes a round that is newer than the one the task has.
func (w *world) join(t *task, r *round) {
	if t.joined && !w.less(t.at, r.at) {
		return
	}
	first := !t.joined
	w.reset(t, r.at)
	t.view = r.view
	t.committed, t.passed, t.written, t.begun = r.committed, r.committed, r.committed, r.committed
	for i := range t.last {
		t.last[i] = r.committed
	}
	switch w.kind[t.id] {
	case state:
		w.ops = append(w.ops, &op{kind: joining, task: t, store: t.copy, at: t.at, round: r})
		return
	case spout:
		t.owned = 0
		for s, owner := range r.owner {
			if owner == t.id {
				t.owned |= 1 << s
			}
			if first || !w.off.has(dirtyPositions) {
				t.positions[s] = r.positions[s]
			}
		}
	}
	w.report(t, control{kind: joined})
}

// execute is for a tuple of the task's round. It says whether the tuple is held.
func (w *world) execute(t *task, from int, m message) (held bool) {
	b := t.batch(m.txid)
	if b.markers>>from&1 != 0 && w.off == 0 {
		w.wrong = "a tuple behind its marker"
	}
	if w.corrupt > 0 {
		w.corrupt--
		w.tell("task %d cannot read message %d of txid %d", t.id, m.id, m.txid)
		if !w.off.has(dropSilently) {
			w.fail(t, m.txid, false)
		}
		return false
	}
	switch w.kind[t.id] {
	case bolt:
		if m.id == w.poison && w.poisonFor != 0 {
			w.poisonFor--
			w.tell("task %d.%d fails message %d of txid %d", t.id, t.inc, m.id, m.txid)
			w.fail(t, m.txid, true)
			return false
		}
		to := owner(w.a, m.key)
		if w.shape == reads {
			to = w.next[t.id][w.r.IntN(2)]
		}
		b.sent |= 1 << to
		w.put(t, to, m)
		return false
	}
	b.tuples = append(b.tuples, m)
	return w.kind[t.id] == reader
}

// fail makes a batch fail: its marker does not go on, and the coordinator hears of it.
func (w *world) fail(t *task, n int, user bool) {
	if t.broken == 0 || n < t.broken {
		t.broken = n
	}
	w.report(t, control{kind: failed, txid: n, user: user})
}

func (w *world) marker(t *task, from, n int) {
	if n != t.last[from]+1 && w.off == 0 {
		w.wrong = "a marker out of its order"
	}
	t.last[from] = n
	t.batch(n).markers |= 1 << from
	w.advance(t)
}

// advance hands on what is complete, in the order of txids.
func (w *world) advance(t *task) {
	for {
		n := t.passed + 1
		b := t.batch(n)
		complete := b.markers == w.from[t.id] || w.off.has(firstMarker) && b.markers != 0
		if !complete || t.broken != 0 && n >= t.broken {
			return
		}
		if w.kind[t.id] == reader && (len(b.tuples) > 0 || n > t.committed+1 && !w.off.has(readAhead)) {
			return
		}
		t.passed = n
		if w.kind[t.id] == state {
			if w.ends>>t.id&1 != 0 {
				w.report(t, control{kind: ready, txid: n})
			}
			w.write(t)
			continue
		}
		w.mark(t, n)
	}
}

// mark sends the marker of a batch on every link.
func (w *world) mark(t *task, n int) {
	for _, to := range w.next[t.id] {
		if t.batch(n).sent>>to&1 != 0 || !w.off.has(markerWhereTuples) {
			w.put(t, to, message{at: t.at, txid: n, marker: true})
		}
	}
}

// write gives the next batch to the store when it is complete and may be committed.
func (w *world) write(t *task) {
	n := t.written + 1
	b := t.batch(n)
	if n > t.passed || !b.commit || t.writing {
		return
	}
	if len(b.tuples) == 0 { // T16: the store is not touched
		t.written = n
		w.mark(t, n)
		w.report(t, control{kind: wrote, txid: n})
		return
	}
	o := &op{kind: writing, task: t, store: t.copy, at: t.at, txid: n, tuples: slices.Clone(b.tuples), expect: t.expect}
	if w.off.has(fenceOutside) && !w.fits(o.store.seen(), o) {
		return
	}
	t.writing = true
	w.ops = append(w.ops, o)
}

// turn lets a spout emit, or a reader read: one tuple, or a marker.
func (w *world) turn(t *task) {
	if t.blocked() || !t.joined {
		return
	}
	if w.kind[t.id] == reader {
		w.read(t)
		return
	}
	w.begin(t)
	if len(t.open) == 0 {
		return
	}
	i := w.r.IntN(len(t.open))
	n := t.open[i]
	b := t.batch(n)
	for s := range splits {
		if p := &b.spans[s]; p.from < p.to {
			id := s*perSplit + p.from
			p.from++
			to := w.next[t.id][w.r.IntN(2)]
			b.sent |= 1 << to
			w.put(t, to, message{at: t.at, txid: n, key: keyOf(id), id: id, value: once(id)})
			return
		}
	}
	t.open = slices.Delete(t.open, i, i+1)
	if b.sent != 0 || !w.off.has(idleSilent) {
		w.mark(t, n)
	}
}

// begin opens the next batch, if it is there and the one before has ended.
func (w *world) begin(t *task) {
	for i, c := range t.begins {
		if !w.off.has(noOrder) && (c.txid != t.begun+1 || len(t.open) > 0) {
			continue
		}
		b := t.batch(c.txid)
		next := t.positions
		for s := range splits {
			p := t.positions[s]
			if t.owned>>s&1 == 0 {
				continue
			}
			to := min(p+w.r.IntN(4), perSplit)
			if c.fixed != nil && !w.off.has(fixNotKept) {
				to = c.fixed[s].to
			}
			if w.unreadable[s] && to > p {
				if c.fixed != nil && !w.off.has(fixedGoesOn) {
					w.saw["waited for a split"]++
					return // T14: it waits
				}
				to = p
			}
			b.spans[s] = span{p, to}
			next[s] = to
		}
		t.positions = next
		t.begins = slices.Delete(t.begins, i, i+1)
		t.open = append(t.open, c.txid)
		t.begun = max(t.begun, c.txid)
		w.tell("task %d.%d emits txid %d of round %v: %v", t.id, t.inc, c.txid, t.at, b.spans)
		w.report(t, control{kind: emitted, txid: c.txid, spans: b.spans, owned: t.owned})
		return
	}
}

// read lets a reader execute one tuple of the next batch, or hand on its marker.
func (w *world) read(t *task) {
	n := t.passed + 1
	b := t.batch(n)
	if n > t.committed+1 && !w.off.has(readAhead) {
		return
	}
	if len(b.tuples) == 0 {
		w.advance(t)
		return
	}
	m := b.tuples[0]
	b.tuples = slices.Delete(b.tuples, 0, 1)
	a := owner(w.a, m.key)
	seen := w.current[a].copy.seen().cells[m.key].value
	w.tell("task %d.%d reads key %d for message %d of txid %d: %x", t.id, t.inc, m.key, m.id, n, seen)
	b.sent |= 1<<a | 1<<owner(w.b, m.key)
	w.put(t, a, m)
	m.value = mix(seen, m.id)
	w.put(t, owner(w.b, m.key), m)
	for i, o := range t.owed {
		if o.txid == n {
			w.credit(o.link)
			t.owed = slices.Delete(t.owed, i, i+1)
			break
		}
	}
}
