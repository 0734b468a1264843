package egret_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// The queue in memory delivers what has failed again, and ends when all is done.
func TestMemoryQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := t.Context()
		q := from.NewMemory(10).Redeliver(time.Second)
		tries := newTally()
		top := topology.New("jobs", func(b *topology.Builder) {
			in := b.Queue("jobs", q.Queue).Emits("n").Parallel(2)
			b.Bolt("work", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				n := in.Int64("n")
				again := tries.add(strconv.FormatInt(n, 10))
				switch {
				case n == 13:
					return bolt.Reject(errBad)
				case n%10 == 5 && again < 3:
					return errBad
				}
				return nil
			}), in.Shuffle())
		})
		r, err := egret.Start(ctx, top, quiet(egret.Config{}))
		require.NoError(t, err)
		began := time.Now()
		for n := range 100 {
			id, err := q.Push(ctx, n)
			require.NoError(t, err)
			require.Equal(t, strconv.Itoa(n), id)
		}
		require.NoError(t, q.Wait(ctx))
		require.GreaterOrEqual(t, time.Since(began), 2*time.Second)
		q.Close()
		_, err = q.Push(ctx, 1)
		require.ErrorIs(t, err, from.ErrClosed)
		s, err := r.Wait()
		require.NoError(t, err)
		settled(t, s, err)
		require.Equal(t, int64(99), s.Acked)
		require.Equal(t, int64(21), s.HandedBack)
		require.Len(t, q.Acked(), 99)
		require.Len(t, q.Failed(), 21)
		rejected := slices.DeleteFunc(q.Failed(), func(f from.Failure) bool { return !errors.Is(f.Err, spout.ErrRejected) })
		require.Len(t, rejected, 1)
		require.Equal(t, "13", rejected[0].ID)
	})
}

// A spool directory under a bolt that fails, dies and rejects: every file is done
// or moved aside, and nothing is left over.
func TestSpoolDirectory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir, done := t.TempDir(), t.TempDir()
		const files = 200
		for i := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), []byte(strconv.Itoa(i*i)), 0o600))
		}
		tries := newTally()
		top := topology.New("files", func(b *topology.Builder) {
			in := b.Queue("files", from.Spool(dir, from.SpoolOptions{UntilEmpty: true, Done: done, MaxRetries: 2})).Emits("name", "content").Parallel(3)
			b.Bolt("work", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				i, err := strconv.Atoi(in.String("name"))
				require.NoError(t, err)
				require.Equal(t, strconv.Itoa(i*i), in.String("content"))
				switch again := tries.add(in.String("name")); {
				case i == 100:
					return bolt.Reject(errBad)
				case i == 50:
					return errBad
				case i%20 == 7 && again == 1:
					panic("boom")
				case i%10 == 3 && again < 3:
					return errBad
				}
				return nil
			}), in.Shuffle()).Parallel(2)
		})
		s, err := run(t, top, egret.Config{MaxPending: 20})
		require.NoError(t, err)
		require.Equal(t, int64(files-2), s.Acked)
		finished, err := os.ReadDir(done)
		require.NoError(t, err)
		require.Len(t, finished, files-2)
		var left []string
		require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				left = append(left, strings.TrimPrefix(path, dir))
			}
			return err
		}))
		require.Equal(t, []string{"/failed/100", "/failed/100.error", "/failed/50", "/failed/50.error"}, left)
		require.Equal(t, 3, tries.get()["50"])
	})
}

// A bolt may hold what a queue brings until MaxPending is in the way, which then
// gives; what it holds for too long times out, and the queue is told who had it.
func TestQueueHeld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := &broker{n: 10}
		var held []*bolt.Held
		top := topology.New("held", func(b *topology.Builder) {
			in := b.Queue("in", q.queue).Emits("n")
			b.Bolt("hold", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
				if in.String("n") == "9" {
					for _, h := range held[1:] {
						h.Ack()
					}
					return nil
				}
				held = append(held, out.Retain(in))
				return nil
			}), in.Global()).Holds(10 * time.Second)
		})
		_, err := run(t, top, egret.Config{MaxPending: 3, MessageTimeout: time.Second, TreeSize: 1})
		require.NoError(t, err)
		q.settled(t)
		require.Len(t, q.with(nil), 9)
		require.Equal(t, "timed out: no progress for 1s, held by hold", q.why("0"))
	})
}
