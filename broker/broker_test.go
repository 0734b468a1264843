package broker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMeter(t *testing.T) {
	var m Meter
	require.Equal(t, FirstLimit, m.Room())
	for _, tt := range []struct {
		name  string
		sent  int
		raise uint64
		woke  bool
		room  int
	}{
		{"a parcel", 40, 0, false, 24},
		{"one overshoots", 40, 0, false, -16},
		{"not enough", 0, 80, false, 0},
		{"enough", 0, 81, true, 1},
		{"repeated", 0, 81, false, 1},
		{"late", 0, 70, false, 1},
		{"had room", 0, 100, false, 20},
		{"used up", 20, 0, false, 0},
		{"late when used up", 0, 99, false, 0},
		{"no end", 0, math.MaxUint64, true, math.MaxInt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m.Sent(tt.sent)
			require.Equal(t, tt.woke, m.Raise(tt.raise))
			require.Equal(t, tt.room, m.Room())
		})
	}
}

// A first limit that is repeated is not news.
func TestMeterFirstLimit(t *testing.T) {
	var m Meter
	m.Sent(FirstLimit)
	require.False(t, m.Raise(FirstLimit))
	require.Zero(t, m.Room())
	require.EqualValues(t, FirstLimit, m.Limit())
	require.True(t, m.Raise(FirstLimit+1))
	require.EqualValues(t, FirstLimit+1, m.Limit())
}

func fixed(size int) Settings { return Settings{Least: size, Most: size} }

func TestRaise(t *testing.T) {
	type step struct {
		executed int
		limit    uint64
		tell     bool
	}
	for _, tt := range []struct {
		name    string
		senders int
		size    int
		steps   []step
	}{
		{"half a share is worth a message", 1, 100, []step{{0, 64, false}, {13, 64, false}, {1, 114, true}, {0, 114, false}, {49, 114, false}, {1, 164, true}}},
		{"a small window", 1, 10, []step{{54, 64, false}, {4, 64, false}, {1, 69, true}, {4, 69, false}, {1, 74, true}}},
		{"one tuple", 1, 1, []step{{63, 64, false}, {1, 65, true}, {1, 66, true}}},
		{"more senders than tuples", 50, 20, []step{{0, 64, false}, {58, 64, false}, {1, 69, true}, {4, 69, false}, {1, 74, true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWindow(tt.senders, fixed(tt.size))
			for i, s := range tt.steps {
				w.Executed(0, s.executed)
				limit, tell := w.Raise(0)
				require.Equal(t, s, step{s.executed, limit, tell}, "step %d", i)
			}
		})
	}
}

func TestLimitCountsAsTold(t *testing.T) {
	w := NewWindow(1, fixed(100))
	require.EqualValues(t, 100, w.Limit(0), "one who asks is told at once")
	w.Executed(0, 10)
	_, tell := w.Raise(0)
	require.False(t, tell)
	require.EqualValues(t, 110, w.Limit(0))
	w.Executed(0, 49)
	_, tell = w.Raise(0)
	require.False(t, tell, "half a share since it was told by Limit")
	w.Executed(0, 1)
	limit, tell := w.Raise(0)
	require.True(t, tell)
	require.EqualValues(t, 160, limit)
	require.EqualValues(t, 160, w.Limit(0))
}

func TestReset(t *testing.T) {
	w := NewWindow(2, fixed(1000))
	w.Executed(0, 600)
	w.Executed(1, 300)
	limit, tell := w.Raise(0)
	require.True(t, tell)
	require.EqualValues(t, 600+250+333, limit)
	w.Reset(0)
	limit, tell = w.Raise(1)
	require.True(t, tell)
	require.EqualValues(t, 300+250+500, limit, "the other one is the only one of late")
	limit, tell = w.Raise(0)
	require.True(t, tell)
	require.EqualValues(t, 250, limit, "totals begin at 0")
}

func TestSize(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    int
		took time.Duration
		size int
	}{
		{"too slow to ask", 1, time.Second, 64},
		{"0.2 ms a tuple", 100, 20 * time.Millisecond, 500},
		{"1 us a tuple", 256, 256 * time.Microsecond, 8192},
		{"unseen by the clock", 256, 0, 8192},
		{"nothing", 0, 0, 64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWindow(1, Settings{})
			require.Equal(t, 64, w.Size())
			w.Worked(tt.n, tt.took)
			require.Equal(t, tt.size, w.Size())
		})
	}
	t.Run("a clock that steps back", func(t *testing.T) {
		w := NewWindow(1, Settings{})
		w.Worked(100, 20*time.Millisecond)
		w.Worked(1, -time.Second)
		require.Equal(t, 505, w.Size())
	})
}

// work lets a task execute parcels of 64 tuples for about a time.
func work(w *Window, perTuple, total time.Duration) {
	for spent := time.Duration(0); spent < total; spent += 64 * perTuple {
		w.Worked(64, 64*perTuple)
	}
}

