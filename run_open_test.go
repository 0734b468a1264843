package egret_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret"
	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/topology"
	"github.com/egretstream/egret/tuple"
	"github.com/egretstream/egret/view"
	"github.com/egretstream/egret/web"
)

// oldest asks what is open, and says how long the answer took.
func oldest(t *testing.T, r *egret.Running, n int) ([]view.Tree, time.Duration) {
	began := time.Now()
	trees, err := egret.Oldest(t.Context(), r, n)
	require.NoError(t, err)
	return trees, time.Since(began)
}

// one tracks each message by itself.
func one(c egret.Config) egret.Config {
	c.TreeSize = 1
	return quiet(c)
}

// opened is a topology of numbers, which go to the bolt "out" by one in between.
func opened(source spout.Source, mid, out func(tuple.Tuple, *bolt.Collector) error, tasks int, more func(*topology.Builder)) *topology.Topology {
	return topology.New("opened", func(b *topology.Builder) {
		in := b.Spout("in", source).Emits("n")
		m := b.Bolt("mid", bolt.Each(mid), in.Shuffle()).Emits("n")
		b.Bolt("out", bolt.Each(out), m.By("n")).Parallel(tasks)
		if more != nil {
			more(b)
		}
	})
}

func pass(in tuple.Tuple, out *bolt.Collector) error { out.Emit(in.String("n")); return nil }

// A message that a task does not come back from is found, with what waits behind it.
func TestOpenInExecute(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		r := started(t, opened(slow(10, time.Second), pass, func(in tuple.Tuple, out *bolt.Collector) error {
			if in.String("n") == "3" {
				<-release
			}
			return nil
		}, 1, nil), one(egret.Config{MessageTimeout: time.Hour}))
		time.Sleep(97*time.Second + time.Second/2) // 3 came after four seconds
		trees, took := oldest(t, r, 3)
		require.Equal(t, time.Second, took, "the task has its second to answer")
		require.Len(t, trees, 3)
		stuck := 94*time.Second + time.Second/2 // when the second was over
		require.Equal(t, view.Tree{
			Task: "in/0", Node: "local", Tree: 4, Messages: 1, Message: `{n: "3"}`, Age: stuck - time.Second, Silent: stuck - time.Second,
			Places: []view.Place{{Task: "out/0", Node: "local", During: "Execute", Inside: stuck, Hand: true}},
		}, trees[0])
		for i, m := range trees[1:] { // that came to a task which does not look at its mail
			require.Equal(t, fmt.Sprintf(`{n: "%d"}`, 4+i), m.Message)
			require.Equal(t, stuck-time.Duration(2+i)*time.Second, m.Age)
			require.Equal(t, []view.Place{{Task: "out/0", Node: "local", During: "Execute", Inside: stuck, Maybe: true}}, m.Places)
		}
		close(release)
		s := ended(t, r)
		require.EqualValues(t, 10, s.Acked)
		require.Zero(t, s.Lost+s.TimedOut+s.Failed)
		_, err := egret.Oldest(t.Context(), r, 3)
		refused(t, err, web.Refused)
	})
}

func refused(t *testing.T, err error, code string) *web.Error {
	t.Helper()
	e, is := errors.AsType[*web.Error](err)
	require.True(t, is, "%v", err)
	require.Equal(t, code, e.Code)
	return e
}

// The tuples of a parcel that are behind the one in hand wait, and those before it are done.
func TestOpenInHand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		r := started(t, opened(spout.Slice(texts(40)...), pass, func(in tuple.Tuple, out *bolt.Collector) error {
			if in.String("n") == "20" {
				<-release
			}
			return nil
		}, 1, nil), one(egret.Config{MessageTimeout: time.Hour, ParcelSize: 40}))
		time.Sleep(time.Minute)
		trees, _ := oldest(t, r, 1000)
		inside, others, queued, done := 0, 0, 0, 0
		for i, m := range trees {
			require.Equal(t, fmt.Sprintf(`{n: "%d"}`, i), m.Message)
			require.Len(t, m.Places, 1)
			p := m.Places[0]
			require.Equal(t, "out/0", p.Task)
			require.Equal(t, "Execute", p.During)
			require.Equal(t, 61*time.Second, p.Inside)
			switch {
			case p.Maybe:
				done++ // and its report waits for the end of the turn
				require.Less(t, i, 20)
				require.Zero(t, p.Queued)
			case p.Hand:
				require.Zero(t, p.Queued)
				inside++
				others = p.Others
			default:
				queued++
				require.Greater(t, i, 20)
				require.Equal(t, view.Place{Task: "out/0", Node: "local", Queued: 1, During: "Execute", Inside: p.Inside}, p)
			}
		}
		require.Equal(t, inside, others+1, "of those that may be meant each is said to be in hand")
		require.LessOrEqual(t, inside, 16)
		require.Equal(t, 40, inside+queued+done)
		require.Greater(t, queued, 0)
		close(release)
		ended(t, r)
	})
}

