package from

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

var spoolFields = []*tuple.Schema{{Component: "in", Stream: "default", Fields: []string{"name", "content"}}}

// A letter is a message of a spool directory.
type letter struct{ id, name, content string }

// deliver calls Next once for at most max messages.
func deliver(ctx context.Context, q spout.Queue, max int) (all []letter, err error) {
	out, b := spout.NewQueueOut(spoolFields), &spout.Batch{}
	out.Collect(b, max)
	err = q.Next(ctx, out)
	for i := range b.Len() {
		seg, cells := b.Message(i)
		row := tuple.CloneRow(cells, seg.Kinds)
		id, first := b.Answer(i)
		if !first {
			return nil, errors.New("answered before")
		}
		all = append(all, letter{id, row[0].String(), row[1].String()})
	}
	return all, err
}

func openSpool(t *testing.T, dir string, o SpoolOptions) *spool {
	t.Helper()
	q := Spool(dir, o)().(*spool)
	require.NoError(t, q.Open(t.Context(), &spout.Task{}))
	return q
}

func put(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, name := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("content of "+name), 0o600))
	}
}

// tree returns all regular files below a directory, but not the locks.
func tree(t *testing.T, dir string) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".lock") {
			rel, _ := filepath.Rel(dir, path)
			all = append(all, rel)
		}
		return err
	}))
	return all
}

func text(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(b)
}

func names(all []letter) (names []string) {
	for _, x := range all {
		names = append(names, x.name)
	}
	return names
}

// Files are delivered by name, with their content; what is not complete, hidden or
// no file is left alone; and what is acked is gone.
func TestSpoolDelivers(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "b", "a", ".hidden", "c.tmp", "9-1-0123456789abcdef-z")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	put(t, filepath.Join(dir, "sub"), "x")
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "link")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bytes"), []byte("\xff\x00\n"), 0o600))
	q := openSpool(t, dir, SpoolOptions{UntilEmpty: true})
	some, err := deliver(t.Context(), q, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"9-1-0123456789abcdef-z", "a"}, names(some))
	require.Equal(t, "content of a", some[1].content)
	more, err := deliver(t.Context(), q, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"b", "bytes"}, names(more))
	require.Equal(t, "\xff\x00\n", more[1].content)
	for _, x := range append(some, more...) {
		require.NoError(t, q.Ack(t.Context(), x.id))
	}
	_, err = deliver(t.Context(), q, 10)
	require.Equal(t, io.EOF, err)
	require.NoError(t, q.Close())
	require.Equal(t, []string{".hidden", "c.tmp", "link", "sub/x"}, tree(t, dir))
}

// A file that fails comes again after a pause that grows, as often as it may.
func TestSpoolRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		put(t, dir, "a", "b", "c")
		q := openSpool(t, dir, SpoolOptions{UntilEmpty: true, MaxRetries: 3})
		began := time.Now()
		var story []string
		for {
			some, err := deliver(t.Context(), q, 10)
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			for _, x := range some {
				story = append(story, fmt.Sprint(time.Since(began), " ", x.name))
				var why error
				switch x.name {
				case "a":
					why = fmt.Errorf("%w: bolt x: bad", spout.ErrFailed)
				case "b":
					why = fmt.Errorf("%w: bolt x: worse", spout.ErrRejected)
				case "c":
					why = spout.ErrLost
					if len(story) > 12 {
						require.NoError(t, q.Ack(t.Context(), x.id))
						continue
					}
				}
				require.NoError(t, q.Fail(t.Context(), x.id, why))
			}
		}
		require.NoError(t, q.Close())
		var a []string
		for _, s := range story {
			if strings.HasSuffix(s, " a") {
				a = append(a, s)
			}
		}
		require.Equal(t, []string{"0s a", "50ms a", "150ms a", "350ms a"}, a)
		require.Equal(t, []string{"failed/a", "failed/a.error", "failed/b", "failed/b.error"}, tree(t, dir))
		require.Equal(t, "content of a", text(t, dir, "failed", "a"))
		require.Equal(t, "failed 4 times, the last time: failed: bolt x: bad\n", text(t, dir, "failed", "a.error"))
		require.Equal(t, "rejected: bolt x: worse\n", text(t, dir, "failed", "b.error"))
	})
}

func TestSpoolNeverOrForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for retries, want := range map[int]int{NoRetries: 1, RetryForever: 30, 1: 2} {
			dir := t.TempDir()
			put(t, dir, "a")
			q := openSpool(t, dir, SpoolOptions{UntilEmpty: true, MaxRetries: retries})
			n := 0
			for n < 30 {
				some, err := deliver(t.Context(), q, 10)
				if err == io.EOF {
					break
				}
				require.NoError(t, err)
				n++
				require.NoError(t, q.Fail(t.Context(), some[0].id, spout.ErrFailed))
			}
			require.Equal(t, want, n)
			require.NoError(t, q.Close())
		}
	})
}