// A task that is slowed a hundredfold shrinks its window within a few Spans of
// work and gets it back as soon when it is released.
func TestSlowedAndReleased(t *testing.T) {
	const span = 100 * time.Millisecond
	for _, quick := range []time.Duration{0, time.Microsecond, 20 * time.Microsecond, 100 * time.Microsecond} {
		t.Run(quick.String(), func(t *testing.T) {
			w := NewWindow(1, Settings{})
			work(w, max(quick, time.Microsecond), 5*span)
			for range 1000 {
				w.Worked(64, 64*quick)
			}
			before := w.Size()
			if quick > 0 {
				require.InDelta(t, min(8192, float64(span/quick)), before, 1)
			}
			slow := max(100*quick, 2*time.Millisecond)
			want := max(64, int(span/slow))
			work(w, slow, 10*span)
			require.InDelta(t, want, w.Size(), float64(want)/10)
			work(w, max(quick, time.Microsecond), 10*span)
			require.InDelta(t, before, w.Size(), float64(before)/20)
		})
	}
	t.Run("one hiccup", func(t *testing.T) {
		w := NewWindow(1, Settings{})
		work(w, 5*time.Microsecond, 5*span)
		w.Worked(64, span)
		require.Greater(t, w.Size(), 8192/4, "one pause of a whole Span is not a slow task")
	})
}

// What an idle sender leaves goes to the busy ones, and it gets it back.
func TestIdleSenderGivesRoom(t *testing.T) {
	const size, senders = 8000, 4
	w := NewWindow(senders, fixed(size))
	turn := func(busy ...int) {
		for range 10 * size / 100 {
			for _, s := range busy {
				w.Executed(s, 100)
			}
		}
	}
	share := func(s int) uint64 { return w.share(&w.senders[s]) }
	for s := range senders {
		require.EqualValues(t, size/senders, share(s), "all are equal at the start")
	}
	turn(0, 1, 2, 3)
	for s := range senders {
		require.InDelta(t, size/senders, share(s), 100)
	}
	turn(0)
	require.InDelta(t, size/2+size/2/senders, share(0), 100)
	for s := 1; s < senders; s++ {
		require.InDelta(t, size/2/senders, share(s), 100, "an idle sender keeps its equal part of the half")
	}
	turn(1, 2)
	require.InDelta(t, size/2/senders, share(0), 100)
	require.InDelta(t, size/4+size/2/senders, share(1), 100)
	turn(0, 1, 2, 3)
	for s := range senders {
		require.InDelta(t, size/senders, share(s), 100)
	}
}

// Whatever happens, a limit never falls, is never more than its share allows,
// and the shares together are the window.
func TestWindowProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.IntRange(1, 8192).Draw(t, "least")
		most := rapid.IntRange(least, 8192).Draw(t, "most")
		n := rapid.OneOf(rapid.IntRange(1, 8), rapid.IntRange(1, 300)).Draw(t, "senders")
		w := NewWindow(n, Settings{Least: least, Most: most})
		executed, told := make([]uint64, n), make([]uint64, n)
		for s := range told {
			told[s] = FirstLimit
		}
		heard := func(s int, limit uint64) {
			require.GreaterOrEqual(t, limit, told[s], "a limit falls")
			if limit > told[s] {
				require.LessOrEqual(t, limit, executed[s]+uint64(w.Size()), "a limit passes the window")
			}
			told[s] = limit
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			s := rapid.IntRange(0, n-1).Draw(t, "sender")
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				k := rapid.IntRange(1, 1024).Draw(t, "tuples")
				w.Executed(s, k)
				executed[s] += uint64(k)
				limit, tell := w.Raise(s)
				heard(s, limit)
				if executed[s] >= told[s] && !tell {
					t.Fatalf("all that sender %d may send is executed, and it is not told", s)
				}
			case 2:
				w.Worked(rapid.IntRange(1, 1024).Draw(t, "tuples"), time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "took")))
				require.GreaterOrEqual(t, w.Size(), least)
				require.LessOrEqual(t, w.Size(), most)
			case 3:
				heard(s, w.Limit(s))
				_, tell := w.Raise(s)
				require.False(t, tell, "told twice")
			case 4:
				w.Reset(s)
				executed[s], told[s] = 0, FirstLimit
			}
			sum, used := 0, uint64(0)
			for i := range w.senders {
				p := &w.senders[i]
				share := int(w.share(p))
				if share < 1 {
					t.Fatalf("sender %d has no share", i)
				}
				sum += share
				used += p.used
			}
			require.LessOrEqual(t, sum, w.Size()+n, "the shares are more than the window and one each")
			require.GreaterOrEqual(t, sum, w.Size()-2*n, "part of the window is nobody's")
			require.Equal(t, used, w.used)
		}
	})
}

// BenchmarkLimits takes a parcel of 64 tuples from one end to the other. Its
// ns/op are per parcel.
func BenchmarkLimits(b *testing.B) {
	for _, bb := range []struct {
		name    string
		senders int
	}{{"senders=1", 1}, {"senders=16", 16}, {"senders=1024", 1024}} {
		b.Run(bb.name, func(b *testing.B) {
			w := NewWindow(bb.senders, Settings{})
			m := make([]Meter, bb.senders)
			s := 0
			b.ReportAllocs()
			for b.Loop() {
				if m[s].Room() > 0 {
					m[s].Sent(64)
				}
				w.Worked(64, 2000)
				w.Executed(s, 64)
				if limit, tell := w.Raise(s); tell {
					m[s].Raise(limit)
				}
				if s++; s == bb.senders {
					s = 0
				}
			}
		})
	}
}
