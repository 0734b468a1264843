package trident_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/spout"
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
