package live

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/egretstream/egret/acker"
	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A book is the messages of one task, which takes its lock once for each tree and each
// verdict. Others take it to find a tree.
//
// Invariants:
//
//   - a tree is in trees until it has ended and has been swept
//   - a message's trees counts those of trees that it is in
//   - a message that is folded is before the committed position, and in no tree
type book struct {
	record *record
	id     tuple.TaskID
	node   *topology.Node

	mu        sync.Mutex
	trees     map[tuple.TreeID]*tree
	ended     []*tree  // not all of whose messages were done; oldest first
	splits    []*split // in the order of the task's share
	others    others
	failing   map[place]string // values, of those that have failed
	letters   map[string]int   // values of the dead, told and not found
	abandoned int64            // open when their task died, not read again
	folded    Folded
	lost      int64
	lostOnes  []Message
	open      int64 // when the run was stopped
	often     int64 // executed more often than they were sent
	failures  int64
	answers   answers
}

// A place is one of a split.
type place struct {
	split   int
	ordinal int64
}

// A message is one, until it is folded.
type message struct {
	executions uint32
	fault      int32  // whose end it waits for: 1 + its index in harms; 0: none
	values     uint32 // a hash of them, when it was first emitted
	attempts   uint16 // no more are counted than fit
	ends       uint16 // of those, executed to the end
	trees      uint16
	state      state
}

type state uint8

const (
	done     state = 1 << iota // as both say
	dead                       // as Egret says, and it has failed
	disputed                   // Egret says done, and the record does not
	orphan                     // open when its task died, and not read again
	folded                     // nothing is known of it any more
)

func (m *message) is(s state) bool { return m.state&s != 0 }

// A split is its messages from base on.
type split struct {
	name      spout.Split
	base      int64
	messages  []message
	committed int64
	high      atomic.Int64 // behind the last one that was emitted
	life      tuple.Incarnation
	behind    int64 // the last one that was emitted by that life
	unsteady  bool  // what is read again is something else
	unknown   int64 // messages of which for that reason nothing can be told
}

// A tree is one attempt of up to 256 messages.
type tree struct {
	id tuple.TreeID
	// The task uses batch for other messages when all of it are done: only number stays.
	batch  *spout.Batch
	number uint64
	from   int // in the batch
	split  int // -1: of others
	first  int64
	// counts has for each message the executions, times 2^32, and the copies that are
	// under way. Tasks add to it without a lock.
	counts   []atomic.Int64
	values   []uint32         // of each message; not written any more
	failures [4]atomic.Uint64 // bits, of messages
	settled  [4]uint64        // messages that are taken out, under the book's lock
	over     bool
	at       time.Duration // when
}

func (t *tree) place(i int) place { return place{t.split, t.first + int64(i)} }

func (t *tree) fail(i int)        { t.failures[i>>6].Or(1 << (i & 63)) }
func (t *tree) failed(i int) bool { return t.failures[i>>6].Load()&(1<<(i&63)) != 0 }

// ended reports whether message i has been executed to the end, and how often anything
// of it was executed.
func (t *tree) ended(i int) (yes bool, executions uint32) {
	v := t.counts[i].Load()
	copies := int32(v)
	return copies == 0 && !t.failed(i), uint32((v - int64(copies)) >> 32)
}

// tooMany is how many more copies of message i were executed than there were. It means
// something when Egret says that the message is done: of an attempt that was given back,
// copies may be executed that count for nothing.
func (t *tree) tooMany(i int) int32 { return max(0, -int32(t.counts[i].Load())) }

func newBook(r *record, id tuple.TaskID, n *topology.Node) *book {
	return &book{
		record: r, id: id, node: n, trees: map[tuple.TreeID]*tree{}, others: newOthers(),
		failing: map[place]string{}, letters: map[string]int{}, answers: newAnswers(),
	}
}

// name says which split has an index in the task's share.
func (b *book) name(i int, name spout.Split) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.splits) <= i {
		b.splits = append(b.splits, &split{})
	}
	b.splits[i].name = name
}

