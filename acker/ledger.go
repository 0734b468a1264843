// Package acker decides when everything that came of a tree of messages is done,
// with one number per open tree and no tuple at all. It is not for use outside
// Egret.
//
//	spout task            task 1               task 2
//	    | Open e1            |                    |
//	[e1]| -- parcel e1 ----> |                    |
//	    |                    | -- parcel e2 ----> |
//	    | <- entry e1^e2 --- |                    |
//	[e2]| <- entry e2 ---------------------------- |
//	 [0]| Done               |                    |
//
// Every edge enters the number twice, once when it is made and once when it is
// consumed, so zero means that nothing is left to do. Entries come in any order
// among themselves, but none comes before Open: the ledger lives in the spout
// task, which opens a tree before it looks at its mailbox.
//
// A number cannot say where its edges went. So each tree also has a mask of the
// tasks that its edges go to, and the rule that makes a mask of tasks enough,
// though tasks die and live again, is that a bit always stands for the living:
// a death gives back every tree with the bit, and a report that was written in
// ignorance of a death is not believed where it names the dead task. What a
// reporter knows travels in its view.
package acker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/tuple"
)

const (
	firstLines = 256
	mostLines  = 1 << 16
)

// A Config sets up a Ledger.
type Config struct {
	Task tuple.TaskID      // the spout task that keeps the ledger
	Life tuple.Incarnation // and its life
	// Timeout is how long a tree stays open without a word about it; 0 for ever.
	Timeout time.Duration
	// Sends says whether the component of task from sends to that of task to. A
	// task's view names only those, so only those may be missed in it.
	Sends func(from, to tuple.TaskID) bool
}

// A Ledger keeps the open trees of one life of one spout task. M is what the
// caller wants back with the verdict. Times are since the host began.
//
// Owner: the spout task. A Ledger is not safe for concurrent use.
//
// Invariants:
//
//   - the trees from 1 to next-1 are each open, or have had their one verdict
//   - a tree is open exactly if a line has its whole number: in the ring at
//     number mod length if it is one of the last len(ring), else in old
//   - every tree in old is older than every tree in the ring
//   - a bit in an open line's mask stands for edges to lives after the last one
//     that deaths has for its tasks
type Ledger[M any] struct {
	Config
	next uint64 // number of the next tree; the first is 1
	ring []line[M]
	old  map[uint64]*line[M] // open trees that the ring has come round to
	open int                 // lines in use, in ring and old

	deaths  []grave
	grave   map[tuple.TaskID]int // in deaths
	learned []Death              // from views, for Learned

	verdicts []Verdict[M]
	late     []Fail
	checked  time.Duration // the last Expire
	moving   time.Duration // the last report that said more than what is held
	holding  time.Duration // the last that said of an open tree that it is held
	holder   int           // by which component
	stale    uint64
	strays   uint64
}

// A line is one open tree, or free if its seq is 0.
type line[M any] struct {
	seq      uint64
	xor      tuple.EdgeID
	mask     uint64
	deadline time.Duration
	note     *note // nil for nearly all
	message  M
}

// A note is what is seldom there to be said about a tree.
type note struct {
	fails  []Fail // by index
	holder int
	waits  bool // the last that was said is that it is held, by one who waits for others
}

// A grave is a death that the ledger knows of, and while a report is read the
// life that the report's view has for the same task.
type grave struct {
	Death
	said tuple.Incarnation
}

// NewLedger returns a ledger without trees.
func NewLedger[M any](c Config) *Ledger[M] {
	if c.Sends == nil {
		panic("acker: Config.Sends is nil: say which tasks send to which")
	}
	return &Ledger[M]{
		Config: c,
		next:   1,
		ring:   make([]line[M], firstLines),
		old:    map[uint64]*line[M]{},
		grave:  map[tuple.TaskID]int{},
	}
}

// Next returns the number that the next Open will give. Edges are made under it
// while the tree is being put together.
func (l *Ledger[M]) Next() uint64 { return l.next }

// Len returns the number of open trees.
func (l *Ledger[M]) Len() int { return l.open }

// Stale returns how many entries were dropped because their tree was not open,
// or their sender dead.
func (l *Ledger[M]) Stale() uint64 { return l.stale }

// Strays returns how many reports were dropped whole because they were meant
// for another ledger, mostly that of an earlier life of the task.
func (l *Ledger[M]) Strays() uint64 { return l.strays }

// Open enters a tree with the edges that the spout task itself made: their XOR
// and the mask of the tasks they go to. A tree without edges is done.
func (l *Ledger[M]) Open(now time.Duration, xor tuple.EdgeID, mask uint64, m M) (seq uint64) {
	seq = l.next
	l.next++
	n := &l.ring[seq&uint64(len(l.ring)-1)]
	if n.seq != 0 {
		n = l.makeRoom(seq)
	}
	if xor == 0 {
		l.verdicts = append(l.verdicts, Verdict[M]{Seq: seq, Outcome: Done, Message: m, Holder: -1})
		return seq
	}
	n.seq, n.xor, n.mask, n.deadline, n.message = seq, xor, mask, now+l.Timeout, m
	l.open++
	return seq
}

