package egret_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A broker is a queue of the numbers below n, with hooks, and keeps the book of
// what its tasks were told. A message is delivered once.
type broker struct {
	n     int
	chunk int                                         // messages a call of Next; 0: until full
	id    func(i int) string                          // default: the number
	emit  func(out *spout.QueueOut, id string, i int) // default: Emit
	open  func(context.Context, *spout.Task) error    // each may be nil
	next  func(ctx context.Context, i int) error      // before each message
	ack   func(ctx context.Context, id string) error  // after it is booked
	fail  func(ctx context.Context, id string, e error) error

	mu       sync.Mutex
	at       int
	emitted  []string
	answers  []answer
	lives    int
	closed   int
	inNext   map[*link]bool
	mistakes []string
}

type answer struct {
	id  string
	err error // nil: acked
}

// A link is a broker as one life of a task sees it.
type link struct {
	b       *broker
	closed  bool
	calling bool // Ack, Fail or Close
}

func (b *broker) queue() spout.Queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lives++
	return &link{b: b}
}

func (l *link) mistake(format string, args ...any) {
	l.b.mistakes = append(l.b.mistakes, fmt.Sprintf(format, args...))
}

func (l *link) Open(ctx context.Context, task *spout.Task) error {
	if l.b.open == nil {
		return nil
	}
	return l.b.open(ctx, task)
}

func (l *link) Next(ctx context.Context, out *spout.QueueOut) error {
	b := l.b
	b.mu.Lock()
	if b.inNext == nil {
		b.inNext = map[*link]bool{}
	}
	if b.inNext[l] {
		l.mistake("Next is called twice at a time")
	}
	b.inNext[l] = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.inNext[l] = false
		if l.closed {
			l.mistake("closed while Next is under way")
		}
		b.mu.Unlock()
	}()
	for k := 0; !out.Full() && (b.chunk == 0 || k < b.chunk); k++ {
		b.mu.Lock()
		i := b.at
		if i < b.n {
			b.at++
		}
		b.mu.Unlock()
		if i >= b.n {
			return io.EOF
		}
		if b.next != nil {
			if err := b.next(ctx, i); err != nil {
				b.mu.Lock()
				b.at-- // of one task only
				b.mu.Unlock()
				return err
			}
		}
		id := strconv.Itoa(i)
		if b.id != nil {
			id = b.id(i)
		}
		b.mu.Lock()
		b.emitted = append(b.emitted, id)
		b.mu.Unlock()
		if b.emit != nil {
			b.emit(out, id, i)
		} else {
			out.Emit(id, strconv.Itoa(i))
		}
	}
	return nil
}

func (l *link) answer(id string, err error) func() {
	b := l.b
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = append(b.answers, answer{id, err})
	if l.closed {
		l.mistake("%q is answered after Close", id)
	}
	if l.calling {
		l.mistake("two calls at a time")
	}
	l.calling = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		l.calling = false
	}
}

func (l *link) Ack(ctx context.Context, id string) error {
	defer l.answer(id, nil)()
	if l.b.ack == nil {
		return nil
	}
	return l.b.ack(ctx, id)
}

func (l *link) Fail(ctx context.Context, id string, why error) error {
	defer l.answer(id, why)()
	if ctx.Err() != nil {
		l.mistake("Fail %q with a context that has ended", id)
	}
	if l.b.fail == nil {
		return nil
	}
	return l.b.fail(ctx, id, why)
}

func (l *link) Close() error {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	if l.closed || l.calling {
		l.mistake("closed twice or in a call")
	}
	l.closed = true
	l.b.closed++
	return nil
}

// settled checks that each message that was emitted has exactly one answer, and
// that every life was closed.
func (b *broker) settled(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(t, b.mistakes)
	var answered []string
	for _, a := range b.answers {
		answered = append(answered, a.id)
	}
	require.ElementsMatch(t, b.emitted, answered, "one answer for each message")
	require.Equal(t, b.lives, b.closed, "every life is closed")
}

// with returns the ids that were failed for a reason, or acked if it is nil.
func (b *broker) with(reason error) (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.answers {
		if reason == nil && a.err == nil || reason != nil && errors.Is(a.err, reason) {
			ids = append(ids, a.id)
		}
	}
	return ids
}

func (b *broker) why(id string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.answers {
		if a.id == id && a.err != nil {
			return a.err.Error()
		}
	}
	return "acked"
}

// queueing is a topology of a queue "in" of one field "n" and a bolt "out".
func queueing(factory spout.QueueFactory, tasks int, execute func(tuple.Tuple, *bolt.Collector) error) *topology.Topology {
	return topology.New("queueing", func(b *topology.Builder) {
		in := b.Queue("in", factory).Emits("n").EmitsTo("odd", "n").Parallel(tasks)
		b.Bolt("out", bolt.Each(execute), in.Shuffle(), in.Stream("odd").Shuffle()).Emits("n").Parallel(2)
	})
}

func nothing(tuple.Tuple, *bolt.Collector) error { return nil }
