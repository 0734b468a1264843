package egret_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A hoarder holds all tuples until it is flushed.
type hoarder struct {
	got  *tally
	held []*bolt.Held
}

func (h *hoarder) Execute(in tuple.Tuple, out *bolt.Collector) error {
	h.got.add(in.String("n")[:8])
	h.held = append(h.held, out.Retain(in))
	return nil
}

func (h *hoarder) Tick(*bolt.Collector) error { return nil }

func (h *hoarder) Flush(*bolt.Collector) error {
	for _, x := range h.held {
		x.Ack()
	}
	h.held = nil
	return nil
}

// A run whose input has ended goes on until all letters that waited when it began
// are replayed, however many there are and whoever holds them.
func TestReplayOfABacklog(t *testing.T) {
	const n, size = 50, 1 << 20 // more than is in hand at a time
	for _, how := range []string{"done one by one", "held", "not tracked"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				dir := t.TempDir()
				bad := true
				got := newTally()
				top := func(guarantee topology.Guarantee) *topology.Topology {
					return topology.New("backlog", func(b *topology.Builder) {
						b.Guarantee(guarantee)
						in := b.Spout("in", spout.Generate(n, func(i int64, out *spout.Out) {
							out.Emit(fmt.Sprintf("%08d", i) + strings.Repeat("x", size))
						})).Emits("n").Parallel(2)
						out := b.Bolt("out", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
							if bad {
								return bolt.Reject(errors.New("not now"))
							}
							if how == "held" {
								out.Emit(in.String("n"))
								return nil
							}
							time.Sleep(300 * time.Millisecond)
							got.add(in.String("n")[:8])
							return nil
						}), in.Shuffle()).Emits("n")
						b.Bolt("hoard", func() bolt.Bolt { return &hoarder{got: got} }, out.Global()).Holds(time.Hour)
					})
				}
				_, err := run(t, top(topology.AtLeastOnce), egret.Config{StateDir: dir})
				require.ErrorIs(t, err, egret.ErrDead)
				require.Equal(t, n, replay(t, dir, "backlog"))
				bad = false
				var log logbook
				guarantee := topology.AtLeastOnce
				if how == "not tracked" {
					guarantee = topology.AtMostOnce
				}
				_, err = run(t, top(guarantee), egret.Config{StateDir: dir, Logger: log.logger()})
				require.NoError(t, err)
				require.Empty(t, log.with("left behind"))
				if how == "not tracked" {
					require.Len(t, letters(t, dir, "backlog"), n)
					require.Equal(t, []string{fmt.Sprint("WARN dead letters are still to be replayed: the next run takes those that it can topology=backlog letters=", n)}, log.with("still to be replayed"))
					return
				}
				require.Empty(t, letters(t, dir, "backlog"))
				require.Len(t, got.get(), n)
				require.Equal(t, n, got.sum())
				require.Empty(t, log.with("still to be replayed"))
			})
		})
	}
}

// A letter that cannot be read is told and stays; it keeps neither a run from its
// work nor other letters from being replayed.
func TestReplayBesideWhatCannotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		_, err := run(t, straight(&numbers{n: 20}, fussy(odd)), egret.Config{StateDir: dir})
		require.ErrorIs(t, err, egret.ErrDead)
		require.Equal(t, 10, replay(t, dir, "straight"))
		var torn []string
		for _, in := range []string{"dead", "replay"} {
			torn = append(torn, filepath.Join(dir, "straight", in, "1-0.letters"))
			require.NoError(t, os.WriteFile(torn[len(torn)-1], []byte("egret letters 1\n"), 0o600))
		}
		got := newTally()
		var log logbook
		s, err := run(t, straight(&numbers{n: 22}, func(in tuple.Tuple, _ *bolt.Collector) error {
			got.add(in.String("n"))
			return nil
		}), egret.Config{StateDir: dir, Logger: log.logger()})
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Input)
		require.Equal(t, 12, got.sum())
		told := log.with("cannot replay dead letters, which stay")
		require.Len(t, told, 1)
		for _, path := range torn {
			require.Contains(t, told[0], path+": corrupt file")
			require.FileExists(t, path)
		}
		require.Contains(t, told[0], "move it out of the directory")
	})
}
