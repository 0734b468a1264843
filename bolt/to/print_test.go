package to

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// row makes a tuple of the given values.
func row(values ...any) tuple.Tuple {
	s := &tuple.Schema{Component: "in", Stream: "default"}
	for i := range values {
		s.Fields = append(s.Fields, fmt.Sprint(i))
	}
	var r tuple.Row
	r.Set(s, values)
	p := &tuple.Parcel{Schema: s}
	p.Begin(r.Kinds, 1)
	p.AppendRun(r.Cells, 1)
	return p.Tuple(0)
}

func TestPrint(t *testing.T) {
	var w bytes.Buffer
	b := Print(&w)()
	for _, in := range []tuple.Tuple{
		row("the", 3), row(), row(nil, true, uint64(1<<63), 2.5, "", []byte("bytes"), time.Unix(0, 7), time.Minute),
	} {
		require.NoError(t, b.Execute(in, nil))
	}
	require.Empty(t, w.String(), "collected")
	require.NoError(t, b.(bolt.Finisher).Finish(nil))
	require.Equal(t, "the 3\n\nnil true 9223372036854775808 2.5  bytes 1970-01-01T00:00:00.000000007Z 1m0s\n", w.String())
}

func TestPrintFlushes(t *testing.T) {
	var w bytes.Buffer
	b := Print(&w)()
	for i, flush := range []func() error{
		func() error { return b.(bolt.Ticker).Tick(nil) },
		func() error { return b.(bolt.Finisher).Finish(nil) },
		b.(bolt.Closer).Close,
		func() error { return b.Execute(row(strings.Repeat("x", bufferSize)), nil) },
	} {
		w.Reset()
		require.NoError(t, b.Execute(row("line"), nil))
		require.Empty(t, w.String(), i)
		require.NoError(t, flush())
		require.True(t, strings.HasPrefix(w.String(), "line\n"), i)
		require.NoError(t, flush())
		require.Equal(t, 1, strings.Count(w.String(), "line"), "once")
	}
}

// A terminal shows each line at once.
func TestPrintEager(t *testing.T) {
	var w bytes.Buffer
	b := &printer{to: &shared{w: &w}, limit: 1}
	require.NoError(t, b.Execute(row("line"), nil))
	require.Equal(t, "line\n", w.String())
}

// Tasks share a writer and tear no lines.
func TestPrintShared(t *testing.T) {
	const lines = 20_000
	var w bytes.Buffer
	factory := Print(&w)
	var tasks sync.WaitGroup
	for i := range 4 {
		tasks.Go(func() {
			b := factory()
			in := row("task", i, strings.Repeat("x", i))
			for range lines {
				_ = b.Execute(in, nil)
			}
			_ = b.(bolt.Closer).Close()
		})
	}
	tasks.Wait()
	counts := map[string]int{}
	for line := range strings.Lines(w.String()) {
		counts[line]++
	}
	require.Equal(t, map[string]int{"task 0 \n": lines, "task 1 x\n": lines, "task 2 xx\n": lines, "task 3 xxx\n": lines}, counts)
}

// limited takes bytes until it has none left, then says that it is full.
type limited struct {
	bytes.Buffer
	left int
}

var errFull = errors.New("disk is full")

func (l *limited) Write(b []byte) (int, error) {
	n := min(l.left, len(b))
	l.left -= n
	l.Buffer.Write(b[:n])
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

// A writer that fails loses no line and repeats none that was not acked.
func TestPrintError(t *testing.T) {
	for left := range 20 {
		w := &limited{left: left}
		b := &printer{to: &shared{w: w}, limit: 12}
		var want []string
		for i := range 5 {
			in := row("line", i)
			err := b.Execute(in, nil)
			if err != nil {
				require.ErrorIs(t, err, errFull)
				require.LessOrEqual(t, len(b.buf), 14, "what waits is bounded")
				w.left = 100
				require.NoError(t, b.Execute(in, nil), "the tuple comes again")
			}
			want = append(want, fmt.Sprint("line ", i))
		}
		w.left = 100
		require.NoError(t, b.Close())
		var got []string // with repetitions taken out
		for line := range strings.Lines(w.String()) {
			line = strings.TrimSuffix(line, "\n")
			if len(got) == 0 || got[len(got)-1] != line {
				got = append(got, line)
			}
		}
		require.Equal(t, want, got, "left %d", left)
		if left%14 <= 7 { // nothing was written of the second line of a buffer
			require.Equal(t, strings.Join(want, "\n")+"\n", w.String(), "left %d", left)
		}
	}
}

// short breaks the contract of io.Writer.
type short struct{}

func (short) Write(b []byte) (int, error) { return len(b) - 1, nil }

func TestPrintErrorText(t *testing.T) {
	b := Print(&limited{left: 3})()
	require.NoError(t, b.Execute(row("line"), nil))
	require.EqualError(t, b.(bolt.Finisher).Finish(nil), "printing 5 bytes, of which 3 were written: disk is full")
	b = Print(short{})()
	require.NoError(t, b.Execute(row("line"), nil))
	require.ErrorIs(t, b.(bolt.Closer).Close(), io.ErrShortWrite)
	r, w, err := os.Pipe()
	require.NoError(t, errors.Join(err, r.Close(), w.Close()))
	b = Print(w)()
	require.NoError(t, b.Execute(row("line"), nil))
	require.EqualError(t, b.(bolt.Ticker).Tick(nil), "printing 5 bytes, of which 0 were written: write |1: file already closed")
}

func TestPrintAllocates(t *testing.T) {
	b := Print(io.Discard)()
	in := row("the", 3)
	require.Less(t, testing.AllocsPerRun(1000, func() { _ = b.Execute(in, nil) }), 0.5)
}

func ExampleStdout() {
	b := Stdout()()
	_ = b.Execute(row("the", 3), nil)
	_ = b.Execute(row("cow", 1), nil)
	_ = b.(bolt.Finisher).Finish(nil)
	// Output:
	// the 3
	// cow 1
}
