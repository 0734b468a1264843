package file

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHold(t *testing.T) {
	dir := t.TempDir()
	lock, _, err := Hold(dir)
	require.NoError(t, err)
	_, by, err := Hold(dir)
	require.ErrorIs(t, err, ErrLocked)
	require.Equal(t, " in process "+strconv.Itoa(os.Getpid()), by)
	require.NoError(t, lock.Close())
	lock, by, err = Hold(dir)
	require.NoError(t, err)
	require.Empty(t, by)
	require.NoError(t, lock.Close())
	_, _, err = Hold(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// What cannot be written leaves what was there, and nothing else.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	require.NoError(t, Write(name, []byte("1")))
	require.NoError(t, Write(name, []byte("22")))
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "22", string(b))
	full := filepath.Join(dir, "full")
	require.NoError(t, os.MkdirAll(filepath.Join(full, "x"), 0o700))
	require.Error(t, Write(full, []byte("3")), "a directory stays")
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{name, full}, all)
}
