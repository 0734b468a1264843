package trident_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/trident"
)

// What has gone wrong with Storm's Trident must not go wrong here.

var errKilled = errors.New("crash")

// Storm keeps a batch's offsets in a node for each partition, writes them one after the
// other when the batch is committed, and removes those of a batch that comes again before
// it is read again. A second crash within the batch finds offsets of some partitions
// gone, and of others those of another batch. Here the positions of all splits are in one
// record, which no crash within a batch changes.
func TestOffsetsLostAfterSecondCrash(t *testing.T) {
	for _, kind := range []trident.Kind{trident.Opaque, trident.Transactional} {
		for _, second := range []string{"reading", "executing", "writing"} {
			t.Run(fmt.Sprint(kind, " ", second), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWitness()
					source := scriptOf(map[string][]scripted{})
					for _, split := range []string{"a", "b", "c"} {
						source.splits[split] = named(split, 100, 10, 200*time.Millisecond)
					}
					source.chunk = 10
					st := trident.StateOf[string, int64]("counts", w, kind)
					var execute func(string) error
					top := counted(st, 3, func(m string) error {
						if execute != nil {
							return execute(m)
						}
						return nil
					}, kind, source)
					c := egret.Config{StateDir: t.TempDir(), BatchSize: 20}

					kill(t, top, c, halfWritten(w, 4))
					source.opened()
					switch second {
					case "reading": // one split of the batch
						w.before = nil
						kill(t, top, c, func(die func()) {
							source.next = func(split string, _ int) error {
								if split == "b" {
									die()
									return errKilled
								}
								return nil
							}
						})
						source.next = nil
					case "executing":
						w.before = nil
						kill(t, top, c, func(die func()) {
							execute = func(m string) error {
								if m[0] == 'c' {
									die()
									return errKilled
								}
								return nil
							}
						})
						execute = nil
					case "writing":
						kill(t, top, c, halfWritten(w, 4))
					}
					before := source.opened()
					w.before = nil
					whole(t, top, c)
					opened := source.opened()
					require.Len(t, opened, 3)
					require.Subset(t, opened, before, "the second crash has moved positions")
					require.NotContains(t, opened, "a@")
					require.Equal(t, source.once(), contents(t, st, "counted"))
				})
			})
		}
	}
}

// A Storm spout task that begins anew and finds no stored offset begins by the rule for
// the first poll. On a cold start that is so until the first batch is committed, while
// others are emitted already: one of them has the messages of the first batch again. Here
// a task that begins anew ends the round, so that nothing stays that was emitted before.
func TestFirstBatchEmittedTwice(t *testing.T) {
	for _, kind := range []trident.Kind{trident.Opaque, trident.Transactional} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWitness()
				source := scriptOf(map[string][]scripted{"a": named("a", 90, 30, time.Second)})
				source.chunk = 10
				st := trident.StateOf[string, int64]("counts", w, kind)
				// Three batches are under way, and the first is being written, when the task dies.
				pipelined(t, w, source, st, kind, 1)
			})
		})
	}
}

// A Storm spout task emits a batch from where the one before ends, which it knows by its
// memory, else from the last offset that is stored. With several batches under way, after
// a death of the task, that is where an earlier batch ends: two transactions have the same
// offsets. Here positions are those of the round, and all its batches begin anew.
func TestTwoTransactionsWithTheSameOffsets(t *testing.T) {
	for _, kind := range []trident.Kind{trident.Opaque, trident.Transactional} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWitness()
				source := scriptOf(map[string][]scripted{"a": named("a", 120, 30, time.Second)})
				source.chunk = 10
				st := trident.StateOf[string, int64]("counts", w, kind)
				pipelined(t, w, source, st, kind, 31)
			})
		})
	}
}

// pipelined runs a topology whose source dies while the batch that has the message with
// number first is being written, and two later ones have been executed.
func pipelined(t *testing.T, w *witness, source *script, st *trident.State[string, int64], kind trident.Kind, first int) {
	var mu sync.Mutex
	seen, held, died := map[string]bool{}, false, false
	from, behind := fmt.Sprint("a", first), fmt.Sprint("a", first+28)
	writing := func(of *state.Write) bool {
		for _, row := range of.Rows {
			if trident.Show([]byte(row.Bytes)) == from {
				return true
			}
		}
		return false
	}
	w.before = func(of *state.Write) error {
		mu.Lock()
		first := writing(of) && !held
		held = held || first
		mu.Unlock()
		if first {
			time.Sleep(1500 * time.Millisecond) // until the source has died
		}
		return nil
	}
	source.next = func(_ string, at int) error {
		mu.Lock()
		defer mu.Unlock()
		if at < first+29 || died {
			return nil
		}
		died = true
		require.True(t, held, "the first batch is being written")
		require.True(t, seen[behind], "a later one has been executed")
		panic("on purpose")
	}
	s := whole(t, counted(st, 2, func(m string) error {
		mu.Lock()
		defer mu.Unlock()
		seen[m] = true
		return nil
	}, kind, source), egret.Config{BatchSize: 10})
	require.True(t, died)
	require.EqualValues(t, 1, s.Batches.Rounds)
	require.Equal(t, source.once(), contents(t, st, "counted"))
}