// Messages that a bolt retains are where it is, and answer at once.
func TestOpenHeld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, gathered(slow(13, 700*time.Millisecond), bolt.Each(func(tuple.Tuple, *bolt.Collector) error { return nil })), one(egret.Config{}))
		time.Sleep(3900 * time.Millisecond)
		trees, took := oldest(t, r, 100)
		require.Zero(t, took)
		require.Len(t, trees, 1, "each second Tick lets go of what is held")
		require.Equal(t, `{n: "4"}`, trees[0].Message)
		require.Equal(t, 400*time.Millisecond, trees[0].Age)
		require.Equal(t, 400*time.Millisecond, trees[0].Silent, "that it is held is no news without HoldsFor")
		require.Len(t, trees[0].Places, 1)
		require.Contains(t, []string{"tens/0", "tens/1"}, trees[0].Places[0].Task)
		require.Equal(t, view.Place{Task: trees[0].Places[0].Task, Node: "local", Held: 1}, trees[0].Places[0])
		ended(t, r)
	})
}

// A bolt that retains some of a parcel and waits with the rest has each once.
func TestOpenHeldInHand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		var held []*bolt.Held
		r := started(t, topology.New("opened", func(b *topology.Builder) {
			in := b.Spout("in", spout.Slice(texts(600)...)).Emits("n")
			hold := b.Bolt("hold", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error {
				mu.Lock()
				held = append(held, out.Retain(in))
				mu.Unlock()
				for range 3 {
					out.Emit(in.String("n"))
				}
				return nil
			}), in.Shuffle()).Emits("n")
			b.Bolt("full", bolt.Each(func(in tuple.Tuple, out *bolt.Collector) error { <-release; return nil }), hold.Shuffle())
			b.Bolt("free", func() bolt.Bolt {
				return &made{tick: func(*bolt.Collector) error {
					mu.Lock()
					defer mu.Unlock()
					for _, h := range held {
						h.Ack()
					}
					held = nil
					return nil
				}}
			}, hold.Shuffle()).Every(time.Hour)
		}), quiet(egret.Config{MessageTimeout: 10 * time.Hour, TreeSize: 200, MaxQueuedBytes: 1}))
		time.Sleep(time.Minute)
		trees, _ := oldest(t, r, 100)
		n, kept, all, both := 0, 0, 0, 0
		for _, m := range trees {
			all += m.Messages
			for _, p := range m.Places {
				if p.Task == "hold/0" {
					require.Equal(t, m.Messages, p.Held+p.Queued, "each is retained, or waits: %+v", m)
					n += p.Held
					kept += p.Unsent
					if p.Held > 0 && p.Queued > 0 {
						both++
					}
				}
			}
		}
		require.EqualValues(t, r.Stats().Open, all)
		require.Equal(t, 1, both, "of the tree in hand")
		mu.Lock()
		require.Equal(t, len(held), n)
		mu.Unlock()
		require.Greater(t, n, 0)
		require.Less(t, n, 600, "the queue behind it is full")
		require.Greater(t, kept, 0)
		close(release)
		for n := 0; n < 600; { // it goes on when it has room
			time.Sleep(time.Hour)
			n = int(r.Stats().Acked)
		}
		ended(t, r)
	})
}

