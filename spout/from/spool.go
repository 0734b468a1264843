package from

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/egretstream/egret/spout"
)

// Values of [SpoolOptions.MaxRetries] that are no number of retries.
const (
	RetryForever = -1
	NoRetries    = -2
)

// SpoolOptions are for [Spool]. The zero value is good for most.
type SpoolOptions struct {
	// MaxSize is how many bytes a file may have. A larger one is moved aside. Default
	// 16 MB.
	MaxSize int64
	// MaxRetries is how often a file that has failed is delivered again before it is moved
	// aside. Losses and timeouts do not count. Default 8; RetryForever, NoRetries.
	MaxRetries int
	// Done is a directory on the same file system that files are moved to when they are
	// done, under their name or, if that is taken, with a random number behind it. It may
	// be in the spool directory, but none that the queue has there. Default: they are
	// removed.
	Done string
	// UntilEmpty ends the queue when nothing is left to be delivered, not even what
	// waits for its next try. Default: it waits for more files.
	UntilEmpty bool
}

const (
	defaultFile  = 16 << 20 // bytes
	firstPoll    = 10 * time.Millisecond
	lastPoll     = time.Second
	firstRetry   = 50 * time.Millisecond
	lastRetry    = 10 * time.Second
	mostListed   = 4096 // files that are known of at a time
	longestName  = 200  // bytes, so that there is room for what is put in front
	recoverEvery = time.Second
)

// Spool returns a queue of the files that others put into dir. Each file is one
// message with two fields, its name and its content, both strings; the content is
// whatever bytes the file has.
//
//	b.Queue("letters", from.Spool("/var/spool/letters", from.SpoolOptions{})).Emits("name", "content")
//
// A writer writes to a name that begins with "." or ends with ".tmp", which are
// left alone, as is everything that is no regular file; and renames it in dir when
// it is complete. Several tasks, and several processes of one machine, may share dir,
// which must be on a local file system.
//
//	dir/name                 to be delivered, in the order of the names as far as 4,096 are known
//	dir/.claimed/...         delivered and not answered
//	dir/.retry/...           failed, waits for its next try: 50 ms, then twice as long, up to 10 s
//	dir/failed/name          was rejected, has failed too often, is too large, ...
//	dir/failed/name.error    why
//
// Files that are given up are logged: ten in ten seconds, the rest by number, and all
// by number when the task ends.
//
// A file is claimed by a rename, so one task has it. When it is done it is removed.
// What was claimed by a process that was killed is delivered again by the next one
// that opens dir, or one that has it open, which looks each second. Like any queue's, a message may come twice;
// its file may be found by its name until it is done.
//
// Spool looks for new files when it has none: after 10 ms, then more seldom, at least
// once a second.
func Spool(dir string, o SpoolOptions) spout.QueueFactory {
	if o.MaxSize == 0 {
		o.MaxSize = defaultFile
	}
	if o.MaxRetries == 0 {
		o.MaxRetries = 8
	}
	return func() spout.Queue {
		return &spool{dir: dir, o: o, wake: make(chan struct{}, 1), claims: map[string]claim{}}
	}
}

// A spool is a spool directory as one life of a task sees it.
//
// Owner: Open, Next and Close have all of it but claims and given, which they share
// with Ack and Fail; none of those needs anything else that changes.
type spool struct {
	dir       string
	o         SpoolOptions
	owner     owner
	list      []found // to be claimed
	recovered time.Time
	wake      chan struct{} // something was answered
	logger    *slog.Logger

	mu     sync.Mutex
	claims map[string]claim // delivered and not answered
	given  givenUp
}

// A found file is one that may be claimed.
type found struct {
	path string
	claim
}

// Open checks the directory, makes a place for claims in it, and takes over what
// dead processes had claimed.
func (s *spool) Open(_ context.Context, task *spout.Task) error {
	s.logger = task.Logger
	info, err := os.Stat(s.dir)
	switch {
	case err != nil:
		return spout.Fatal(fmt.Errorf("spool directory: %w", err))
	case !info.IsDir():
		return spout.Fatal(fmt.Errorf("the spool directory %s is no directory", s.dir))
	case s.o.MaxSize < 0:
		return spout.Fatal(fmt.Errorf("MaxSize of the spool directory %s is %d: it must not be negative", s.dir, s.o.MaxSize))
	case s.o.MaxRetries < NoRetries:
		return spout.Fatal(fmt.Errorf("MaxRetries of the spool directory %s is %d: it must be at least %d", s.dir, s.o.MaxRetries, NoRetries))
	}
	for _, dir := range []string{s.at(".claimed"), s.at(".retry"), s.at("failed"), s.o.Done} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return fmt.Errorf("spool directory %s: %w", s.dir, err)
		}
	}
	if err := s.checkDone(); err != nil {
		return err
	}
	if s.owner, err = own(s.at(".claimed")); err != nil {
		return fmt.Errorf("spool directory %s: %w", s.dir, err)
	}
	if err := s.recover(); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

func (s *spool) at(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}

// Next claims files and delivers them, or waits for some.
func (s *spool) Next(ctx context.Context, out *spout.QueueOut) error {
	for wait := firstPoll; ; wait = min(2*wait, lastPoll) {
		// Not only when there is nothing else, which may never be.
		if time.Since(s.recovered) >= recoverEvery {
			if err := s.recover(); err != nil {
				return err
			}
		}
		// What is answered from here on is in a directory before it is no claim.
		idle := s.open() == 0
		soon, err := s.take(ctx, out)
		switch {
		case out.Len() > 0:
			return nil // what is wrong is still wrong at the next call
		case err != nil:
			return err
		case s.o.UntilEmpty && idle && soon.IsZero():
			return io.EOF
		}
		again := time.Now().Add(wait)
		if !soon.IsZero() && soon.Before(again) {
			again = soon
		}
		if err := sleepUntil(ctx, again, s.wake); err != nil {
			return err
		}
	}
}

