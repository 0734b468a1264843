package egret

import (
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/trident"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
)

const secretCard = "4111-1111"

// refusing is a topology whose messages, a card and a number, are all dead.
func refusing(more func(*topology.Builder, *topology.Component)) *topology.Topology {
	return topology.New("refusing", func(b *topology.Builder) {
		in := b.Spout("in", from.Schedule(10, 2, func(i int64, _ time.Time, out *spout.Out) { out.Emit(secretCard, 777_001+i) })).Emits("card", "n")
		b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			if in.Int64("n") == 777_001 {
				return bolt.Reject(errors.New("never"))
			}
			panic("never")
		}), in.Shuffle())
		more(b, in)
	})
}

// No command, error, or line of the log shows what is masked.
func TestMaskedLetters(t *testing.T) {
	mask := func(_ *topology.Builder, in *topology.Component) { in.Mask("card") }
	for _, tt := range []struct {
		name      string
		more, now func(*topology.Builder, *topology.Component) // of the run, and of the program that shows letters
		n         bool                                         // it is shown
	}{
		{"a field", mask, mask, true},
		{"a field, later", func(*topology.Builder, *topology.Component) {}, mask, true},
		{"no taps", func(b *topology.Builder, _ *topology.Component) { b.NoTaps() }, func(b *topology.Builder, _ *topology.Component) { b.NoTaps() }, false},
		{"it is not known what is masked", mask, func(b *topology.Builder, _ *topology.Component) { b.Check(errors.New("a parameter is missing")) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			var log strings.Builder
			var all []view.Error
			synctest.Test(t, func(t *testing.T) {
				r, err := Start(t.Context(), refusing(tt.more), Config{StateDir: dir, MaxReplays: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				require.NoError(t, err)
				_, err = r.Wait()
				require.ErrorIs(t, err, ErrDead)
				all = r.events.book.all()
			})
			tops := []*topology.Topology{refusing(tt.now)}
			text := ""
			for _, line := range []string{"list", "list --json", "show 1-1 1-2", "show --json 1-1 1-2"} {
				code, out, errs := runLine(tops, append(append([]string{"deadletters"}, strings.Split(line, " ")...), "--state", dir)...)
				require.Equal(t, ExitDone, code, errs)
				require.Equal(t, line != "list" && tt.n, strings.Contains(out, "777001"), out)
				text += out
			}
			require.Contains(t, text, "card (string) = •••\n")
			require.Contains(t, text, `"card":"•••"`)
			if tt.name != "a field, later" {
				book, err := json.Marshal(all)
				require.NoError(t, err)
				require.Contains(t, string(book), "never")
				require.Contains(t, string(book), "card: •••")
				require.Contains(t, log.String(), "never")
				text += string(book) + log.String()
			}
			if tt.name == "no taps" {
				require.NotContains(t, text, "777")
			}
			require.NotContains(t, text, secretCard)
		})
	}
}

// A card is something of which elements are made.
type card struct{ Number, Holder string }

// Nor is it seen of an exactly-once topology.
func TestMaskedElements(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			top := trident.New("cards", func(b *trident.Builder) {
				b.Mask("number", "key")
				if closed {
					b.NoTaps()
				}
				in := trident.From[card](b, "in", from.Schedule(10, 100, func(i int64, _ time.Time, out *spout.Out) { out.Emit(secretCard, "whale") })).Filter(func(card) bool { return true }).Name("pass")
				failed := 0
				trident.By(in, func(c card) string { return c.Number }).Peek(func(card) {
					if failed++; failed < 3 {
						panic("it is bad")
					}
				}).Name("out")
			})
			var log strings.Builder
			r, err := Start(t.Context(), top, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.NoError(t, err)
			time.Sleep(2 * time.Second)
			text := ""
			for _, component := range []string{"in", "pass"} {
				err := r.tap(t.Context(), view.Tap{Topology: "cards", Component: component}, func(x *view.Tapped) bool {
					b, _ := json.Marshal(x)
					text += string(b)
					return x.Values == nil
				})
				require.Equal(t, closed, err != nil, "%v", err)
				if !closed {
					require.ErrorContains(t, r.tap(t.Context(), view.Tap{Topology: "cards", Component: "pass", Where: `key == "4"`}, nil), "the field key is masked")
				}
			}
			_, err = r.Wait()
			require.NoError(t, err)
			book, err := json.Marshal(r.events.book.all())
			require.NoError(t, err)
			require.Contains(t, string(book), "it is bad")
			require.Contains(t, string(book), "value.number: •••")
			text += string(book) + log.String()
			require.NotContains(t, text, secretCard)
			require.Equal(t, !closed, strings.Contains(text, "whale"))
		})
	}
}
