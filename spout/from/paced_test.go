package from

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/spout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func numbers(n int64) spout.Source {
	return spout.Generate(n, func(i int64, out *spout.Out) { out.Emit(fmt.Sprint(i)) })
}

// open opens the only split of a source.
func open(t *testing.T, s spout.Source, position string) spout.Reader {
	splits, err := s.Splits(t.Context())
	require.NoError(t, err)
	r, err := s.Open(t.Context(), splits[0], position)
	require.NoError(t, err)
	return r
}

func TestPacedIsEven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, Paced(numbers(50), 100), "")
		begin := time.Now()
		for i := range 50 {
			got, err := next(t.Context(), r, 256)
			if i == 49 {
				require.ErrorIs(t, err, io.EOF)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, []string{fmt.Sprint(i)}, got)
			require.Equal(t, time.Duration(i)*10*time.Millisecond, time.Since(begin))
			require.Equal(t, fmt.Sprint(i+1), r.Position())
		}
	})
}

// A task that was away gets what fell due in the last 10 ms at once, and goes on
// at the old pace.
func TestPacedCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, Paced(numbers(0), 1000), "")
		read := func(max int) int {
			got, err := next(t.Context(), r, max)
			require.NoError(t, err)
			return len(got)
		}
		require.Equal(t, 1, read(256))
		time.Sleep(5 * time.Millisecond)
		require.Equal(t, 5, read(256))
		time.Sleep(time.Minute)
		require.Equal(t, 4, read(4), "no more than there is room for")
		require.Equal(t, 7, read(256))
		begin := time.Now()
		for range 100 {
			require.Equal(t, 1, read(256))
		}
		require.Equal(t, 100*time.Millisecond, time.Since(begin))
	})
}

// The rate is that of all readers together.
func TestPacedIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := Paced(spout.GenerateSplits(3, 0, func(_ int, i int64, out *spout.Out) { out.Emit("x") }), 1000)
		splits, err := source.Splits(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		counts := make([]int, len(splits))
		var tasks sync.WaitGroup
		for i, split := range splits {
			tasks.Go(func() {
				r, err := source.Open(ctx, split, "")
				for err == nil {
					var got []string
					got, err = next(ctx, r, 256)
					counts[i] += len(got)
				}
			})
		}
		time.Sleep(10*time.Second - time.Microsecond)
		synctest.Wait()
		require.InDelta(t, 10_000, counts[0]+counts[1]+counts[2], 30)
		for _, n := range counts {
			require.Greater(t, n, 0)
		}
		begin := time.Now()
		cancel()
		tasks.Wait()
		require.Less(t, time.Since(begin), 10*time.Millisecond, "the end is noticed")
	})
}

// What was not there costs nothing of the rate.
func TestPacedGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		empty := true
		source := Paced(spout.Func(func(_ context.Context, out *spout.Out) error {
			for !empty && !out.Full() {
				out.Emit("x")
			}
			return nil
		}), 1000)
		r := open(t, source, "")
		for range 5 {
			got, err := next(t.Context(), r, 256)
			require.NoError(t, err)
			require.Empty(t, got)
		}
		empty = false
		got, err := next(t.Context(), r, 256)
		require.NoError(t, err)
		require.Len(t, got, 1)
	})
}

// A reader that gives more than it may is slowed down afterwards.
func TestPacedOvershoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, Paced(spout.Func(func(_ context.Context, out *spout.Out) error {
			for range 20 {
				out.Emit("x")
			}
			return nil
		}), 1000), "")
		begin := time.Now()
		for i := range 10 {
			_, err := next(t.Context(), r, 256)
			require.NoError(t, err)
			require.Equal(t, time.Duration(i)*20*time.Millisecond, time.Since(begin))
		}
	})
}

func TestPacedEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, Paced(numbers(0), 0.001), "")
		_, err := next(t.Context(), r, 1)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		_, err = next(ctx, r, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(begin))
	})
}

// Outside of a bubble the kernel's clock is waited for.
func TestPacedPrecise(t *testing.T) {
	r := open(t, Paced(numbers(5), 1000), "")
	var all []string
	var err error
	for err == nil {
		var got []string
		got, err = next(t.Context(), r, 256)
		all = append(all, got...)
	}
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"0", "1", "2", "3", "4"}, all)
}

// committed is a source that hears of commits, and whose readers are closed.
type committed struct {
	spout.Source
	position string
}

func (c *committed) Commit(_ context.Context, _ spout.Split, position string) error {
	c.position = position
	return nil
}

func TestPacedPassesOn(t *testing.T) {
	inner := &committed{Source: LinesFS(fstest.MapFS{"a": {Data: []byte("one\ntwo\n")}}, "a")}
	source := Paced(inner, 1e6)
	require.NoError(t, source.(spout.Committer).Commit(t.Context(), "a", "4"))
	require.Equal(t, "4", inner.position)
	_, ok := Paced(numbers(1), 1).(spout.Committer)
	require.False(t, ok)

	r := open(t, source, "4")
	got, err := next(t.Context(), r, 5)
	require.NoError(t, err)
	require.Equal(t, []string{"two"}, got)
	require.NoError(t, r.(io.Closer).Close())
	require.NoError(t, open(t, Paced(numbers(1), 1), "").(io.Closer).Close(), "nothing to close")
}

// The room that a caller has asked for is there again afterwards.
func TestPacedLeavesRoom(t *testing.T) {
	r := open(t, Paced(numbers(0), 1), "")
	out, b := spout.NewOut(lineField), &spout.Batch{}
	out.Collect(b, 2)
	require.NoError(t, r.Next(t.Context(), out))
	require.Equal(t, 1, out.Len())
	require.False(t, out.Full())
	require.NoError(t, r.Next(t.Context(), out), "does not wait, for there is a message")
	out.Emit("x")
	require.True(t, out.Full())
	require.NoError(t, r.Next(t.Context(), out))
}

func TestRepeatPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, spout.Repeat(Paced(numbers(2), 10), 3), "")
		begin := time.Now()
		var all []string
		var err error
		for err == nil {
			var got []string
			got, err = next(t.Context(), r, 256)
			all = append(all, got...)
		}
		require.Equal(t, "0 1 0 1 0 1", strings.Join(all, " "))
		require.Equal(t, 500*time.Millisecond, time.Since(begin))
	})
}

func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		source := Schedule(1000, 100, func(i int64, due time.Time, out *spout.Out) {
			require.Equal(t, time.Duration(i)*time.Millisecond, due.Sub(begin))
			require.False(t, due.After(time.Now()))
			out.Emit(fmt.Sprint(i))
		})
		r := open(t, source, "")
		for i := range 10 {
			got, err := next(t.Context(), r, 256)
			require.NoError(t, err)
			require.Equal(t, []string{fmt.Sprint(i)}, got)
			require.Equal(t, time.Duration(i)*time.Millisecond, time.Since(begin))
		}
		// After a second everything is late, and all of it comes at its old due time.
		time.Sleep(time.Second)
		got, err := next(t.Context(), r, 30)
		require.NoError(t, err)
		require.Len(t, got, 30)

		// Another reader goes on with the same schedule.
		r = open(t, source, r.Position())
		got, err = next(t.Context(), r, 256)
		require.ErrorIs(t, err, io.EOF)
		require.Len(t, got, 60)

		// From the beginning it is a new one.
		begin = time.Now()
		got, err = next(t.Context(), open(t, source, ""), 256)
		require.NoError(t, err)
		require.Equal(t, []string{"0"}, got)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = next(ctx, open(t, source, "7"), 256)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestScheduleWithoutMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, Schedule(1e9, 0, func(int64, time.Time, *spout.Out) {}), "")
		time.Sleep(time.Second)
		got, err := next(t.Context(), r, 10)
		require.NoError(t, err)
		require.Empty(t, got)
	})
}

func TestPacedErrors(t *testing.T) {
	nothing := func(int64, time.Time, *spout.Out) {}
	for _, tt := range []struct {
		source spout.Source
		want   string
	}{
		{Paced(numbers(1), 0), "a source is to give 0 messages a second: the rate must be above 0 and at most 1e9"},
		{Paced(numbers(1), 1/zero), "a source is to give +Inf messages a second: the rate must be above 0 and at most 1e9"},
		{Schedule(zero/zero, 0, nothing), "a source is to give NaN messages a second: the rate must be above 0 and at most 1e9"},
		{Schedule(1, -1, nothing), "a schedule has the length -1: it must be at least 0, which is endless"},
	} {
		_, err := tt.source.Splits(t.Context())
		require.EqualError(t, err, tt.want)
		require.True(t, spout.IsFatal(err))
		_, err = tt.source.Open(t.Context(), "schedule", "")
		require.EqualError(t, err, tt.want)
	}
	_, err := Schedule(1, 0, nothing).Open(t.Context(), "other", "")
	require.EqualError(t, err, `a schedule has no split "other", only "schedule"`)
	_, err = Schedule(1, 0, nothing).Open(t.Context(), "schedule", "a")
	require.EqualError(t, err, `position "a" of a schedule is not a number of calls: the position belongs to another source`)
}

var zero float64 // a variable, for division by a constant zero does not compile

// The two directions of the clockwork agree to the nanosecond.
func TestDueBy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(1e-3, 1e9).Draw(t, "rate")
		first := rapid.Int64Range(0, int64(min(rate*1e6, 1<<40))).Draw(t, "first")
		for i := first; i < first+300; i++ {
			at := offset(i, rate)
			if offset(i+1, rate) < at {
				t.Fatalf("message %d is due before message %d", i+1, i)
			}
			for d := max(0, at-1); d <= at+1; d++ { // where rounding goes wrong if it does
				if n := dueBy(d, rate); offset(n-1, rate) > d || offset(n, rate) <= d {
					t.Fatalf("%d messages are due by %d ns", n, d)
				}
			}
		}
	})
}

// In any stretch of time there are no more messages than the rate allows, and a
// reader that always asks gets all of them.
func TestPacerRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.5, 1e5).Draw(t, "rate")
		p := &pacer{perSecond: rate}
		begin := time.Unix(0, 0)
		now, missed := begin, time.Duration(0)
		total, _ := p.take(begin, 1<<30)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			step := time.Duration(rapid.Int64Range(0, int64(20*time.Millisecond)).Draw(t, "step"))
			now = now.Add(step)
			if late := step - burst; late > 0 {
				missed += late
			}
			n, wait := p.take(now, 1<<30)
			require.Equal(t, n == 0, wait > 0)
			total += n
			elapsed := now.Sub(begin).Seconds()
			require.LessOrEqual(t, float64(total), elapsed*rate+1.001)
			require.GreaterOrEqual(t, float64(total), (elapsed-missed.Seconds())*rate-0.001)
		}
	})
}

func ExampleSchedule() {
	source := Schedule(1e6, 3, func(i int64, due time.Time, out *spout.Out) {
		out.Emit(fmt.Sprint("message ", i, " is due: ", !time.Now().Before(due)))
	})
	lines, err := readFrom(source, "schedule", "", 10)
	fmt.Println(strings.Join(lines, "\n"), err)
	// Output:
	// message 0 is due: true
	// message 1 is due: true
	// message 2 is due: true <nil>
}
