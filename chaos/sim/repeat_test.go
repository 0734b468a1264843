package sim

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/actor"
	"github.com/egretstream/egret/chaos"
)

// Code that is not a function of its input is found, and the event, the task, the
// call and what differs are named.
func TestRepeatNamesWhatDiffers(t *testing.T) {
	plays := 0
	for _, tt := range []struct {
		name  string
		size  int // of parcels
		twist func(b *simBolt, row []any)
		what  string
	}{
		{"a clock", 1, func(_ *simBolt, row []any) { row[2] = uint64(time.Now().UnixNano()) },
			`sends a parcel of 1 tuple to b2a/0#4 with key=\d+, and in another run with key=\d+`},
		{"the order of a map", 1, func(_ *simBolt, row []any) {
			m := map[byte]bool{}
			for i := range byte(26) {
				m['a'+i] = true
			}
			var all []byte
			for c := range m {
				all = append(all, c)
			}
			row[2] = string(all)
		}, `sends a parcel of 1 tuple to b2a/0#4 with key="[a-z]{26}", and in another run with key="[a-z]{26}"`},
		{"a goroutine", 1, func(_ *simBolt, row []any) {
			said := make(chan string)
			go func() {
				a, b, all := make(chan byte, 64), make(chan byte, 64), []byte(nil)
				for range cap(a) {
					a <- '0'
					b <- '1'
				}
				for range cap(a) {
					select {
					case c := <-a:
						all = append(all, c)
					case c := <-b:
						all = append(all, c)
					}
				}
				said <- string(all)
			}()
			row[2] = <-said
		}, `sends a parcel of 1 tuple to b2a/0#4 with key="[01]{64}", and in another run with key="[01]{64}"`},
		{"time that is spent", 1, func(b *simBolt, _ []any) { b.rec.w.Spend(time.Duration(time.Now().UnixNano() % 1e8)) },
			`spends \S+, and in another run it spends \S+`},
		{"one of several", 4, func(_ *simBolt, row []any) { row[2] = uint64(time.Now().UnixNano()) },
			`sends a parcel of 2 tuples to b2a/0#4, number 1 with key=\d+, and in another run with key=\d+`},
		{"fewer", 4, func(_ *simBolt, row []any) {
			if plays%2 == 0 {
				row[2] = "another kind"
			}
		}, `sends a parcel of [12] tuples? to b2a/0#4, and in another run it sends a parcel of [12] tuples? to b2a/0#4`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var event int
			var at time.Duration
			_, bad := play(func(io.Writer) *run {
				s := newStage(t, 1, func(s *scene) {
					s.set.ParcelSize, s.set.Linger, s.set.MaxPending = tt.size, 20*ms, 4
					s.parts[0].splits, s.parts[0].perCall = []int{20}, 4
					s.parts[1].spend = 0
				})
				n := 0
				plays++
				s.rec.twist = func(b *simBolt, row []any) {
					if n++; n == 6 {
						event, at = b.rec.w.Events(), b.rec.w.now
						tt.twist(b, row)
					}
				}
				return s.run
			}, &Options{})
			require.NotNil(t, bad)
			require.Equal(t, repeatable, bad.Invariant)
			require.Equal(t, at, bad.At)
			require.Regexp(t, fmt.Sprintf(`^event %d, b1a/0#3, turn: it %s. Code in a topology must be a function of what it is given. `+
				`Look there for a clock, a goroutine, the order of a map, an address, or a generator of its own$`, event, tt.what), bad.What)
		})
	}
}

// A run that has failed and is another the second time would not be seen again: so
// that is what is said, and the failure with it.
func TestRepeatOfAFailure(t *testing.T) {
	plays := 0
	_, bad := play(func(io.Writer) *run {
		s := newStage(t, 1, nothing)
		plays++
		once := plays == 1
		s.rec.twist = func(b *simBolt, row []any) {
			if once {
				row[1] = uint64(7)
			}
		}
		return s.run
	}, &Options{})
	require.Equal(t, repeatable, bad.Invariant)
	require.Regexp(t, `^event \d+, b1a/0#3, turn: .* The first run failed: routing: `, bad.What)
	_, bad = play(func(io.Writer) *run {
		s := newStage(t, 1, nothing)
		s.rec.twist = func(b *simBolt, row []any) { row[1] = uint64(7) }
		return s.run
	}, &Options{})
	require.Equal(t, chaos.Routing, bad.Invariant)
}