// makeRoom returns a free line for seq, whose place is taken. When much of the
// ring is in use the ring grows. When little is, the tree in the way is one that
// takes very long, and a longer ring would only be met by it a little later and
// by the caches at once: it moves out.
func (l *Ledger[M]) makeRoom(seq uint64) *line[M] {
	if size := len(l.ring); size < mostLines && l.open-len(l.old) > size/8 {
		ring := make([]line[M], 2*size)
		for i := range l.ring {
			n := &l.ring[i]
			if n.seq != 0 {
				ring[n.seq&uint64(len(ring)-1)] = *n
			}
		}
		l.ring = ring
		// All lines in the ring are of the last size trees, so the place is free.
		return &l.ring[seq&uint64(len(l.ring)-1)]
	}
	n := &l.ring[seq&uint64(len(l.ring)-1)]
	moved := *n
	l.old[n.seq] = &moved
	*n = line[M]{}
	return n
}

// find returns the line of an open tree, or nil.
func (l *Ledger[M]) find(seq uint64) *line[M] {
	n := &l.ring[seq&uint64(len(l.ring)-1)]
	if n.seq == seq && seq != 0 {
		return n
	}
	if len(l.old) != 0 {
		return l.old[seq] // nil if it is not there
	}
	return nil
}

// Report takes in what a task reports. Nothing in r is kept but the texts.
func (l *Ledger[M]) Report(now time.Duration, r *Report) {
	if r.To != l.Task || r.ToLife != l.Life {
		l.strays++
		return
	}
	var stale uint64
	dead := false
	if len(r.View) != 0 || len(l.deaths) != 0 {
		stale = l.compare(r)
		dead = r.FromLife <= l.lastDead(r.From)
	}
	// Fails come before entries: an entry of the same report may end the tree.
	for i := range r.Fails {
		l.fail(&r.Fails[i])
	}
	for _, seq := range r.Lost {
		if n := l.find(seq); n != nil {
			l.end(n, Lost)
		}
	}
	if dead {
		// Its trees have been given back, or will be by the report of who sent to it.
		l.stale += uint64(len(r.Entries))
		return
	}
	if len(r.Entries)+len(r.Fails)+len(r.Lost)+len(r.Queued) > 0 {
		l.moving = now
	}
	deadline := now + l.Timeout
	for i := range r.Entries {
		e := &r.Entries[i]
		n := l.find(e.Seq)
		if n == nil {
			l.stale++
			continue
		}
		if e.Mask&stale != 0 && !mutation.Is(mutation.NoView) { // before zero: a tree that is done and lost is lost
			l.end(n, Lost)
			continue
		}
		n.xor ^= e.Xor
		n.mask |= e.Mask
		if mutation.Is(mutation.DeadlineTwice) {
			deadline = n.deadline + l.Timeout
		}
		n.deadline = deadline
		if n.note != nil {
			n.note.waits = false
		}
		if n.xor == 0 {
			l.end(n, Done)
		}
	}
	for _, seq := range r.Queued {
		if n := l.find(seq); n != nil {
			n.deadline = deadline
			if n.note != nil {
				n.note.waits = false
			}
		}
	}
	for _, h := range r.Held {
		if n := l.find(h.Seq); n != nil {
			if h.Within {
				n.deadline = deadline
			}
			t := n.remark()
			t.holder, t.waits = h.Component, h.Waits
			l.holder, l.holding = h.Component, now
		}
	}
}

// compare learns from a report's view and returns the bits that the report must
// not name: those of tasks that died again after the view was taken.
func (l *Ledger[M]) compare(r *Report) (stale uint64) {
	for _, d := range r.View {
		if !mutation.Is(mutation.ViewNotLearned) && l.bury(d) {
			l.learned = append(l.learned, d)
		}
		if i, ok := l.grave[d.Task]; ok {
			l.deaths[i].said = max(l.deaths[i].said, d.Life)
		}
	}
	for i := range l.deaths {
		g := &l.deaths[i]
		if g.said < g.Life && l.Sends(r.From, g.Task) {
			stale |= Bit(g.Task)
		}
		g.said = 0
	}
	return stale
}

// Lost says that all lives of a task up to d.Life are over and gives back the
// trees that may have had an edge to one of them. Hearing it again changes
// nothing. A task that no tree of this ledger can reach should not be told of:
// all it has in common with the trees is a bit.
func (l *Ledger[M]) Lost(_ time.Duration, d Death) { l.bury(d) }

