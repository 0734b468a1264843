package model

import "slices"

// A link goes from one incarnation to another. It is FIFO, and lives as long as both.
type link struct {
	from    *task
	to, inc int

	kept  []message // by the sender, for want of room
	total int       // tuples that the sender has put, kept ones included
	held  int       // tuples in kept
	limit int       // of what may be on the wire in all

	wire     []message
	executed int  // tuples for which the receiver gives credit
	saying   bool // a limit is on its way
}

func (w *world) link(t *task, to, inc int) *link {
	for _, l := range t.links {
		if l.to == to && l.inc == inc {
			return l
		}
	}
	l := &link{from: t, to: to, inc: inc, limit: w.window}
	t.links = append(t.links, l)
	return l
}

// put sends a message, or keeps it. Markers need no room, but keep their place.
func (w *world) put(t *task, to int, m message) {
	inc := t.view[to]
	if w.off.has(noView) {
		inc = w.current[to].inc
	}
	if m.marker && w.off.has(markerNotInOrder) {
		w.send(control{kind: markerCame, to: to, inc: inc, at: m.at, txid: m.txid, from: t})
		return
	}
	l := w.link(t, to, inc)
	if !m.marker {
		l.total++
		l.held++
	}
	l.kept = append(l.kept, m)
	w.flush(l)
}

// flush sends what there is room for.
func (w *world) flush(l *link) {
	for len(l.kept) > 0 {
		m := l.kept[0]
		if !m.marker {
			if l.total-l.held >= l.limit {
				return
			}
			l.held--
		}
		l.kept = slices.Delete(l.kept, 0, 1)
		if len(l.wire) == 0 {
			w.busy = append(w.busy, l)
		}
		l.wire = append(l.wire, m)
		if m.marker {
			n := 0
			for _, x := range l.wire {
				if x.marker && x.at == m.at {
					n++
				}
			}
			w.markers = max(w.markers, n)
		}
	}
}

// forget throws away what was kept, at a join.
func (w *world) forget(l *link) {
	if !w.off.has(keepTotal) {
		l.total -= l.held
	}
	l.held = 0
	l.kept = l.kept[:0]
}

// blocked says that a task may execute nothing: something of it waits for room.
func (t *task) blocked() bool {
	for _, l := range t.links {
		if len(l.kept) > 0 {
			return true
		}
	}
	return false
}

// deliver hands over the first message of a link, if the receiver takes it.
func (w *world) deliver(l *link) {
	m := l.wire[0]
	t := w.life(l.to, l.inc)
	if t != nil && t.blocked() && t.joined && t.at == m.at {
		w.saw["blocked"]++
		return
	}
	l.wire = slices.Delete(l.wire, 0, 1)
	if len(l.wire) == 0 {
		i := slices.Index(w.busy, l)
		w.busy[i] = w.busy[len(w.busy)-1]
		w.busy = w.busy[:len(w.busy)-1]
	}
	if t == nil {
		return
	}
	current := w.takes(t, l.from, m)
	credit := !m.marker
	switch {
	case !current:
		w.saw["stale"]++
		credit = credit && !w.off.has(staleKeepsCredit)
	case m.marker:
		w.marker(t, l.from.id, m.txid)
	default:
		if w.execute(t, l.from.id, m) && w.off.has(heldKeepsCredit) {
			credit = false
			t.owed = append(t.owed, owed{l, m.txid})
		}
	}
	if credit {
		w.credit(l)
	}
}

// credit raises the limit by a tuple. A limit is a level, so late ones do no harm.
func (w *world) credit(l *link) {
	l.executed++
	if !l.saying {
		l.saying = true
		w.bag = append(w.bag, control{kind: limitRaised, link: l})
	}
}

func (w *world) limited(l *link) {
	l.saying = false
	l.limit = max(l.limit, l.executed+w.window)
	w.flush(l)
}

// takes says whether a message is of the round that the receiver is in.
func (w *world) takes(t *task, from *task, m message) bool {
	if w.off.has(noView) {
		if !t.joined || w.less(t.at, m.at) {
			w.reset(t, m.at)
			for i := range w.tasks {
				t.view[i] = w.current[i].inc
			}
			t.committed, t.passed, t.written = m.txid-1, m.txid-1, m.txid-1
		}
		return t.at == m.at
	}
	return t.joined && t.at == m.at && (t.view[from.id] == from.inc || w.off.has(noSender))
}

// less says which attempt is the earlier one.
func (w *world) less(a, b attempt) bool {
	if w.off.has(roundOnly) {
		return a.round < b.round
	}
	return a.epoch < b.epoch || a.epoch == b.epoch && a.round < b.round
}
