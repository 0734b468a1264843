package disk

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/task"
)

// Letters are the dead letters of a topology, for people. They can be read and
// changed while the topology runs.
type Letters struct{ yard yard }

// An Entry is a letter and where it stands.
type Entry struct {
	*task.DeadLetter
	Waiting bool  // to be replayed
	Err     error // why its values cannot be read; nil if they can
}

// OpenLetters returns the letters of a topology. The error is fs.ErrNotExist if it
// has never run with this directory.
func OpenLetters(root, topology string) (*Letters, error) {
	dir := filepath.Join(root, topology)
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	return &Letters{yard{dir}}, nil
}

// each calls f for each readable file; its error joins those of the others.
func (l *Letters) each(f func(dir, path string, all []record) error) error {
	return l.yard.locked(func() error {
		var errs []error
		for _, dir := range []string{replayDir, deadDir} {
			paths, err := l.yard.files(dir)
			errs = append(errs, err)
			for _, path := range paths {
				all, err := readLetters(path)
				if err == nil {
					err = f(dir, path, all)
				}
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
}

// List returns all letters, in the order of their IDs. If some files cannot be read,
// it returns the others and an error.
func (l *Letters) List() ([]Entry, error) {
	found := map[string]Entry{}
	err := l.each(func(dir, _ string, all []record) error {
		for _, r := range all {
			// One that is at two places was on its way: see Store.reconcile.
			if old, is := found[r.letter.ID]; !is || r.letter.Deaths > old.Deaths {
				found[r.letter.ID] = Entry{r.letter, dir == replayDir, r.err}
			}
		}
		return nil
	})
	all := slices.Collect(maps.Values(found))
	slices.SortFunc(all, func(a, b Entry) int { return compareIDs(a.ID, b.ID) })
	return all, err
}

// A choice is the letters that a command is about.
type choice struct {
	all  bool
	ids  map[string]bool
	done map[string]bool
}

func choose(ids []string) *choice {
	c := &choice{all: ids == nil, ids: map[string]bool{}, done: map[string]bool{}}
	for _, id := range ids {
		c.ids[id] = true
	}
	return c
}

func (c *choice) has(id string) bool { return c.all || c.ids[id] }

// missing names those that were not found.
func (c *choice) missing() error {
	var none []string
	for id := range c.ids {
		if !c.done[id] {
			none = append(none, id)
		}
	}
	if len(none) == 0 {
		return nil
	}
	slices.SortFunc(none, compareIDs)
	return fmt.Errorf("there is no dead letter %s", strings.Join(none, ", "))
}

// Drop removes the letters with the given IDs, or all if ids is nil, also those that
// wait to be replayed. It returns how many.
func (l *Letters) Drop(ids []string) (int, error) {
	c := choose(ids)
	err := l.each(func(_, path string, all []record) error {
		var keep []record
		for _, r := range all {
			if c.has(r.letter.ID) {
				c.done[r.letter.ID] = true
			} else {
				keep = append(keep, r)
			}
		}
		if len(keep) == len(all) {
			return nil
		}
		return rewrite(path, keep)
	})
	return len(c.done), errors.Join(err, c.missing())
}

// Replay moves the letters with the given IDs, or all if ids is nil, to where a run
// finds them, but for those that check refuses. Those that wait already count, and
// stay where they are. It returns how many there are.
func (l *Letters) Replay(ids []string, check func(*task.DeadLetter) error) (int, error) {
	c := choose(ids)
	n := 0
	var refused []error
	err := l.each(func(dir, path string, all []record) error {
		var move, keep []record
		for _, r := range all {
			err := r.err
			switch {
			case !c.has(r.letter.ID) || c.done[r.letter.ID]:
				keep = append(keep, r)
				continue
			case err == nil && dir == deadDir:
				err = check(r.letter)
			}
			c.done[r.letter.ID] = true
			switch {
			case err != nil:
				refused = append(refused, fmt.Errorf("dead letter %s cannot be replayed and stays: %w", r.letter.ID, err))
				keep = append(keep, r)
			case dir == replayDir:
				n++
				keep = append(keep, r)
			default:
				n++
				move = append(move, r)
			}
		}
		if len(move) == 0 {
			return nil
		}
		// A name of its own: a run reads each name once.
		name := fmt.Sprintf("%s.%d", strings.TrimSuffix(filepath.Base(path), suffix), time.Now().UnixNano())
		to := filepath.Join(l.yard.dir, replayDir, name+suffix)
		if err := create(to, encodeLetters(move)); err != nil {
			return err
		}
		return rewrite(path, keep)
	})
	return n, errors.Join(append(refused, err, c.missing())...)
}
