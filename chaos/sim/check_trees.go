package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/chaos"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// treeBooks are the trees of a run: each is emitted once and ends once.
type treeBooks struct {
	open  map[tuple.TreeID]*openTree
	ended map[tuple.TreeID]bool
	pend  map[*proc]*pending
	// until then a timeout has a cause that has nothing to do with the tree: a task hung,
	// or the run was being stopped.
	still time.Duration
}

// An openTree is a tree without an end.
type openTree struct {
	by       *proc
	batch    *spout.Batch
	first, n int
	at       time.Duration
	ahead    time.Duration // by which its task's clock had jumped
	told     time.Duration // the last time that its ledger was told something of it
	sent     time.Duration // the last time that a parcel with a tuple of it was sent
	forgot   bool          // an entry of it was lost
	unsaid   bool          // a note was lost that says that it waits
}

// A pending is what the life of a task that reads has open.
type pending struct {
	task tuple.TaskID
	open int
	full bool // it was, and nothing was emitted since
}

// attempted books that messages are emitted, and checks that each has a cause: it
// was read, or its attempt before has failed.
func (rec *record) attempted(tree tuple.TreeID, b *spout.Batch, first, n int) {
	by := rec.w.running
	if rec.moment(by).at == never {
		return
	}
	rec.check(chaos.OneEnd)
	t := &rec.trees
	if t.open[tree] != nil || t.ended[tree] {
		rec.violate(chaos.OneEnd, "tree %v is emitted a second time", tree)
	}
	t.open[tree] = &openTree{by: by, batch: b, first: first, n: n, at: rec.w.Now(), ahead: rec.jumps[tree.Task].sum}
	p := t.pend[by]
	if p == nil {
		p = &pending{task: tree.Task}
		t.pend[by] = p
	}
	news := 0
	for i := range n {
		m := rec.message(tree.Task, b, first+i)
		if m == nil {
			continue // a letter has its own book
		}
		rec.check(chaos.Replays)
		m.attempts++
		if b.Split < 0 {
			continue // out of the store, maybe by another life
		}
		if m.causes--; m.causes < 0 {
			rec.violate(chaos.Replays, "%s is emitted in %v, its attempt %d, and nothing has happened to the one before", m.name, tree, m.attempts)
		}
		if m.openIn != by {
			m.openIn = by
			news++
		}
	}
	if p.open += news; news > 0 {
		rec.room(p, news)
	}
}

// message returns the message of a batch; nil if it is a letter.
func (rec *record) message(task tuple.TaskID, b *spout.Batch, i int) *root {
	s, cells := b.Message(i)
	if isLetter(rec.plan.Node(task).Streams[s.Stream].Stream) {
		return nil
	}
	return rec.roots[tuple.CloneRow(cells[:1], s.Kinds[:1])[0].Uint64()]
}

// room checks that a task that reads has no more open than it may, when it has
// emitted new messages.
func (rec *record) room(p *pending, news int) {
	if !rec.plan.Node(p.task).Reads() {
		return
	}
	rec.check(chaos.Pending)
	set := &rec.scene.set
	one := max(1, min(256, set.MaxPending/8, set.TreeSize))
	most := set.MaxPending
	if rec.scene.holds() {
		most = max(most, int(rec.ms[p.task].MaxPending.Load()))
	}
	if p.open > most-1+one || news > one {
		rec.violate(chaos.Pending, "%s has %d messages open, the last %d in one tree; MaxPending is %d", rec.plan.TaskName(p.task), p.open, news, most)
	}
	if p.full {
		rec.twin(chaos.Pending)
	}
	p.full = p.open >= most
}

// mostKept is how many bytes a task of a component that reads may keep: PendingBytes,
// and what was read before that was reached: a batch that is being emitted, and one of
// each split that is ready.
func (rec *record) mostKept(component int) int64 {
	if len(rec.kept) == 0 {
		rec.kept = make([]int64, len(rec.plan.Components))
	}
	if rec.kept[component] > 0 {
		return rec.kept[component]
	}
	s, p := rec.scene, rec.part(component)
	const row, batchText = 7*16 + 32, 256 << 10   // text of keys included
	batch := 2 * p.perCall * (row + s.texts.size) // a source may give out all of it twice
	if s.texts.big > 0 {
		batch += batchText + 2*len(aBigText)
	}
	most := int64(s.set.PendingBytes + (min(16, len(p.splits))+2)*batch)
	if rec.plan.Components[component].Dead {
		const letter = 2 << 10 // a dead message's values, names and history, as text
		most += int64(s.set.MaxPending) * letter
	}
	rec.kept[component] = most
	return most
}

// closed books that a message is no longer open: it is done or dead.
func (rec *record) closed(m *root) {
	if m.openIn == nil {
		return
	}
	if p := rec.trees.pend[m.openIn]; p != nil {
		p.open--
	}
	m.openIn = nil
}

// ended books the end of a tree, which it has once, and returns what is known of it.
func (rec *record) ended(v *task.Verdict) *openTree {
	if rec.moment(rec.w.running).at == never {
		return &openTree{at: rec.w.Now()} // of a call whose task was killed in it
	}
	rec.check(chaos.OneEnd)
	t := rec.trees.open[v.Tree]
	switch {
	case t == nil && rec.trees.ended[v.Tree]:
		rec.violate(chaos.OneEnd, "tree %v has a second end, %v", v.Tree, v.Outcome)
	case t == nil:
		rec.violate(chaos.OneEnd, "tree %v, which was never emitted, ends: %v", v.Tree, v.Outcome)
	case t.batch != v.Batch || t.first != v.First || t.n != v.N:
		rec.violate(chaos.OneEnd, "tree %v ends with messages %d to %d, and was emitted with %d to %d", v.Tree, v.First, v.First+v.N-1, t.first, t.first+t.n-1)
	}
	if t == nil {
		t = &openTree{at: rec.w.Now()}
	}
	delete(rec.trees.open, v.Tree)
	rec.trees.ended[v.Tree] = true
	return t
}

