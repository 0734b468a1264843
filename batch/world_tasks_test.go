package batch

import (
	"maps"
	"strconv"

	"github.com/egretstream/egret/tuple"
)

// What the tasks of a world do.

func (w *world) obey() {
	o := take(w, &w.orders)
	if w.chance(3) {
		return
	}
	if w.chance(5) {
		w.orders = append(w.orders, o)
	}
	t := w.tasks[o.To]
	r := &w.roles[t.id]
	m := o.Order
	if m.Kind == Join {
		if r.Kind == Stateful && m.View[t.id] == t.life && m.Attempt.Less(t.fence) {
			w.say(o.from, t, &Answer{Kind: Fenced, BatchID: m.BatchID, Fence: t.fence.Epoch, Err: "fenced"})
		}
		if m.View[t.id] == t.life && !m.Attempt.Less(t.fence) && (t.at.Less(m.Attempt) || t.at == m.Attempt) {
			if t.at != m.Attempt {
				w.join(t, m)
			}
			w.say(o.from, t, &Answer{Kind: Joined, BatchID: tuple.BatchID{Attempt: t.at, Tx: t.committed}})
			if r.Kind == Spout {
				w.sayInput(t)
			}
		}
		return
	}
	if m.Attempt != t.at {
		return
	}
	switch m.Kind {
	case Begin:
		if a := t.said[deed{m.BatchID, t.id, Emitted}]; a != nil {
			w.say(o.from, t, a)
		} else if t.begins[m.Tx] = m.Fixed; m.Fixed == nil {
			t.begins[m.Tx] = Ranges{"*": {}}
		}
	case Write:
		if a := t.said[deed{m.BatchID, t.id, Wrote}]; a != nil {
			w.say(o.from, t, a)
		} else {
			t.write = max(t.write, m.Tx)
		}
	case Settled:
		t.committed = max(t.committed, m.Tx)
	}
}

func (w *world) join(t *worldTask, m *Order) {
	t.at, t.committed, t.last, t.done, t.write, t.stuck = m.Attempt, m.Tx, m.Tx, m.Tx, 0, false
	t.fence = t.at
	t.begins, t.said = map[tuple.TxID]Ranges{}, map[deed]*Answer{}
	t.pos, _ = strconv.Atoi(m.Positions[t.split])
	if w.joined[t.at] == nil {
		w.joined[t.at] = map[tuple.TaskID]bool{}
	}
	w.joined[t.at][t.id] = true
	if w.roles[t.id].Kind != Stateful {
		return
	}
	var last tuple.BatchID
	if m.Last != nil {
		last = m.Last[t.id]
	}
	w.must(t.stamp == last || t.stamp.Tx == m.Tx+1, "state %d has batch %v in %v, and should have batch %v", t.id, t.stamp, t.at, last)
	switch {
	case t.stamp.Tx != m.Tx+1:
	case w.fixed:
		t.stamp.Attempt = t.at
	default: // T12
		for msg := range t.wrote {
			if t.has[msg]--; t.has[msg] == 0 {
				delete(t.has, msg)
			}
		}
		t.stamp, t.wrote = last, nil
	}
}

func (w *world) did(t *worldTask, kind AnswerKind, tx tuple.TxID) bool {
	return w.deeds[deed{tuple.BatchID{Attempt: t.at, Tx: tx}, t.id, kind}]
}

// all reports whether some tasks have done something for a batch of t's attempt.
func (w *world) all(t *worldTask, kind AnswerKind, tx tuple.TxID, ids ...tuple.TaskID) bool {
	for _, id := range ids {
		if !w.deeds[deed{tuple.BatchID{Attempt: t.at, Tx: tx}, id, kind}] {
			return false
		}
	}
	return true
}

// ready reports whether a task can go on.
func (w *world) ready(t *worldTask) bool {
	if t.at == (tuple.Attempt{}) || t.stuck {
		return false
	}
	n := t.done + 1
	switch t.id {
	case 0, 1, 2:
		return t.begins[n] != nil
	case 3:
		return w.all(t, Emitted, n, 0, 1, 2)
	case 4:
		return w.all(t, Emitted, n, 0, 1, 2) && (n <= t.committed+1 || !w.roles[4].Settled)
	case 5, 6:
		return w.all(t, Ready, n, 3, 4) || w.writable(t)
	case 7:
		return w.all(t, Wrote, n, 5, 6) || w.writable(t)
	case 8:
		return w.all(t, Wrote, n, 7)
	}
	return false
}

