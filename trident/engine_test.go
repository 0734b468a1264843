package trident_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/trident"
)

// The engine that ships, with tuples sent through the codec.
func TestWordcountRuns(t *testing.T) {
	lines := bookLines(t, 3000)
	want := plainCount(lines)
	for _, kind := range []trident.Kind{trident.Opaque, trident.Transactional} {
		counts := trident.StateOf[string, int64]("counts", newFake(), kind)
		stats, err := egret.Run(t.Context(), wordcount(lines, counts, kind, true), egret.Config{AlwaysEncode: true, BatchSize: 100})
		t.Log(err)
		t.Log(stats)
		require.Equal(t, want, contents(t, counts, "wordcount"))
	}
}
