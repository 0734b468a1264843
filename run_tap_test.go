package egret_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/spout/from"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// numbered gives so many numbers a second, as text and as number, n in all.
func numbered(perSecond float64, n int64) spout.Source {
	return from.Schedule(perSecond, n, func(i int64, _ time.Time, out *spout.Out) { out.Emit(strconv.FormatInt(i, 10), i) })
}

// tapped is a topology of numbers; half of them go on, by two tasks.
func tapped(source spout.Source, more func(b *topology.Builder, half *topology.Component)) *topology.Topology {
	return topology.New("tapped", func(b *topology.Builder) {
		in := b.Spout("in", source).Emits("text", "n").EmitsTo("unheard", "x")
		half := b.Bolt("half", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			if in.Int64("n")%2 == 0 {
				out.Emit(in.String("text"), in.Int64("n"))
			}
			return nil
		}), in.By("text")).Emits("text", "n").EmitsTo("with.dots", "x").Parallel(2)
		b.Bolt("sink.er", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), half.Shuffle(), half.Stream("with.dots").All())
		if more != nil {
			more(b, half)
		}
	})
}

// A look is what somebody who looks was shown.
type look struct {
	mu    sync.Mutex
	at    []time.Time
	tasks []string
	rows  []string // values as JSON
	notes []view.Tapped
	err   error
	done  chan struct{}
}

// looking looks in the background, for as long as yield, if there is one, says so.
func looking(ctx context.Context, r *egret.Running, want view.Tap, yield func(*look, *view.Tapped) bool) *look {
	k := &look{done: make(chan struct{})}
	if want.Topology == "" {
		want.Topology = "tapped"
	}
	go func() {
		defer close(k.done)
		k.err = egret.Tap(ctx, r, want, func(t *view.Tapped) bool {
			k.add(t)
			return yield == nil || yield(k, t)
		})
	}()
	return k
}

func (k *look) add(t *view.Tapped) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.Values == nil {
		k.notes = append(k.notes, *t)
		return
	}
	text, _ := json.Marshal(t.Values)
	k.at, k.tasks, k.rows = append(k.at, t.At), append(k.tasks, t.Task), append(k.rows, string(text))
}

func (k *look) last(t *testing.T) view.Tapped {
	k.mu.Lock()
	defer k.mu.Unlock()
	require.NotEmpty(t, k.notes)
	return k.notes[len(k.notes)-1]
}

func started(t *testing.T, top *topology.Topology, c egret.Config) *egret.Running {
	r, err := egret.Start(context.Background(), top, c)
	require.NoError(t, err)
	return r
}

// ended waits for the end of a run of which nobody sees anything any more.
func ended(t *testing.T, r *egret.Running) *egret.Stats {
	s, err := r.Wait()
	require.NoError(t, err)
	if s.Guarantee == topology.AtLeastOnce.String() {
		settled(t, s, err)
	}
	synctest.Wait()
	require.Zero(t, egret.Taps(r), "no tap is left")
	return s
}

