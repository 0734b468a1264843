package fleet

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// numbersOf is what a node tells of numbers that were emitted at a time.
func numbersOf(at time.Time, all ...int64) (text []byte) {
	for _, n := range all {
		text = binary.BigEndian.AppendUint64(text, uint64(n))
		text = binary.BigEndian.AppendUint64(text, uint64(at.UnixNano()))
	}
	return text
}

// Numbers 0, 2, 4, ... are in one split and 1, 3, 5, ... in the other one.
func TestRecorder(t *testing.T) {
	r, err := StartRecorder("127.0.0.1:0", 10, 2)
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.executed(numbersOf(time.Now(), 0, 1, 2, 5)))
	m := r.mark()
	earlier := r.began
	require.NoError(t, r.executed(numbersOf(time.Now(), 4, 7, 6))) // new ones
	require.Zero(t, m.late)
	require.NoError(t, r.executed(numbersOf(time.Now(), 3))) // passed over before
	require.EqualValues(t, 1, m.late)
	require.NoError(t, r.executed(numbersOf(earlier, 8))) // under way
	require.EqualValues(t, 2, m.late)
	require.Zero(t, m.again)
	require.NoError(t, r.executed(numbersOf(time.Now(), 2, 4)))
	require.EqualValues(t, 3, m.late)
	require.EqualValues(t, 2, m.again)
	distinct, all := r.done()
	require.EqualValues(t, 9, distinct)
	require.EqualValues(t, 11, all)
	first, n := r.missing()
	require.Equal(t, []int64{9}, first)
	require.EqualValues(t, 1, n)
	require.Error(t, r.executed(numbersOf(time.Now(), 10)), "there is no such number")
}

// Numbers that become due after a deed and come a second later were held up by it.
func TestOverdue(t *testing.T) {
	r, err := StartRecorder("127.0.0.1:0", 10, 2)
	require.NoError(t, err)
	defer r.Close()
	start := time.Now().Add(-4 * time.Second)
	r.due(start, 2) // two splits: 0 and 1 at once, 2 and 3 a second later
	m := r.mark()
	require.NoError(t, r.executed(numbersOf(time.Now(), 8, 9))) // due now
	require.Zero(t, m.overdue)
	require.NoError(t, r.executed(numbersOf(time.Now(), 5, 4))) // two seconds ago
	require.Positive(t, m.overdue)
	require.Zero(t, m.late)
}

// A life in a process that was not harmed is one too many; others have their reasons.
func TestLives(t *testing.T) {
	rec, err := StartRecorder("127.0.0.1:0", 10, 2)
	require.NoError(t, err)
	defer rec.Close()
	r := &run{recorder: rec, fleet: newFleet(nil), harmed: map[int]bool{2: true}}
	a, b, c := life{passName, 0}, life{sinkName, 0}, life{passName, 1}
	rec.hasLives(1, []life{a})
	rec.hasLives(2, []life{b})
	rec.hasLives(1, []life{c})
	p := &Part{mark: rec.mark()}
	rec.hasLives(3, []life{a}) // moved
	rec.hasLives(1, []life{b}) // 2 is dead
	rec.hasLives(1, []life{c}) // why?
	r.reportLives([]*Part{p})
	require.Equal(t, 1, p.Moved)
	require.Equal(t, 1, p.Replaced)
	require.Equal(t, []string{"pass/1 on ?"}, p.Restarted)
	require.ErrorContains(t, (&Report{Parts: []*Part{p}}).Failed(), "need not have")
}

