package model

// A controlKind is a message between a coordinator and tasks. They travel in no
// order, without credit, late, twice or never.
type controlKind uint8

const (
	begun      controlKind = iota // to tasks: a round
	begin                         // to spouts
	commit                        // to states
	committed                     // to readers
	markerCame                    // to a task, if markers are not in order
	limitRaised
	joined // to the coordinator
	emitted
	ready
	wrote
	failed
	mismatch
	fenced
	copyDone
	answered
	unanswered
)

type control struct {
	kind  controlKind
	to    int // task, or the task that says it
	inc   int
	at    attempt
	txid  int
	co    *coordinator
	round *round
	link  *link
	from  *task
	spans [splits]span
	owned uint // splits read, or groups written
	fixed *[splits]span
	user  bool
	seq   int
	ok    bool
	entry entry
	after record
	fence int // its epoch
	copy  int
}

// A round is what all tasks are told.
type round struct {
	at        attempt
	committed int
	view      [maxTasks]int
	owner     [splits]int // spout task, or -1
	positions [splits]int
	last      [2][groups]stamp
	fixed     bool // the record has the ranges of committed+1
}

// progress is what a coordinator knows of a txid in its round.
type progress struct {
	txid                  int
	emitted, ready, wrote uint
	spans                 [splits]span
	read                  uint    // splits
	written               [2]uint // groups
	commit                bool
	failed, user          bool
}

// A coordinator is of one epoch. Nobody tells it that it has been replaced.
type coordinator struct {
	*round
	epoch, number int
	fixed         fixing
	next          int // txid to begin
	joined        uint
	batches       [8]progress
	failures      map[int]int
	unlisted      [splits]bool
	known         [maxTasks]int // the lives that it has heard of
	progress      int           // step of the last one
	mismatch      bool
	rival         int // epoch of a fence in the way of a join, or 0
	life          int // how many were appointed with it
	over          bool
	before        record // as it was when the coordinator was appointed

	seq     int // of the last entry
	pending bool
	moving  int // the move that is copied, or 0
	from    int // the copy that it is a copy of
	quiet   int // what was committed when it was copied
	copy    int // that is ready, or 0
	moves   int
}

func (co *coordinator) batch(n int) *progress {
	p := &co.batches[n%len(co.batches)]
	if p.txid != n {
		*p = progress{txid: n}
	}
	return p
}

// send gives a control message to the network.
func (w *world) send(c control) {
	if w.left > 0 && w.chance(400) {
		return
	}
	w.bag = append(w.bag, c)
	if w.left > 0 && w.chance(50) {
		w.bag = append(w.bag, c)
	}
}

// report tells the coordinator of the task's round.
func (w *world) report(t *task, c control) { w.reportAt(t, t.at, c) }

func (w *world) reportAt(t *task, at attempt, c control) {
	for _, co := range w.coordinators {
		if co.epoch == at.epoch && !co.over {
			c.to, c.inc, c.at, c.co = t.id, t.inc, at, co
			w.send(c)
		}
	}
}

func (w *world) receive(c control) {
	switch {
	case c.kind == limitRaised:
		w.limited(c.link)
		return
	case c.kind >= joined:
		w.hear(c.co, c)
		return
	}
	t := w.life(c.to, c.inc)
	if t == nil {
		return
	}
	switch {
	case c.kind == begun:
		w.join(t, c.round)
	case c.kind == markerCame:
		if w.takes(t, c.from, message{at: c.at, txid: c.txid}) {
			w.marker(t, c.from.id, c.txid)
		}
	case !t.joined || t.at != c.at:
	case c.kind == begin:
		if c.txid > t.begun || w.off.has(noOrder) && t.batch(c.txid).spans == [splits]span{} {
			t.begins = append(t.begins, c)
		}
	case c.kind == commit:
		if c.txid > t.written {
			t.batch(c.txid).commit = true
			w.write(t)
		}
	case c.kind == committed:
		t.committed = max(t.committed, c.txid)
	}
}

// hear takes what a coordinator is told, if it is of its round and view.
func (w *world) hear(co *coordinator, c control) {
	if co.over {
		return
	}
	if c.kind == answered || c.kind == unanswered {
		w.answer(co, c)
		return
	}
	if c.kind == copyDone {
		if c.seq == co.moves {
			co.copy = c.copy
		}
		return
	}
	if co.round == nil || c.at != co.at || co.view[c.to] != c.inc {
		return
	}
	if c.kind == joined {
		co.joined |= 1 << c.to
		return
	}
	if c.kind == mismatch {
		co.mismatch = true
		return
	}
	if c.kind == fenced {
		co.rival = c.fence
		return
	}
	if c.txid <= co.committed {
		return
	}
	p := co.batch(c.txid)
	switch c.kind {
	case emitted:
		p.emitted |= 1 << c.to
		p.read |= c.owned
		for s := range splits {
			if c.owned>>s&1 != 0 {
				p.spans[s] = c.spans[s]
			}
		}
	case ready:
		p.ready |= 1 << c.to
	case wrote:
		p.wrote |= 1 << c.to
		p.written[w.slot(c.to)] |= c.owned
	case failed:
		p.failed = true
		p.user = p.user || c.user
	}
}