func TestTap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, tapped(numbered(1000, 10_000), nil), quiet(egret.Config{}))
		k := looking(t.Context(), r, view.Tap{Component: "half"}, nil)
		even := looking(t.Context(), r, view.Tap{Component: "in", Stream: "default", Where: `n % 1000 == 7 && text endsWith "007"`, Most: 100}, nil)
		s := ended(t, r)
		<-k.done
		<-even.done
		require.NoError(t, k.err)
		require.NoError(t, even.err)

		// Ten a second for ten seconds, each as it was emitted.
		require.InDelta(t, 100, len(k.rows), 3)
		for i, row := range k.rows {
			var text string
			var n int
			require.NoError(t, json.Unmarshal([]byte(row), &[]any{&text, &n}))
			require.Equal(t, strconv.Itoa(n), text)
			require.Zero(t, n%2, "the stream of half")
			require.Contains(t, []string{"half/0", "half/1"}, k.tasks[i])
			if i > 10 {
				require.GreaterOrEqual(t, k.at[i].Sub(k.at[i-10]), 890*time.Millisecond, "no more than ten a second")
			}
		}
		require.InDelta(t, 10, len(k.notes), 1, "a note each second, and one at the end")
		n := k.last(t)
		require.InDelta(t, stat(t, s, "half/0").Streams[0].Emitted+stat(t, s, "half/1").Streams[0].Emitted, n.Emitted, 1)
		require.LessOrEqual(t, n.Looked, n.Emitted)
		require.Equal(t, n.Looked, n.Matched)
		require.EqualValues(t, len(k.rows), n.Shown)
		require.Zero(t, n.Missed)

		var want []string
		for i := range 10 {
			want = append(want, fmt.Sprintf(`["%d",%d]`, 1000*i+7, 1000*i+7))
		}
		want[0] = `["1007",1007]`
		require.Equal(t, want[1:], even.rows[:9], "7 does not end with 007")
		n = even.last(t)
		require.InDelta(t, 10_000, n.Emitted, 1, "the first may have been before")
		require.InDelta(t, n.Emitted, n.Looked, 1, "all of them: it is slow enough; the first may have been counted before the tap was there, or behind it")
		require.EqualValues(t, 9, n.Matched)
		require.EqualValues(t, 9, n.Shown)
	})
}

// Who looks slowly holds up nothing: what comes meanwhile is dropped, and it is said.
func TestTapOfWhoIsSlow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, tapped(numbered(100, 3000), nil), quiet(egret.Config{}))
		first := true
		k := looking(t.Context(), r, view.Tap{Component: "in", Most: 1000}, func(*look, *view.Tapped) bool {
			if first {
				time.Sleep(20 * time.Second)
				first = false
			}
			return true
		})
		time.Sleep(19 * time.Second)
		require.GreaterOrEqual(t, r.Stats().Acked, int64(1890), "the run goes on")
		s := ended(t, r)
		require.InDelta(t, 30*time.Second, s.Elapsed, float64(time.Second))
		<-k.done
		n := k.last(t)
		require.InDelta(t, 3000, n.Emitted, 1)
		require.EqualValues(t, n.Matched, n.Shown+n.Missed)
		require.InDelta(t, 2000-256, n.Missed, 20)
		require.EqualValues(t, len(k.rows), n.Shown)
	})
}

// Who is slower than what is shown, all the time, is told so meanwhile, and of the end.
func TestTapOfWhoIsAlwaysSlow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, tapped(numbered(1000, 10_000), nil), quiet(egret.Config{}))
		var mu sync.Mutex
		var notes []view.Tapped
		k := looking(t.Context(), r, view.Tap{Component: "in", Most: 1000, Where: `n != 3 || n.Hour() == 1`}, func(_ *look, x *view.Tapped) bool {
			if x.Values != nil {
				time.Sleep(5 * time.Millisecond)
				return true
			}
			mu.Lock()
			defer mu.Unlock()
			notes = append(notes, *x)
			return true
		})
		time.Sleep(5 * time.Second)
		mu.Lock()
		seen := slices.Clone(notes)
		mu.Unlock()
		require.GreaterOrEqual(t, len(seen), 3)
		require.Positive(t, seen[len(seen)-1].Missed)
		require.True(t, slices.ContainsFunc(seen, func(n view.Tapped) bool { return n.Error != "" }), "nor does it hide what is wrong with the filter")
		_, err := r.Wait()
		require.NoError(t, err)
		<-k.done // it has what was kept for it first
		n := k.last(t)
		require.EqualValues(t, n.Matched, n.Shown+n.Missed)
		require.Greater(t, n.Missed, int64(7000))
	})
}

