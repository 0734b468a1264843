package from

import (
	"context"
	"io"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/spout"
)

func openMemory(t *testing.T, m *Memory, index int) *memoryQueue {
	t.Helper()
	q := m.Queue().(*memoryQueue)
	require.NoError(t, q.Open(t.Context(), &spout.Task{Component: "in", Index: index}))
	return q
}

func ids(all []letter) (ids []string) {
	for _, x := range all {
		ids = append(ids, x.id)
	}
	return ids
}

// What is not answered counts as held, and Push waits for room.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(3)
		q := openMemory(t, m, 0)
		for range 3 {
			_, err := m.Push(t.Context(), "name", "content")
			require.NoError(t, err)
		}
		some, err := deliver(t.Context(), q, 10)
		require.NoError(t, err)
		require.Equal(t, []string{"0", "1", "2"}, ids(some))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = m.Push(ctx, "name", "content")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, m.Wait(ctx), context.DeadlineExceeded)
		require.NoError(t, q.Fail(t.Context(), "1", spout.ErrFailed))
		id, err := m.Push(t.Context(), "name", "content")
		require.NoError(t, err)
		require.Equal(t, "3", id)
		require.Error(t, q.Ack(t.Context(), "1"), "a second answer")
		require.Error(t, q.Ack(t.Context(), "3"), "not delivered yet")
		require.Equal(t, []Failure{{"1", spout.ErrFailed}}, m.Failed())
	})
}

// A failed message waits for its pause, and one that is rejected does not come
// again. The queue ends when it is closed and nothing is open.
func TestMemoryRedelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(10).Redeliver(time.Minute)
		q := openMemory(t, m, 0)
		for i := range 3 {
			_, err := m.Push(t.Context(), strconv.Itoa(i), "x")
			require.NoError(t, err)
		}
		m.Close()
		m.Close()
		_, err := deliver(t.Context(), q, 10)
		require.NoError(t, err)
		require.NoError(t, q.Fail(t.Context(), "0", spout.ErrLost))
		require.NoError(t, q.Fail(t.Context(), "1", spout.ErrRejected))
		time.AfterFunc(10*time.Second, func() {
			if err := q.Ack(t.Context(), "2"); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		again, err := deliver(t.Context(), q, 10)
		require.NoError(t, err)
		require.Equal(t, []letter{{"0", "0", "x"}}, again)
		require.Equal(t, time.Minute, time.Since(began))
		require.NoError(t, q.Ack(t.Context(), "0"))
		_, err = deliver(t.Context(), q, 10)
		require.Equal(t, io.EOF, err)
		require.Equal(t, []string{"2", "0"}, m.Acked())
	})
}

// What a life of a task has left without an answer, because it was killed, is
// delivered to the next, and not to other tasks' before.
func TestMemoryAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(10)
		first, other := openMemory(t, m, 0), openMemory(t, m, 1)
		for i := range 4 {
			_, err := m.Push(t.Context(), strconv.Itoa(i), "x")
			require.NoError(t, err)
		}
		_, err := deliver(t.Context(), first, 3)
		require.NoError(t, err)
		require.NoError(t, first.Ack(t.Context(), "1"))
		some, err := deliver(t.Context(), other, 10)
		require.NoError(t, err)
		require.Equal(t, []string{"3"}, ids(some))
		second := openMemory(t, m, 0)
		some, err = deliver(t.Context(), second, 10)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"0", "2"}, ids(some))
		require.Error(t, first.Ack(t.Context(), "0"), "it is another's now")
		require.NoError(t, second.Ack(t.Context(), "0"))
	})
}
