package from

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/egretstream/egret/spout"
)

// checkDone refuses a Done directory in which files would be taken for others, or
// that no file can be moved to.
func (s *spool) checkDone() error {
	if s.o.Done == "" {
		return nil
	}
	at, err := filepath.Abs(s.o.Done)
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	if err != nil {
		return err
	}
	inner := []string{s.at(".claimed"), s.at(".retry"), s.at("failed")}
	wrong := same(at, s.dir) // it may be in it
	for ; !wrong && at != filepath.Dir(at); at = filepath.Dir(at) {
		wrong = slices.ContainsFunc(inner, func(dir string) bool { return same(at, dir) })
	}
	if wrong {
		return spout.Fatal(fmt.Errorf("what is done in the spool directory %s would be moved to %s, where what is not done is: choose another directory for Done", s.dir, s.o.Done))
	}
	return s.tryMove(s.o.Done)
}

func same(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// tryMove moves an empty file to a directory. Its name begins with a dot, so nobody
// takes it for one that is to be delivered.
func (s *spool) tryMove(dir string) error {
	name := ".try-" + random()
	if err := os.WriteFile(s.at(name), nil, 0o600); err != nil {
		return err
	}
	if err := os.Rename(s.at(name), filepath.Join(dir, name)); err != nil {
		return errors.Join(spout.Fatal(fmt.Errorf("what is done in the spool directory %s cannot be moved to %s: Done must be a directory on the same file system in which files may be made: %w", s.dir, dir, err)), os.Remove(s.at(name)))
	}
	return os.Remove(filepath.Join(dir, name))
}

// keep moves a file to a directory, under a name and, if that is taken, a random
// number. It takes the place of no other file, and a process that is killed leaves it
// complete: where it was, or where it goes, or in both.
//
// link is os.Link.
func keep(link func(file, as string) error, file, dir, name string) error {
	for as := name; ; as = name + "-" + random() {
		err := link(file, filepath.Join(dir, as))
		switch {
		case err == nil:
			return os.Remove(file)
		case !errors.Is(err, fs.ErrExist):
			// Not every file system has links, and not everybody may make one of
			// somebody else's file.
			return os.Rename(file, filepath.Join(dir, name+"-"+random()))
		}
	}
}
