package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/task"
)

// The latest letters come first, whichever file they are in and whether they are to be
// replayed, and no file is read that is not needed.
func TestLatest(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{})
	for i := range 12 { // a file each
		l := letter(fmt.Sprint(i))
		l.Time = time.Unix(int64(i), 0).UTC()
		if i%3 == 0 {
			l.Component = "other"
		}
		_, err := s.Bury([]*task.DeadLetter{l})
		require.NoError(t, err)
	}
	letters, err := OpenLetters(root, "t")
	require.NoError(t, err)
	latest := func(component string, n int) (all []string, err error) {
		entries, err := letters.Latest(t.Context(), component, n)
		for _, e := range entries {
			text := e.Values[0].String()
			if e.Waiting {
				text += " +"
			}
			all = append(all, text)
		}
		return all, err
	}
	is := func(component string, n int, want ...string) {
		t.Helper()
		got, err := latest(component, n)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	is("", 3, "11", "10", "9")
	is("other", 3, "9", "6", "3")
	is("in", 3, "11", "10", "8")
	is("none", 3)
	is("", 0)
	got, err := latest("", 100)
	require.NoError(t, err)
	require.Len(t, got, 12)

	_, err = letters.Replay([]string{"1-3", "1-11"}, anybody)
	require.NoError(t, err)
	is("", 3, "11", "10 +", "9")
	is("in", 100, "11", "10 +", "8", "7", "5", "4", "2 +", "1")

	bad := filepath.Join(root, "t", deadDir, "1-1"+suffix) // the oldest
	require.NoError(t, os.WriteFile(bad, []byte("nonsense"), 0o600))
	is("", 3, "11", "10 +", "9")
	got, err = latest("", 100)
	require.ErrorContains(t, err, "1-1.letters")
	require.Len(t, got, 11)

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err = letters.Latest(ctx, "", 3)
	require.EqualError(t, err, "enough")
}
