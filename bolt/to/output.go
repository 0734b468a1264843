package to

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/egretstream/egret/bolt"
)

const (
	partial = ".partial"        // behind the name of an output that is not complete
	copying = partial + ".copy" // behind that of a copy that will be one
)

// An output is the file of one task in one run. It outlives the task's lives.
//
// Invariants: the first size bytes of the file are whole lines, and every line that
// was acked is one of them. What the file has beyond size is left of a write that
// failed, and is written over or cut off. life is the only one that may write;
// another's calls come too late and change nothing. Files with the output's names
// are changed by who has the claim, and by nobody else.
type output struct {
	path string

	mu        sync.Mutex
	life      int
	who       string       // writes, for people
	release   func() error // gives up the claim; nil: not claimed
	f         *os.File     // nil: not open
	continued bool         // what is there is gone on with
	begun     bool         // size is right, and the file is this run's, if there is one
	finished  bool         // what is there has its name, and is copied when there is a line
	published bool         // it has its name
	size      int64
}

// name is where the file is now.
func (o *output) name() string {
	if o.published {
		return o.path
	}
	return o.path + partial
}

// take makes the life that task tells of the one that writes. The first life of a
// run begins the file, and a later one goes on.
func (o *output) take(task *bolt.Task) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	who := fmt.Sprintf("component %s of topology %s", task.Component, task.Topology)
	if task.Life <= 1 {
		if o.release != nil {
			return taken(o.path, o.who, who)
		}
		o.begun, o.finished, o.published, o.size = false, false, false, 0
	}
	o.life, o.who, o.continued = task.Life, who, task.Continued
	if o.release != nil {
		return nil // of a life that has not been closed
	}
	if err := o.check(); err != nil {
		return err
	}
	release, err := claim(o.path, who)
	if err != nil {
		return err
	}
	if err := o.open(); err != nil {
		return errors.Join(err, release())
	}
	o.release = release
	return nil
}

// taken is the error of who wants to write what somebody else writes.
func taken(path, by, who string) error {
	return bolt.Reject(fmt.Errorf("%s is being written by %s, so %s cannot write to it: give each a path of its own", path, by, who))
}

// check looks for what no other try would mend.
func (o *output) check() error {
	dir := filepath.Dir(o.path)
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return bolt.Reject(fmt.Errorf("the file %s cannot be written, because there is no directory %s: make it first", o.path, dir))
	case err != nil:
		return lasting(err)
	case !info.IsDir():
		return bolt.Reject(fmt.Errorf("the file %s cannot be written, because %s is no directory", o.path, dir))
	}
	switch info, err := os.Stat(o.path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return lasting(err)
	case !info.Mode().IsRegular():
		return bolt.Reject(fmt.Errorf("%s is there already and is no regular file, which would be replaced: choose another name, or write to it with Print", o.path))
	}
	return nil
}

// lasting rejects with an error that would be the same the next time.
func lasting(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return bolt.Reject(err)
	}
	return err
}

// open opens the file, unless it has to be copied first.
func (o *output) open() error {
	if o.begun {
		return o.reopen()
	}
	_ = os.Remove(o.path + copying) // of a run that was killed; if it stays it is written over
	if !o.continued {
		return o.create()
	}
	f, err := os.OpenFile(o.path+partial, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = os.Stat(o.path); errors.Is(err, fs.ErrNotExist) {
			return o.create()
		}
		o.begun, o.finished = err == nil, err == nil
		return err
	}
	if err != nil {
		return lasting(err)
	}
	if o.size, err = cut(f); err != nil {
		return errors.Join(err, f.Close())
	}
	o.f, o.begun = f, true
	return nil
}

func (o *output) create() (err error) {
	if o.f, err = os.OpenFile(o.path+partial, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666); err != nil {
		return lasting(err)
	}
	o.begun = true
	return nil
}

// reopen opens a file of this run for a later life.
func (o *output) reopen() error {
	if o.finished {
		return nil
	}
	f, err := os.OpenFile(o.name(), os.O_RDWR, 0)
	if err != nil {
		return lasting(err)
	}
	have, err := f.Stat()
	if err == nil && have.Size() < o.size {
		err = bolt.Reject(fmt.Errorf("%s has %d bytes and not the %d that were written to it: somebody else has changed it", o.name(), have.Size(), o.size))
	}
	if err == nil {
		err = f.Truncate(o.size)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	o.f = f
	return nil
}

// cut cuts off the rest of a line at the end of f, whose process was killed while it
// wrote, and returns the size that is left.
func cut(f *os.File) (size int64, err error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	block := make([]byte, 64<<10)
	for size = end; size > 0; {
		from := max(0, size-int64(len(block)))
		b := block[:size-from]
		if _, err := f.ReadAt(b, from); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			size = from + int64(i) + 1
			break
		}
		size = from
	}
	if size == end {
		return size, nil
	}
	return size, f.Truncate(size)
}

// copyFinished makes of the file that an earlier run has finished one that this run
// goes on with. What has the name of that is always a whole copy, so that the next
// run loses nothing if this one is killed here.
func (o *output) copyFinished() error {
	from, err := os.Open(o.path)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	name := o.path + copying
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, info.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	var size int64
	if _, err = io.Copy(f, from); err == nil {
		size, err = cut(f)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(name, o.path+partial)
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	o.finished, o.size = false, size
	return nil
}

// write writes a line. After an error nothing of it counts.
func (o *output) write(line []byte) error {
	if o.finished {
		if err := o.copyFinished(); err != nil {
			return fmt.Errorf("copying what an earlier run has written, to go on with it: %w", err)
		}
	}
	if o.f == nil {
		if err := o.reopen(); err != nil {
			return err
		}
	}
	if _, err := o.f.WriteAt(line, o.size); err != nil {
		return fmt.Errorf("writing %d bytes: %w", len(line), err) // names the file
	}
	o.size += int64(len(line))
	return nil
}

// publish gives the file its name, complete and on disk.
func (o *output) publish() error {
	if o.finished {
		return nil // and nothing is new
	}
	if o.f == nil {
		if err := o.reopen(); err != nil {
			return err
		}
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

// leave closes the file and gives up the claim.
func (o *output) leave() error {
	if o.release == nil {
		return nil
	}
	var err error
	if o.f != nil {
		err = o.f.Close()
		o.f = nil
	}
	err = errors.Join(err, o.tidy(), o.release())
	o.release = nil
	return err
}

// tidy removes a file without a line. Beside one of an earlier run it stays: it says
// that a run that goes on from here does not go on with that one.
func (o *output) tidy() error {
	if !o.begun || o.finished || o.published || o.size > 0 {
		return nil
	}
	if _, err := os.Lstat(o.path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	o.begun = false
	return os.Remove(o.name())
}
