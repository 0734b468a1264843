package trident_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/trident"
	"github.com/egretstream/egret/tuple"
)

// A batch of transactional sources that some tasks have written comes again with the
// messages that it had, and what follows has the others, each once: however many tasks
// have its splits, and whatever a reader gives at a time when it reads them again.
func TestTransactionalBatchComesAgain(t *testing.T) {
	early := func() map[string][]scripted {
		return map[string][]scripted{"a": named("a", 100, 10, 200*time.Millisecond), "b": named("b", 100, 10, 200*time.Millisecond)}
	}
	for _, tt := range []struct {
		name   string
		splits map[string][]scripted
		chunk  int // in the first run
		again  int // and in the second
		size   int
		crash  tuple.TxID
	}{
		{"as before", early(), 10, 10, 20, 4},
		{"more at a time", early(), 10, 25, 20, 4},
		{"less at a time", early(), 10, 3, 20, 4},
		{"one by one", early(), 10, 1, 20, 4},
		// What the batch has nothing of has messages when it comes again.
		{"one of two splits", map[string][]scripted{
			"a": named("a", 100, 10, 200*time.Millisecond), "b": {{3 * time.Second, "b0"}, {3 * time.Second, "b1"}}, "c": {{3 * time.Second, "c0"}},
		}, 10, 25, 20, 4},
		// A task reads 16 at a time, and so many have ended before the batch.
		{"many splits", manySplits(60), 5, 5, 40, 3},
		{"many splits, more at a time", manySplits(60), 2, 5, 40, 3},
	} {
		for _, prompt := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, " ", prompt), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWitness()
					source := scriptOf(tt.splits)
					source.chunk, source.prompt = tt.chunk, prompt
					st := trident.StateOf[string, int64]("counts", w, trident.Transactional)
					top, c := counted(st, 3, nil, trident.Transactional, source), egret.Config{StateDir: t.TempDir(), BatchSize: tt.size}
					kill(t, top, c, halfWritten(w, tt.crash))
					w.before, w.joining, source.chunk = nil, time.Second, tt.again // sources have input before the batch begins
					time.Sleep(4 * time.Second)                                    // all messages are due
					s := whole(t, top, c)
					require.Zero(t, s.Batches.Rounds)
					require.Equal(t, source.once(), contents(t, st, "counted"))
				})
			})
		}
	}
}

func manySplits(n int) map[string][]scripted {
	all := map[string][]scripted{}
	for i := range n {
		split := fmt.Sprintf("%02d:", i)
		all[split] = named(split, 5, 5, 0)
	}
	return all
}

// A run that is drained before such a batch has come again does not blame the source, and
// the next run goes on.
func TestDrainBeforeTransactionalBatchComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness()
		source := scriptOf(map[string][]scripted{"a": named("a", 100, 10, 200*time.Millisecond), "b": named("b", 100, 10, 200*time.Millisecond)})
		source.chunk = 10
		st := trident.StateOf[string, int64]("counts", w, trident.Transactional)
		top, c := counted(st, 3, nil, trident.Transactional, source), egret.Config{StateDir: t.TempDir(), BatchSize: 20}
		kill(t, top, c, halfWritten(w, 4))
		w.before, w.joining = nil, time.Second
		r := begun(t, top, c)
		time.Sleep(time.Millisecond)
		r.Drain()
		if _, err := r.Wait(); err != nil {
			require.NotContains(t, err.Error(), "transactional")
			require.ErrorContains(t, err, "not drained")
		}
		whole(t, top, c)
		require.Equal(t, source.once(), contents(t, st, "counted"))
	})
}