// hear books what a ledger is told, or what is lost of it.
func (rec *record) hear(r *acker.Report, entries []acker.Entry, lost bool) {
	id := tuple.TreeID{Task: r.To, Incarnation: r.ToLife}
	tree := func(seq uint64) *openTree { id.Seq = seq; return rec.trees.open[id] }
	now := rec.w.Now()
	said := func(seq uint64) {
		if t := tree(seq); t != nil {
			if t.unsaid = t.unsaid || lost; !lost {
				t.told = now
			}
		}
	}
	for _, e := range r.Entries {
		said(e.Seq)
	}
	for _, e := range entries {
		if t := tree(e.Seq); t != nil && !slices.Contains(r.Entries, e) {
			t.forgot = true
		}
	}
	for _, seq := range r.Lost {
		said(seq)
	}
	for _, seq := range r.Queued {
		said(seq)
	}
	for _, h := range r.Held {
		if h.Within {
			said(h.Seq)
		}
	}
}

// timedOut checks that a tree has timed out for want of news, neither too early nor
// too late.
func (rec *record) timedOut(t *openTree, v *task.Verdict, m *root) {
	now, most := rec.w.Now(), rec.scene.set.MessageTimeout
	rec.check(chaos.Timeouts)
	if age := now - t.at + rec.jumps[v.Tree.Task].sum - t.ahead; age < most-turnSlack {
		rec.violate(chaos.Timeouts, "%s has timed out %v after it was sent, and the timeout is %v", m.name, age, most)
	}
	if !rec.excused(t, m) {
		rec.violate(chaos.Timeouts, "%s has timed out in tree %v, but nothing of it was dropped (%d attempts, %d of them lost)", m.name, v.Tree, m.attempts, m.lost)
	}
	if !t.forgot || t.unsaid || now < rec.trees.still {
		return
	}
	// What was told as late as this has come, and gives the tree a fresh deadline.
	late := most/4 + 500*time.Millisecond
	if ago := now - t.told; ago > late && ago < most-turnSlack {
		rec.violate(chaos.Timeouts, "%s has timed out in tree %v, of which something was told %v ago; the timeout is %v", m.name, v.Tree, ago, most)
	}
	if rec.scene.retains() {
		return // who holds it says so, but not that it counts
	}
	rec.twin(chaos.Timeouts)
	if silent := now - max(t.at, t.told, t.sent); silent > most+most/4+time.Second {
		rec.violate(chaos.Timeouts, "%s has timed out in tree %v when it was silent for %v, and the timeout is %v", m.name, v.Tree, silent, most)
	}
}

// excused reports whether a tree may time out: something that was to be said of it was
// lost, a bolt has forgotten it, or holds it for longer than it has said that it would,
// or so much stands still that nobody could say anything in time.
func (rec *record) excused(t *openTree, m *root) bool {
	return t.forgot || t.unsaid || m.head().kinForgets > 0 ||
		rec.scene.plans(chaos.Forget, nil) || rec.w.Now() < rec.trees.still
}

// stands books that so much stands still for d that until some time later a timeout
// says nothing.
func (rec *record) stands(d time.Duration) {
	if d == never {
		rec.trees.still = never
		return
	}
	rec.trees.still = max(rec.trees.still, rec.w.Now()+d+2*rec.scene.set.MessageTimeout)
}

// notLost checks that a tree which times out could not have been known to be lost.
func (rec *record) notLost(t *openTree, v *task.Verdict, m *root) {
	rec.twin(chaos.Losses)
	if now := rec.w.Now(); !t.forgot && now > rec.trees.still && rec.edges.overdue(v.Tree, now-rec.scene.set.MessageTimeout) {
		rec.violate(chaos.Losses, "%s has timed out in tree %v, but a tuple of it went to a life that has ended long ago", m.name, v.Tree)
	}
}

// turnSlack is how old a task's time may be when it sends.
const turnSlack = 50 * time.Millisecond

// withoutEnd checks that at rest no tree is without an end.
func (rec *record) withoutEnd() {
	for _, id := range slices.SortedFunc(maps.Keys(rec.trees.open), byTask) {
		rec.twin(chaos.OneEnd)
		if t := rec.trees.open[id]; !rec.harmed(t.by) {
			rec.violate(chaos.OneEnd, "tree %v of %s has no end", id, t.by.label)
		}
	}
}

func byTask(a, b tuple.TreeID) int {
	return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Incarnation, b.Incarnation), cmp.Compare(a.Seq, b.Seq))
}

// treesAtEnd checks that at rest every tree has its end, and that all that went wrong
// was followed by another attempt or a dead letter.
func (rec *record) treesAtEnd() {
	rec.withoutEnd()
	for range rec.trees.ended {
		rec.twin(chaos.OneEnd)
	}
	for _, m := range rec.all {
		if m.attempts == 0 || rec.harmed(m.reader) {
			continue
		}
		rec.twin(chaos.Replays)
		if m.causes > 0 && len(m.dead) == 0 && m.delivery == nil && !rec.drained {
			rec.violate(chaos.Replays, "%s has failed, was lost or timed out, and was neither tried again nor is it dead", m.name)
		}
	}
}
