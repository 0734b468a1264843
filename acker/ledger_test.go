package acker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/tuple"
)

// check holds l against the invariants that its comment states.
func (l *Ledger[M]) check(t require.TestingT) {
	used := len(l.old)
	youngest := uint64(0) // of those in old
	for seq, n := range l.old {
		youngest = max(youngest, seq)
		require.Equal(t, seq, n.seq)
		require.NotZero(t, n.xor, "tree %d is open at zero", n.seq)
	}
	for i := range l.ring {
		n := &l.ring[i]
		if n.seq == 0 {
			require.Equal(t, line[M]{}, *n, "a free line keeps something")
			continue
		}
		used++
		if n.seq%uint64(len(l.ring)) != uint64(i) || n.seq >= l.next || l.next-n.seq > uint64(len(l.ring)) || n.xor == 0 || n.seq <= youngest {
			require.Failf(t, "a line is wrong", "slot %d of %d has tree %d with %x; the next is %d, the youngest outside the ring %d",
				i, len(l.ring), n.seq, n.xor, l.next, youngest)
		}
	}
	require.Equal(t, used, l.open)
	require.LessOrEqual(t, len(l.ring), mostLines)
	for i, g := range l.deaths {
		require.Equal(t, i, l.grave[g.Task])
		require.Zero(t, g.said, "a view outlived its report")
	}
	require.Len(t, l.grave, len(l.deaths))
}

func everyone(_, _ tuple.TaskID) bool { return true }

func open(n int) *Ledger[int] {
	l := NewLedger[int](Config{Task: 9, Life: 1, Timeout: time.Minute, Sends: everyone})
	for i := range n {
		l.Open(0, tuple.EdgeID(l.Next()), Bit(1), i)
	}
	return l
}

// consume returns the report that ends the trees that open has made.
func consume(seqs ...uint64) *Report {
	r := &Report{From: 1, FromLife: 1, To: 9, ToLife: 1}
	for _, s := range seqs {
		r.Entries = append(r.Entries, Entry{Seq: s, Xor: tuple.EdgeID(s)})
	}
	return r
}

func seqs[M any](vs []Verdict[M]) (s []uint64) {
	for _, v := range vs {
		s = append(s, v.Seq)
	}
	return s
}

func TestAddress(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Report)
		done   int
		strays uint64
	}{
		{"this ledger", func(*Report) {}, 1, 0},
		{"another task", func(r *Report) { r.To = 8 }, 0, 1},
		{"an earlier life", func(r *Report) { r.ToLife = 0 }, 0, 1},
		{"a later life", func(r *Report) { r.ToLife = 2 }, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := open(1)
			r := consume(1)
			r.View = []Death{{Task: 4, Life: 1}}
			r.Fails = []Fail{{Seq: 77, Class: Panicked}}
			tt.change(r)
			l.Report(0, r)
			require.Len(t, l.Drain(nil), tt.done)
			require.Equal(t, tt.strays, l.Strays())
			require.Len(t, l.Learned(nil), tt.done, "a stray teaches nothing")
			require.Len(t, l.Late(nil), tt.done)
			l.check(t)
		})
	}
}

// A ring slot is not a tree: the number that shares its place must not touch it.
func TestWholeNumberCounts(t *testing.T) {
	l := open(5)
	for _, seq := range []uint64{0, 6, 3 + firstLines, 3 + 1<<32, 1<<64 - 1, firstLines} {
		r := consume(seq)
		r.Entries[0].Xor = 3
		r.Lost, r.Queued, r.Held = []uint64{seq}, []uint64{seq}, []Held{{Seq: seq}}
		r.Fails = []Fail{{Seq: seq, Err: "not there"}}
		l.Report(0, r)
		l.check(t)
	}
	require.Empty(t, l.Drain(nil))
	require.Equal(t, 5, l.Len())
	require.EqualValues(t, 6, l.Stale())
}