// A new life of a task is looked at as the one before.
func TestTapAfterADeath(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var once sync.Once
		r := started(t, topology.New("tapped", func(b *topology.Builder) {
			in := b.Spout("in", numbered(100, 1000)).Emits("text", "n")
			echo := b.Bolt("echo", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
				if in.Int64("n") == 500 {
					once.Do(func() { panic("broken on purpose") })
				}
				out.Emit(in.Int64("n"))
				return nil
			}), in.Shuffle()).Emits("n")
			b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), echo.Shuffle())
		}), quiet(egret.Config{}))
		k := looking(t.Context(), r, view.Tap{Component: "echo", Most: 1000}, nil)
		s := ended(t, r)
		<-k.done
		require.EqualValues(t, 1, s.Restarts)
		for _, n := range []int{499, 500, 501, 999} {
			require.Contains(t, k.rows, fmt.Sprintf("[%d]", n))
		}
	})
}

// It ends when who looks has enough, goes away, or the run ends, and then nothing is left.
func TestTapEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, tapped(numbered(100, 2000), nil), quiet(egret.Config{}))
		one := looking(t.Context(), r, view.Tap{Component: "in"}, func(k *look, _ *view.Tapped) bool { return len(k.rows) < 3 })
		<-one.done
		require.NoError(t, one.err)
		require.Len(t, one.rows, 3)
		require.Zero(t, egret.Taps(r))

		ctx, cancel := context.WithCancel(t.Context())
		gone := looking(ctx, r, view.Tap{Component: "in"}, nil)
		time.Sleep(time.Second)
		require.Equal(t, 1, egret.Taps(r))
		cancel()
		<-gone.done
		require.NoError(t, gone.err)
		require.Zero(t, egret.Taps(r))

		func() {
			defer func() { require.Equal(t, "broken on purpose", recover()) }()
			_ = egret.Tap(t.Context(), r, view.Tap{Topology: "tapped", Component: "in"}, func(*view.Tapped) bool { panic("broken on purpose") })
		}()
		require.Zero(t, egret.Taps(r))

		last := looking(t.Context(), r, view.Tap{Component: "in"}, nil)
		ended(t, r)
		<-last.done
		require.NoError(t, last.err)
		after := looking(t.Context(), r, view.Tap{Component: "in"}, nil)
		<-after.done
		require.NoError(t, after.err, "a run that has ended shows nothing")
		require.Empty(t, after.rows)
	})
}

