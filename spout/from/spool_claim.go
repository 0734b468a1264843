package from

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A claim is a file that somebody has or that waits for another try. Everything
// that is known of it is in the name of its file, so it outlives every process; and
// no two have the same name, so none is ever renamed over another.
type claim struct {
	name     string // of the file in the spool directory
	failures int
	due      time.Time
}

// id makes a name for the file of c: failures, due time in milliseconds, a random
// number, and the file's own name.
func (c claim) id() string {
	return fmt.Sprintf("%d-%d-%s-%s", c.failures, max(0, c.due.UnixMilli()), random(), c.name)
}

// parseClaim reads what id has made. What was not made by it is a file by itself.
func parseClaim(id string) claim {
	parts := strings.SplitN(id, "-", 4)
	if len(parts) == 4 && len(parts[2]) == 16 && parts[3] != "" {
		failures, err := strconv.Atoi(parts[0])
		due, err2 := strconv.ParseInt(parts[1], 10, 64)
		if err == nil && err2 == nil && failures >= 0 {
			return claim{name: parts[3], failures: failures, due: time.UnixMilli(due)}
		}
	}
	return claim{name: id}
}

func random() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// scan lists files that may be claimed: first those whose next try is due, then
// new ones by name. soon is when the next one will be due; zero if none waits.
func (s *spool) scan() (soon time.Time, err error) {
	now := time.Now()
	err = each(s.at(".retry"), func(e fs.DirEntry) bool {
		c := parseClaim(e.Name())
		switch {
		case !e.Type().IsRegular():
		case !c.due.After(now), c.due.After(now.Add(lastRetry)): // the clock went back
			s.list = append(s.list, found{s.at(".retry", e.Name()), c})
		case soon.IsZero() || c.due.Before(soon):
			soon = c.due
		}
		return len(s.list) < mostListed
	})
	if err != nil {
		return soon, err
	}
	again := len(s.list)
	slices.SortFunc(s.list, func(x, y found) int { return x.due.Compare(y.due) })
	err = each(s.dir, func(e fs.DirEntry) bool {
		name := e.Name()
		if e.Type().IsRegular() && !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, ".tmp") {
			s.list = append(s.list, found{s.at(name), claim{name: name}})
		}
		return len(s.list) < mostListed
	})
	slices.SortFunc(s.list[again:], func(x, y found) int { return strings.Compare(x.name, y.name) })
	return soon, err
}

// each calls f for the entries of a directory until it is false, a few at a time.
func each(dir string, f func(fs.DirEntry) bool) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(512)
		for _, e := range entries {
			if !f(e) {
				return nil
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// An owner is a place for claims: a directory, and beside it a file that is locked
// as long as its process lives. Who can lock the file knows that the owner is dead.
//
// The lock is there before the directory and is removed after it.
type owner struct {
	dir  string
	lock *os.File
}

// own makes a new owner in a directory.
func own(in string) (owner, error) {
	for {
		o := owner{dir: filepath.Join(in, random())}
		var err error
		if o.lock, err = lock(o.dir + ".lock"); errors.Is(err, errTaken) {
			continue // by somebody who looks for the dead, and has found it not locked yet
		}
		if err != nil {
			return owner{}, err
		}
		if err := os.Mkdir(o.dir, 0o777); err != nil {
			return owner{}, errors.Join(err, os.Remove(o.dir+".lock"), o.lock.Close())
		}
		return o, nil
	}
}

// errTaken says that a lock has an owner.
var errTaken = errors.New("locked by another")

// lock locks the file with the given path, which it makes if there is none.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o666)
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// The one who had it before may have removed it meanwhile.
	mine, err := f.Stat()
	there, gone := os.Stat(path)
	if err != nil || gone != nil || !os.SameFile(mine, there) {
		return nil, errors.Join(errTaken, f.Close())
	}
	return f, nil
}

// end moves what o has claimed to another directory, and removes o.
func (o owner) end(to string) error {
	var errs []error
	err := each(o.dir, func(e fs.DirEntry) bool {
		errs = append(errs, os.Rename(filepath.Join(o.dir, e.Name()), filepath.Join(to, e.Name())))
		return true
	})
	if !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err, os.Remove(o.dir))
	}
	if errors.Join(errs...) == nil {
		errs = append(errs, os.Remove(o.dir+".lock"))
	}
	return errors.Join(append(errs, o.lock.Close())...)
}

// recover puts back what owners had claimed that are dead. It is then among the first
// that are listed anew.
func (s *spool) recover() error {
	s.recovered = time.Now()
	seen := map[string]bool{filepath.Base(s.owner.dir): true}
	var errs []error
	err := each(s.at(".claimed"), func(e fs.DirEntry) bool {
		name := strings.TrimSuffix(e.Name(), ".lock")
		if seen[name] {
			return true
		}
		seen[name] = true
		o := owner{dir: s.at(".claimed", name)}
		var err error
		switch o.lock, err = lock(o.dir + ".lock"); {
		case errors.Is(err, errTaken):
		case err != nil:
			errs = append(errs, err)
		default:
			errs = append(errs, o.end(s.at(".retry")))
			s.list = nil
		}
		return true
	})
	if err = errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("what others had claimed: %w", err)
	}
	return nil
}