func TestOpenWithoutEdges(t *testing.T) {
	l := open(0)
	require.EqualValues(t, 1, l.Next())
	require.EqualValues(t, 1, l.Open(0, 0, 0, 42))
	require.Zero(t, l.Len())
	require.Equal(t, []Verdict[int]{{Seq: 1, Outcome: Done, Message: 42, Holder: -1}}, l.Drain(nil))
	require.Empty(t, l.Drain(nil))
	l.check(t)
}

// A tree without edges does not leave an old tree in the place that it would have had.
func TestOpenWithoutEdgesComesRound(t *testing.T) {
	l := open(1)
	for l.Next() != firstLines+1 {
		l.Report(0, consume(l.Open(0, tuple.EdgeID(l.Next()), Bit(1), 0)))
	}
	l.Open(0, 0, 0, 0)
	l.Open(0, 1, Bit(1), 0)
	l.check(t)
	l.Drain(nil)
	l.Lost(0, Death{Task: 1, Life: 1})
	require.Equal(t, []uint64{1, firstLines + 2}, seqs(l.Drain(nil)))
}

func TestRingGrows(t *testing.T) {
	const n = mostLines + 1000
	l := open(n)
	l.check(t)
	require.Len(t, l.ring, mostLines)
	require.Len(t, l.old, 1000)
	require.Equal(t, n, l.Len())
	l.Report(0, consume(n, 1, 1000, 1001))
	l.check(t)
	require.Equal(t, []uint64{n, 1, 1000, 1001}, seqs(l.Drain(nil)))
	l.Lost(0, Death{Task: 1, Life: 1})
	l.check(t)
	got := l.Drain(nil)
	require.Len(t, got, n-4)
	require.IsIncreasing(t, seqs(got), "oldest first, wherever it was kept")
	require.Zero(t, l.Len())
	for _, v := range got {
		require.EqualValues(t, v.Seq-1, v.Message)
	}
}

// A few trees that are never done move out of the way and do not make the ring
// longer.
func TestStragglersMoveOut(t *testing.T) {
	l := open(0)
	var want []uint64
	for range 20_000 {
		seq := l.Open(0, tuple.EdgeID(l.Next()), Bit(1), 0)
		if seq%1000 == 7 {
			want = append(want, seq)
			continue
		}
		l.Report(0, consume(seq))
	}
	l.check(t)
	require.Len(t, l.ring, firstLines)
	require.Len(t, l.Drain(nil), 20_000-len(want))
	require.Len(t, l.old, len(want))
	l.Expire(time.Minute / 2)
	l.Expire(time.Minute)
	require.Equal(t, want, seqs(l.Drain(nil)))
	l.check(t)
}

func TestExpire(t *testing.T) {
	const s = time.Second
	every := []time.Duration{15 * s, 30 * s, 45 * s, 60 * s, 75 * s, 90 * s}
	for _, tt := range []struct {
		name   string
		report func(*Report) // at 40 s
		checks []time.Duration
		ended  time.Duration // 0: never
	}{
		{"silence", nil, every, 60 * s},
		{"an entry", func(r *Report) { r.Entries = []Entry{{Seq: 1, Xor: 1 ^ 8, Mask: Bit(2)}} }, append(every, 105*s), 105 * s},
		{"queued", func(r *Report) { r.Queued = []uint64{1} }, append(every, 105*s), 105 * s},
		{"held", func(r *Report) { r.Held = []Held{{Seq: 1, Component: 3, Within: true}} }, append(every, 105*s), 105 * s},
		{"held for too long", func(r *Report) { r.Held = []Held{{Seq: 1, Component: 3}} }, every, 60 * s},
		{"a fail is no progress", func(r *Report) { r.Fails = []Fail{{Seq: 1}} }, every, 60 * s},
		{"about another tree", func(r *Report) { r.Queued = []uint64{2} }, every, 60 * s},
		{"a check late by one period", nil, []time.Duration{15 * s, 30 * s, 60 * s}, 60 * s},
		{"a check later than that", nil, []time.Duration{15 * s, 30 * s, 60*s + 1, 75 * s, 90 * s, 105 * s, 120 * s}, 0},
		{"a fresh deadline ends", nil, []time.Duration{15 * s, 61 * s, 76 * s, 91 * s, 106 * s, 121 * s}, 121 * s},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := open(2)
			reported := tt.report == nil
			var ended time.Duration
			for _, now := range tt.checks {
				if !reported && now > 40*s {
					r := consume()
					tt.report(r)
					l.Report(40*s, r)
					reported = true
				}
				l.Expire(now)
				l.check(t)
				for _, v := range l.Drain(nil) {
					require.Equal(t, TimedOut, v.Outcome)
					if v.Seq == 1 {
						require.Zero(t, ended)
						ended = now
					}
				}
			}
			require.Equal(t, tt.ended, ended)
		})
	}
	t.Run("no timeout", func(t *testing.T) {
		l := open(0)
		l.Timeout = 0
		l.Open(0, 1, 0, 0)
		for now := range time.Duration(100) {
			l.Expire(now * time.Hour)
		}
		require.Empty(t, l.Drain(nil))
	})
}

