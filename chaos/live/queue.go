package live

import (
	"context"
	"errors"
	"io"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// Answers counts what queues have given and been told. A queue gives no ordinals: its
// messages are told apart by their ids as far as it gives different ones, and again only
// if it repeats the id of one that was handed back.
type Answers struct {
	Given      int64 `json:"given"`
	Again      int64 `json:"given_again"`
	Acked      int64 `json:"acked"`
	HandedBack int64 `json:"handed_back"`
}

func (a *Answers) plus(o Answers) {
	a.Given += o.Given
	a.Again += o.Again
	a.Acked += o.Acked
	a.HandedBack += o.HandedBack
}

// mostReturned bounds the ids of messages that were handed back and may come again.
const mostReturned = 100_000

// answers are those that the messages of a queue's task are to get.
//
// Invariant: what is in acks was executed to the end, as the record says, and has no
// answer yet.
type answers struct {
	Answers
	acks     map[string]int // by id, of messages
	fails    map[string]int
	returned map[string]struct{}
}

func newAnswers() answers {
	return answers{acks: map[string]int{}, fails: map[string]int{}, returned: map[string]struct{}{}}
}

func less(of map[string]int, id string) bool {
	n := of[id]
	if n == 0 {
		return false
	}
	if n == 1 {
		delete(of, id)
	} else {
		of[id] = n - 1
	}
	return true
}

// given books messages that are emitted.
func (a *answers) given(t *tree, n int) {
	for i := range n {
		id := t.batch.ID(t.from + i)
		if _, again := a.returned[id]; again {
			delete(a.returned, id)
			a.Again++
		}
	}
}

// due books the answers that a verdict is followed by.
func (a *answers) due(t *tree, finished bool, refused [4]uint64) {
	for i := range t.counts {
		id := t.batch.ID(t.from + i)
		yes, _ := t.ended(i)
		if finished && refused[i>>6]&(1<<(i&63)) == 0 && (yes || t.tooMany(i) > 0) {
			a.acks[id]++
		} else {
			a.fails[id]++
		}
	}
}

// died forgets what was to be answered: the queue gives it to the next life.
func (a *answers) died() {
	clear(a.acks)
	clear(a.fails)
}

func (b *book) acked(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := &b.answers
	if a.Acked++; !less(a.acks, id) {
		b.record.violated(Message{Component: b.node.Name, Values: []string{"id " + id}}, "Egret has acked it, and it was not executed to the end")
	}
}

func (b *book) handedBack(id string, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := &b.answers
	a.HandedBack++
	if len(a.returned) < mostReturned {
		a.returned[id] = struct{}{}
	}
	if less(a.fails, id) || errors.Is(why, spout.ErrUnfinished) {
		return
	}
	b.record.violated(Message{Component: b.node.Name, Values: []string{"id " + id}}, "Egret has handed it back, and it has neither failed nor was it lost")
}

// A queue is a user's, whose answers are looked at.
type queue struct {
	spout.Queue
	record *record
	node   *topology.Node
	book   *book // of the task; set by Open
}

func (r *record) watchQueue(n *topology.Node) spout.QueueFactory {
	factory := n.Queue
	return func() spout.Queue {
		q := factory()
		if q == nil {
			return nil
		}
		return &queue{Queue: q, record: r, node: n}
	}
}

func (q *queue) Open(ctx context.Context, t *spout.Task) error {
	q.book = q.record.books[q.node.First+tuple.TaskID(t.Index)]
	if o, is := q.Queue.(spout.Opener); is {
		return o.Open(ctx, t)
	}
	return nil
}

func (q *queue) Next(ctx context.Context, out *spout.QueueOut) error {
	before := out.Len()
	err := q.Queue.Next(ctx, out)
	q.book.mu.Lock()
	defer q.book.mu.Unlock()
	q.book.answers.Given += int64(out.Len() - before)
	return err
}

func (q *queue) Ack(ctx context.Context, id string) error {
	q.book.acked(id)
	return q.Queue.Ack(ctx, id)
}

func (q *queue) Fail(ctx context.Context, id string, why error) error {
	q.book.handedBack(id, why)
	return q.Queue.Fail(ctx, id, why)
}

func (q *queue) Close() error {
	if c, is := q.Queue.(io.Closer); is {
		return c.Close()
	}
	return nil
}