// The rate after a deed is that of the five seconds after it, however long it takes, and
// after what came of it. One that is not what it was before is a failure.
func TestRates(t *testing.T) {
	const sec = time.Second
	// A report of a deed in the second 10 of 30, with as many numbers in each 100 ms.
	report := func(p *Part, m mark, end time.Duration, each func(at time.Duration) int64) *Report {
		rec := &Recorder{last: 30 * sec}
		for at := time.Duration(0); at < 30*sec; at += window {
			rec.windows = append(rec.windows, each(at))
		}
		m.at = 10 * sec
		p.What, p.mark = "deed", &m
		(&run{recorder: rec}).reportPart(p, end)
		return &Report{Parts: []*Part{p}}
	}
	until := func(to time.Duration, low int64) func(time.Duration) int64 {
		return func(at time.Duration) int64 {
			if at >= 10*sec && at < to {
				return low
			}
			return 100
		}
	}
	for _, tt := range []struct {
		name  string
		took  time.Duration
		mark  mark
		end   time.Duration
		each  func(time.Duration) int64
		after float64
		fails string
	}{
		{"nothing comes of it", 0, mark{}, 30 * sec, until(0, 0), 1000, ""},
		{"low while it takes", 12 * sec, mark{last: 11 * sec}, 30 * sec, until(22*sec, 10), 1000, ""},
		{"low until it has recovered", 0, mark{last: 20 * sec}, 30 * sec, until(20*sec, 10), 1000, ""},
		{"low until the gap is over", 0, mark{longest: gap{12 * sec, 20 * sec}}, 30 * sec, until(20*sec, 10), 1000, ""},
		{"low for good", 0, mark{}, 30 * sec, until(30*sec, 79), 790, "deed: the rate after it is 0.79 of that before, and 0.8 is the least (790 and 1,000 a second)"},
		{"low after it", 2 * sec, mark{}, 30 * sec, until(16*sec, 50), 500, "0.50"},
		{"as low as may be", 0, mark{}, 30 * sec, until(30*sec, 80), 800, ""},
		{"low until nothing is held up", 0, mark{last: 10 * sec, overdue: 20 * sec}, 30 * sec, until(20*sec, 10), 1000, ""},
		{"held up for good", 0, mark{overdue: 29500 * time.Millisecond}, 30 * sec, until(30*sec, 10), -1, "deed: numbers are held up for more than 1s, and 20s later still"},
		{"held up until the next one", 0, mark{overdue: 17500 * time.Millisecond}, 18 * sec, until(30*sec, 10), -1, ""},
		{"no second until the next one", 4500 * time.Millisecond, mark{}, 15 * sec, until(30*sec, 10), -1, ""},
		{"no second until the end", 19500 * time.Millisecond, mark{}, 31 * sec, until(30*sec, 10), -1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &Part{Took: tt.took}
			rep := report(p, tt.mark, tt.end, tt.each)
			require.InDelta(t, 1000, p.Before, 0)
			require.InDelta(t, tt.after, p.After, 0)
			var out strings.Builder
			rep.Print(&out)
			if tt.fails == "" {
				require.NoError(t, rep.Failed())
				require.NotContains(t, out.String(), "is the least")
			} else {
				require.ErrorContains(t, rep.Failed(), tt.fails)
				require.Equal(t, tt.after >= 0, strings.Contains(out.String(), ", and 0.8 is the least)"))
			}
		})
	}
}

// A sink's number is acked only when the recorder has it.
func TestTeller(t *testing.T) {
	r, err := StartRecorder("127.0.0.1:0", 10, 2)
	require.NoError(t, err)
	tell := &teller{addr: r.Addr()}
	tell.life(sinkName, 1)
	require.NoError(t, tell.tell(t.Context(), 3, 0))
	_, all := r.done()
	require.EqualValues(t, 1, all)
	require.Len(t, r.lives, 1)
	r.Close()
	require.Error(t, tell.tell(t.Context(), 3, 0))

	// One that does not answer holds the number, until its task ends.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	mute := &teller{addr: l.Addr().String()}
	done := make(chan error, 1)
	go func() { done <- mute.tell(ctx, 3, 0) }()
	conn, err := l.Accept()
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	conn.Close()
	l.Close()
}

// Nodes may still tell numbers, and say something, while it is reported.
func TestReportBesideNodes(t *testing.T) {
	const messages = 5000
	rec, err := StartRecorder("127.0.0.1:0", messages, 2)
	require.NoError(t, err)
	defer rec.Close()
	r := &run{recorder: rec, fleet: newFleet(nil), parts: []*Part{{mark: rec.mark()}}}
	var nodes sync.WaitGroup
	nodes.Go(func() {
		said := &saying{r.fleet, "node/1"}
		for n := range int64(messages) {
			_ = rec.executed(numbersOf(time.Now(), n))
			_, _ = said.Write([]byte("number\n"))
		}
	})
	for n := int64(0); n < messages; n, _ = rec.done() {
		r.report("")
		r.fleet.heard()
	}
	nodes.Wait()
	require.Zero(t, r.report("").Lost)
	require.Equal(t, messages, strings.Count(r.fleet.heard(), "node/1: number\n"))
}