// A run that is the same passes, also when it is looked at.
func TestRepeatOfTheSame(t *testing.T) {
	fresh := func(io.Writer) *run { return newStage(t, 1, nothing).run }
	report, bad := play(fresh, &Options{})
	require.Nil(t, bad)
	r := fresh(nil)
	r.w.trace = new(trace)
	r.play()
	require.Equal(t, report, r.report())
	require.Len(t, r.w.trace.hashes, report.Events)

	// What cannot be seen again.
	first := r.w.trace
	r = fresh(nil)
	first.again(r.w, 100)
	r.play()
	require.Equal(t, 100, r.w.count)
	require.Zero(t, r.w.trace.differs)
	require.Regexp(t, `^event 100, .*: what it did there once it did not do in 30 more runs. `, explain(r.w.look, first, fresh).What)

	// A run that ends early.
	first.hashes = append(first.hashes, 1)
	require.Regexp(t, `^the run has ended after event \d+, and before it has had \d+. `, repeat(first, &report, fresh).What)
	first.hashes = first.hashes[:report.Events]
	report.Hash++
	require.Regexp(t, `^two runs have the same \d+ events and are not the same at their end. `, repeat(first, &report, fresh).What)
}

// A difference that comes once in many runs is named all the same.
func TestRepeatOfARarity(t *testing.T) {
	plays := 0
	_, bad := play(func(io.Writer) *run {
		s := newStage(t, 1, func(s *scene) { s.set.ParcelSize = 1 })
		plays++
		rare := plays == 2
		s.rec.twist = func(b *simBolt, row []any) {
			if rare && row[4] == int64(3) {
				row[2] = "rare"
			}
		}
		return s.run
	}, &Options{})
	require.Equal(t, 3, plays)
	require.Contains(t, bad.What, `sends a parcel of 1 tuple to b2a/0#4 with key="rare", and in another run with key=`)
}

// Every deed is a part of the hash.
func TestDeedsAreHashed(t *testing.T) {
	type greeting struct{}
	acts := map[string]func(w *World, ctx actor.Context, other actor.Ref){
		"nothing":       func(*World, actor.Context, actor.Ref) {},
		"a message":     func(_ *World, ctx actor.Context, other actor.Ref) { ctx.Send(other, greeting{}) },
		"to itself":     func(_ *World, ctx actor.Context, _ actor.Ref) { ctx.Send(ctx.Self(), greeting{}) },
		"another":       func(_ *World, ctx actor.Context, other actor.Ref) { ctx.Send(other, 1) },
		"a timer":       func(_ *World, ctx actor.Context, _ actor.Ref) { ctx.After(time.Second, greeting{}) },
		"a later timer": func(_ *World, ctx actor.Context, _ actor.Ref) { ctx.After(time.Minute, greeting{}) },
		"a block":       func(_ *World, ctx actor.Context, _ actor.Ref) { ctx.Block(func() any { return nil }) },
		"a post":        func(_ *World, ctx actor.Context, _ actor.Ref) { ctx.Poster()(greeting{}) },
		"a watch":       func(_ *World, ctx actor.Context, other actor.Ref) { ctx.Watch(other) },
		"a stop":        func(_ *World, ctx actor.Context, other actor.Ref) { ctx.Stop(other) },
		"spending":      func(w *World, _ actor.Context, _ actor.Ref) { w.Spend(time.Second) },
		"spending more": func(w *World, _ actor.Context, _ actor.Ref) { w.Spend(time.Minute) },
	}
	seen := map[uint64]string{}
	for name, act := range acts {
		w := New(Config{Seed: 1})
		other := w.Spawn("other", &toy{})
		w.Spawn("one", &toy{start: func(ctx actor.Context) { act(w, ctx, other) }})
		w.Step()
		w.Step()
		require.Empty(t, seen[w.Hash()], name)
		seen[w.Hash()] = name
	}
}