// beginRound starts a round at the first txid that is not committed.
func (w *world) beginRound(co *coordinator, why string) {
	w.attempted++
	r := *co.round
	co.number++
	r.at = attempt{co.epoch, co.number}
	for i := range w.tasks {
		r.view[i] = co.known[i]
	}
	r.fixed = co.fixed.txid == r.committed+1 || w.off.has(fixChanges)
	co.unlisted = w.unlisted
	if w.off.has(fixChanges) {
		co.fixed = fixing{}
	}
	for s := range splits {
		r.owner[s] = w.r.IntN(2)
		if w.unlisted[s] && co.fixed.txid != r.committed+1 {
			r.owner[s] = -1
		}
	}
	co.round = &r
	co.next = r.committed + 1
	co.joined, co.batches, co.mismatch, co.pending = 0, [8]progress{}, false, false
	co.seq++ // an answer that is on its way is not waited for any more
	co.moving, co.copy = 0, 0
	co.moves++
	co.progress = w.steps
	w.tell("round %v behind txid %d: %s", r.at, r.committed, why)
	for i := range w.tasks {
		w.send(control{kind: begun, to: i, inc: r.view[i], round: co.round})
	}
}

// coordinate lets a coordinator do one thing.
func (w *world) coordinate(co *coordinator) {
	if co.over || co.round == nil || co.pending && !w.off.has(roundDuringAppend) {
		return
	}
	if why := w.ended(co); why != "" {
		w.beginRound(co, why)
		return
	}
	if co.pending {
		return
	}
	if co.mismatch {
		w.append(co, entry{kind: stopped, why: "store"})
		return
	}
	if co.rival != 0 {
		if w.off.has(fencedStops) {
			w.append(co, entry{kind: stopped, why: "store"})
		} else {
			w.append(co, entry{kind: epoch, epoch: w.record.epoch + 1})
		}
		return
	}
	if co.joined != w.all && !w.off.has(noBarrier) {
		return
	}
	c := co.committed
	for n := c + 1; n < co.next; n++ {
		if p := co.batch(n); p.failed && (n == c+1 || w.off.has(failAtOnce)) {
			if p.user && w.count(co, n) {
				return
			}
			w.beginRound(co, "a batch has failed")
			return
		}
	}
	if w.move(co) {
		return
	}
	if co.next <= c+maxBatches && (w.moving == 0 || w.off.has(moveBusy)) && !read(co.positions) {
		for i := range w.tasks {
			if w.spouts>>i&1 != 0 {
				m := control{kind: begin, to: i, inc: co.view[i], at: co.at, txid: co.next}
				if co.fixed.txid == co.next {
					m.fixed = &co.fixed.spans
				}
				w.send(m)
			}
		}
		co.next++
		return
	}
	for n := c + 1; n < co.next; n++ {
		if w.settle(co, n) || !w.off.has(commitAhead) {
			return
		}
	}
}

// ended says why the round is over, "" if it is not.
func (w *world) ended(co *coordinator) string {
	if w.chance(2) {
		i := w.r.IntN(w.tasks)
		co.known[i] = w.current[i].inc
		if co.view[i] != co.known[i] {
			if w.off.has(countDeaths) && !co.pending && w.count(co, co.committed+1) {
				return ""
			}
			return "a task has died"
		}
	}
	if w.chance(30) && co.unlisted != w.unlisted {
		return "there are other splits"
	}
	if w.steps-co.progress > patience && !w.off.has(noBackstop) {
		w.idle = true
		w.saw["backstop"]++
		return "no progress"
	}
	return ""
}

// count counts a failure of a txid, and stops if it was one too many.
func (w *world) count(co *coordinator, n int) bool {
	co.failures[n]++
	if co.failures[n] < maxReplays {
		return false
	}
	w.append(co, entry{kind: stopped, why: "poison", txid: n})
	return true
}

// settle brings a txid nearer to its commit: fixed, commit, record.
func (w *world) settle(co *coordinator, n int) bool {
	p := co.batch(n)
	whole := p.emitted == w.spouts
	may := whole && (p.ready == w.ends || w.off.has(noReady)) || w.off.has(noReady) && !w.fixed
	if !p.commit {
		if !may {
			return false
		}
		if w.fixed && co.fixed.txid != n && !w.off.has(noFix) {
			w.append(co, entry{kind: fixes, txid: n, fixed: fixing{n, ranges(p, co.positions)}})
			return true
		}
		if w.off.has(positionsFirst) {
			co.positions = co.behind(p)
			w.record.positions = co.positions
		}
		p.commit = true
		for i := range w.tasks {
			if w.states>>i&1 != 0 {
				w.send(control{kind: commit, to: i, inc: co.view[i], at: co.at, txid: n})
			}
		}
		return true
	}
	if n != co.committed+1 || !whole || p.wrote != w.states && !w.off.has(recordFirst) {
		return false
	}
	e := entry{kind: commits, txid: n, positions: co.behind(p), last: co.last, fixed: co.fixed}
	for s := range e.last {
		for g := range groups {
			if p.written[s]>>g&1 != 0 {
				e.last[s][g] = stamp{co.at, n}
			}
		}
	}
	if w.off.has(forgetVanished) {
		for s, gone := range co.unlisted {
			if gone {
				e.positions[s] = 0
			}
		}
	}
	// Batches are pipelined, so the ranges of the next one may be known already.
	if q := co.batch(n + 1); w.fixed && q.emitted == w.spouts && q.ready == w.ends && w.chance(2) {
		e.fixed = fixing{n + 1, ranges(q, e.positions)}
	}
	w.append(co, e)
	return true
}

// behind returns the positions after a batch.
func (co *coordinator) behind(p *progress) [splits]int {
	all := co.positions
	for s := range splits {
		if p.read>>s&1 != 0 {
			all[s] = p.spans[s].to
		}
	}
	return all
}

// ranges returns those of all splits. One that is not read has an empty range at
// its position: it may be there again when the batch is repeated.
func ranges(p *progress, positions [splits]int) [splits]span {
	all := p.spans
	for s := range splits {
		if p.read>>s&1 == 0 {
			all[s] = span{positions[s], positions[s]}
		}
	}
	return all
}

func read(positions [splits]int) bool {
	for _, p := range positions {
		if p < perSplit {
			return false
		}
	}
	return true
}
