package pebble

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/state"
	"github.com/egretstream/egret/state/statetest"
)

func TestStore(t *testing.T) {
	statetest.Run(t, func(t *testing.T) state.Backend { return Dir(t.TempDir()) })
}

func TestStatesHaveDirectoriesOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name state.Name
		want string
	}{
		{state.Name{Topology: "word-count", State: "counts_2"}, "word-count/counts_2"},
		{state.Name{Topology: "..", State: "a/b"}, "%2E%2E/a%2Fb"},
		{state.Name{Topology: "Words", State: "%57ords"}, "%57ords/%2557ords"},
		{state.Name{Topology: "é", State: "\x00"}, "%C3%A9/%00"},
		{state.Name{}, "%/%"},
	} {
		store, err := Dir(dir).Open(t.Context(), tt.name)
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(dir, filepath.FromSlash(tt.want), "LOCK"))
		require.NoError(t, store.Close())
	}
	require.Equal(t, dir, Dir(dir).String())
}

// Whoever names the same directory in this process has the same database, until the last
// of them closes it.
func TestBackendsOfOneDirectoryShareIt(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	a, err := Dir(dir).Open(t.Context(), counts)
	require.NoError(t, err)
	b, err := Dir(".").Open(t.Context(), counts)
	require.NoError(t, err)
	require.Same(t, a.(*store).table, b.(*store).table)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close(), "twice")
	_, err = b.Get(t.Context(), []state.Key{{}})
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.Empty(t, opened.tables)
}

// A database that is broken is opened anew when all who have it have closed it: nobody
// joins them.
func TestBrokenIsNotShared(t *testing.T) {
	dir := Dir(t.TempDir())
	a, err := dir.Open(t.Context(), counts)
	require.NoError(t, err)
	b, err := dir.Open(t.Context(), counts)
	require.NoError(t, err)
	a.(*store).ends(errors.New("no room"))
	for _, s := range []state.Store{a, b} {
		_, err = dir.Open(t.Context(), counts)
		require.ErrorContains(t, err, "it has to be opened anew: no room")
		require.NoError(t, s.Close())
	}
	b, err = dir.Open(t.Context(), counts)
	require.NoError(t, err)
	_, err = b.Join(t.Context(), &state.Join{Undo: true})
	require.NoError(t, err)
	require.NoError(t, b.Close())
}

func TestAnotherLayoutIsRefused(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "wordcount", "counts")
	db, err := pebble.Open(at, &pebble.Options{FormatMajorVersion: pebble.FormatNewest, Logger: &table{}})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte{versionKey}, []byte{layout + 1}, pebble.Sync))
	require.NoError(t, db.Close())
	_, err = Dir(dir).Open(t.Context(), counts)
	require.ErrorContains(t, err, "it has layout 3, and this program knows layout 2 only")
	require.ErrorContains(t, err, at)
	require.Empty(t, opened.tables)
}

func TestADirectoryThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Dir(file).Open(t.Context(), counts)
	require.ErrorContains(t, err, "state wordcount/counts")
	require.ErrorContains(t, err, file)
}

// What goes wrong in the background is told to the log, and nothing else is.
func TestTheLogIsToldWhatGoesWrong(t *testing.T) {
	told := make(lines, 100)
	disk, left := failing(vfs.NewMem(), ".sst")
	b := &Backend{Log: slog.New(slog.NewTextHandler(told, nil)), dir: "/states", fs: disk}
	w := newWriter(t, b, 1)
	left.Store(0)
	for len(told) == 0 {
		require.NoError(t, w.write(t, 10, 20_000)) // until it is more than a memtable takes
	}
	line := <-told
	left.Store(1 << 40)
	require.NoError(t, w.write(t, 10, 20_000))
	require.NoError(t, w.store.Close())
	require.Contains(t, line, "input/output error")
	require.Contains(t, line, "state=wordcount/counts path=/states/wordcount/counts")
}

// lines gets what is logged, as far as there is room.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default:
	}
	return len(b), nil
}

func BenchmarkStore(b *testing.B) { statetest.Bench(b, Dir(b.TempDir())) }

// A directory without a name would be the one that the program happens to be in.
func TestNoDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := Dir("").Open(t.Context(), counts)
	require.ErrorContains(t, err, "state wordcount/counts: the directory of pebble.Dir has no name")
	all, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, all)
}
