package egret_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
)

// A sender of tuples in tens: it retains nine, and anchors to them and the tenth
// the one that it emits.
type tens struct {
	held  []*bolt.Held
	texts []string
}

func (p *tens) Execute(in tuple.Tuple, out *bolt.Collector) error {
	p.held = append(p.held, out.Retain(in))
	p.texts = append(p.texts, in.String("n"))
	if len(p.held) < 10 {
		return nil
	}
	p.flush(out)
	return nil
}

func (p *tens) Tick(out *bolt.Collector) error {
	if len(p.held) > 0 {
		p.flush(out)
	}
	return nil
}

func (p *tens) flush(out *bolt.Collector) {
	out.Anchor(p.held...).Emit(strings.Join(p.texts, " "))
	for _, h := range p.held {
		h.Ack()
	}
	p.held, p.texts = nil, nil
}

// gathered is a topology that gathers numbers in tens.
func gathered(source spout.Source, sink bolt.Factory) *topology.Topology {
	return topology.New("gathered", func(b *topology.Builder) {
		in := b.Spout("in", source).Emits("n")
		all := b.Bolt("tens", func() bolt.Bolt { return &tens{} }, in.Shuffle()).Emits("all").Parallel(2).Every(time.Second)
		b.Bolt("out", sink, all.Shuffle()).Parallel(2)
	})
}

// Whatever is retained is acked in the end, and what came of it was executed.
func TestRetain(t *testing.T) {
	for _, c := range []egret.Config{
		{},
		{AlwaysEncode: true, TreeSize: 1},
		{ParcelSize: 3, TreeSize: 7, MaxPending: 40},
		{AlwaysEncode: true, MaxPending: 1000},
		{Guarantee: new(topology.AtMostOnce)},
	} {
		bubble(t, func(t *testing.T) {
			got := newTally()
			s, err := run(t, gathered(&numbers{n: 1234}, bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				for n := range strings.FieldsSeq(in.String("all")) {
					got.add(n)
				}
				return nil
			})), c)
			require.NoError(t, err)
			if c.Guarantee == nil {
				require.EqualValues(t, 1234, s.Acked)
				require.Zero(t, s.Replayed)
				require.Len(t, got.get(), 1234)
				require.Equal(t, 1234, got.sum())
			}
			for _, task := range s.Tasks {
				if c.Guarantee == nil {
					require.Zero(t, task.Held)
				}
				for _, in := range task.Inputs {
					require.Equal(t, in.Executed, in.Acked+in.Failed+task.Held)
				}
			}
		})
	}
}

// A message is done when everything is that came of the tuple which is anchored to
// it: when that fails, all of its messages fail, and no others.
func TestAnchoredFails(t *testing.T) {
	for _, encode := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			tries, done := newTally(), newTally()
			s, err := run(t, gathered(&numbers{n: 200}, bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				all := strings.Fields(in.String("all"))
				for _, n := range all {
					tries.add(n)
				}
				if slices.Contains(all, "77") && tries.get()["77"] < 3 {
					return errors.New("not yet")
				}
				for _, n := range all {
					done.add(n)
				}
				return nil
			})), egret.Config{AlwaysEncode: encode})
			require.NoError(t, err)
			require.EqualValues(t, 200, s.Acked)
			require.Len(t, done.get(), 200)
			require.Equal(t, 200, done.sum(), "what did not fail is not replayed")
			// Those that failed beside it are replayed with it or without it.
			require.EqualValues(t, s.Replayed, tries.sum()-200)
			require.LessOrEqual(t, s.Replayed, int64(20))
			require.GreaterOrEqual(t, s.Replayed, int64(11))
		})
	}
}

// Fail of a retained tuple is like an error of Execute; Reject makes it dead.
func TestHeldFail(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log, got := &logbook{}, newTally()
		s, err := run(t, topology.New("fail", func(b *topology.Builder) {
			in := b.Spout("in", &numbers{n: 30}).Emits("n")
			b.Bolt("out", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
				h := out.Retain(in)
				require.Same(t, h, out.Retain(in))
				switch n := in.String("n"); {
				case n == "7":
					h.Fail(bolt.Reject(errors.New("seven")))
				case n == "8" && got.add(n) < 3:
					h.Fail(errors.New("eight"))
				case n == "9" && got.add(n) < 2:
					h.Fail(nil)
				default:
					h.Ack()
				}
				return nil
			}), in.Shuffle())
		}), egret.Config{Logger: log.logger()})
		require.ErrorIs(t, err, egret.ErrDead)
		require.EqualValues(t, 1, s.Dead)
		require.EqualValues(t, 29, s.Acked)
		require.EqualValues(t, 3, s.Replayed)
		require.Equal(t, 3, got.get()["8"])
		require.Len(t, log.with("message is dead: bolt out: seven"), 1)
		in := stat(t, s, "out/0").Inputs[0]
		require.EqualValues(t, 33, in.Executed)
		require.EqualValues(t, 29, in.Acked)
		require.EqualValues(t, 4, in.Failed)
	})
}