func TestTapMistakes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, tapped(numbered(100, 100), nil), quiet(egret.Config{}))
		mask := started(t, topology.New("tapped", func(b *topology.Builder) {
			in := b.Spout("in", spout.Rows([]any{"4111", 5})).Emits("card", "n").Mask("card")
			b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.Shuffle())
		}), quiet(egret.Config{}))
		secret := started(t, tapped(numbered(100, 100), func(b *topology.Builder, _ *topology.Component) { b.NoTaps() }), quiet(egret.Config{}))
		exact := started(t, exactTopology(words(1, 10), newExactCounts(), nil), quiet(egret.Config{}))
		for _, tt := range []struct {
			r          *egret.Running
			want       view.Tap
			code, text string
		}{
			{r, view.Tap{Topology: "other", Component: "in"}, web.Unknown, `there is no topology "other": here runs tapped`},
			{r, view.Tap{Component: "out"}, web.Unknown, `there is no component "out" in the topology tapped: those that emit are in, half`},
			{r, view.Tap{Component: "", Stream: ""}, web.Unknown, `there is no component ""`},
			{r, view.Tap{Component: "sink.er"}, web.Invalid, `sink.er emits nothing`},
			{r, view.Tap{Component: "in", Stream: "late"}, web.Unknown, `in has no stream "late": it has default, unheard`},
			{r, view.Tap{Component: "in.late"}, web.Unknown, `in has no stream "late": it has default, unheard`},
			{r, view.Tap{Component: "in", Stream: "unheard"}, web.Invalid, `nobody subscribes to the stream in.unheard: nothing is sent on it, so there is nothing to see`},
			{r, view.Tap{Component: "in", Most: -1}, web.Invalid, `-1 tuples a second cannot be shown: ask for at most 1000`},
			{r, view.Tap{Component: "in", Most: 1001}, web.Invalid, `1001 tuples a second cannot be shown`},
			{r, view.Tap{Component: "in", Where: "m == 3"}, web.Invalid, `where "m == 3": column 1: unknown name m: the fields of in.default are text, n`},
			{mask, view.Tap{Component: "in", Where: "card == 3"}, web.Invalid, `the field card is masked: nobody may ask for it`},
			{secret, view.Tap{Component: "in"}, web.Forbidden, `the topology tapped forbids taps (NoTaps)`},
			{secret, view.Tap{Component: "wrong"}, web.Forbidden, `the topology tapped forbids taps`},
			{exact, view.Tap{Topology: "exact", Component: "count"}, web.Invalid, `count emits nothing`},
			{exact, view.Tap{Topology: "exact", Component: "coordinator"}, web.Unknown, `there is no component "coordinator"`},
		} {
			if tt.want.Topology == "" {
				tt.want.Topology = "tapped"
			}
			err := egret.Tap(t.Context(), tt.r, tt.want, func(*view.Tapped) bool { t.Error("it shows something"); return false })
			e, is := errors.AsType[*web.Error](err)
			require.True(t, is, "%v", err)
			require.Equal(t, tt.code, e.Code)
			require.Contains(t, e.Text, tt.text)
			require.Zero(t, egret.Taps(tt.r))
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all []*look
		for range 8 {
			all = append(all, looking(ctx, r, view.Tap{Component: "half.with.dots"}, nil))
		}
		synctest.Wait()
		ninth := looking(ctx, r, view.Tap{Component: "in"}, nil)
		<-ninth.done
		e, is := errors.AsType[*web.Error](ninth.err)
		require.True(t, is)
		require.Equal(t, web.Error{Code: web.Busy, Text: "there are 8 taps of the topology tapped already: close one"}, *e)
		cancel()
		for _, k := range all {
			<-k.done
			require.NoError(t, k.err)
		}
		for _, r := range []*egret.Running{r, mask, secret, exact} {
			ended(t, r)
		}
	})
}

// An expression that fails is told once, with what it fails of, and is asked on.
func TestTapWhoseFilterFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, topology.New("tapped", func(b *topology.Builder) {
			in := b.Spout("in", from.Schedule(100, 1000, func(i int64, _ time.Time, out *spout.Out) {
				if i%2 == 0 {
					out.Emit(i)
				} else {
					out.Emit("odd")
				}
			})).Emits("n")
			b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), in.Shuffle())
		}), quiet(egret.Config{}))
		k := looking(t.Context(), r, view.Tap{Component: "in", Where: "n > 500", Most: 1000}, nil)
		ended(t, r)
		<-k.done
		require.Len(t, k.rows, 249)
		var told []string
		for _, n := range k.notes {
			if n.Error != "" {
				told = append(told, n.Error)
			}
		}
		require.Equal(t, []string{"column 3: invalid operation: string > int"}, told)
		last := k.notes[len(k.notes)-1]
		require.Equal(t, int64(500), last.Failed)
		require.Less(t, last.Failed, last.Looked, "it fits others")
		require.Equal(t, told[0], last.FailedWith)
	})
}

