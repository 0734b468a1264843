//go:build unix

package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/state/file"
)

// Whoever holds the lock of letters and does not let go is named after a while;
// nobody waits for ever.
func TestLettersLocked(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{})
	ids := bury(t, s, "a", "b")
	require.NoError(t, s.Close())
	letters, err := OpenLetters(root, "t")
	require.NoError(t, err)
	name := filepath.Join(root, "t", "letters.lock")
	for _, signed := range []bool{true, false} {
		holder, err := os.OpenFile(name, os.O_RDWR, 0)
		require.NoError(t, err)
		require.NoError(t, file.Lock(holder))
		by := ""
		if signed {
			file.Sign(holder)
			by = fmt.Sprintf(" in process %d", os.Getpid())
		}
		want := name + " has been locked" + by + " for 2s, which should take moments: see what holds it, and try again"
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := letters.Drop(ids)
			require.ErrorContains(t, err, want)
			_, err = Open(root, "t", Options{})
			require.ErrorContains(t, err, want)
			require.Equal(t, 2*lockPatience, time.Since(began))
			time.AfterFunc(time.Second, func() { holder.Truncate(0); holder.Close() })
			all, err := letters.List()
			require.NoError(t, err, "it was let go in time")
			require.Len(t, all, 2)
		})
	}
	n, err := letters.Drop(ids)
	require.NoError(t, err)
	require.Equal(t, 2, n)
}