// Ack and Fail come from any goroutine, in any order, and the second of a tuple is
// told and changes nothing.
func TestHeldFromAnywhere(t *testing.T) {
	log, acked := &logbook{}, newTally()
	var wait sync.WaitGroup
	s, err := run(t, topology.New("anywhere", func(b *topology.Builder) {
		in := b.Spout("in", &numbers{n: 5000}).Emits("n")
		b.Bolt("out", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
			h := out.Retain(in)
			n, _ := strconv.Atoi(in.String("n"))
			if n%100 == 3 {
				wait.Go(func() {
					h.Ack()
					h.Ack()
					h.Fail(errors.New("late"))
				})
				return nil
			}
			wait.Go(func() {
				acked.add(h.String("n")) // it can be read from there, too
				h.Ack()
			})
			return nil
		}), in.Shuffle()).Parallel(2)
	}), egret.Config{Logger: log.logger(), TreeSize: 16})
	wait.Wait()
	require.NoError(t, err)
	require.EqualValues(t, 5000, s.Acked)
	require.Zero(t, s.Failed)
	require.Equal(t, 4950, acked.sum())
	require.NotEmpty(t, log.with("acked or failed before"))
	require.LessOrEqual(t, len(log.with("acked or failed before")), 2, "once a task")
}

// Misuse of retained tuples is an error of the tuple in hand.
func TestHeldMisuse(t *testing.T) {
	var kept tuple.Tuple
	var held, foreign *bolt.Held
	var old *bolt.Collector
	for name, tt := range map[string]struct {
		execute func(in tuple.Tuple, out *bolt.Collector) error
		want    string
	}{
		"another tuple": {func(in tuple.Tuple, out *bolt.Collector) error {
			if kept == (tuple.Tuple{}) {
				kept = in
				return nil
			}
			out.Retain(kept)
			return nil
		}, "only the tuple that Execute was called with can be retained"},
		"a copy": {func(in tuple.Tuple, out *bolt.Collector) error {
			out.Retain(in.Clone())
			return nil
		}, "only the tuple that Execute was called with can be retained"},
		"no tuple": {func(_ tuple.Tuple, out *bolt.Collector) error {
			out.Anchor().Emit("x")
			return nil
		}, "Anchor needs a retained tuple"},
		"nil": {func(_ tuple.Tuple, out *bolt.Collector) error {
			out.Anchor(nil).Emit("x")
			return nil
		}, "Anchor was given nil"},
		"retained by a collector of Anchor": {func(in tuple.Tuple, out *bolt.Collector) error {
			h := out.Retain(in)
			h.Ack()
			out.Anchor(h).Retain(in)
			return nil
		}, "Retain is called of a collector that comes of Anchor"},
		"after the call": {func(in tuple.Tuple, out *bolt.Collector) error {
			if old == nil {
				h := out.Retain(in)
				old = out.Anchor(h)
				h.Ack()
				return nil
			}
			old.Emit("x")
			return nil
		}, "is used after the call that it was made in"},
		"acked": {func(in tuple.Tuple, out *bolt.Collector) error {
			if held == nil {
				held = out.Retain(in)
				held.Ack()
				return nil
			}
			out.Anchor(held).Emit("x")
			return nil
		}, "is of no use any more: it had been acked or failed before"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				log := &logbook{}
				s, err := run(t, topology.New("misuse", func(b *topology.Builder) {
					in := b.Spout("in", &numbers{n: 2, chunk: 1, next: func(_ context.Context, _ string, at int) error {
						time.Sleep(time.Second) // so that nothing is in the same call
						return nil
					}}).Emits("n")
					out := b.Bolt("out", bolt.Each(tt.execute), in.Shuffle()).Emits("x")
					b.Bolt("sink", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil }), out.Shuffle())
				}), egret.Config{Logger: log.logger()})
				require.ErrorIs(t, err, egret.ErrDead)
				require.NotEmpty(t, log.with(tt.want), log.lines)
				require.GreaterOrEqual(t, s.Dead, int64(1))
			})
		})
	}
	t.Run("of another task", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			log := &logbook{}
			_, err := run(t, topology.New("misuse", func(b *topology.Builder) {
				in := b.Spout("in", &numbers{n: 1}).Emits("n")
				one := b.Bolt("one", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
					foreign = out.Retain(in)
					out.Emit("x")
					foreign.Ack()
					return nil
				}), in.Shuffle()).Emits("x")
				b.Bolt("two", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
					out.Anchor(foreign).Emit("x")
					return nil
				}), one.Shuffle()).Emits("x")
			}), egret.Config{Logger: log.logger()})
			require.ErrorIs(t, err, egret.ErrDead)
			require.Len(t, log.with("message is dead: bolt two: Anchor was given a tuple that another task has retained"), 1)
		})
	})
}

