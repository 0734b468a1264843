package sim

import (
	"cmp"
	"slices"
	"time"
)

type kind uint8

const (
	atRun   kind = iota // proc may do its next step
	atLink              // the first message of link arrives
	atLoose             // msg arrives at proc, in no order with others
	atTimer             // msg of proc's own After
	atStop              // an order to stop reaches proc
	atBlock             // fn of proc's Block runs
	atReply             // msg is the result of a Block
	atPlan              // fn of World.At runs
	atFault             // fn of schedule runs
)

// An event is something that happens at a time.
type event struct {
	at   time.Duration
	seq  uint64 // in order of scheduling; decides between equal times
	kind kind
	mine bool // of atTimer: set by proc's clock
	proc *proc
	link *link
	msg  message
	fn   func() any
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// events is a heap with the earliest event first. It holds at most one atRun a
// proc and one atLink a link, so it grows with actors and timers and not with
// what is queued.
type events []*event

func (h *events) push(e *event) {
	s := append(*h, e)
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(s[up]) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = e
	*h = s
}

func (h *events) pop() *event {
	s := *h
	first, last := s[0], s[len(s)-1]
	s[len(s)-1] = nil
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return first
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(s) {
			break
		}
		if down+1 < len(s) && s[down+1].before(s[down]) {
			down++
		}
		if !s[down].before(last) {
			break
		}
		s[i] = s[down]
		i = down
	}
	s[i] = last
	return first
}

// order makes a heap of events whose times have changed.
func (h *events) order() {
	slices.SortFunc(*h, func(a, b *event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
	})
}

// fifo is a queue of messages. Invariant: items[:head] are taken and zero.
type fifo struct {
	items []message
	head  int
}

func (q *fifo) len() int { return len(q.items) - q.head }

func (q *fifo) push(m message) { q.items = append(q.items, m) }

func (q *fifo) at(i int) *message { return &q.items[q.head+i] }

func (q *fifo) pop() message {
	m := q.items[q.head]
	q.items[q.head] = message{}
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head >= 64 && q.head*2 >= len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return m
}

// cut forgets all but the first n messages.
func (q *fifo) cut(n int) {
	clear(q.items[q.head+n:])
	q.items = q.items[:q.head+n]
}
