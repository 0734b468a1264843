package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/state/file"
)

const (
	deadDir   = "dead"
	replayDir = "replay"
	suffix    = ".letters"

	fileLetters = 1000     // in one file
	fileBytes   = 1 << 20  // about
	readBytes   = 16 << 20 // of letters that are given to a run at a time
)

// A yard is the directories of dead letters. A run only adds files to dead/ and
// takes from replay/, others move and drop; who changes a file that is there holds
// the lock.
//
// Invariant: only the run makes names in dead/, and only who holds the lock makes
// some in replay/, so a name that is free stays free until it is made.
type yard struct{ dir string }

// locked calls f while nobody else changes letters.
func (y yard) locked(f func() error) error {
	name := filepath.Join(y.dir, "letters.lock")
	lock, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lockSoon(lock); errors.Is(err, file.ErrLocked) {
		return fmt.Errorf("%s has been locked%s for %v, which should take moments: see what holds it, and try again", name, file.Owner(lock), lockPatience)
	} else if err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	file.Sign(lock)
	defer lock.Truncate(0)
	return f()
}

// lockPatience bounds the wait for the lock of letters. Who has it may rewrite some
// files.
const lockPatience = 2 * time.Second

// lockSoon waits for a lock, but not for ever: somebody may hold it by mistake.
func lockSoon(f *os.File) error {
	const pause = 10 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		err := file.Lock(f)
		if !errors.Is(err, file.ErrLocked) || waited >= lockPatience {
			return err
		}
		time.Sleep(pause)
	}
}

// files returns the paths of the files of letters in a directory, in order.
func (y yard) files(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(filepath.Join(y.dir, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			paths = append(paths, filepath.Join(y.dir, dir, e.Name()))
		}
	}
	return paths, err
}

func readLetters(path string) ([]record, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all, err := decodeLetters(b)
	if err != nil {
		return nil, unreadable(path, err, "move it out of the directory; its letters cannot be listed or replayed")
	}
	return all, nil
}

// create puts a new file in its place. It never takes that of another one.
func create(path string, b []byte) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return file.Write(path, b)
}

// rewrite leaves only some letters in a file.
func rewrite(path string, keep []record) error {
	if len(keep) > 0 {
		return file.Write(path, encodeLetters(keep))
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return file.SyncDir(filepath.Dir(path))
}

// without removes the letters that drop says from a file. It returns how many.
func without(path string, drop func(*record) bool) (n int, err error) {
	all, err := readLetters(path)
	if err != nil {
		return 0, err
	}
	keep := all[:0:0]
	for i := range all {
		if !drop(&all[i]) {
			keep = append(keep, all[i])
		}
	}
	if n = len(all) - len(keep); n == 0 {
		return 0, nil
	}
	return n, rewrite(path, keep)
}

// sweep removes what was being written when a process was killed. Nobody was told
// that it was there.
func (y yard) sweep() error {
	return y.locked(func() error {
		for _, dir := range []string{deadDir, replayDir} {
			parts, err := filepath.Glob(filepath.Join(y.dir, dir, "*"+file.PartSuffix))
			if err != nil {
				return err
			}
			for _, part := range parts {
				if err := os.Remove(part); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// size returns the bytes of all letters.
func (y yard) size() (n int64, err error) {
	for _, dir := range []string{deadDir, replayDir} {
		paths, err := y.files(dir)
		if err != nil {
			return 0, err
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil { // else it has just been dropped
				n += info.Size()
			}
		}
	}
	return n, nil
}

// An id is the number of a run and of a letter in it: "7-42".
type id struct{ run, n uint64 }

func parseID(s string) (id, bool) {
	run, n, ok := strings.Cut(s, "-")
	a, err := strconv.ParseUint(run, 10, 32)
	b, err2 := strconv.ParseUint(n, 10, 64)
	x := id{a, b}
	return x, ok && err == nil && err2 == nil && x.String() == s
}

func (x id) String() string { return fmt.Sprintf("%d-%d", x.run, x.n) }

// IsID reports whether s has the form of a letter's ID.
func IsID(s string) bool { _, ok := parseID(s); return ok }

func compareIDs(a, b string) int {
	x, _ := parseID(a)
	y, _ := parseID(b)
	return cmp.Or(cmp.Compare(x.run, y.run), cmp.Compare(x.n, y.n))
}
