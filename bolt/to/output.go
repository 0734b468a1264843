package to

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// partial is the end of the name that an output has until it is complete.
const partial = ".partial"

// An output is the file of one task in one run. It outlives the task's lives: what
// one of them had acked and not written, the next one writes.
//
// Invariants: the first size bytes of the file are whole lines that were acked, and
// so is buf, which comes behind them. What the file has beyond size is left of a
// write that failed, and is written over or cut off. life is the only one that may
// write; another's calls come too late and change nothing.
type output struct {
	path  string
	limit int // bytes of buf that are written

	mu        sync.Mutex
	life      int
	f         *os.File // nil: not open
	begun     bool     // the file is this run's
	published bool     // it has its name
	size      int64
	buf       []byte
}

// name is where the file is now.
func (o *output) name() string {
	if o.published {
		return o.path
	}
	return o.path + partial
}

// take makes life the one that writes. The first life of a run begins afresh, and
// a later one goes on.
func (o *output) take(life int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if life <= 1 {
		if o.f != nil {
			return o.busy()
		}
		o.begun, o.published, o.size, o.buf = false, false, 0, nil
	}
	o.life = life
	if o.f != nil {
		return nil // of a life that has not been closed
	}
	switch info, err := os.Stat(o.path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is there already and is no regular file, which would be replaced: choose another name, or write to it with Print", o.path)
	}
	return o.open()
}

func (o *output) busy() error {
	return fmt.Errorf("%s is being written by somebody else: another run, program or component has the same path", o.name())
}

func (o *output) open() (err error) {
	flag := os.O_RDWR
	if !o.begun {
		flag |= os.O_CREATE
	}
	f, err := os.OpenFile(o.name(), flag, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if ok, err := lock(f); err != nil {
		return fmt.Errorf("locking %s: %w", o.name(), err)
	} else if !ok {
		return o.busy()
	}
	have, err := f.Stat()
	if err != nil {
		return err
	}
	// The one who had the lock before may have renamed the file meanwhile: then it is
	// another's result.
	if at, err := os.Stat(o.name()); err != nil || !os.SameFile(have, at) {
		return o.busy()
	}
	if have.Size() < o.size {
		return fmt.Errorf("%s has %d bytes and not the %d that were written to it: somebody else has changed it", o.name(), have.Size(), o.size)
	}
	if err := f.Truncate(o.size); err != nil { // at first size is 0
		return err
	}
	o.f, o.begun = f, true
	return nil
}

// flush writes what there is. What cannot be written stays.
func (o *output) flush() error {
	if len(o.buf) == 0 {
		return nil
	}
	if _, err := o.f.WriteAt(o.buf, o.size); err != nil {
		return fmt.Errorf("writing %d bytes: %w", len(o.buf), err) // names the file
	}
	o.size += int64(len(o.buf))
	if o.buf = o.buf[:0]; cap(o.buf) > 4*o.limit {
		o.buf = nil
	}
	return nil
}

// publish gives the file its name, complete and on disk.
func (o *output) publish() error {
	if err := o.flush(); err != nil {
		return err
	}
	if err := o.f.Truncate(o.size); err != nil {
		return err
	}
	if err := o.f.Sync(); err != nil {
		return err
	}
	if o.published {
		return nil // by a life that died behind that
	}
	if !posix {
		err := o.f.Close()
		if o.f = nil; err != nil {
			return err
		}
	}
	if err := os.Rename(o.name(), o.path); err != nil {
		return err
	}
	o.published = true
	if !posix {
		return nil
	}
	dir, err := os.Open(filepath.Dir(o.path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// leave writes what there is and closes the file.
func (o *output) leave() error {
	if o.f == nil {
		return nil
	}
	err := o.flush()
	err = errors.Join(err, o.f.Close())
	o.f = nil
	return err
}
