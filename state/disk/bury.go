package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/egretstream/egret/task"
)

// Bury implements task.Store. A letter that was replayed and is dead again is
// stored only if it still waits: otherwise people have dropped it meanwhile.
func (s *Store) Bury(letters []*task.DeadLetter) (stored int, err error) {
	if !slices.ContainsFunc(letters, wasReplayed) {
		return s.bury(letters, nil)
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	// Nobody drops any before they are stored.
	err = s.yard.locked(func() (err error) {
		stored, err = s.bury(letters, s.dropped(letters))
		return err
	})
	return stored, err
}

func wasReplayed(l *task.DeadLetter) bool { return l.Deaths > 1 }

// dropped returns which of the letters that this run was given to replay are not
// there any more.
func (s *Store) dropped(letters []*task.DeadLetter) map[string]bool {
	gone, paths := map[string]bool{}, map[string]bool{}
	for _, l := range letters {
		if at := s.at[l.ID]; wasReplayed(l) && len(at) > 0 {
			gone[l.ID] = true
			for _, path := range at {
				paths[path] = true
			}
		}
	}
	for path := range paths {
		all, err := readLetters(path)
		for _, r := range all {
			delete(gone, r.letter.ID)
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for id := range gone { // it may be in there
			if slices.Contains(s.at[id], path) {
				delete(gone, id)
			}
		}
	}
	return gone
}

// bury stores letters but for those that are gone, some in each file.
func (s *Store) bury(letters []*task.DeadLetter, gone map[string]bool) (stored int, err error) {
	var chunk []record
	size := 0
	cut := func(end int) error {
		if len(chunk) > 0 {
			b := encodeLetters(chunk)
			name, err := s.room(int64(len(b)))
			if err == nil {
				err = create(name, b)
			}
			if err != nil {
				return err
			}
			chunk, size = nil, 0
		}
		stored = end
		return nil
	}
	for i, l := range letters {
		if l.ID == "" {
			l.ID = s.nextID()
		}
		if gone[l.ID] {
			continue
		}
		raw := encodeLetter(l)
		if len(chunk) == fileLetters || size > 0 && size+len(raw) > fileBytes {
			if err := cut(i); err != nil {
				return stored, err
			}
		}
		chunk = append(chunk, record{raw: raw})
		size += len(raw)
	}
	return stored, cut(len(letters))
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
		return "", fmt.Errorf("%w: %s holds %d bytes of them, and at most %d are allowed: drop some (deadletters drop) or have them replayed, or allow more (--max-dead-letter-bytes, Config.MaxDeadLetterBytes)", task.ErrFull, s.dir, s.bytes, s.max)
	}
	s.bytes += n
	for {
		s.files++
		name = filepath.Join(s.dir, deadDir, id{uint64(s.epoch), s.files}.String()+suffix)
		if _, err := os.Lstat(name); err != nil {
			return name, nil // it is free, or create says what is wrong
		}
	}
}