// What cannot be a message is moved aside, and the queue goes on.
func TestSpoolMovesAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		long := strings.Repeat("ö", 120)
		put(t, dir, "large file", long, "z", "exact")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "exact"), make([]byte, 20), 0o600))
		q := openSpool(t, dir, SpoolOptions{UntilEmpty: true, MaxSize: 20})
		some, err := deliver(t.Context(), q, 10)
		require.NoError(t, err)
		require.Equal(t, []string{"exact", "z"}, names(some))
		require.NoError(t, q.Close())
		require.Equal(t, "the file is too large: it has more than 20 bytes, which is the limit; if that is how it should be, set a higher MaxSize\n",
			text(t, dir, "failed", "large file.error"))
		require.Equal(t, "content of large file", text(t, dir, "failed", "large file"))
		require.Contains(t, text(t, dir, "failed", strings.Repeat("ö", 100)+".error"), long+`" is longer than 200 bytes: rename it`)
	})
}

// Nothing is ever renamed over something else.
func TestSpoolOverwritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, done := t.TempDir(), filepath.Join(t.TempDir(), "done")
		q := openSpool(t, dir, SpoolOptions{Done: done})
		count := 0
		for _, round := range []struct {
			name string
			why  error
		}{
			{"x", nil}, {"x", nil}, {"x", spout.ErrRejected}, {"x", spout.ErrRejected}, {"x.error", spout.ErrRejected},
			{"y.error", spout.ErrRejected}, {"y", spout.ErrRejected},
		} {
			put(t, dir, round.name)
			some, err := deliver(t.Context(), q, 10)
			require.NoError(t, err)
			require.Equal(t, []string{round.name}, names(some))
			put(t, dir, round.name) // again, while the first is open
			more, err := deliver(t.Context(), q, 10)
			require.NoError(t, err)
			for _, x := range append(some, more...) {
				count++
				if round.why == nil {
					require.NoError(t, q.Ack(t.Context(), x.id))
				} else {
					require.NoError(t, q.Fail(t.Context(), x.id, round.why))
				}
			}
		}
		require.NoError(t, q.Close())
		files := append(tree(t, filepath.Join(dir, "failed")), tree(t, done)...)
		kept, reasons := 0, 0
		for _, name := range files {
			path := filepath.Join(dir, "failed", name)
			if _, err := os.Stat(path); err != nil {
				path = filepath.Join(done, name)
			}
			if strings.HasPrefix(text(t, path), "content of ") {
				kept++
			} else {
				reasons++
			}
		}
		require.Equal(t, count, kept)
		require.Equal(t, count-4, reasons, "one beside each that was rejected")
		require.Len(t, tree(t, done), 4)
	})
}

// What a killed process had claimed is found again: at the start of the next one,
// and by one that runs. What belongs to the living is left alone.
func TestSpoolFindsWhatTheDeadHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		put(t, dir, "a", "b", "c", "d")
		first, living := openSpool(t, dir, SpoolOptions{}), openSpool(t, dir, SpoolOptions{})
		had, err := deliver(t.Context(), first, 2)
		require.NoError(t, err)
		require.NoError(t, first.Fail(t.Context(), had[0].id, spout.ErrFailed)) // the first try of a is used up
		require.NoError(t, os.WriteFile(filepath.Join(first.owner.dir, "strange"), nil, 0o600))
		other, err := deliver(t.Context(), living, 2)
		require.NoError(t, err)
		require.Equal(t, []string{"c", "d"}, names(other))

		time.Sleep(time.Second) // a is due
		again, err := deliver(t.Context(), first, 1)
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, names(again))
		require.NoError(t, first.owner.lock.Close()) // kill -9

		next := openSpool(t, dir, SpoolOptions{MaxRetries: 1})
		all, err := deliver(t.Context(), next, 10)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"a", "b", "strange"}, names(all))
		for _, x := range all {
			if x.name == "a" { // its failure is not forgotten
				require.NoError(t, next.Fail(t.Context(), x.id, spout.ErrFailed))
			} else {
				require.NoError(t, next.Ack(t.Context(), x.id))
			}
		}
		require.Equal(t, "failed 2 times, the last time: failed\n", text(t, dir, "failed", "a.error"))
		require.NoError(t, living.owner.lock.Close())
		all, err = deliver(t.Context(), next, 10) // looks each second
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"c", "d"}, names(all))
		for _, x := range all {
			require.NoError(t, next.Ack(t.Context(), x.id))
		}
		require.NoError(t, next.Close())
		left, err := os.ReadDir(filepath.Join(dir, ".claimed"))
		require.NoError(t, err)
		require.Empty(t, left)
		require.Equal(t, []string{"failed/a", "failed/a.error"}, tree(t, dir))
	})
}

