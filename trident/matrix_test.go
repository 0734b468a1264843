package trident_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/state/memory"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
)

var allKinds = []trident.Kind{trident.Opaque, trident.Transactional, trident.NonTransactional}

// The table of kinds is true of the engine that ships, whatever crashes and wherever: a
// pair that is exact is exact at each point of the protocol, and of any other some point
// shows that it is not.
func TestMatrix(t *testing.T) {
	want := matrixWant()
	for _, source := range allKinds {
		for _, kind := range allKinds {
			t.Run(source.String()+" source, "+kind.String()+" state", func(t *testing.T) {
				var wrong []string
				for _, p := range matrixPoints {
					if p.fixes && source != trident.Transactional {
						continue
					}
					for _, how := range p.hows() {
						t.Run(p.of(how), func(t *testing.T) {
							got := play(t, source, kind, p, how, false)
							if exactPair(source, kind) {
								require.Equal(t, want, got)
							} else if !maps.Equal(want, got) {
								wrong = append(wrong, p.of(how))
							}
						})
					}
				}
				if !exactPair(source, kind) {
					require.NotEmpty(t, wrong, "not exact, and nobody sees it")
					t.Logf("wrong at %d points: %q", len(wrong), wrong)
				}
			})
		}
	}
}

// Storm's opaque rule looks at keys one by one, when they are written again. A key that
// the batch does not have when it comes again keeps what the first try has written, and
// counts once more when it comes in a later batch: so Egret undoes it (T12).
func TestMatrixStorm(t *testing.T) {
	want := matrixWant()
	i := slices.IndexFunc(matrixPoints, func(p matrixPoint) bool { return p.name == beforeCommit })
	for _, how := range []crash{taskDies, runDies, noAnswer} {
		t.Run(how.String(), func(t *testing.T) {
			got := play(t, trident.Opaque, trident.Opaque, matrixPoints[i], how, true)
			require.NotEqual(t, want, got)
			for key, n := range got {
				require.GreaterOrEqual(t, n, want[key], "nothing is lost, key %d", key)
			}
			require.Equal(t, want, play(t, trident.Opaque, trident.Opaque, matrixPoints[i], how, false))
			require.Equal(t, want, play(t, trident.Transactional, trident.Opaque, matrixPoints[i], how, true), "it is enough for batches that come again as they were")
		})
	}
}

// A pair that is not exact is refused with what would be, unless it is let through.
func TestMatrixRefuses(t *testing.T) {
	const (
		again = "a batch that comes again may have other messages: make the state Opaque, or the source Transactional if it gives the same messages behind a position each time, or let the pair through with Inexact()"
	)
	for _, tt := range []struct {
		source, kind trident.Kind
		want         string
	}{
		{trident.Opaque, trident.Transactional, "state counts, which is transactional, with the source in, which is opaque: " + again},
		{trident.Opaque, trident.NonTransactional, "state counts, which is non-transactional, with the source in, which is opaque: what comes again would count again: make the state Opaque, or let the pair through with Inexact()"},
		{trident.Transactional, trident.NonTransactional, "state counts, which is non-transactional, with the source in, which is transactional: what comes again would count again: make the state Opaque, or let the pair through with Inexact()"},
		{trident.NonTransactional, trident.Opaque, "state counts, which is opaque, with the source in, which is non-transactional: messages of a batch that fails would be lost: make the source Opaque, or let the pair through with Inexact()"},
		{trident.NonTransactional, trident.Transactional, "state counts, which is transactional, with the source in, which is non-transactional: messages of a batch that fails would be lost: make the source and the state Opaque, or the source Transactional if it gives the same messages behind a position each time, or let the pair through with Inexact()"},
		{trident.NonTransactional, trident.NonTransactional, "state counts, which is non-transactional, with the source in, which is non-transactional: messages of a batch that fails would be lost, and what comes again would count again: make the source and the state Opaque, or let the pair through with Inexact()"},
	} {
		t.Run(tt.source.String()+", "+tt.kind.String(), func(t *testing.T) {
			require.False(t, exactPair(tt.source, tt.kind))
			counts := trident.StateOf[int64, int64]("counts", memory.New(), tt.kind)
			_, err := trident.New("matrix", new(game).define(tt.source, counts)).Build(topology.Options{})
			require.ErrorIs(t, err, trident.ErrUnsound)
			require.ErrorContains(t, err, tt.want)
			_, err = trident.New("matrix", new(game).define(tt.source, counts.Inexact())).Build(topology.Options{})
			require.NoError(t, err)
		})
	}
	for _, source := range allKinds {
		for _, kind := range allKinds {
			if exactPair(source, kind) {
				_, err := trident.New("matrix", new(game).define(source, trident.StateOf[int64, int64]("counts", memory.New(), kind))).Build(topology.Options{})
				require.NoError(t, err)
			}
		}
	}
}
