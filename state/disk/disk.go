// Package disk keeps in files what survives a run: the positions of sources and
// dead letters. It is not for use outside Egret.
//
//	DIR/wordcount/lock          held by the run that uses the directory
//	              run           how many runs there were: the epoch
//	              positions     what is done, by component and split
//	              batches         the record of an exactly-once topology
//	              letters.lock  held for moments by whoever changes letters
//	              dead/         dead letters, some in each file
//	              replay/       those that are to be replayed
//
// A file is written beside its place, synced and renamed, and never changed
// afterwards; so it is whole or not there, whenever a process is killed. What
// cannot be read is never overwritten and never deleted. The number of a run is
// greater than any that is found in the directory, also if the file run is lost.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/egretstream/egret/state/file"
	"github.com/egretstream/egret/task"
)

var (
	// ErrInUse reports that another run uses the directory.
	ErrInUse = errors.New("in use")
	// ErrCorrupt reports a file that is not what it was when it was written. Reading it
	// again does not help.
	ErrCorrupt = errors.New("corrupt file")
	// ErrNewer reports a file of a format that this Egret does not know.
	ErrNewer = errors.New("it was written by a newer Egret")
)

// Options are how a run opens a Store.
type Options struct {
	Fingerprint string // of the topology; for people
	Reset       bool   // begin without positions; the old ones stay in a file of another name
	MaxBytes    int64  // of dead letters
}

// A Store is the part of a state directory that belongs to one topology, opened by
// the run that uses it. It is a task.Store; its methods may be called from any
// goroutine.
type Store struct {
	dir   string
	lock  *os.File
	epoch uint32
	yard  yard
	max   int64

	mu      sync.Mutex
	bytes   int64  // of letters, about: others may have dropped some
	letters uint64 // IDs given by this run
	files   uint64 // written by this run

	saving    sync.Mutex // of what follows, also while files are written
	positions positions
	seen      map[string]bool     // files of replay/ that were read
	told      map[string]bool     // files of dead/ that cannot be read
	at        map[string][]string // the files of replay/ that a letter is in
}

// Open opens a topology's part of a state directory, which it makes if there is
// none, for a run. Nobody else can until it is closed; the error then is ErrInUse.
func Open(root, topology string, o Options) (*Store, error) {
	dir := filepath.Join(root, topology)
	for _, d := range []string{dir, filepath.Join(dir, deadDir), filepath.Join(dir, replayDir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err // names the directory
		}
	}
	lock, err := lockRun(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, lock: lock, yard: yard{dir}, max: o.MaxBytes, seen: map[string]bool{}, told: map[string]bool{}, at: map[string][]string{}}
	if err := s.open(topology, &o); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

func lockRun(dir string) (*os.File, error) {
	lock, by, err := file.Hold(dir)
	if errors.Is(err, file.ErrLocked) {
		return nil, fmt.Errorf("%s is %w by a run of %s%s; stop that one, or use another directory", dir, ErrInUse, filepath.Base(dir), by)
	}
	return lock, err
}

// Running reports whether a run of the topology uses the directory now.
func Running(root, topology string) bool {
	f, err := os.Open(filepath.Join(root, topology, "lock"))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(file.Lock(f), file.ErrLocked)
}

func (s *Store) open(topology string, o *Options) error {
	name := filepath.Join(s.dir, "positions")
	s.positions = positions{Topology: topology, Splits: map[split]position{}}
	if b, err := os.ReadFile(name); err == nil {
		p, err := decodePositions(b)
		if err == nil {
			s.positions = p
		} else if !o.Reset {
			return unreadable(name, err, "put it right, or start over with --reset, which keeps it under another name")
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("positions: %w", err)
	}
	if err := s.nextRun(); err != nil {
		return err
	}
	if o.Reset {
		s.positions = positions{Topology: topology, Splits: map[split]position{}}
		err := os.Rename(name, name+beforeReset+strconv.FormatUint(uint64(s.epoch), 10))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget the positions: %w", err)
		}
		if err := s.forgetRecord(); err != nil {
			return fmt.Errorf("forget the record of batches: %w", err)
		}
		if err := file.SyncDir(s.dir); err != nil {
			return err
		}
	}
	s.positions.Fingerprint, s.positions.Epoch = o.Fingerprint, s.epoch
	if err := s.yard.sweep(); err != nil {
		return err
	}
	var err error
	s.bytes, err = s.yard.size()
	return err
}

// nextRun counts this run. Its number is durable before anything is done under it,
// so it is greater than that of each run before.
func (s *Store) nextRun() error {
	name := filepath.Join(s.dir, "run")
	b, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("number of the run: %w", err)
	}
	last := uint32(0)
	if err == nil {
		if last, err = decodeRun(b); err != nil {
			return unreadable(name, err, "move it away; the next run then takes a number that is greater than any in the positions and the dead letters")
		}
	}
	found, err := s.lastFound()
	if err != nil {
		return fmt.Errorf("number of the run: %w", err)
	}
	last = max(last, found)
	if last == 1<<32-1 {
		return fmt.Errorf("%s: there is no greater number of a run: begin with a new state directory", name)
	}
	s.epoch = last + 1
	return file.Write(name, encodeRun(s.epoch))
}

