package consensus

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// What this node has promised to keep is never forgotten without a word, whichever page of
// the file the disk loses; and no loss of power keeps it from starting.
func TestMark(t *testing.T) {
	good, copied := t.TempDir(), []byte(nil)
	s, err := openStore(good, false, 0, quiet)
	require.NoError(t, err)
	for i := range uint64(20) {
		require.NoError(t, s.StoreLog(&raft.Log{Index: i + 1, Term: 1, Data: bytes.Repeat([]byte("x"), 1000)}))
		if i == 10 {
			copied, err = os.ReadFile(s.name)
			require.NoError(t, err)
		}
	}
	require.NoError(t, s.SetUint64([]byte("vote"), 7))
	require.NoError(t, s.close())
	page := int64(os.Getpagesize())
	// which changes the newer meta page of a directory, or the older one.
	which := func(dir string, newer bool, f func([]byte)) {
		name := filepath.Join(dir, storeFile)
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		m0, ok0 := readMeta(bytes.NewReader(b), 0)
		m1, ok1 := readMeta(bytes.NewReader(b), page)
		require.True(t, ok0 && ok1)
		if (m1.transaction > m0.transaction) == newer {
			f(b[page : 2*page])
		} else {
			f(b[:page])
		}
		require.NoError(t, os.WriteFile(name, b, 0o600))
	}
	for _, tt := range []struct {
		name string
		harm func(t *testing.T, dir string)
		want string // "" if it starts with all that it has promised
	}{
		{"nothing", func(t *testing.T, dir string) {}, ""},
		{"the newer page is damaged", func(t *testing.T, dir string) {
			which(dir, true, func(b []byte) { b[16+48] ^= 1 })
		}, "one of its first two pages is damaged"},
		{"the newer page is gone", func(t *testing.T, dir string) {
			which(dir, true, func(b []byte) { clear(b) })
		}, "one of its first two pages is damaged"},
		{"the older page is damaged", func(t *testing.T, dir string) {
			which(dir, false, func(b []byte) { clear(b) })
		}, ""},
		{"the power went while the page was written", func(t *testing.T, dir string) {
			s, err := openStore(dir, true, 0, quiet)
			require.NoError(t, err)
			require.NoError(t, s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(entries).Delete(key(20)) }))
			require.NoError(t, s.close())
			which(dir, true, func(b []byte) { clear(b[40:]) })
		}, ""},
		{"the power went while the mark was written", func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, markFile), 7))
		}, ""},
		{"a directory of before there were marks", func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, markFile)))
		}, ""},
		{"no mark, and the newer page is damaged", func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, markFile)))
			which(dir, true, func(b []byte) { clear(b) })
		}, "nothing says that it was not the newer one"},
		{"a copy of yesterday", func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, storeFile), copied, 0o600))
		}, "it is an older copy"},
		{"both pages are damaged", func(t *testing.T, dir string) {
			which(dir, true, func(b []byte) { b[20] ^= 1 })
			name := filepath.Join(dir, storeFile)
			b, err := os.ReadFile(name)
			require.NoError(t, err)
			b[20], b[page+20] = 0, 0
			require.NoError(t, os.WriteFile(name, b, 0o600))
		}, "it does not begin as a log does"},
		{"half of the file", func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, storeFile), 4*page))
		}, "its end is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(good)))
			tt.harm(t, dir)
			before := files(t, dir)
			s, err := openStore(dir, true, 0, quiet)
			if tt.want != "" {
				require.ErrorIs(t, err, ErrCorrupt)
				require.ErrorContains(t, err, filepath.Join(dir, storeFile))
				require.ErrorContains(t, err, tt.want)
				require.ErrorContains(t, err, "docs/operations.md")
				require.NotContains(t, err.Error(), "nil pointer")
				require.True(t, maps.Equal(before, files(t, dir)), "it is as it was")
				return
			}
			require.NoError(t, err)
			last, err := s.LastIndex()
			require.NoError(t, err)
			require.EqualValues(t, 20, last)
			vote, err := s.GetUint64([]byte("vote"))
			require.NoError(t, err)
			require.EqualValues(t, 7, vote)
			require.NoError(t, s.SetUint64([]byte("vote"), 8))
			require.NoError(t, s.close())
			require.NoError(t, checkMetas(s.name), "what was damaged is written again")
		})
	}
}

// Wherever the file ends, it is opened with all that was in it, or refused in words.
func TestCutOff(t *testing.T) {
	dir := t.TempDir()
	s, err := openStore(dir, false, 0, quiet)
	require.NoError(t, err)
	for i := range uint64(30) {
		require.NoError(t, s.StoreLog(&raft.Log{Index: i + 1, Term: 1, Data: make([]byte, 3000)}))
	}
	require.NoError(t, s.close())
	all, err := os.ReadFile(s.name)
	require.NoError(t, err)
	for end := 1000; end < len(all); end += 4000 {
		require.NoError(t, os.WriteFile(s.name, all[:end], 0o600))
		s, err := openStore(dir, true, 0, quiet)
		if err == nil {
			last, err := s.LastIndex()
			require.NoError(t, err)
			require.EqualValues(t, 30, last, end)
			require.NoError(t, s.close())
			break // what is not there was not in use
		}
		require.ErrorIs(t, err, ErrCorrupt)
		require.NotContains(t, err.Error(), "nil pointer")
		require.NotContains(t, err.Error(), "runtime error")
	}
}

// What could not be synced was refused, and does not come back behind what came later.
func TestNothingBehind(t *testing.T) {
	dir := t.TempDir()
	s, err := openStore(dir, false, 0, quiet)
	require.NoError(t, err)
	require.NoError(t, s.StoreLog(&raft.Log{Index: 1, Term: 1}))
	good := s.mark
	s.mark = mark{}
	require.Error(t, s.StoreLogs([]*raft.Log{{Index: 2, Term: 1}, {Index: 3, Term: 1}, {Index: 4, Term: 1}}), "it was not marked")
	s.mark = good
	require.NoError(t, s.StoreLog(&raft.Log{Index: 2, Term: 2}))
	last, err := s.LastIndex()
	require.NoError(t, err)
	require.EqualValues(t, 2, last)
	require.NoError(t, s.close())
}

func FuzzMeta(f *testing.F) {
	dir := f.TempDir()
	s, err := openStore(dir, false, 0, quiet)
	require.NoError(f, err)
	require.NoError(f, s.close())
	b, err := os.ReadFile(s.name)
	require.NoError(f, err)
	f.Add(b[:80])
	f.Add(make([]byte, 80))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, ok := readMeta(bytes.NewReader(b), 0); ok {
			require.GreaterOrEqual(t, m.pageSize, uint32(smallestPage))
		}
	})
}

// No transaction begins before the one before it is marked, whoever makes them.
func TestMarkedInOrder(t *testing.T) {
	dir := t.TempDir()
	s, err := openStore(dir, false, 0, quiet)
	require.NoError(t, err)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for range 20 {
				err := s.update(func(tx *bbolt.Tx) error {
					marked, whole, err := readMark(dir)
					if err == nil && (!whole || marked != uint64(tx.ID()-1)) {
						err = fmt.Errorf("transaction %d begins, and %d is marked", tx.ID(), marked)
					}
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	both.Wait()
	require.NoError(t, s.close())
}
