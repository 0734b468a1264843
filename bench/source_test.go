package bench

import (
	"context"
	"io"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/spout"
)

func TestEagerSource(t *testing.T) {
	for _, tt := range []struct {
		name    string
		setup   Setup
		stamped int // of 2*sampleEvery messages
		fields  []string
	}{
		{"words alone", Setup{Topology: "wordcount"}, 0, []string{"line"}},
		{"words with times", Setup{Topology: "wordcount", Latency: true}, 2, []string{"line", "emitted"}},
		{"null without times", Setup{Topology: "null"}, 0, []string{"line", "emitted"}},
		{"null with times", Setup{Topology: "null", Latency: true}, 2, []string{"line", "emitted"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.setup.Spouts, tt.setup.Bolts, tt.setup.passes = 3, 1, 2
			s := eager(&tt.setup, newClock())
			splits, err := s.Splits(t.Context())
			require.NoError(t, err)
			require.Len(t, splits, 3)
			r, err := s.Open(t.Context(), splits[1], "")
			require.NoError(t, err)
			require.Implements(t, (*spout.Prompt)(nil), r)
			require.Equal(t, tt.fields, tt.setup.stamps().fields("line"))

			got, err := read(t, r, tt.fields, 2*sampleEvery)
			require.NoError(t, err)
			stamped := 0
			for i, m := range got {
				require.Equal(t, lines()[i], m[0])
				if len(m) > 1 && m[1] != "0" {
					stamped++
				}
			}
			require.Equal(t, tt.stamped, stamped)

			last := strconv.Itoa(2*lineCount - 1)
			r, err = s.Open(t.Context(), splits[1], last)
			require.NoError(t, err)
			got, err = read(t, r, tt.fields, 10)
			require.Equal(t, io.EOF, err)
			require.Len(t, got, 1)
			require.Equal(t, lines()[lineCount-1], got[0][0])
		})
	}
}

// fakeTime is a clock that only goes on when somebody sleeps, and then wakes
// them too late.
type fakeTime struct{ t, late int64 }

func (f *fakeTime) now() int64        { return f.t }
func (f *fakeTime) sleep(until int64) { f.t = max(f.t, until) + f.late }

func openPaced(t *testing.T, s *paced, split, position string, f *fakeTime) *pacedReader {
	t.Helper()
	s.clock = newClock()
	r, err := s.Open(t.Context(), spout.Split(split), position)
	require.NoError(t, err)
	p := r.(*pacedReader)
	p.now, p.sleep = f.now, f.sleep
	p.first = float64(f.t) + p.first - float64(int64(p.first)) // the real clock is out of it
	return p
}

var pacedFields = []string{"line", "emitted", "due"}

func TestPacedReaderEmitsWhatIsDue(t *testing.T) {
	const rate = 1e6 // of two readers: 2,000 ns apart
	f := &fakeTime{t: 1_000, late: 50_000}
	r := openPaced(t, &paced{readers: 2, rate: rate}, "0", "", f)
	start, n := f.t, int64(0)
	for n < 10_000 {
		got, err := read(t, r, pacedFields, 256)
		require.NoError(t, err)
		require.NotEmpty(t, got, "a call that waits brings something")
		for _, m := range got {
			due, err := strconv.ParseInt(m[2], 10, 64)
			require.NoError(t, err)
			require.Equal(t, lines()[n%lineCount], m[0])
			require.InDelta(t, start+n*2_000, due, 1, "message %d", n)
			require.LessOrEqual(t, due, f.t, "message %d is early", n)
			if n%r.every == 0 {
				require.Equal(t, strconv.FormatInt(f.t, 10), m[1])
			} else {
				require.Equal(t, "0", m[1])
			}
			n++
		}
		require.True(t, len(got) == 256 || r.due() > f.t, "what is due goes out")
	}
	require.InDelta(t, 10_000*2_000, f.t-start, 600_000, "the rate is kept although every sleep is late")
	require.Equal(t, strconv.FormatInt(n, 10), r.Position())
}

func TestPacedReadersTakeTurns(t *testing.T) {
	s := &paced{readers: 4, rate: 1000, clock: newClock()}
	var first []float64
	for i := range 4 {
		r, err := s.Open(t.Context(), spout.Split(strconv.Itoa(i)), "")
		require.NoError(t, err)
		first = append(first, r.(*pacedReader).first)
		require.Equal(t, 4e6, r.(*pacedReader).interval)
	}
	for i := range 3 {
		require.Greater(t, first[i+1]-first[i], 1e6-1, "a millisecond later, and what Open took")
	}
}

func TestPacedReaderEnds(t *testing.T) {
	f := &fakeTime{t: 1}
	r := openPaced(t, &paced{readers: 1, rate: 1e9, end: 10}, "0", "7", f)
	f.t += 1e9
	got, err := read(t, r, pacedFields, 256)
	require.Equal(t, io.EOF, err)
	require.Len(t, got, 3)
	require.Equal(t, lines()[7], got[0][0])
	_, err = read(t, r, pacedFields, 256)
	require.Equal(t, io.EOF, err)
}

func TestPacedReaderStopsWaiting(t *testing.T) {
	f := &fakeTime{t: 1}
	r := openPaced(t, &paced{readers: 1, rate: 1e-3}, "0", "", f)
	r.sent = 1 // due in a quarter of an hour
	ctx, stop := context.WithCancel(t.Context())
	sleeps := 0
	r.sleep = func(until int64) {
		require.LessOrEqual(t, until-f.t, napMax)
		f.sleep(until)
		if sleeps++; sleeps == 3 {
			stop()
		}
	}
	out := spout.NewOut(nil)
	out.Collect(&spout.Batch{}, 256)
	require.ErrorIs(t, r.Next(ctx, out), context.Canceled)
	require.Equal(t, 3, sleeps)
}

// The kernel's clock and the runtime's are the same one: a sleep that is not cut
// short by a signal is long enough, or a reader would spin.
func TestPacedReaderOnRealTime(t *testing.T) {
	s := &paced{readers: 1, rate: 2000, clock: newClock()}
	r, err := s.Open(t.Context(), "0", "")
	require.NoError(t, err)
	p, calls, early := r.(*pacedReader), 0, 0
	p.sleep = func(until int64) {
		s.clock.sleep(until)
		if calls++; s.clock.now() < until {
			early++
		}
	}
	for n := 0; n < 20; {
		got, err := read(t, r, pacedFields, 256)
		require.NoError(t, err)
		for _, m := range got {
			at, _ := strconv.ParseInt(m[1], 10, 64)
			due, _ := strconv.ParseInt(m[2], 10, 64)
			require.LessOrEqual(t, due, at)
		}
		n += len(got)
	}
	require.LessOrEqual(t, early, calls/2, "of %d sleeps", calls)
}

func TestPacedSourceRefuses(t *testing.T) {
	s := &paced{readers: 2, rate: 1, clock: newClock()}
	for _, tt := range []struct {
		split    spout.Split
		position string
		want     string
	}{
		{"2", "", `the paced source has no split "2": it has 0 to 1`},
		{"x", "", `the paced source has no split "x": it has 0 to 1`},
		{"0", "x", `the paced source has no position "x": it must be a number`},
		{"0", "-1", `the paced source has no position "-1": it must be a number`},
	} {
		_, err := s.Open(t.Context(), tt.split, tt.position)
		require.EqualError(t, err, tt.want)
		require.True(t, spout.IsFatal(err))
	}
}