// Next waits for files, for those that wait for their next try and, until the
// directory is empty, for answers; and comes back when its context ends.
func TestSpoolWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		q := openSpool(t, dir, SpoolOptions{UntilEmpty: true})
		put(t, dir, "a")
		some, err := deliver(t.Context(), q, 1)
		require.NoError(t, err)
		time.AfterFunc(time.Minute+time.Millisecond, func() {
			if err := q.Ack(t.Context(), some[0].id); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		_, err = deliver(t.Context(), q, 1)
		require.Equal(t, io.EOF, err, "not while a is open: it might come back")
		require.Equal(t, time.Minute+time.Millisecond, time.Since(began), "it is woken")

		q.o.UntilEmpty = false
		time.AfterFunc(10*time.Minute, func() { put(t, dir, "b") })
		began = time.Now()
		some, err = deliver(t.Context(), q, 1)
		require.NoError(t, err)
		require.Equal(t, []string{"b"}, names(some))
		require.LessOrEqual(t, time.Since(began), 10*time.Minute+time.Second)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = deliver(ctx, q, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, q.Close())
		require.Len(t, tree(t, dir), 1, "b is put back")
	})
}

// Tasks that share a directory never have the same file.
func TestSpoolIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		const files = 300
		for i := range files {
			put(t, dir, strconv.Itoa(i))
		}
		var mu sync.Mutex
		done := map[string]int{}
		var run sync.WaitGroup
		for k := range 4 {
			run.Go(func() {
				q := openSpool(t, dir, SpoolOptions{UntilEmpty: true})
				for {
					some, err := deliver(t.Context(), q, 1+k)
					for _, x := range some {
						n, _ := strconv.Atoi(x.name)
						mu.Lock()
						done[x.name]++
						tries := done[x.name]
						mu.Unlock()
						var err error
						if n%7 == 0 && tries == 1 {
							err = q.Fail(t.Context(), x.id, spout.ErrFailed)
						} else {
							err = q.Ack(t.Context(), x.id)
						}
						if err != nil {
							t.Error(err)
						}
					}
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Error(err)
						break
					}
				}
				if err := q.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		run.Wait()
		require.Len(t, done, files)
		for name, n := range done {
			i, _ := strconv.Atoi(name)
			want := 1
			if i%7 == 0 {
				want = 2
			}
			require.Equal(t, want, n, name)
		}
		require.Empty(t, tree(t, dir))
	})
}

func TestSpoolMistakes(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "file")
	for want, q := range map[string]spout.Queue{
		"no such file or directory": Spool(filepath.Join(dir, "none"), SpoolOptions{})(),
		"is no directory":           Spool(filepath.Join(dir, "file"), SpoolOptions{})(),
		"MaxSize":                   Spool(dir, SpoolOptions{MaxSize: -1})(),
		"MaxRetries":                Spool(dir, SpoolOptions{MaxRetries: -3})(),
	} {
		err := q.(spout.Opener).Open(t.Context(), &spout.Task{})
		require.ErrorContains(t, err, want)
		require.True(t, spout.IsFatal(err))
		require.NoError(t, q.(io.Closer).Close())
	}
	q := openSpool(t, dir, SpoolOptions{})
	require.ErrorContains(t, q.Ack(t.Context(), "x"), "no claim x")
	require.NoError(t, os.RemoveAll(q.owner.dir))
	_, err := deliver(t.Context(), q, 1)
	require.ErrorContains(t, err, "claim: ", "a place for claims that is gone is no file that is gone")
	require.NoError(t, q.Close())
}

// The name of a claim says what is known of it, and nothing else is taken for one.
func TestClaimNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := claim{
			name:     rapid.StringN(1, 50, -1).Draw(t, "name"),
			failures: rapid.IntRange(0, 1<<31).Draw(t, "failures"),
			due:      time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "due")),
		}
		require.Equal(t, c, parseClaim(c.id()))
	})
}

func FuzzParseClaim(f *testing.F) {
	f.Add("1-2-0123456789abcdef-x")
	f.Add("-1--0123456789abcdef-")
	f.Add("99999999999999999999-0-0123456789abcdef-x")
	f.Fuzz(func(t *testing.T, id string) {
		c := parseClaim(id)
		require.GreaterOrEqual(t, c.failures, 0)
		require.True(t, strings.HasSuffix(id, c.name))
		if id != "" {
			require.NotEmpty(t, c.name)
		}
	})
}