func (s *spool) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.claims)
}

// take delivers what there is. soon is when a file will be due that is not yet, or
// was there and has gone to somebody else; zero if there is none.
func (s *spool) take(ctx context.Context, out *spout.QueueOut) (soon time.Time, err error) {
	if len(s.list) == 0 {
		if soon, err = s.scan(); err != nil {
			return soon, err
		}
		if len(s.list) > 0 && soon.IsZero() {
			soon = time.Now() // look again when these are through
		}
	} else {
		soon = time.Now()
	}
	for len(s.list) > 0 && !out.Full() {
		if err := ctx.Err(); err != nil {
			return soon, err
		}
		f := s.list[0]
		s.list[0], s.list = found{}, s.list[1:]
		if err := s.deliver(f, out); err != nil {
			return soon, err
		}
	}
	return soon, nil
}

// deliver claims a file, reads it and emits it.
func (s *spool) deliver(f found, out *spout.QueueOut) error {
	long := len(f.name) > longestName
	full := f.name
	if long {
		f.name = strings.ToValidUTF8(f.name[:longestName], "")
	}
	id := f.claim.id()
	path := filepath.Join(s.owner.dir, id)
	if err := os.Rename(f.path, path); err != nil {
		if _, gone := os.Lstat(f.path); errors.Is(gone, os.ErrNotExist) {
			return nil // another task was quicker, or it was taken back
		}
		return fmt.Errorf("claim: %w", err)
	}
	if long {
		return s.aside(id, f.claim, fmt.Sprintf("the name %q is longer than %d bytes: rename it", full, longestName))
	}
	content, err := s.read(path)
	switch {
	case errors.Is(err, errTooLarge):
		return s.aside(id, f.claim, err.Error())
	case err != nil:
		return s.retry(id, f.claim, err)
	}
	s.mu.Lock()
	s.claims[id] = f.claim
	s.mu.Unlock()
	out.Emit(id, f.name, content)
	return nil
}

var errTooLarge = errors.New("the file is too large")

// read returns the content of a file, of which never more is read than allowed.
func (s *spool) read(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if size := info.Size(); size <= s.o.MaxSize {
		b.Grow(int(size))
		if _, err := io.Copy(&b, io.LimitReader(f, s.o.MaxSize+1)); err != nil {
			return "", err
		}
		if int64(b.Len()) <= s.o.MaxSize {
			return b.String(), nil
		}
	}
	return "", fmt.Errorf("%w: it has more than %s, which is the limit; if that is how it should be, set a higher MaxSize", errTooLarge, size(int(s.o.MaxSize)))
}

// Ack removes a file that is done, or moves it to where it is wanted.
func (s *spool) Ack(_ context.Context, id string) error {
	return s.answer(id, func(c claim) error {
		if s.o.Done == "" {
			return os.Remove(filepath.Join(s.owner.dir, id))
		}
		return keep(os.Link, filepath.Join(s.owner.dir, id), s.o.Done, c.name)
	})
}

// Fail puts a file back for another try, or moves it aside.
func (s *spool) Fail(_ context.Context, id string, why error) error {
	return s.answer(id, func(c claim) error {
		switch {
		case errors.Is(why, spout.ErrRejected):
			return s.aside(id, c, why.Error())
		case errors.Is(why, spout.ErrFailed):
			return s.retry(id, c, why)
		}
		return os.Rename(filepath.Join(s.owner.dir, id), s.at(".retry", id)) // at once, for it was nobody's fault
	})
}

// answer ends a claim. Next may look whether there are any: when this one is no
// longer there, its file is where it belongs.
func (s *spool) answer(id string, f func(claim) error) error {
	s.mu.Lock()
	c, ok := s.claims[id]
	s.mu.Unlock()
	if !ok {
		return fmt.Errorf("the spool directory %s has no claim %s", s.dir, id)
	}
	err := f(c)
	s.mu.Lock()
	delete(s.claims, id)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return err
}

// retry puts a claimed file back after a failure, if it has a try left.
func (s *spool) retry(id string, c claim, why error) error {
	c.failures++
	if s.o.MaxRetries == NoRetries || s.o.MaxRetries >= 0 && c.failures > s.o.MaxRetries {
		return s.aside(id, c, fmt.Sprintf("failed %d times, the last time: %v", c.failures, why))
	}
	pause := firstRetry
	for i := 1; i < c.failures && pause < lastRetry; i++ {
		pause *= 2
	}
	c.due = time.Now().Add(min(pause, lastRetry))
	return os.Rename(filepath.Join(s.owner.dir, id), s.at(".retry", c.id()))
}

// aside moves a claimed file to the failed ones, the reason beside it.
func (s *spool) aside(id string, c claim, why string) error {
	for name := c.name; ; name = c.name + "-" + random() {
		path := s.at("failed", name)
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		f, err := os.OpenFile(path+".error", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.WriteString(why + "\n")
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(filepath.Join(s.owner.dir, id), path)
		}
		if err != nil {
			return errors.Join(err, os.Remove(path+".error"))
		}
		s.tell(path, why)
		return nil
	}
}

// Close puts back what has no answer and gives up the place for claims.
func (s *spool) Close() error {
	if s.owner.lock == nil {
		return nil
	}
	o := s.owner
	s.owner = owner{}
	s.tellAll()
	return o.end(s.at(".retry"))
}