// Storm's batches of several spouts begin when all have said that they are ready, every
// half second, and go through all tasks and the states even if they are empty. Here a
// source without input holds up nobody, and without any input there are no batches.
func TestMergedSourcesOneIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness()
		var busy []scripted
		for i := range 1010 { // a flood, and then one in two seconds
			busy = append(busy, scripted{time.Duration(max(0, i-999)) * 2 * time.Second, fmt.Sprint("busy", i)})
		}
		flood := scriptOf(map[string][]scripted{"x": busy})
		flood.chunk = 50
		quiet := scriptOf(map[string][]scripted{"y": {{time.Hour, "quiet"}}})
		quiet.idle = true
		st := trident.StateOf[string, int64]("counts", w, trident.Opaque)
		r := begun(t, counted(st, 2, nil, trident.Opaque, flood, quiet), egret.Config{BatchSize: 100})

		time.Sleep(1500 * time.Millisecond) // a batch of a flood takes BatchInterval, in which the other source may get input
		s := r.Stats().Batches
		require.EqualValues(t, 1000, s.Messages, "all that there is is committed")
		floods := s.Committed
		time.Sleep(time.Minute)
		s = r.Stats().Batches
		require.EqualValues(t, 1010, s.Messages)
		require.EqualValues(t, floods+10, s.Committed, "one batch for each message")
		gets, writes, joins := w.asked()
		asked := []int{gets, writes, joins}
		time.Sleep(58 * time.Minute)
		require.Equal(t, s, r.Stats().Batches, "an hour without input has no batches")
		gets, writes, joins = w.asked()
		require.Equal(t, asked, []int{gets, writes, joins})
		time.Sleep(2 * time.Minute)
		s = r.Stats().Batches
		require.EqualValues(t, 1011, s.Messages)
		require.EqualValues(t, floods+11, s.Committed)
		r.Drain()
		_, err := r.Wait()
		require.NoError(t, err)
		want := flood.once()
		want["quiet"] = 1
		require.Equal(t, want, contents(t, st, "counted"))
	})
}

// Storm's states are not told of batches without tuples for them, so they see numbers
// with gaps: one that expects the number behind its last one takes a good batch for a lost
// one, or an old one for a new one. Here it is the record that says which batch a key
// group has last; a task without tuples leaves its store alone.
func TestStateWithoutTuplesInABatch(t *testing.T) {
	for _, kind := range []trident.Kind{trident.Opaque, trident.Transactional} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWitness()
				// A message a second is a message a batch: each task has long gaps.
				var messages []scripted
				for i := range 40 {
					messages = append(messages, scripted{time.Duration(i) * time.Second, fmt.Sprint("key", i/5%4)})
				}
				source := scriptOf(map[string][]scripted{"a": messages})
				st := trident.StateOf[string, int64]("counts", w, kind)
				top, c := counted(st, 4, nil, kind, source), egret.Config{StateDir: t.TempDir()}
				// The process dies behind a write that is not committed, in the first batch behind a gap.
				kill(t, top, c, func(die func()) {
					w.after = func(of *state.Write) error {
						require.Len(t, of.Rows, 1)
						if of.Tx == 21 {
							die()
							return errKilled
						}
						return nil
					}
				})
				w.after = nil
				gets, writes, joins := w.asked()
				s := whole(t, top, c)
				require.EqualValues(t, 20, s.Batches.Committed)
				moreGets, moreWrites, moreJoins := w.asked()
				require.Equal(t, 4, moreJoins-joins)
				require.LessOrEqual(t, moreGets-gets, 20)
				require.Contains(t, []int{19, 20}, moreWrites-writes, "one for each batch, or what was written is not written again")
				require.Equal(t, source.once(), contents(t, st, "counted"))
			})
		})
	}
}