// With a full queue messages wait in the queue, and those behind them for room.
func TestOpenQueued(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, opened(spout.Slice(texts(3000)...), pass, func(tuple.Tuple, *bolt.Collector) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		}, 1, nil), one(egret.Config{MessageTimeout: time.Hour, MaxPending: 500}))
		time.Sleep(20*time.Second + 50*time.Millisecond)
		trees, took := oldest(t, r, 1000)
		require.Less(t, took, time.Second, "it answers between two tuples")
		require.Len(t, trees, 500)
		out, mid, unsent := 0, 0, 0
		for i, m := range trees {
			if i > 0 {
				require.GreaterOrEqual(t, trees[i-1].Age, m.Age)
			}
			require.LessOrEqual(t, len(m.Places), 1, "%+v", m)
			for _, p := range m.Places {
				switch p.Task {
				case "out/0":
					out += p.Queued
				case "mid/0":
					mid += p.Queued
				}
				unsent += p.Unsent
			}
		}
		require.GreaterOrEqual(t, out, 64, "a window is that much")
		require.InDelta(t, 500, out+mid+unsent, 2, "all but what was acked meanwhile")
		first, _ := oldest(t, r, 5)
		require.Len(t, first, 5)
		r.Stop()
		_, err := r.Wait()
		require.ErrorIs(t, err, egret.ErrDrain)
	})
}

// A message that fails is between two attempts, and says why; the next life of a task that
// has died has what it will begin with.
func TestOpenBetweenLives(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var tries, deaths atomic.Int64
		r := started(t, opened(slow(2, time.Second), pass, func(in tuple.Tuple, _ *bolt.Collector) error {
			switch {
			case in.String("n") == "0":
				if tries.Add(1) < 7 {
					return errors.New("not yet")
				}
			default:
				if deaths.Add(1) < 7 {
					panic("dies")
				}
			}
			return nil
		}, 2, nil), one(egret.Config{}))
		time.Sleep(3 * time.Second) // tries of 0 were after 1 s and 0, 50, 150, 350, 750, 1550 ms; the next one is after 3150 ms
		trees, took := oldest(t, r, 10)
		require.Zero(t, took)
		require.EqualValues(t, 6, tries.Load())
		require.Len(t, trees, 2)
		m := trees[0]
		require.True(t, m.Replay)
		require.Equal(t, 2*time.Second, m.Age, "since it was first emitted")
		require.Zero(t, m.Silent)
		require.Equal(t, `{n: "0"}`, m.Message)
		require.Equal(t, "failed: bolt out: not yet", m.Error)
		require.Equal(t, []view.Place{{Task: "in/0", Node: "local", Waits: 1150 * time.Millisecond}}, m.Places)

		m = trees[1]
		require.True(t, m.Replay)
		require.Equal(t, time.Second, m.Age)
		require.Equal(t, `{n: "1"}`, m.Message)
		require.Contains(t, m.Error, "panic in Execute: dies")
		ended(t, r)
	})
}

// A life that has not begun says what waits for it, and until when.
func TestOpenBeforeALife(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var deaths atomic.Int64
		r := started(t, opened(slow(2, time.Second), pass, func(in tuple.Tuple, _ *bolt.Collector) error {
			if in.String("n") == "0" {
				if deaths.Add(1) < 6 {
					panic("dies")
				}
			}
			return nil
		}, 1, nil), one(egret.Config{}))
		// The deaths were after 1 s and 0, 50, 150, 350, 750 ms, with pauses of 0, 50, 100, 200
		// and 400 ms behind them; and 1 comes after 2 s.
		time.Sleep(2050 * time.Millisecond)
		trees, took := oldest(t, r, 10)
		require.Zero(t, took)
		require.EqualValues(t, 5, deaths.Load())
		require.Len(t, trees, 2)
		require.Equal(t, []view.Place{{Task: "in/0", Node: "local", Waits: 500 * time.Millisecond}}, trees[0].Places)
		require.Equal(t, `{n: "1"}`, trees[1].Message)
		require.False(t, trees[1].Replay)
		require.Equal(t, []view.Place{{Task: "out/0", Node: "local", Queued: 1, Waits: 100 * time.Millisecond}}, trees[1].Places)
		ended(t, r)
	})
}

// A task that dies while it is asked is asked again in its next life.
func TestOpenAskedInDeath(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var executed atomic.Int64
		r := started(t, opened(slow(1, time.Second), pass, func(in tuple.Tuple, _ *bolt.Collector) error {
			if executed.Add(1) == 1 {
				time.Sleep(500 * time.Millisecond)
				panic("dies")
			}
			time.Sleep(10 * time.Second)
			return nil
		}, 1, nil), one(egret.Config{}))
		time.Sleep(1250 * time.Millisecond)
		trees, took := oldest(t, r, 10)
		require.Len(t, trees, 1)
		require.Equal(t, 250*time.Millisecond, took, "the next life, which has nothing of it yet, has answered at once")
		require.False(t, trees[0].Replay, "it was not known to be lost when it was asked for")
		require.Empty(t, trees[0].Places)
		time.Sleep(time.Second)
		trees, _ = oldest(t, r, 10)
		require.Len(t, trees, 1)
		require.True(t, trees[0].Replay)
		require.Equal(t, 1500*time.Millisecond, trees[0].Age, "since it was first emitted")
		require.Equal(t, 950*time.Millisecond, trees[0].Silent)
		require.True(t, trees[0].Places[0].Hand)
		ended(t, r)
	})
}