// A masked value is seen nowhere: not by a tap, nor in what is logged of deaths, failures
// and dead letters.
func TestMaskedValues(t *testing.T) {
	const secret = "4111-1111"
	for _, how := range []string{"error", "panic", "reject"} {
		bubble(t, func(t *testing.T) {
			log := &logbook{}
			heard := 0
			r := started(t, topology.New("tapped", func(b *topology.Builder) {
				in := b.Spout("in", from.Schedule(20, 40, func(i int64, _ time.Time, out *spout.Out) { out.Emit(secret, i) })).Emits("card", "n").Mask("card")
				b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
					if in.Int64("n")%10 != 9 {
						return nil
					}
					switch how {
					case "panic":
						panic("broken on purpose")
					case "reject":
						return bolt.Reject(errors.New("broken on purpose"))
					}
					return errors.New("broken on purpose")
				}), in.Shuffle())
				b.Bolt("dead", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
					heard++
					require.Contains(t, in.String("values"), secret, "the program itself gets it")
					return nil
				}), in.DeadLetters().Shuffle())
			}), egret.Config{Logger: log.logger(), MaxReplays: 1})
			k := looking(t.Context(), r, view.Tap{Component: "in", Most: 1000}, nil)
			dead := looking(t.Context(), r, view.Tap{Component: "in", Stream: topology.DeadLetterStream, Most: 1000}, nil)
			_, err := r.Wait()
			require.ErrorIs(t, err, egret.ErrDead)
			<-k.done
			<-dead.done
			require.Equal(t, 4, heard)
			require.Contains(t, k.rows, `["•••",3]`)
			require.Len(t, dead.rows, 4)
			shown := strings.Join(slices.Concat(k.rows, dead.rows, log.with("")), "\n")
			require.Contains(t, shown, "broken on purpose")
			require.NotContains(t, shown, "4111")
		})
	}
}

// A tap changes nothing of what a topology does: with one on each stream the same is
// counted, whatever its filter says and however slow who looks is.
func TestTapsChangeNothing(t *testing.T) {
	wants := []view.Tap{{Component: "words"}, {Component: "pass", Where: `word endsWith "7"`, Most: 1000}, {Component: "pass", Where: `word > 3`}}
	for _, g := range []topology.Guarantee{topology.ExactlyOnce, topology.AtLeastOnce, topology.AtMostOnce} {
		for _, how := range []string{"well", "broken"} {
			t.Run(g.String()+"/"+how, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var mu sync.Mutex
					hits := 0
					broken := func(at string) error {
						mu.Lock()
						defer mu.Unlock()
						if hits++; how == "broken" && at == "pass" && hits%1501 == 0 {
							panic("broken on purpose")
						}
						return nil
					}
					source := from.Schedule(5000, 5000, func(i int64, _ time.Time, out *spout.Out) { out.Emit(fmt.Sprint("w", i%97)) })
					counts, tally := newExactCounts(), newTally()
					top := exactTopology(source, counts, broken)
					if g != topology.ExactlyOnce {
						top = topology.New("exact", func(b *topology.Builder) {
							b.Guarantee(g)
							words := b.Spout("words", source).Emits("word").Parallel(2)
							passed := b.Bolt("pass", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
								if err := broken("pass"); err != nil {
									return err
								}
								out.Emit(in.String("word"))
								out.Emit(in.String("word"))
								return nil
							}), words.Shuffle()).Emits("word").Parallel(3)
							b.Bolt("count", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error { tally.add(in.String("word")); return nil }), passed.By("word")).Parallel(2)
						})
					}
					r := started(t, top, quiet(egret.Config{BatchSize: 300}))
					ctx, cancel := context.WithCancel(t.Context())
					var all []*look
					for i, want := range wants {
						want.Topology = "exact"
						all = append(all, looking(ctx, r, want, func(*look, *view.Tapped) bool {
							time.Sleep(time.Duration(i) * 100 * time.Millisecond)
							return true
						}))
					}
					s, err := r.Wait()
					require.NoError(t, err)
					require.InDelta(t, time.Second, s.Elapsed, float64(500*time.Millisecond), "and it takes as long")
					cancel()
					for _, k := range all {
						<-k.done
						require.NoError(t, k.err)
					}
					ended(t, r)
					require.NotEmpty(t, all[0].rows)
					switch {
					case g == topology.ExactlyOnce:
						require.Equal(t, expected(1, 5000, 2), counts.get())
					case how == "well":
						require.Equal(t, expected(1, 5000, 2), tally.get())
						require.EqualValues(t, 5000, s.Messages)
					case g == topology.AtLeastOnce:
						require.EqualValues(t, 5000, s.Acked)
						for w, n := range expected(1, 5000, 2) {
							require.GreaterOrEqual(t, tally.get()[w], n)
						}
					}
				})
			})
		}
	}
}
