//go:build unix

package from

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/egretstream/egret/spout"
)

// input returns a source of lines whose standard input is a pipe.
func input(t *testing.T) (*LineSource, *os.File) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = errors.Join(r.Close(), w.Close()) })
	s := Lines("-")
	s.stdin = r
	return s, w
}

func send(t *testing.T, w io.Writer, text string) {
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
}

func TestStandardInput(t *testing.T) {
	s, w := input(t)
	r, err := s.Open(t.Context(), "-", "")
	require.NoError(t, err)

	lines, err := next(t.Context(), r, 10)
	require.NoError(t, err, "nothing yet")
	require.Empty(t, lines)

	send(t, w, "one\ntwo\nth")
	lines, err = next(t.Context(), r, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"one"}, lines)
	require.Equal(t, "4", r.Position())
	lines, err = next(t.Context(), r, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"two"}, lines, "does not wait for more")

	send(t, w, "ree\nfour")
	require.NoError(t, w.Close())
	lines, err = next(t.Context(), r, 10)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"three", "four"}, lines)
	require.NoError(t, r.(io.Closer).Close())
	_, err = s.stdin.Stat()
	require.NoError(t, err, "standard input is not ours to close")
}

// The next reader goes on where the one before was, with what that had read and
// not cut, and nowhere else.
func TestStandardInputReopened(t *testing.T) {
	s, w := input(t)
	send(t, w, "one\ntwo\nthree\n")
	first, err := s.Open(t.Context(), "-", "")
	require.NoError(t, err)
	_, err = next(t.Context(), first, 2)
	require.NoError(t, err)
	require.NoError(t, first.(io.Closer).Close())

	_, err = s.Open(t.Context(), "-", "4")
	require.EqualError(t, err, "the stream cannot be read again from byte 4: it is at byte 8 and can only go on; copy it into a file to have its lines replayed")
	require.True(t, spout.IsFatal(err))
	_, err = s.Open(t.Context(), "-", "")
	require.ErrorContains(t, err, "cannot be read again from byte 0")

	second, err := s.Open(t.Context(), "-", "8")
	require.NoError(t, err)
	_, err = next(t.Context(), first, 2)
	require.EqualError(t, err, "the stream has been opened again since")
	lines, err := next(t.Context(), second, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"three"}, lines)
}

// A reader that has messages asks whether there is more and does not wait for it.
func TestInputWaits(t *testing.T) {
	var waits []bool
	r := &lineReader{name: "text", end: endless, c: cutter{r: strings.NewReader("one\ntwo\n"), max: 10}}
	r.ready = func(wait bool) (bool, error) {
		waits = append(waits, wait)
		return len(waits) == 1, nil
	}
	lines, err := next(t.Context(), r, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two"}, lines)
	require.Equal(t, []bool{true, false}, waits)
}

func TestInputContextEnds(t *testing.T) {
	s, _ := input(t)
	r, err := s.Open(t.Context(), "-", "")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = next(ctx, r, 1)
	require.ErrorIs(t, err, context.Canceled)
}

// A pipe with a name is a stream too, and is closed when it has been read.
func TestNamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	send(t, w, "one\ntwo\n")
	s := Lines(path)
	splits, err := s.Splits(t.Context())
	require.NoError(t, err)
	require.Equal(t, []spout.Split{spout.Split(path)}, splits)
	r, err := s.Open(t.Context(), splits[0], "")
	require.NoError(t, err)
	lines, err := next(t.Context(), r, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two"}, lines)
	require.NoError(t, r.(io.Closer).Close(), "not at its end: kept for the next reader")

	r, err = s.Open(t.Context(), splits[0], "8")
	require.NoError(t, err)
	send(t, w, "three")
	require.NoError(t, w.Close())
	lines, err = next(t.Context(), r, 10)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"three"}, lines)
	file := s.streams[path].r.file
	require.NoError(t, r.(io.Closer).Close())
	require.NoError(t, r.(io.Closer).Close())
	require.ErrorIs(t, file.Close(), os.ErrClosed)
}

// What reads on from standard input knows the columns, and the number of the line.
func TestStandardInputOfRecords(t *testing.T) {
	lines, w := input(t)
	s := CSV("-").Int("n")
	s.lines.stdin = lines.stdin
	streams := declared("n", "text")
	send(t, w, "text,n\nfirst,1\n\"sec")
	first, err := s.Open(t.Context(), "-", "")
	require.NoError(t, err)
	rows, err := some(first, streams, 10)
	require.NoError(t, err)
	require.Equal(t, [][]any{{int64(1), "first"}}, rows, "not the half of one")
	require.Equal(t, "15:3", first.Position())
	require.NoError(t, first.(io.Closer).Close())

	second, err := s.Open(t.Context(), "-", "15:3")
	require.NoError(t, err)
	send(t, w, "ond\",2\nthird,x")
	require.NoError(t, w.Close())
	rows, err = some(second, streams, 10)
	require.NoError(t, err)
	require.Equal(t, [][]any{{int64(2), "second"}}, rows)
	_, err = some(second, streams, 10)
	if err == nil { // the end comes with a read of its own
		_, err = some(second, streams, 10)
	}
	require.EqualError(t, err, `line 4, at byte 26: column "n" is "x", not a whole number`)
}
