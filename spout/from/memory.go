package from

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/egretstream/egret/spout"
)

// ErrClosed reports that a message was pushed into a [Memory] that had been closed.
var ErrClosed = errors.New("the queue is closed")

// A Memory is a queue in memory, for tests and for what a program makes itself:
//
//	jobs := from.NewMemory(100)
//	b.Queue("jobs", jobs.Queue).Emits("name", "size")
//	...
//	jobs.Push(ctx, "a.png", 4096)
//
// All tasks of the component share it. What it holds is gone with the process, and
// it remembers the id of every message that was acked or failed. It is safe for
// concurrent use.
type Memory struct {
	limit int
	pause time.Duration
	again bool

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	closed  bool
	pushed  int
	waiting []*item // to be delivered, oldest first
	paused  []*item // failed, by due
	readers map[reader]*memoryQueue
	open    int // pushed, and neither acked nor given up
	acked   []string
	failed  []Failure
}

// A reader is a task that reads a Memory.
type reader struct {
	component string
	index     int
}

type item struct {
	id     string
	values []any
	due    time.Time
}

// A Failure is one call of Fail.
type Failure struct {
	ID  string
	Err error
}

// NewMemory returns an empty queue. limit, at least 1, is how many messages it
// holds that are neither acked nor given up.
func NewMemory(limit int) *Memory {
	return &Memory{limit: max(1, limit), changed: make(chan struct{}), readers: map[reader]*memoryQueue{}}
}

// Redeliver makes m deliver a message that has failed again, when the pause is
// over, unless it was rejected. Without it a message that has failed is given up.
// It is called before m is used.
func (m *Memory) Redeliver(pause time.Duration) *Memory {
	m.again, m.pause = true, pause
	return m
}

// Push appends a message with the values of its fields, and returns its id: a
// number that counts from 0. It waits while m is full, and returns ctx's error if that
// ends first, or ErrClosed. The values must not be changed afterwards.
func (m *Memory) Push(ctx context.Context, values ...any) (id string, err error) {
	values = slices.Clone(values)
	err = m.wait(ctx, func() (bool, error) {
		switch {
		case m.closed:
			return false, ErrClosed
		case m.open >= m.limit:
			return false, nil
		}
		id = strconv.Itoa(m.pushed)
		m.pushed++
		m.open++
		m.waiting = append(m.waiting, &item{id: id, values: values})
		m.change()
		return true, nil
	})
	return id, err
}

// Close says that nothing more will be pushed: the queue ends for its tasks when
// every message is acked or given up.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.closed = true
		m.change()
	}
}

// Wait waits until every message that was pushed is acked or given up, or until
// ctx ends, and returns ctx's error then.
func (m *Memory) Wait(ctx context.Context) error {
	return m.wait(ctx, func() (bool, error) { return m.open == 0, nil })
}

// Acked returns the ids of the messages that were acked, in that order.
func (m *Memory) Acked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.acked)
}

// Failed returns the failures in their order, one for each call of Fail.
func (m *Memory) Failed() []Failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.failed)
}

// wait calls f with the lock, at once and after each change, until it is true.
func (m *Memory) wait(ctx context.Context, f func() (bool, error)) error {
	for {
		m.mu.Lock()
		ok, err := f()
		changed := m.changed
		m.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (m *Memory) change() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Queue is the spout.QueueFactory of m.
func (m *Memory) Queue() spout.Queue { return &memoryQueue{m: m, out: map[string]*item{}} }

// A memoryQueue is a Memory as one life of a task sees it. Its fields are guarded
// by the Memory's lock.
type memoryQueue struct {
	m   *Memory
	out map[string]*item // delivered and not answered
}

// Open takes back what an earlier life of the task has not answered.
func (q *memoryQueue) Open(_ context.Context, task *spout.Task) error {
	m, r := q.m, reader{task.Component, task.Index}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before := m.readers[r]; before != nil {
		for _, x := range before.out {
			m.waiting = append(m.waiting, x)
		}
		before.out = nil
		m.change()
	}
	m.readers[r] = q
	return nil
}

// Next delivers what is waiting, or waits for it.
func (q *memoryQueue) Next(ctx context.Context, out *spout.QueueOut) error {
	for {
		due, changed, err := q.take(out)
		if err != nil || out.Len() > 0 {
			return err
		}
		if err := sleepUntil(ctx, due, changed); err != nil {
			return err
		}
	}
}

// take delivers what there is. If that is nothing, due is when there will be
// something; zero if that is not known.
func (q *memoryQueue) take(out *spout.QueueOut) (due time.Time, changed chan struct{}, err error) {
	m := q.m
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for len(m.paused) > 0 && !m.paused[0].due.After(now) {
		m.waiting = append(m.waiting, m.paused[0])
		m.paused[0], m.paused = nil, m.paused[1:]
	}
	for len(m.waiting) > 0 && !out.Full() && q.out != nil {
		x := m.waiting[0]
		m.waiting[0], m.waiting = nil, m.waiting[1:]
		q.out[x.id] = x
		out.Emit(x.id, x.values...)
	}
	if m.closed && m.open == 0 {
		return due, nil, io.EOF
	}
	if len(m.paused) > 0 {
		due = m.paused[0].due
	}
	return due, m.changed, nil
}

// sleepUntil waits for a change or until due, if that is not zero.
func sleepUntil(ctx context.Context, due time.Time, changed <-chan struct{}) error {
	var passed <-chan time.Time
	if !due.IsZero() {
		t := time.NewTimer(time.Until(due))
		defer t.Stop()
		passed = t.C
	}
	select {
	case <-changed:
	case <-passed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Ack forgets a message.
func (q *memoryQueue) Ack(_ context.Context, id string) error {
	return q.answer(id, func(*item) {
		q.m.acked = append(q.m.acked, id)
		q.m.open--
	})
}

// Fail takes a message back or gives it up.
func (q *memoryQueue) Fail(_ context.Context, id string, why error) error {
	return q.answer(id, func(x *item) {
		m := q.m
		m.failed = append(m.failed, Failure{id, why})
		if !m.again || errors.Is(why, spout.ErrRejected) {
			m.open--
			return
		}
		x.due = time.Now().Add(m.pause)
		m.paused = append(m.paused, x)
	})
}

func (q *memoryQueue) answer(id string, f func(*item)) error {
	q.m.mu.Lock()
	defer q.m.mu.Unlock()
	x := q.out[id]
	if x == nil {
		return fmt.Errorf("message %q is not delivered to this task, or has its answer", id)
	}
	delete(q.out, id)
	f(x)
	q.m.change()
	return nil
}
