package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/egretstream/egret/task"
)

// Replays implements task.Store. It returns those of some files at a time, if they
// are large, and the others when it is called again. Each thing that cannot be read
// is told once.
func (s *Store) Replays() (letters []*task.DeadLetter, more bool, err error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	paths, err := s.yard.files(replayDir)
	if err != nil {
		return nil, false, err
	}
	fresh := slices.DeleteFunc(paths, func(path string) bool { return s.seen[path] })
	if len(fresh) == 0 {
		return nil, false, nil
	}
	var errs []error
	err = s.yard.locked(func() error {
		found := map[string]*task.DeadLetter{}
		bytes := 0
		for _, path := range fresh {
			if more = bytes > readBytes; more {
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
			var bad []*record
			for i, r := range all {
				bytes += len(r.raw)
				if r.err != nil {
					bad = append(bad, &all[i])
					continue
				}
				if old := found[r.letter.ID]; old == nil || old.Deaths <= r.letter.Deaths {
					found[r.letter.ID] = r.letter
				}
				s.at[r.letter.ID] = append(s.at[r.letter.ID], path)
			}
			if len(bad) > 0 {
				errs = append(errs, fmt.Errorf("%s: %d of its %d letters, the first of them %s: %w; run a program that can read them, or drop them (deadletters drop)", path, len(bad), len(all), bad[0].letter.ID, bad[0].err))
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
	return letters, more, errors.Join(append(errs, err)...)
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
		if err != nil && !s.told[path] {
			s.told[path] = true
			errs = append(errs, err)
		}
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

// Waiting returns how many letters are to be replayed, without those in files that
// cannot be read.
func (s *Store) Waiting() (n int, err error) {
	paths, err := s.yard.files(replayDir)
	for _, path := range paths {
		k, e := countLetters(path)
		n, err = n+k, errors.Join(err, e)
	}
	return n, err
}

// countLetters returns how many letters a file says that it has.
func countLetters(path string) (int, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // dropped
	} else if err != nil {
		return 0, err
	}
	defer f.Close()
	b := make([]byte, len(letterMagic)+4)
	if _, err := io.ReadFull(f, b); err != nil || !bytes.HasPrefix(b, []byte(letterMagic)) {
		return 0, nil
	}
	return int(binary.LittleEndian.Uint32(b[len(letterMagic):])), nil
}