// A spout's task that does not answer says how many are open, and why it does not say more.
func TestOpenUnknown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		source := &numbers{n: 20, chunk: 10, prompt: true, next: func(_ context.Context, _ string, at int) error {
			if at == 10 {
				<-release
			}
			return nil
		}}
		r := started(t, opened(source, pass, func(tuple.Tuple, *bolt.Collector) error { return nil }, 1, nil), one(egret.Config{}))
		time.Sleep(time.Minute)
		trees, took := oldest(t, r, 10)
		require.Equal(t, 2*time.Second, took)
		require.Len(t, trees, 1)
		m := trees[0]
		require.True(t, m.Unknown)
		require.Equal(t, 10, m.Messages)
		require.Equal(t, "in/0", m.Task)
		require.Empty(t, m.Message)
		require.Len(t, m.Places, 1)
		require.Equal(t, "Next", m.Places[0].During)
		require.InDelta(t, 60*time.Second, m.Places[0].Inside, float64(4*time.Second), "no clock is read for each Next, so it is known by looks")
		close(release)
		ended(t, r)
	})
}

// Who asks has a place, and leaves it when he has enough of waiting.
func TestOpenManyAsk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		r := started(t, opened(slow(2, time.Second), pass, func(tuple.Tuple, *bolt.Collector) error { <-release; return nil }, 1, nil), one(egret.Config{MessageTimeout: time.Hour}))
		time.Sleep(10 * time.Second)
		got := make(chan error, 9)
		for range 8 {
			go func() {
				trees, err := egret.Oldest(context.Background(), r, 1)
				if err == nil && trees[0].Message != `{n: "0"}` {
					err = fmt.Errorf("%+v", trees)
				}
				got <- err
			}()
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errors.New("enough"))
		defer cancel()
		_, err := egret.Oldest(ctx, r, 1)
		require.EqualError(t, err, "enough")
		for range 8 {
			require.NoError(t, <-got)
		}
		close(release)
		ended(t, r)
		synctest.Wait()
	})
}

// Nobody sees what is masked, and nothing where taps are forbidden.
func TestOpenSecrets(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		more       func(*topology.Builder, *topology.Component)
	}{
		{"plain", `{n: "0"}`, func(*topology.Builder, *topology.Component) {}},
		{"masked", `{n: •••}`, func(_ *topology.Builder, c *topology.Component) { c.Mask("n") }},
		{"no taps", "", func(b *topology.Builder, _ *topology.Component) { b.NoTaps() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				release := make(chan struct{})
				r := started(t, topology.New("opened", func(b *topology.Builder) {
					in := b.Spout("in", slow(1, time.Second)).Emits("n")
					tt.more(b, in)
					b.Bolt("out", bolt.Each(func(tuple.Tuple, *bolt.Collector) error { <-release; return nil }), in.Shuffle())
				}), one(egret.Config{}))
				time.Sleep(2 * time.Second)
				trees, _ := oldest(t, r, 10)
				require.Len(t, trees, 1)
				require.Equal(t, tt.want, trees[0].Message)
				close(release)
				ended(t, r)
			})
		})
	}
}

// Where nothing is tracked, nothing is open.
func TestOpenUntracked(t *testing.T) {
	atMostOnce := topology.AtMostOnce
	for _, tt := range []struct {
		want string
		top  *topology.Topology
		c    egret.Config
	}{
		{"not tracked", straight(slow(2, time.Second), pass), egret.Config{Guarantee: &atMostOnce}},
		{"look at its batches", exactTopology(words(1, 10), newExactCounts(), nil), egret.Config{}},
	} {
		bubble(t, func(t *testing.T) {
			r := started(t, tt.top, quiet(tt.c))
			_, err := egret.Oldest(t.Context(), r, 10)
			require.ErrorContains(t, refused(t, err, web.NotHere), tt.want)
			ended(t, r)
		})
	}
}