// lastFound returns the greatest number of a run that something in the directory is
// from: the positions that were read and those that were reset, and letters. A file
// of letters has the number of the run that wrote it in its name, and none in it is
// of a later one.
func (s *Store) lastFound() (uint32, error) {
	last := s.positions.Epoch
	for _, p := range s.positions.Splits {
		last = max(last, p.life.Epoch())
	}
	for _, dir := range []string{".", deadDir, replayDir} {
		entries, err := os.ReadDir(filepath.Join(s.dir, dir))
		if err != nil {
			return 0, err
		}
		for _, e := range entries {
			number, _, _ := strings.Cut(e.Name(), "-")
			if dir == "." {
				number, _ = strings.CutPrefix(e.Name(), "positions"+beforeReset)
			}
			if n, err := strconv.ParseUint(number, 10, 32); err == nil {
				last = max(last, uint32(n))
			}
		}
	}
	return last, nil
}

// beforeReset marks positions that were reset, with the number of the run that did.
const beforeReset = ".before-"

func unreadable(name string, err error, remedy string) error {
	if errors.Is(err, ErrNewer) {
		remedy = "use that Egret, or another state directory"
	}
	return fmt.Errorf("%s: %w; it was left as it is: %s", name, err, remedy)
}

// Epoch is the number of this run: greater than that of all before.
func (s *Store) Epoch() uint32 { return s.epoch }

// Positions returns the positions at which this run begins, by component and split.
func (s *Store) Positions() map[string]map[string]string {
	s.saving.Lock()
	defer s.saving.Unlock()
	all := map[string]map[string]string{}
	for k, p := range s.positions.Splits {
		if all[k.component] == nil {
			all[k.component] = map[string]string{}
		}
		all[k.component][k.split] = p.position
	}
	return all
}

// Save implements task.Store.
func (s *Store) Save(ps []task.Position, replayed []string) (refused int, err error) {
	s.saving.Lock()
	defer s.saving.Unlock()
	next, changed := s.positions, false
	if len(ps) > 0 {
		next.Splits = make(map[split]position, len(s.positions.Splits)+len(ps))
		for k, p := range s.positions.Splits {
			next.Splits[k] = p
		}
		for _, p := range ps {
			k := split{p.Component, p.Split}
			if next.Splits[k].life > p.Life {
				refused++ // R12
				continue
			}
			next.Splits[k] = position{p.Position, p.Life}
			changed = true
		}
	}
	if changed {
		if err := file.Write(filepath.Join(s.dir, "positions"), encodePositions(&next)); err != nil {
			return refused, err
		}
		s.positions = next
	}
	if len(replayed) > 0 {
		err = s.forget(replayed)
	}
	return refused, err
}

// Close lets others open the directory.
func (s *Store) Close() error { return s.lock.Close() }
