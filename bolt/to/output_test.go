package to

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/bolt"
)

// resume prepares the first life of a run that goes on from an earlier one.
func resume(t require.TestingT, path string) *fileBolt {
	b := Lines(path)().(*fileBolt)
	require.NoError(t, b.Prepare(context.Background(), &bolt.Task{Component: "out", Parallel: 1, Life: 1, Continued: true}))
	return b
}

// Runs that go on from each other lose no line that was acked and leave no part of
// another, however each of them ends.
func TestRunsThatGoOn(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "out.txt")
		for _, p := range []string{path, path + partial, path + copying} {
			require.NoError(t, os.RemoveAll(p))
		}
		acked, done, line := "", "", 0
		if rapid.Bool().Draw(t, "old") {
			require.NoError(t, os.WriteFile(path, []byte("of a run that has nothing to do with these\n"), 0o600))
			done = "of a run that has nothing to do with these\n"
		}
		for run := range rapid.IntRange(1, 6).Draw(t, "runs") {
			var b *fileBolt
			if run == 0 {
				b = begin(t, Lines(path), 1)
			} else {
				b = resume(t, path)
			}
			for range rapid.IntRange(0, 3).Draw(t, "lines") {
				text := fmt.Sprint(line, strings.Repeat("x", rapid.SampledFrom([]int{0, 9, 100_000}).Draw(t, "length")))
				require.NoError(t, b.Execute(row(text), nil))
				acked += text + "\n"
				line++
			}
			require.True(t, done == "" || done == read(t, path), "the finished file changes at the end only")
			end := rapid.SampledFrom([]string{"ends", "is stopped", "is killed"}).Draw(t, "end")
			if end == "ends" {
				require.NoError(t, b.Finish(nil))
				require.Equal(t, acked, read(t, path))
				require.NoFileExists(t, path+partial)
				done = acked
			}
			if end == "is killed" && b.out.f != nil {
				torn := strings.Repeat("y", rapid.SampledFrom([]int{0, 1, 70_000}).Draw(t, "torn"))
				_, err := b.out.f.WriteAt([]byte(torn), b.out.size)
				require.NoError(t, err)
				b.out.size += int64(len(torn)) // so that it is not tidied up
			}
			require.NoError(t, b.Close())
			if end == "is killed" {
				require.NoError(t, os.WriteFile(path+copying, []byte("not all of it"), 0o600))
			}
		}
		b := resume(t, path)
		require.NoError(t, b.Finish(nil))
		require.NoError(t, b.Close())
		require.Equal(t, acked, read(t, path))
		require.NoFileExists(t, path+partial)
		require.NoFileExists(t, path+copying)
	})
}

// A run with nothing to do leaves the file as it is, and does not read it.
func TestNothingToGoOnWith(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.txt")
	require.NoError(t, os.WriteFile(path, []byte("line\n"), 0o400))
	before, err := os.Stat(path)
	require.NoError(t, err)
	b := resume(t, path)
	require.NoError(t, b.Finish(nil))
	require.NoError(t, b.Close())
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after))
	require.Equal(t, []string{"out.txt"}, names(t, filepath.Dir(path)))

	b = resume(t, path)
	require.NoError(t, b.Execute(row("more"), nil))
	require.NoError(t, b.Close())
	require.Equal(t, "line\n", read(t, path))
	b = resume(t, path) // and a life that follows
	require.NoError(t, b.Close())
	later := b.set.outputs[fileKey{"out", 0}]
	b = &fileBolt{set: b.set, encoder: &lineEncoder{}}
	require.NoError(t, b.Prepare(context.Background(), &bolt.Task{Component: "out", Parallel: 1, Life: 2, Continued: true}))
	require.Same(t, later, b.out)
	require.NoError(t, b.Execute(row("and more"), nil))
	require.NoError(t, b.Finish(nil))
	require.NoError(t, b.Close())
	require.Equal(t, "line\nmore\nand more\n", read(t, path))
}

// The first life of a task may die before it gets as far as its file.
func TestGoesOnInALaterLife(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.txt")
	require.NoError(t, os.WriteFile(path+partial, []byte("line\n"), 0o600))
	b := Lines(path)().(*fileBolt)
	require.NoError(t, b.Prepare(context.Background(), &bolt.Task{Component: "out", Parallel: 1, Life: 2, Continued: true}))
	require.NoError(t, b.Execute(row("more"), nil))
	require.NoError(t, b.Finish(nil))
	require.NoError(t, b.Close())
	require.Equal(t, "line\nmore\n", read(t, path))
}

// A run that has come to nothing leaves nothing.
func TestNoEmptyFileIsLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.txt")
	factory := Lines(path)
	b := begin(t, factory, 1)
	require.NoError(t, b.Close())
	require.Empty(t, names(t, filepath.Dir(path)))
	b = begin(t, factory, 2)
	require.NoError(t, b.Execute(row("line"), nil))
	require.NoError(t, b.Close())
	require.Equal(t, []string{"out.txt.partial"}, names(t, filepath.Dir(path)))
	b = begin(t, factory, 3)
	require.NoError(t, b.Finish(nil))
	require.NoError(t, b.Close())
	require.Equal(t, "line\n", read(t, path))
}