// bury reports whether d was news.
func (l *Ledger[M]) bury(d Death) bool {
	if d.Task == l.Task || d.Life <= l.lastDead(d.Task) {
		return false
	}
	i, ok := l.grave[d.Task]
	if !ok {
		i = len(l.deaths)
		l.grave[d.Task] = i
		l.deaths = append(l.deaths, grave{})
	}
	l.deaths[i].Death = d
	bit := Bit(d.Task)
	l.each(func(n *line[M]) {
		if n.mask&bit != 0 {
			l.end(n, Lost)
		}
	})
	return true
}

// lastDead returns the last life of a task that is known to be over.
func (l *Ledger[M]) lastDead(t tuple.TaskID) tuple.Incarnation {
	if i, ok := l.grave[t]; ok {
		return l.deaths[i].Life
	}
	return 0
}

// Learned appends the deaths that reports have told the ledger of since the last
// call. The spout task must treat each as a death it was told of itself, before
// it opens the next tree: a tree opened later with edges to the dead would have
// a bit that means nothing to the ledger any more.
func (l *Ledger[M]) Learned(dst []Death) []Death {
	dst = append(dst, l.learned...)
	l.learned = l.learned[:0]
	return dst
}

func (l *Ledger[M]) fail(f *Fail) {
	n := l.find(f.Seq)
	if n == nil {
		if f.Class == Panicked || f.Class == Hung {
			l.late = append(l.late, *f)
		}
		return
	}
	t := n.remark()
	i, known := slices.BinarySearchFunc(t.fails, f.Index, func(g Fail, index uint16) int {
		return cmp.Compare(g.Index, index)
	})
	switch {
	case !known:
		t.fails = slices.Insert(t.fails, i, *f)
	case f.Class > t.fails[i].Class, f.Class == Hung && t.fails[i].Class == Hung && f.Suspects == 1:
		t.fails[i] = *f
	}
}

// remark returns the note of a line, which it makes if there is none.
func (n *line[M]) remark() *note {
	if n.note == nil {
		n.note = &note{holder: -1}
	}
	return n.note
}

// Waiting reports whether for the time d nothing was reported but that tuples are
// held, and that was the last to be said of every open tree, by one who waits for
// other tuples. It returns the component that was the last to say so.
func (l *Ledger[M]) Waiting(now, d time.Duration) (holder int, yes bool) {
	yes = l.holding > l.moving && now-l.moving >= d
	if yes {
		l.each(func(n *line[M]) { yes = yes && n.note != nil && n.note.waits })
	}
	return l.holder, yes
}

// Expire ends the trees that nobody has said anything about for Timeout. It is to
// be called every quarter of Timeout. If it is called later than that by more
// than another quarter, the ledger did not run, and what should have kept its
// trees open may still wait in the mailbox: then all get a fresh deadline.
func (l *Ledger[M]) Expire(now time.Duration) {
	late := now-l.checked > l.Timeout/2
	l.checked = now
	if l.Timeout <= 0 || l.open == 0 {
		return
	}
	l.each(func(n *line[M]) {
		switch {
		case late && !mutation.Is(mutation.NoGrace):
			n.deadline = now + l.Timeout
		case n.deadline <= now:
			l.end(n, TimedOut)
		}
	})
}

// each calls f for every open tree, oldest first. f may end the tree.
func (l *Ledger[M]) each(f func(*line[M])) {
	if len(l.old) != 0 {
		for _, seq := range slices.Sorted(maps.Keys(l.old)) {
			f(l.old[seq])
		}
	}
	size := uint64(len(l.ring))
	for seq, rest := l.next, size; rest != 0; rest-- {
		if n := &l.ring[seq&(size-1)]; n.seq != 0 {
			f(n)
		}
		seq++
	}
}

// end gives the verdict on an open tree and frees its line.
func (l *Ledger[M]) end(n *line[M], o Outcome) {
	v := Verdict[M]{Seq: n.seq, Outcome: o, Message: n.message, Holder: -1}
	if n.note != nil {
		v.Fails, v.Holder = n.note.fails, n.note.holder
	}
	l.verdicts = append(l.verdicts, v)
	if n != &l.ring[n.seq&uint64(len(l.ring)-1)] {
		delete(l.old, n.seq)
	}
	*n = line[M]{}
	l.open--
}

// Drain appends the verdicts since the last call, in the order in which they
// were given; a death or an expiry ends the oldest tree first.
func (l *Ledger[M]) Drain(dst []Verdict[M]) []Verdict[M] {
	dst = append(dst, l.verdicts...)
	clear(l.verdicts) // or the messages would be kept alive
	l.verdicts = l.verdicts[:0]
	return dst
}

// Late appends the fails of panics and hangs, since the last call, whose trees were
// not open any more: the death of the task, heard from somebody else, was quicker. They count against their messages all the same, or a message that
// kills would be an innocent victim for ever.
func (l *Ledger[M]) Late(dst []Fail) []Fail {
	dst = append(dst, l.late...)
	clear(l.late)
	l.late = l.late[:0]
	return dst
}