func (w *world) writable(t *worldTask) bool {
	return t.write > 0 && t.write <= t.done && !w.did(t, Wrote, t.write)
}

func (w *world) work(t *worldTask) {
	if w.writable(t) {
		w.write(t)
		return
	}
	id := tuple.BatchID{Attempt: t.at, Tx: t.done + 1}
	if t.id == 3 && w.chance(3) {
		t.stuck = true
		w.tell(t, &Answer{Kind: Failed, BatchID: id, Err: "boom"})
		return
	}
	t.done++
	switch t.id {
	case 0, 1, 2:
		w.emit(t, id)
	case 3, 4, 5, 6:
		w.tell(t, &Answer{Kind: Ready, BatchID: id, Tuples: 1})
	case 8:
		w.tell(t, &Answer{Kind: Wrote, BatchID: id, Tuples: 1})
	}
}

func (w *world) emit(t *worldTask, id tuple.BatchID) {
	n := min(w.pick(4), worldMessages-t.pos)
	if fixed := t.begins[id.Tx]; !fixed.free() {
		n = fixed[t.split].Messages
	}
	a := &Answer{Kind: Emitted, BatchID: id, Ranges: Ranges{}, Tuples: n}
	if w.content[id] == nil {
		w.content[id], w.ranges[id] = map[message]bool{}, map[string]Ranges{"in": {}, "also": {}}
	}
	if n > 0 {
		r := Range{From: position(t.pos), To: position(t.pos + n), Messages: n}
		a.Ranges[t.split] = r
		w.ranges[id][w.roles[t.id].Component][t.split] = r
		for range n {
			w.content[id][message{t.split, t.pos}] = true
			t.pos++
		}
	}
	delete(t.begins, id.Tx)
	t.last = id.Tx
	a.More, a.Ended = t.pos < worldMessages, t.pos == worldMessages
	w.tell(t, a)
}

// free reports whether the ranges stand for any.
func (r Ranges) free() bool {
	_, is := r["*"]
	return is
}

func position(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (w *world) write(t *worldTask) {
	id := tuple.BatchID{Attempt: t.at, Tx: t.write}
	mine := map[message]bool{}
	for m := range w.content[id] {
		if w.owns(t, m) {
			mine[m] = true
		}
	}
	a := &Answer{Kind: Wrote, BatchID: id, Keys: len(mine)}
	if t.stamp.Tx == id.Tx { // only a state that is not undone has it already
		w.must(maps.Equal(mine, t.wrote), "state %d has written another batch %d", t.id, id.Tx)
		a.Groups.Add(uint16(t.id))
	} else if len(mine) > 0 {
		for m := range mine {
			t.has[m]++
		}
		t.stamp, t.wrote = id, mine
		a.Groups.Add(uint16(t.id))
	}
	w.tell(t, a)
}

func (w *world) sayInput(t *worldTask) {
	w.tell(t, &Answer{Kind: Input, BatchID: tuple.BatchID{Attempt: t.at, Tx: t.last}, More: t.pos < worldMessages, Ended: t.pos == worldMessages})
}

// tell says something to all who coordinate, and so to the one who does. What it was is
// the truth from now on.
func (w *world) tell(t *worldTask, a *Answer) {
	d := deed{a.BatchID, t.id, a.Kind}
	w.deeds[d] = true
	t.said[d] = a
	for _, c := range w.leads {
		w.say(c, t, a)
	}
}

func (w *world) say(c *Coordinator, t *worldTask, a *Answer) {
	w.says = append(w.says, worldAnswer{c, t.id, t.life, a})
}

func (w *world) hear() {
	m := take(w, &w.says)
	if w.chance(3) {
		return
	}
	if w.chance(5) {
		w.says = append(w.says, m)
	}
	m.to.Answer(w.now, m.from, m.life, m.a)
	w.does(m.to)
}
