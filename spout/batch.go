package spout

import (
	"slices"

	"github.com/egretstream/egret/mutation"
	"github.com/egretstream/egret/tuple"
)

const (
	maxBatchText = 256 << 10 // bytes of text after which a batch is full
	maxBatch     = 1 << 16   // messages in one call of Next
)

// A Batch is the messages of one call of Next, kept until all of them are done
// so that they can be replayed. It is part of the engine and not for users.
//
// Invariant: the cells of message i begin at segments[s].cell + (i -
// segments[s].first) * len(segments[s].Kinds), where s is the segment it is in.
type Batch struct {
	Number   uint64 // counts the batches of a task; the engine's
	Split    int    // index of the split in the task's share; the engine's
	Position string // where a reader goes on behind this batch
	Open     int    // messages that are neither done nor dead; the engine's
	Done     bool   // emitted and Open is 0; the engine's

	cells    []tuple.Cell
	segments []Segment
	n        int
	text     int
	asked    []asked // by message, of a queue's
}

// An asked is the id of a queue's message, until the queue has its answer.
type asked struct {
	id       string
	answered bool
}

// A Segment is a run of a batch's messages of one stream with the same kinds, if
// it is direct to the same task.
type Segment struct {
	Stream int
	Direct int // as in tuple.Row
	Kinds  []tuple.Kind
	first  int // message
	cell   int
	row    tuple.Row // without cells, for comparisons
}

// Append puts a message behind the others.
func (b *Batch) Append(stream int, r *tuple.Row) {
	if b.n >= maxBatch {
		tuple.Misuse("one call of Next has appended 65,536 messages: return when out.Full()")
	}
	k := len(b.segments) - 1
	if k < 0 || b.segments[k].Stream != stream || b.segments[k].Direct != r.Direct || !b.segments[k].row.Same(r) {
		b.begin(stream, r)
	}
	o := len(b.cells)
	if o+len(r.Cells) > cap(b.cells) {
		b.cells = slices.Grow(b.cells, max(len(r.Cells), cap(b.cells), 64))
	}
	b.cells = b.cells[:o+len(r.Cells)]
	d := b.cells[o:]
	for i := range d { // not append: see tuple.Parcel.Append
		d[i] = r.Cells[i]
	}
	b.n++
	b.text += r.Text
}

func (b *Batch) begin(stream int, r *tuple.Row) {
	k := len(b.segments)
	if k < cap(b.segments) {
		b.segments = b.segments[:k+1]
	} else {
		b.segments = append(b.segments, Segment{})
	}
	s := &b.segments[k]
	s.Stream, s.Direct, s.first, s.cell = stream, r.Direct, b.n, len(b.cells)
	s.Kinds = append(s.Kinds[:0], r.Kinds...)
	s.row = tuple.RowOf(s.Kinds)
}

// Len returns the number of messages, Text the bytes of text in them.
func (b *Batch) Len() int  { return b.n }
func (b *Batch) Text() int { return b.text }

// Size returns about how many bytes b keeps alive.
func (b *Batch) Size() int { return b.text + 16*len(b.cells) }

// Message returns the segment and the cells of message i.
func (b *Batch) Message(i int) (*Segment, []tuple.Cell) {
	k := len(b.segments) - 1
	for b.segments[k].first > i {
		k--
	}
	s := &b.segments[k]
	w := len(s.Kinds)
	o := s.cell + (i-s.first)*w
	return s, b.cells[o : o+w : o+w]
}

// Run returns the segment that message i is in, the cells from i to the end of
// the segment, and the index of the first message behind it.
func (b *Batch) Run(i int) (s *Segment, cells []tuple.Cell, end int) {
	k := 0
	for k+1 < len(b.segments) && b.segments[k+1].first <= i {
		k++
	}
	s, end = &b.segments[k], b.n
	last := len(b.cells)
	if k+1 < len(b.segments) {
		end, last = b.segments[k+1].first, b.segments[k+1].cell
	}
	return s, b.cells[s.cell+(i-s.first)*len(s.Kinds) : last], end
}

// holdsAny reports whether b has values whose size is not known.
func (b *Batch) holdsAny() bool {
	for i := range b.segments {
		if slices.Contains(b.segments[i].Kinds, tuple.KindAny) {
			return true
		}
	}
	return false
}

// asks gives the last message an id, by which its queue wants to be answered.
func (b *Batch) asks(id string) {
	b.asked = append(b.asked, asked{id: id})
	b.text += len(id)
}

// ID returns the id of message i of a queue's batch.
func (b *Batch) ID(i int) string { return b.asked[i].id }

// Answer returns the id of message i, and true the first time only: a queue is
// answered once.
func (b *Batch) Answer(i int) (id string, first bool) {
	a := &b.asked[i]
	first, a.answered = !a.answered || mutation.Is(mutation.AnswerTwice), true
	return a.id, first
}

// Reset empties b for its next use.
func (b *Batch) Reset() {
	if b.text > maxBatchText/2 || b.holdsAny() {
		clear(b.cells)
	}
	b.cells, b.segments = b.cells[:0], b.segments[:0]
	clear(b.asked)
	b.asked = b.asked[:0]
	b.n, b.text, b.Open, b.Done = 0, 0, 0, false
	b.Position = ""
}
