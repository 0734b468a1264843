package egret_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/bolt/to"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A typed nil is an error whose Error panics.
type typedNil struct{ text string }

func (e *typedNil) Error() string { return e.text }

// An error that cannot say what it is fails its tuple like a panic of Execute.
func TestErrorThatPanics(t *testing.T) {
	for _, g := range []topology.Guarantee{topology.AtLeastOnce, topology.AtMostOnce} {
		t.Run(g.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				got := newTally()
				s, err := run(t, straight(&numbers{n: 100, chunk: 10}, func(in tuple.Tuple, _ *bolt.Collector) error {
					got.add(in.String("n"))
					if in.String("n") == "41" {
						var nothing *typedNil
						return nothing
					}
					return nil
				}), egret.Config{Guarantee: &g, MaxReplays: 2})
				if g == topology.AtMostOnce {
					require.NoError(t, err)
					require.EqualValues(t, 1, s.Restarts)
					return
				}
				require.ErrorIs(t, err, egret.ErrDead)
				require.EqualValues(t, 1, s.Dead)
				require.EqualValues(t, 99, s.Acked)
				require.EqualValues(t, 3, s.Restarts, "once for each attempt")
				require.Equal(t, 3, got.get()["41"])
			})
		})
	}
}

// What was read before a damage is executed to the end before the run ends by it.
func TestGoodMessagesBeforeADamage(t *testing.T) {
	for name, damage := range map[string]error{"fatal": spout.Fatal(errors.New("torn")), "again and again": errors.New("torn")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var n atomic.Int64
				s, err := run(t, straight(&numbers{n: 5000, chunk: 100, next: func(_ context.Context, _ string, at int) error {
					if at >= 4000 {
						return damage
					}
					return nil
				}}, func(tuple.Tuple, *bolt.Collector) error { n.Add(1); time.Sleep(time.Millisecond); return nil }), egret.Config{})
				require.ErrorContains(t, err, "torn")
				require.EqualValues(t, 4000, n.Load())
				require.EqualValues(t, 4000, s.Acked)
				require.Zero(t, s.Open)
			})
		})
	}
}

// User code that waits for its context comes back when the run is stopped.
func TestContextsEndBeforeAStop(t *testing.T) {
	for _, during := range []string{"Prepare", "Execute"} {
		t.Run(during, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				began := time.Now()
				top := topology.New("waiting", func(b *topology.Builder) {
					in := b.Spout("in", spout.Slice("a")).Emits("n")
					b.Bolt("out", factory(func() *made {
						m := &made{execute: func(_ tuple.Tuple, out *bolt.Collector) error {
							<-out.Context().Done()
							return out.Context().Err()
						}}
						if during == "Prepare" {
							m.prepare = func(ctx context.Context, _ *bolt.Task) error { <-ctx.Done(); return ctx.Err() }
						}
						return m
					}), in.Shuffle())
				})
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_, err := egret.Run(ctx, top, quiet(egret.Config{StopTimeout: 2 * time.Second}))
				require.ErrorIs(t, err, egret.ErrDrain)
				require.Equal(t, 3*time.Second, time.Since(began))
			})
		})
	}
}

type noReader struct{}

func (noReader) Splits(context.Context) ([]spout.Split, error) { return []spout.Split{"s"}, nil }
func (noReader) Open(context.Context, spout.Split, string) (spout.Reader, error) {
	return nil, nil
}

// Nothing where something must be is an error that names who has returned it.
func TestNothingIsReturned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, err := run(t, straight(noReader{}, nil), egret.Config{})
		require.ErrorContains(t, err, "spout in, split s: a call of Open has returned neither a reader nor an error")
		top := topology.New("empty", func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice("a")).Emits("n")
			b.Bolt("out", func() bolt.Bolt { return nil }, in.Shuffle())
		})
		_, err = run(t, top, egret.Config{})
		require.ErrorContains(t, err, "out/0: Prepare: the factory has returned no bolt")
	})
}

// A task that gets on between its deaths is not given up and hardly paused; one
// that only dies is.
func TestTaskThatKeepsDying(t *testing.T) {
	bubble(t, func(t *testing.T) {
		began, seen := time.Now(), newTally()
		s, err := run(t, straight(&numbers{n: 3000, chunk: 100}, func(in tuple.Tuple, _ *bolt.Collector) error {
			if n := in.String("n"); len(n) > 2 && n[len(n)-2:] == "50" && seen.add(n) == 1 {
				panic("once")
			}
			return nil
		}), egret.Config{})
		require.NoError(t, err)
		require.EqualValues(t, 29, s.Restarts, "150, 250, ... and not 50")
		require.Less(t, time.Since(began), 29*100*time.Millisecond)

		_, err = run(t, straight(&numbers{n: 3000, chunk: 100}, func(tuple.Tuple, *bolt.Collector) error { panic("always") }), egret.Config{})
		require.ErrorContains(t, err, "task out/0 has died 29 times in a row, the last time of: out/0: panic in Execute: always")
	})
}

// Lines that were acked and could not be written are not forgotten with the bolt
// that had them.
func TestAckedOutputIsNotLost(t *testing.T) {
	w := &stubborn{fails: 3}
	top := topology.New("print", func(b *topology.Builder) {
		in := b.Spout("in", spout.Slice(texts(100)...)).Emits("n")
		b.Bolt("out", to.Print(w), in.Shuffle())
	})
	bubble(t, func(t *testing.T) {
		_, err := run(t, top, egret.Config{})
		require.NoError(t, err)
		require.Equal(t, 100, w.lines)
	})
}

// A stubborn writer fails a few times before it writes.
type stubborn struct{ fails, lines int }

func (w *stubborn) Write(b []byte) (int, error) {
	if w.fails > 0 {
		w.fails--
		return 0, io.ErrShortWrite
	}
	for _, c := range b {
		if c == '\n' {
			w.lines++
		}
	}
	return len(b), nil
}

// A repeating source lists its first split twice.
type repeating struct{ numbers }

func (s *repeating) Splits(ctx context.Context) ([]spout.Split, error) {
	all, err := s.numbers.Splits(ctx)
	return append(all, all[0]), err
}

// A split that is listed twice is not read by two who write one position.
func TestSplitTwice(t *testing.T) {
	for _, g := range []topology.Guarantee{topology.AtLeastOnce, topology.AtMostOnce, topology.ExactlyOnce} {
		t.Run(g.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				source := &repeating{numbers{n: 10, splits: 2}}
				top := straight(source, func(tuple.Tuple, *bolt.Collector) error { return nil })
				if g == topology.ExactlyOnce {
					top = countNumbers(source, newExactCounts())
				}
				s, err := run(t, top, egret.Config{Guarantee: &g})
				require.ErrorContains(t, err, `spout in: the source lists split "0" twice`)
				require.Zero(t, s.Input)
			})
		})
	}
}