func (b *book) high(i int) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.splits[i].high.Load()
}

func (b *book) find(id tuple.TreeID) *tree {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.trees[id]
}

// tree books that n messages of a batch are tried, each with so many copies. own is how
// many a bolt has emitted of its own that were not known before.
func (b *book) tree(id tuple.TreeID, batch *spout.Batch, from, n int, copies int64) (t *tree, own int64) {
	t = &tree{id: id, batch: batch, number: batch.Number, from: from, split: -1, counts: make([]atomic.Int64, n), values: valuesOf(batch, from, n)}
	if ordinal, _, read := cutPosition(batch.Position); read && b.node.Source != nil && batch.Split >= 0 {
		t.split = batch.Split
		t.first = ordinal - int64(batch.Len()) + int64(from)
	}
	for i := range t.counts {
		t.counts[i].Store(copies)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trees[id] = t
	fresh, reads := int64(0), b.reads(t)
	for i := range n {
		m := b.message(t, i, true)
		switch {
		case m.attempts == 0:
			fresh++
			m.values = t.values[i]
		case m.values == t.values[i] || m.is(folded):
		case reads:
			b.otherwise(t, i, m)
		default:
			b.record.violated(b.named(t, i), "it is emitted again with other values")
		}
		m.attempts = min(m.attempts+1, 1<<15)
		m.trees++
		if m.is(orphan) {
			m.state &^= orphan
			b.abandoned--
		}
		if m.fault > 0 {
			b.record.harms.tried(m.fault, b.record.now())
		}
	}
	if t.split >= 0 {
		s := b.splits[t.split]
		s.high.Store(max(s.high.Load(), t.first+int64(n)))
	}
	switch {
	case t.split >= 0:
		b.record.seen.Add(fresh)
	case b.node.Queue != nil:
		b.answers.given(t, n)
	case batch.Split >= 0:
		own = fresh // and no letter
	}
	return t, own
}

// reads reports whether a tree is what has just been read, and no replay.
func (b *book) reads(t *tree) bool {
	if t.split < 0 {
		return false
	}
	s := b.splits[t.split]
	if t.id.Incarnation > s.life {
		s.life, s.behind = t.id.Incarnation, t.first
	}
	yes := t.first >= s.behind
	s.behind = max(s.behind, t.first+int64(len(t.counts)))
	return yes
}

// otherwise books that a source has given something else than it did for an earlier life.
func (b *book) otherwise(t *tree, i int, m *message) {
	s := b.splits[t.split]
	s.unsteady = true
	if m.state&(done|dead) == 0 && m.ends == 0 {
		s.unknown++
	}
	m.values = t.values[i]
}

// message returns message i of a tree, and makes it if it is the first attempt.
func (b *book) message(t *tree, i int, begins bool) *message {
	if t.split >= 0 {
		s := b.splits[t.split]
		at := t.first + int64(i) - s.base
		if begins && t.first+int64(i) < s.committed {
			b.record.violated(b.named(t, i), "it is emitted again, and Egret had committed a position behind it")
		}
		if at < 0 {
			return &message{state: done | folded, attempts: 1}
		}
		if begins {
			for int64(len(s.messages)) <= at {
				s.messages = append(s.messages, message{})
			}
		}
		return &s.messages[at]
	}
	return b.others.message(t.other(i), begins)
}

// verdict takes what Egret says of a tree.
func (b *book) verdict(v *task.Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.trees[v.Tree]
	if t == nil {
		return
	}
	t.over, t.at = true, b.record.now()
	var refused, innocent [4]uint64
	for k := range v.Fails {
		f := &v.Fails[k]
		i := f.Index
		refused[i>>6] |= 1 << (i & 63)
		if f.Class == acker.Failed || f.Class == acker.Rejected {
			innocent[i>>6] |= 1 << (i & 63)
		}
		t.fail(int(i)) // also those of a grouping
	}
	if b.node.Queue != nil {
		b.answers.due(t, v.Outcome == acker.Done, refused)
	}
	finished, whole := int64(0), true
	for i := range v.N {
		m := b.message(t, i, false)
		if v.Outcome != acker.Done || refused[i>>6]&(1<<(i&63)) != 0 {
			whole = false
			b.givenBack(t, i, m, innocent[i>>6]&(1<<(i&63)) == 0)
			continue
		}
		if n := t.tooMany(i); n > 0 && !t.failed(i) {
			b.often++
			b.record.violated(b.named(t, i), "Egret says that it is done, and "+amount.Of(n, "tuple")+" too many of it were executed")
			m.ends++
		} else if yes, _ := t.ended(i); !yes {
			whole = false
			m.state |= disputed
			b.record.violated(b.named(t, i), "Egret says that it is done, and it was not executed to the end")
			continue
		}
		b.settle(t, i, m)
		if m.state&(done|dead) == 0 {
			finished++
			if m.state |= done; m.fault > 0 {
				b.record.harms.done(m.fault, t.at)
				m.fault = 0
			}
		}
		if t.split < 0 && b.others.ends(t.other(i)) {
			b.others.own.Done++
		}
	}
	if t.split >= 0 && finished > 0 {
		b.record.done.Add(finished)
	}
	if whole {
		delete(b.trees, t.id)
	} else {
		b.ended = append(b.ended, t)
		b.sweepUntil(t.at - grace)
	}
}

// givenBack books that Egret will try message i again, or give it up: by harm, or because
// a bolt has refused it.
func (b *book) givenBack(t *tree, i int, m *message, harmed bool) {
	if m.state&(done|dead) != 0 {
		return
	}
	if !harmed {
		b.failures++
	} else if m.fault == 0 {
		m.fault = b.record.harms.cost()
	}
	if t.split < 0 {
		switch {
		case b.node.Queue == nil && t.failed(i):
			b.others.fails(t.other(i), b.textOf(t, i))
		case b.node.Queue != nil && b.others.ends(t.other(i)):
			b.others.own.HandedBack++ // and if it comes again, it is another one
			b.record.harms.leaves(m.fault)
		}
		return
	}
	if t.failed(i) {
		b.failing[t.place(i)] = b.textOf(t, i)
	}
}

// settle takes message i out of a tree.
func (b *book) settle(t *tree, i int, m *message) {
	if t.settled[i>>6]&(1<<(i&63)) != 0 {
		return
	}
	t.settled[i>>6] |= 1 << (i & 63)
	yes, executions := t.ended(i)
	m.executions += executions
	m.trees--
	if yes {
		m.ends++
		delete(b.failing, t.place(i))
	}
}

// grace is for how long a tree that has ended is kept: what of it is still under way may
// be executed.
const grace = time.Second

func (b *book) sweep(all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	until := b.record.now() - grace
	if all {
		until = b.record.now()
	}
	b.sweepUntil(until)
	for _, s := range b.splits {
		b.fold(s)
	}
}

func (b *book) sweepUntil(until time.Duration) {
	n := 0
	for ; n < len(b.ended) && b.ended[n].at <= until; n++ {
		t := b.ended[n]
		b.ended[n] = nil
		for i := range t.counts {
			b.settle(t, i, b.message(t, i, false))
		}
		delete(b.trees, t.id)
	}
	b.ended = b.ended[n:]
}

// died takes the messages of a life that has ended off the books: those of a split are
// read again.
func (b *book) died(life tuple.Incarnation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.record.now()
	fault := b.record.harms.of(b.id, life)
	for _, t := range b.trees {
		if t.over || t.id.Incarnation > life {
			continue
		}
		t.over, t.at = true, now
		b.ended = append(b.ended, t)
	}
	for _, s := range b.splits {
		for i := range s.messages {
			m := &s.messages[i]
			if m.attempts == 0 || m.state&(done|dead|orphan) != 0 {
				continue
			}
			m.state |= orphan
			b.abandoned++
			if m.fault == 0 && fault > 0 {
				b.record.harms.costs(fault)
				m.fault = fault
			}
		}
	}
	b.others.died(life)
	b.answers.died()
}

// letter notes that Egret has given a message up, of which it tells the values only.
func (b *book) letter(l *task.DeadLetter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := fmt.Sprint(texts(l.Values))
	b.record.letters.Add(1)
	b.failedLate(text)
	if b.node.Source == nil || l.Stream == topology.DeadLetterStream {
		if !b.others.dies(text) {
			b.record.violated(Message{Component: b.node.Name, Values: texts(l.Values)}, "Egret says that it is dead, and it is none that has failed")
		}
		return
	}
	b.letters[text]++
}

// failedLate notes of messages with these values that they have failed, if that was heard
// of when Egret had given their attempt back. Their batch is kept as long as they live.
func (b *book) failedLate(text string) {
	for _, t := range b.ended {
		for i := range t.counts {
			if !t.failed(i) {
				continue
			}
			m := b.others.all[t.other(i)]
			switch {
			case t.split < 0 && m != nil && m.text == "" && b.textOf(t, i) == text:
				b.others.fails(t.other(i), text)
			case t.split >= 0 && b.failing[t.place(i)] == "" && b.message(t, i, false).state&(done|dead|folded) == 0 && b.textOf(t, i) == text:
				b.failing[t.place(i)] = text
			}
		}
	}
}

// committed takes that Egret holds everything before an ordinal to be done.
func (b *book) committed(i int, ordinal int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.splits[i]
	for at := s.committed; at < ordinal; at++ {
		if n := at - s.base; n < int64(len(s.messages)) {
			m := &s.messages[n]
			if m.state&(done|dead|disputed) != 0 || m.ends > 0 || b.isDead(place{i, at}, m) {
				continue
			}
			m.state |= disputed
		}
		b.record.violated(Message{Component: b.node.Name, Split: string(s.name), Ordinal: at},
			"Egret has committed a position behind it, and it was not executed to the end")
	}
	s.committed = max(s.committed, ordinal)
	b.fold(s)
}

// isDead reports whether a message has failed and Egret has told of a letter like it.
func (b *book) isDead(at place, m *message) bool {
	text, failed := b.failing[at]
	if !failed || b.letters[text] == 0 {
		return false
	}
	if b.letters[text]--; b.letters[text] == 0 {
		delete(b.letters, text)
	}
	delete(b.failing, at)
	m.state |= dead
	b.record.dead.Add(1)
	if m.fault > 0 {
		b.record.harms.done(m.fault, b.record.now())
		m.fault = 0
	}
	return true
}

// named returns message i of a tree for people; the book is locked by its own task, whose
// the batch is.
func (b *book) named(t *tree, i int) Message {
	m := b.placed(t, i)
	m.Values = b.valuesOf(t, i)
	return m
}

// placed is named without the values.
func (b *book) placed(t *tree, i int) Message {
	m := Message{Component: b.node.Name, Ordinal: t.first + int64(i)}
	if t.split >= 0 {
		m.Split = string(b.splits[t.split].name)
	}
	return m
}

func (b *book) valuesOf(t *tree, i int) []string {
	if t.from+i >= t.batch.Len() {
		return nil // used again
	}
	s, cells := t.batch.Message(t.from + i)
	all := texts(tuple.CloneRow(cells, s.Kinds))
	return all[:min(len(all), 3)]
}

func (b *book) textOf(t *tree, i int) string {
	if t.from+i >= t.batch.Len() {
		return "" // used again
	}
	s, cells := t.batch.Message(t.from + i)
	return fmt.Sprint(texts(tuple.CloneRow(cells, s.Kinds)))
}

func texts(values []tuple.Value) []string {
	all := make([]string, len(values))
	for i, v := range values {
		if all[i] = v.String(); len(all[i]) > 80 {
			all[i] = all[i][:80] + "..."
		}
	}
	return all
}
