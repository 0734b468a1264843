package from

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/spout"
)

// elsewhere is a directory that is on another file system than any file of a test.
const elsewhere = "/dev"

// A Done directory that files cannot be moved to, or that has other files of the
// queue, is refused before any file is claimed.
func TestSpoolRefusesDone(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a")
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(filepath.Join(dir, "failed"), link))
	for _, tt := range []struct{ done, want string }{
		{dir, "choose another directory for Done"},
		{filepath.Join(dir, "."), "choose another directory for Done"},
		{filepath.Join(dir, ".retry"), "choose another directory for Done"},
		{filepath.Join(dir, ".claimed"), "choose another directory for Done"},
		{filepath.Join(dir, ".claimed", "x", "y"), "choose another directory for Done"},
		{filepath.Join(dir, "failed"), "choose another directory for Done"},
		{link, "choose another directory for Done"},
		{elsewhere, "cannot be moved to /dev: Done must be a directory on the same file system in which files may be made: rename "},
	} {
		q := Spool(dir, SpoolOptions{Done: tt.done})()
		err := q.(spout.Opener).Open(t.Context(), &spout.Task{})
		require.ErrorContains(t, err, tt.want, tt.done)
		require.True(t, spout.IsFatal(err))
		require.NoError(t, q.(io.Closer).Close())
		require.Equal(t, []string{"a"}, tree(t, dir))
	}
	for _, done := range []string{"done", ".done", "done/deep"} {
		q := openSpool(t, dir, SpoolOptions{Done: filepath.Join(dir, done)})
		require.NoError(t, q.Close())
	}
	require.Equal(t, []string{"a"}, tree(t, dir))
}

// An ack that cannot move its file loses it nowhere and leaves nothing where it was to go.
func TestSpoolCannotMoveWhatIsDone(t *testing.T) {
	dir := t.TempDir()
	name := "egret-test-" + random()
	put(t, dir, name)
	q := openSpool(t, dir, SpoolOptions{Done: filepath.Join(dir, "done")})
	q.o.Done = elsewhere // it was mounted since
	some, err := deliver(t.Context(), q, 1)
	require.NoError(t, err)
	require.Error(t, q.Ack(t.Context(), some[0].id))
	left, err := filepath.Glob(filepath.Join(elsewhere, name+"*"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, q.Close())
	require.Len(t, tree(t, dir), 1)
	again, err := deliver(t.Context(), openSpool(t, dir, SpoolOptions{}), 1)
	require.NoError(t, err)
	require.Equal(t, "content of "+name, again[0].content)
}

// Whatever a file system can do, and whenever a process is killed: no file is replaced,
// and none is done that has not all of its content.
func TestKeep(t *testing.T) {
	errKilled := errors.New("killed")
	for name, link := range map[string]func(string, string) error{
		"links":    os.Link,
		"no links": func(string, string) error { return &os.LinkError{Err: errors.ErrUnsupported} },
		"another was quicker": func(file, as string) error {
			if filepath.Base(as) == "a" {
				return &os.LinkError{Err: fs.ErrExist}
			}
			return os.Link(file, as)
		},
	} {
		t.Run(name, func(t *testing.T) {
			from, done := t.TempDir(), t.TempDir()
			for i := range 4 {
				file := filepath.Join(from, "claim")
				require.NoError(t, os.WriteFile(file, []byte(strconv.Itoa(i)), 0o600))
				require.NoError(t, keep(func(file, as string) error {
					require.Len(t, tree(t, done), i, "nothing is there that is not done")
					return link(file, as)
				}, file, done, "a"))
				require.Empty(t, tree(t, from))
			}
			var all string
			for _, file := range tree(t, done) {
				require.True(t, file == "a" || strings.HasPrefix(file, "a-"), file)
				all += text(t, done, file)
			}
			require.Len(t, all, 4)
			for i := range 4 {
				require.Contains(t, all, strconv.Itoa(i))
			}
		})
	}

	// Killed between the two steps: it is done, and comes again.
	dir, done := t.TempDir(), t.TempDir()
	put(t, dir, "a")
	q := openSpool(t, dir, SpoolOptions{})
	some, err := deliver(t.Context(), q, 1)
	require.NoError(t, err)
	require.PanicsWithValue(t, errKilled, func() {
		_ = keep(func(file, as string) error {
			require.NoError(t, os.Link(file, as))
			panic(errKilled)
		}, filepath.Join(q.owner.dir, some[0].id), done, "a")
	})
	require.NoError(t, q.owner.lock.Close())
	q = openSpool(t, dir, SpoolOptions{Done: done})
	some, err = deliver(t.Context(), q, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names(some))
	require.NoError(t, q.Ack(t.Context(), some[0].id))
	require.Len(t, tree(t, done), 2)
	for _, file := range tree(t, done) {
		require.Equal(t, "content of a", text(t, done, file))
	}
	require.NoError(t, q.Close())
	require.Empty(t, tree(t, dir))
}

// What a killed process had claimed does not wait until nothing else is left.
func TestSpoolFindsWhatTheDeadHadAmongMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		put(t, dir, "a", "b")
		dead, living := openSpool(t, dir, SpoolOptions{}), openSpool(t, dir, SpoolOptions{})
		had, err := deliver(t.Context(), dead, 2)
		require.NoError(t, err)
		require.Len(t, had, 2)
		for i := range 1000 {
			put(t, dir, "c"+strconv.Itoa(i))
		}
		one := func() string {
			some, err := deliver(t.Context(), living, 1)
			require.NoError(t, err)
			require.NoError(t, living.Ack(t.Context(), some[0].id))
			time.Sleep(10 * time.Millisecond)
			return some[0].name
		}
		one()
		require.NoError(t, dead.owner.lock.Close()) // kill -9
		killed := time.Now()
		var found []string
		for len(found) < 2 {
			if name := one(); name < "c" {
				found = append(found, name)
			}
		}
		require.ElementsMatch(t, []string{"a", "b"}, found)
		require.LessOrEqual(t, time.Since(killed), recoverEvery+50*time.Millisecond)
		require.NoError(t, living.Close())
	})
}

// No file waits longer than the longest pause, wherever its clock was.
func TestSpoolClockWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, ".retry"), 0o700))
		for name, wait := range map[string]time.Duration{"a": time.Hour, "b": lastRetry, "c": lastRetry + time.Second, "d": 24 * time.Hour, "e": -time.Hour} {
			c := claim{name: name, failures: 1, due: time.Now().Add(wait)}
			put(t, filepath.Join(dir, ".retry"), c.id())
		}
		q := openSpool(t, dir, SpoolOptions{UntilEmpty: true})
		began := time.Now()
		var story []string
		for {
			some, err := deliver(t.Context(), q, 10)
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			for _, x := range some {
				story = append(story, fmt.Sprint(x.name, " ", time.Since(began)))
				require.NoError(t, q.Ack(t.Context(), x.id))
			}
		}
		require.Equal(t, []string{"e 0s", "c 0s", "a 0s", "d 0s", "b 10s"}, story)
		require.NoError(t, q.Close())
		require.Empty(t, tree(t, dir))
	})
}