// A manifold waits for 4,097 tuples and anchors to all of them but one, twice; what
// comes later it acks.
type manifold struct {
	held    []*bolt.Held
	refused error
	sent    bool
}

func (m *manifold) Execute(in tuple.Tuple, out *bolt.Collector) error {
	if m.sent {
		out.Emit("late")
		return nil
	}
	if m.held = append(m.held, out.Retain(in)); len(m.held) <= tuple.MaxAnchors {
		return nil
	}
	func() {
		defer func() { m.refused = tuple.Misused(recover()) }()
		out.Anchor(m.held...)
	}()
	if m.refused == nil {
		return bolt.Reject(errors.New("4,097 anchors were not refused"))
	}
	out.Anchor(m.held[:tuple.MaxAnchors]...).Emit("first")
	out.Anchor(m.held[1:]...).Emit("second")
	for _, h := range m.held {
		h.Ack()
	}
	m.sent = true
	return nil
}

// 4,096 messages may stand behind a tuple, and one more is refused with an error;
// what was retained is still there. The failure of such a tuple fails all of them.
func TestMostAnchors(t *testing.T) {
	for _, tree := range []int{1, 256} {
		bubble(t, func(t *testing.T) {
			m, got := &manifold{}, newTally()
			s, err := run(t, topology.New("many", func(b *topology.Builder) {
				in := b.Spout("in", &numbers{n: tuple.MaxAnchors + 1}).Emits("n")
				many := b.Bolt("many", func() bolt.Bolt { return m }, in.Shuffle()).Emits("x")
				b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
					if x := in.String("x"); got.add(x) == 1 && x == "second" {
						return errors.New("once")
					}
					return nil
				}), many.Shuffle())
			}), egret.Config{TreeSize: tree, AlwaysEncode: true})
			require.NoError(t, err)
			require.ErrorContains(t, m.refused, "4097 messages, and 4096 is the most")
			require.EqualValues(t, tuple.MaxAnchors+1, s.Acked)
			require.EqualValues(t, tuple.MaxAnchors, s.Failed)
			require.Equal(t, map[string]int{"first": 1, "second": 1, "late": tuple.MaxAnchors}, got.get())
		})
	}
}

// A bolt that forgets a tuple is named when its message times out, which is when
// the component has held it for as long as it declares and then nothing was heard
// for the message timeout; the message is replayed.
func TestForgotten(t *testing.T) {
	for _, tt := range []struct {
		holds time.Duration
		want  []string // when the tuple is executed
	}{
		// Notes of what is held are said every 5 s, the ledger looks every 5 s.
		{0, []string{"0s", "20s"}},
		{25 * time.Second, []string{"0s", "40s"}},
	} {
		bubble(t, func(t *testing.T) {
			log, d := &logbook{}, newDiary()
			s, err := run(t, topology.New("forgets", func(b *topology.Builder) {
				in := b.Spout("in", &numbers{n: 3}).Emits("n")
				keep := b.Bolt("keep", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
					if in.String("n") != "1" {
						return nil
					}
					d.at("executed")
					h := out.Retain(in)
					if len(d.entries()) > 1 {
						h.Ack()
					}
					return nil
				}), in.Shuffle())
				if tt.holds > 0 {
					keep.Holds(tt.holds)
				}
			}), egret.Config{Logger: log.logger(), MessageTimeout: 20 * time.Second, TreeSize: 1})
			require.NoError(t, err)
			require.EqualValues(t, 1, s.TimedOut)
			require.EqualValues(t, 1, s.Replayed)
			var at []string
			for _, e := range d.entries() {
				at = append(at, strings.Fields(e)[0])
			}
			require.Equal(t, tt.want, at)
			require.Len(t, log.with("no progress for 20s, held by keep"), 1)
		})
	}
}

