package trident_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/trident"
)

// The engine that ships, with tuples sent through the codec: what a batch changes is
// changed once, also when operators fail and tasks die.
func TestEngine(t *testing.T) {
	lines := bookLines(t, 2000)
	want := plainCount(lines)
	most := map[string]int64{}
	for w, n := range want {
		most[w[:1]] = max(most[w[:1]], n)
	}
	for _, kind := range []trident.Kind{trident.Opaque, trident.Transactional} {
		for _, trouble := range []bool{false, true} {
			t.Run(kind.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					back := memory.New()
					counts := trident.StateOf[string, int64]("counts", back, kind).Cached(300)
					top := trident.StateOf[string, int64]("top", back, trident.Opaque)
					var calls atomic.Int64
					define := func(b *trident.Builder) {
						text := trident.From[string](b, "lines", spout.Slice(lines...), kind)
						said := trident.Each(text, func(line string, emit func(string)) error {
							switch n := calls.Add(1); {
							case trouble && n%700 == 350 && n < 5000:
								panic("on purpose")
							case trouble && n%700 == 699 && n < 5000:
								return errors.New("not now")
							}
							words(line, emit)
							return nil
						}).Name("split").Parallel(2)
						changed := trident.PersistentAggregate(trident.GroupBy(said, trident.Identity), counts, trident.Count[string]()).Parallel(3)
						letters := trident.GroupBy(changed, func(p trident.Pair[string, int64]) string { return p.Key[:1] })
						trident.PersistentAggregate(letters, top, trident.Max(func(p trident.Pair[string, int64]) int64 { return p.Value })).Parallel(2)
					}
					_, err := egret.Run(t.Context(), trident.New("wordcount", define), egret.Config{AlwaysEncode: true, BatchSize: 100, ParcelSize: 16})
					require.NoError(t, err)
					require.Equal(t, want, contents(t, counts, "wordcount"))
					require.Equal(t, most, contents(t, top, "wordcount"))
				})
			})
		}
	}
}

// A forgetful backend acknowledges its fifth write and forgets it.
type forgetful struct {
	state.Backend
	writes atomic.Int64
}

type forgetfulStore struct {
	state.Store
	b *forgetful
}

func (b *forgetful) Open(ctx context.Context, name state.Name) (state.Store, error) {
	s, err := b.Backend.Open(ctx, name)
	return &forgetfulStore{s, b}, err
}

func (s *forgetfulStore) Write(ctx context.Context, w *state.Write) error {
	if s.b.writes.Add(1) == 5 {
		return nil
	}
	return s.Store.Write(ctx, w)
}

// What a store has lost while its task lives is not gone on from: the run ends and says so.
func TestLostWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &forgetful{Backend: memory.New()}
		counts := trident.StateOf[string, int64]("counts", b, trident.Opaque)
		define := func(tb *trident.Builder) {
			trident.PersistentAggregate(trident.GroupBy(trident.From[string](tb, "in", spout.Slice(slices.Repeat([]string{"a"}, 10_000)...)), trident.Identity), counts, trident.Count[string]())
		}
		_, err := egret.Run(t.Context(), trident.New("lost", define), egret.Config{BatchSize: 100})
		require.ErrorIs(t, err, state.ErrLost)
		require.ErrorContains(t, err, "batch 6 of attempt 1.1 would write")
		require.ErrorContains(t, err, "has batch 4 of attempt 1.1 last, and this task has left batch 5 of attempt 1.1 there: the store has lost that")
		require.EqualValues(t, 6, b.writes.Load(), "nobody has tried again")
	})
}

// A value that no state can keep ends the run at once: another life would make the same. It
// says which key, which field and what to do.
func TestValueThatCannotBeKept(t *testing.T) {
	type seen struct {
		N  int64
		At time.Time
	}
	synctest.Test(t, func(t *testing.T) {
		st := trident.StateOf[int64, seen]("seen", memory.New(), trident.Opaque)
		s, err := egret.Run(t.Context(), trident.New("times", func(b *trident.Builder) {
			in := trident.From[int64](b, "in", spout.Slice[int64](1, 2, 3))
			trident.Update(trident.GroupBy(in, trident.Identity), st, func(k int64, v seen, _ bool, _ []int64) seen {
				if v.N++; k != 2 {
					v.At = time.Now()
				}
				return v
			})
		}), egret.Config{})
		require.ErrorContains(t, err, "state seen in memory: the value of key 2: At of type trident_test.seen: the zero time cannot be kept (times are of the years 1678 to 2262): where there may be none, use a *time.Time that is nil")
		require.Zero(t, s.Restarts)
	})
}