// What a verdict carries is the caller's: later calls do not write on it, and
// the ledger does not keep it.
func TestVerdictsAreHandedOver(t *testing.T) {
	l := NewLedger[*int](Config{Task: 9, Life: 1, Timeout: time.Minute, Sends: everyone})
	l.Open(0, 1, 0, new(int))
	r := consume(1)
	r.Fails = []Fail{{Seq: 1, Index: 4, Err: "first"}, {Seq: 500, Class: Panicked, Err: "late"}}
	l.Report(0, r)
	got, late := l.Drain(nil), l.Late(nil)
	require.Len(t, got, 1)
	require.Len(t, late, 1)
	require.Len(t, got[0].Fails, 1)
	l.Open(0, 2, 0, new(int))
	r = consume(2)
	r.Fails = []Fail{{Seq: 2, Index: 5, Err: "second"}, {Seq: 501, Class: Panicked, Err: "later"}}
	l.Report(0, r)
	require.Equal(t, "first", got[0].Fails[0].Err)
	require.Equal(t, "late", late[0].Err)
	got, late = l.Drain(got), l.Late(late)
	require.Len(t, got, 2, "Drain appends")
	require.Len(t, late, 2, "Late appends")
	for _, v := range l.verdicts[:cap(l.verdicts)] {
		require.Nil(t, v.Message, "a message is kept alive")
	}
	for _, f := range l.late[:cap(l.late)] {
		require.Empty(t, f.Err, "a text is kept alive")
	}
}

// A report costs nothing that the collector must find again.
func TestReportAllocatesNothing(t *testing.T) {
	l := open(0)
	r := consume(0)
	var vs []Verdict[int]
	round := func() {
		seq := l.Open(0, 7, Bit(1), 0)
		r.Entries[0] = Entry{Seq: seq, Xor: 7}
		l.Report(0, r)
		vs = l.Drain(vs[:0])
	}
	round()
	require.Zero(t, testing.AllocsPerRun(1000, round))
	require.Len(t, vs, 1)
	require.Equal(t, Done, vs[0].Outcome)
}

func TestNewLedgerWantsSends(t *testing.T) {
	require.PanicsWithValue(t, "acker: Config.Sends is nil: say which tasks send to which", func() { NewLedger[int](Config{}) })
}

func TestNames(t *testing.T) {
	require.Equal(t, "timed out", TimedOut.String())
	require.Equal(t, "outcome 9", Outcome(9).String())
	require.Equal(t, "rejected", Rejected.String())
	require.Equal(t, "class 9", FailClass(9).String())
	require.Equal(t, "3/1.2", Death{Task: 3, Life: tuple.NewIncarnation(1, 2)}.String())
	require.Equal(t, Bit(3), Bit(67))
	require.NotEqual(t, Bit(3), Bit(4))
}