// A path is one writer's from Prepare to Close, also when its file has its name.
func TestOneWriterForAPath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	task := func(component string) *bolt.Task {
		return &bolt.Task{Topology: "top", Component: component, Parallel: 1, Life: 1}
	}
	first := Lines("out")().(*fileBolt)
	require.NoError(t, first.Prepare(t.Context(), task("a")))
	refused := func(when string) {
		for _, path := range []string{"out", filepath.Join(dir, "out"), "./out"} {
			for _, continued := range []bool{false, true} {
				second := task("b")
				second.Continued = continued
				err := JSONLines(path)().(*fileBolt).Prepare(t.Context(), second)
				require.EqualError(t, err, fmt.Sprintf("%s is being written by component a of topology top, process %d, so component b of topology top cannot write to it: give each a path of its own", path, os.Getpid()), when)
				require.True(t, bolt.IsReject(err))
			}
		}
	}
	refused("at first")
	require.NoError(t, first.Execute(row("line"), nil))
	refused("with a line")
	require.NoError(t, first.Finish(nil))
	refused("finished")
	require.NoError(t, first.Close())
	require.Equal(t, []string{"out"}, names(t, dir))
	require.Equal(t, "line\n", read(t, "out"))

	b := begin(t, Lines("out"), 1)
	require.NoError(t, b.Close())
}

// Whoever comes first has the path, and nobody else.
func TestManyWritersOfAPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	for range 50 {
		const writers = 8
		type try struct {
			b   *fileBolt
			err error
		}
		tries := make(chan try, writers)
		for i := range writers {
			go func() {
				b := Lines(path)().(*fileBolt)
				tries <- try{b, b.Prepare(context.Background(), &bolt.Task{Component: fmt.Sprint(i), Parallel: 1, Life: 1})}
			}()
		}
		var won *fileBolt
		for range writers {
			if r := <-tries; r.err == nil {
				require.Nil(t, won)
				won = r.b
			} else {
				require.ErrorContains(t, r.err, "is being written by component ")
			}
		}
		require.NoError(t, won.Close())
	}
}

func TestFileErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("dir", 0o700))
	used := begin(t, Lines("used"), 1)
	defer used.Close()
	changed := Lines("changed")
	b := begin(t, changed, 1)
	require.NoError(t, b.Execute(row("line"), nil))
	require.NoError(t, b.Close())
	require.NoError(t, os.Truncate("changed.partial", 2))
	gone := Lines("removed")
	b = begin(t, gone, 1)
	require.NoError(t, b.Execute(row("line"), nil))
	require.NoError(t, b.Close())
	require.NoError(t, os.Remove("removed.partial"))
	for _, tt := range []struct {
		factory bolt.Factory
		task    bolt.Task
		want    string
	}{
		{Lines(""), bolt.Task{}, "the path of the file to write is empty"},
		{Lines("a"), bolt.Task{Component: "out", Parallel: 2}, "component out has 2 tasks and one file to write, a: put {task} into its name, or give the component one task"},
		{Lines("gone/a"), bolt.Task{}, "the file gone/a cannot be written, because there is no directory gone: make it first"},
		{Lines("used.partial/a"), bolt.Task{}, "the file used.partial/a cannot be written, because used.partial is no directory"},
		{Lines("dir"), bolt.Task{}, "dir is there already and is no regular file, which would be replaced: choose another name, or write to it with Print"},
		{Lines("/dev/null"), bolt.Task{}, "/dev/null is there already and is no regular file, which would be replaced: choose another name, or write to it with Print"},
		{func() bolt.Bolt { return &fileBolt{set: used.set} }, bolt.Task{Topology: "top", Component: "out"}, "used is being written by component out of topology top, so component out of topology top cannot write to it: give each a path of its own"},
		{changed, bolt.Task{Component: "out", Life: 2}, "changed.partial has 2 bytes and not the 5 that were written to it: somebody else has changed it"},
		{gone, bolt.Task{Component: "out", Life: 2}, "open removed.partial: no such file or directory"},
	} {
		err := tt.factory().(*fileBolt).Prepare(context.Background(), &tt.task)
		require.EqualError(t, err, tt.want)
		require.True(t, bolt.IsReject(err), "no other try would help")
	}
	require.NoError(t, used.Execute(row("still mine"), nil))
	require.NoError(t, used.Finish(nil))
	require.Equal(t, "still mine\n", read(t, "used"))
	require.Equal(t, []string{".used.lock", "changed.partial", "dir", "used"}, names(t, "."))
}

// What is not there for good may be there the next time.
func TestLasting(t *testing.T) {
	require.False(t, bolt.IsReject(lasting(errors.New("input/output error"))))
	require.True(t, bolt.IsReject(lasting(os.ErrPermission)))
}

func TestLinesAllocate(t *testing.T) {
	b := begin(t, Lines(filepath.Join(t.TempDir(), "out")), 1)
	defer b.Close()
	in := row("the", 3)
	require.Less(t, testing.AllocsPerRun(1000, func() { _ = b.Execute(in, nil) }), 0.5)
}