// A very long Holds is long, and an error without a text is an error.
func TestHeldEdges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &logbook{}
		type own struct{ error }
		var none *own
		first := true
		s, err := run(t, topology.New("edges", func(b *topology.Builder) {
			in := b.Spout("in", &numbers{n: 3}).Emits("n")
			b.Bolt("keep", func() bolt.Bolt {
				var held []*bolt.Held
				return &made{execute: func(in tuple.Tuple, out *bolt.Collector) error {
					if h := out.Retain(in); in.String("n") == "1" && first {
						first = false
						h.Fail(none) // whose Error panics
					} else {
						held = append(held, h)
					}
					return nil
				}, tick: func(*bolt.Collector) error {
					for _, h := range held {
						h.Ack()
					}
					held = nil
					return nil
				}}
			}, in.Shuffle()).Every(time.Hour).Holds(math.MaxInt64)
		}), egret.Config{Logger: log.logger()})
		require.NoError(t, err)
		require.EqualValues(t, 3, s.Acked)
		require.EqualValues(t, 1, s.Failed)
		require.Zero(t, s.TimedOut)
		require.Zero(t, s.Restarts)
		require.Len(t, log.with("*egret_test.own, whose Error panics"), 1)
	})
}

// What a task holds dies with it, and is replayed at once.
func TestHeldByTheDead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		done, deaths := newTally(), newTally()
		s, err := run(t, topology.New("dies", func(b *topology.Builder) {
			in := b.Spout("in", &numbers{n: 300}).Emits("n")
			pass := b.Bolt("pass", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
				out.Emit(in.String("n"))
				return nil
			}), in.Shuffle()).Emits("n").Parallel(2)
			tens := b.Bolt("tens", func() bolt.Bolt {
				p := &tens{}
				return &made{execute: func(in tuple.Tuple, out *bolt.Collector) error {
					if in.String("n") == "150" && deaths.add("n") < 3 {
						panic("with tuples in its hands")
					}
					return p.Execute(in, out)
				}, tick: p.Tick}
			}, pass.By("n")).Emits("all").Parallel(2).Every(time.Second)
			b.Bolt("out", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
				if in.String("all") != "" && deaths.add("out") == 3 {
					panic("with what came of held tuples")
				}
				for n := range strings.FieldsSeq(in.String("all")) {
					done.add(n)
				}
				return nil
			}), tens.Shuffle()).Parallel(2)
		}), egret.Config{TreeSize: 4, ParcelSize: 8})
		require.NoError(t, err)
		require.EqualValues(t, 300, s.Acked)
		require.Len(t, done.get(), 300)
		require.EqualValues(t, 3, s.Restarts)
		require.Zero(t, s.TimedOut, "a death is an event and not a timeout")
		require.Positive(t, s.Lost)
	})
}

func ExampleCollector_Retain() {
	pairs := func() bolt.Bolt { return &pairing{} }
	t := topology.New("pairs", func(b *topology.Builder) {
		words := b.Spout("words", spout.Slice("a", "b", "c", "d")).Emits("word")
		two := b.Bolt("pairs", pairs, words.Global()).Emits("first", "second").Holds(time.Minute)
		b.Bolt("print", bolt.Each(func(in tuple.Tuple, _ *bolt.Collector) error {
			fmt.Println(in.String("first"), in.String("second"))
			return nil
		}), two.Global())
	})
	if _, err := egret.Run(context.Background(), t, egret.Config{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// a b
	// c d
}

// pairing waits with one tuple for the next.
type pairing struct{ first *bolt.Held }

func (p *pairing) Execute(in tuple.Tuple, out *bolt.Collector) error {
	if p.first == nil {
		p.first = out.Retain(in)
		return nil
	}
	second := out.Retain(in)
	out.Anchor(p.first, second).Emit(p.first.String("word"), second.String("word"))
	p.first.Ack()
	second.Ack()
	p.first = nil
	return nil
}
