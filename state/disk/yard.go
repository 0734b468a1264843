package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/task"
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
type yard struct{ dir string }

// locked calls f while nobody else changes letters.
func (y yard) locked(f func() error) error {
	name := filepath.Join(y.dir, "letters.lock")
	lock, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lockSoon(lock); errors.Is(err, errLocked) {
		return fmt.Errorf("%s has been locked%s for %v, which should take moments: see what holds it, and try again", name, owner(lock), lockPatience)
	} else if err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	sign(lock)
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
		err := flock(f)
		if !errors.Is(err, errLocked) || waited >= lockPatience {
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

// rewrite leaves only some letters in a file.
func rewrite(path string, keep []record) error {
	if len(keep) > 0 {
		return write(path, encodeLetters(keep))
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
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
			parts, err := filepath.Glob(filepath.Join(y.dir, dir, "*"+partSuffix))
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

// Bury implements task.Store.
func (s *Store) Bury(letters []*task.DeadLetter) error {
	var files [][]byte
	var chunk []record
	size := 0
	cut := func() {
		if len(chunk) > 0 {
			files = append(files, encodeLetters(chunk))
			chunk, size = nil, 0
		}
	}
	for _, l := range letters {
		if l.ID == "" {
			l.ID = s.nextID()
		}
		raw := encodeLetter(l)
		if len(chunk) == fileLetters || size > 0 && size+len(raw) > fileBytes {
			cut()
		}
		chunk = append(chunk, record{raw: raw})
		size += len(raw)
	}
	cut()
	for _, b := range files {
		name, err := s.room(int64(len(b)))
		if err != nil {
			return err
		}
		if err := write(name, b); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) nextID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letters++
	return id{uint64(s.epoch), s.letters}.String()
}

// room returns the name of a new file of n bytes, or ErrFull.
func (s *Store) room(n int64) (name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+n > s.max {
		if s.bytes, err = s.yard.size(); err != nil { // some may have been dropped
			return "", err
		}
	}
	if s.bytes+n > s.max {
		return "", fmt.Errorf("%w: %s holds %d bytes of them, and at most %d are allowed: drop some (deadletters drop) or have them replayed, or allow more (MaxDeadLetterBytes)", task.ErrFull, s.dir, s.bytes, s.max)
	}
	s.bytes += n
	s.files++
	return filepath.Join(s.dir, deadDir, id{uint64(s.epoch), s.files}.String()+suffix), nil
}

// Replays implements task.Store. It returns those of some files at a time, if they
// are large, and the others when it is called again.
func (s *Store) Replays() (letters []*task.DeadLetter, err error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	paths, err := s.yard.files(replayDir)
	if err != nil {
		return nil, err
	}
	var fresh []string
	for _, path := range paths {
		if !s.seen[path] {
			fresh = append(fresh, path)
		}
	}
	if len(fresh) == 0 {
		return nil, nil
	}
	var errs []error
	err = s.yard.locked(func() error {
		found := map[string]*task.DeadLetter{}
		bytes := 0
		for _, path := range fresh {
			if bytes > readBytes {
				break
			}
			all, err := readLetters(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue // dropped
			}
			s.seen[path] = true
			if err != nil {
				errs = append(errs, err)
				continue
			}
			for _, r := range all {
				bytes += len(r.raw)
				if r.err != nil {
					errs = append(errs, fmt.Errorf("dead letter %s cannot be replayed and stays: %w", r.letter.ID, r.err))
					continue
				}
				if old := found[r.letter.ID]; old == nil || old.Deaths <= r.letter.Deaths {
					found[r.letter.ID] = r.letter
				}
				s.at[r.letter.ID] = append(s.at[r.letter.ID], path)
			}
		}
		if err := s.reconcile(found); err != nil {
			errs = append(errs, err)
		}
		for _, l := range found {
			letters = append(letters, l)
		}
		return nil
	})
	slices.SortFunc(letters, func(a, b *task.DeadLetter) int { return compareIDs(a.ID, b.ID) })
	return letters, errors.Join(append(errs, err)...)
}

// reconcile finishes what a killed process has left half done: a letter is moved by
// writing it at its new place first. Whichever has died more often is the later.
func (s *Store) reconcile(found map[string]*task.DeadLetter) error {
	if len(found) == 0 {
		return nil
	}
	paths, err := s.yard.files(deadDir)
	if err != nil {
		return err
	}
	var stale []string
	var errs []error
	for _, path := range paths {
		_, err := without(path, func(r *record) bool {
			l := found[r.letter.ID]
			if l != nil && r.letter.Deaths > l.Deaths {
				stale = append(stale, l.ID)
				return false
			}
			return l != nil
		})
		errs = append(errs, err)
	}
	for _, id := range stale {
		delete(found, id)
	}
	errs = append(errs, s.forgetLocked(stale))
	return errors.Join(errs...)
}

// forget removes letters that were replayed.
func (s *Store) forget(ids []string) error {
	return s.yard.locked(func() error { return s.forgetLocked(ids) })
}

func (s *Store) forgetLocked(ids []string) error {
	gone := make(map[string]bool, len(ids))
	paths := map[string]bool{}
	for _, id := range ids {
		gone[id] = true
		for _, path := range s.at[id] {
			paths[path] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		_, err := without(path, func(r *record) bool { return gone[r.letter.ID] })
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // else it was dropped
			return err
		}
	}
	for _, id := range ids {
		delete(s.at, id)
	}
	return nil
}
