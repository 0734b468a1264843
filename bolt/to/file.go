package to

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

// Lines returns a factory of bolts that write a line for each tuple to the file
// with the given path: the values of the given fields, or of all if none is given,
// as text with a tab between them. Nil is no text.
//
// What was written is read back as it was: a value with a line break in it, or
// one of several with a tab, rejects its tuple; see [JSONLines] for such values.
//
// The file appears when the input of its task has ended, complete and on disk, and
// only then replaces one that was there. Until then its lines are in a file of
// the same name with .partial behind it, which is what is left of a run that was
// stopped or has failed, and is written anew by the next one. Two runs cannot write to
// the same path at the same time, and none adds to the file of another: where a run
// goes on from positions that an earlier one has committed, give it a path of its own.
//
// One task writes one file. A component with several of them needs {task} in the
// path, which stands for the number of the task: "part-{task}.txt".
//
// A tuple is acked when its line is collected or written; lines are collected up to
// 64 KB, and written then, at each tick, and in the end. A task that is started again
// goes on with the lines of the life before, so what was acked is in the file. A message
// that is replayed is written again: at least once means that a line may be there twice.
// A tuple whose lines cannot be written fails with path and cause, and later tuples try
// the lines before them again.
func Lines(path string, fields ...string) bolt.Factory {
	return files(path, fields, func(fields []string) encoder { return &lineEncoder{fields: fields} })
}

// JSONLines is like [Lines] and writes a JSON object for each tuple, whose members
// are the given fields, or all. Integers and floats are numbers, and a float always
// has a point or an exponent; strings are strings, which must be valid UTF-8; bytes
// are a string in base64; a time is RFC 3339 in UTC with up to nine digits of a
// second, a duration is text as of time.Duration.String; a [tuple.Any] is what
// encoding/json makes of it. What JSON cannot hold rejects its tuple: NaN,
// infinities, other strings.
func JSONLines(path string, fields ...string) bolt.Factory {
	return files(path, fields, func(fields []string) encoder { return &jsonEncoder{fields: fields} })
}

// An encoder appends the line of a tuple, with its line end. An error is a
// mistake in the tuple.
type encoder interface {
	append(dst []byte, in tuple.Tuple) ([]byte, error)
}

func files(path string, fields []string, encode func(fields []string) encoder) bolt.Factory {
	s := &fileSet{path: path, outputs: map[fileKey]*output{}}
	fields = append([]string(nil), fields...)
	return func() bolt.Bolt { return &fileBolt{set: s, encoder: encode(fields)} }
}

// A fileSet is the outputs of the tasks that one factory makes.
type fileSet struct {
	path    string
	mu      sync.Mutex
	outputs map[fileKey]*output
}

type fileKey struct {
	component string
	task      int
}

func (s *fileSet) of(task *bolt.Task) (*output, error) {
	path := strings.ReplaceAll(s.path, "{task}", strconv.Itoa(task.Index))
	switch {
	case s.path == "":
		return nil, errors.New("the path of the file to write is empty")
	case task.Parallel > 1 && path == s.path:
		return nil, fmt.Errorf("component %s has %d tasks and one file to write, %s: put {task} into its name, or give the component one task", task.Component, task.Parallel, s.path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fileKey{task.Component, task.Index}
	if s.outputs[key] == nil {
		s.outputs[key] = &output{path: path, limit: bufferSize}
	}
	return s.outputs[key], nil
}

// A fileBolt is one life of a task that writes a file.
type fileBolt struct {
	set     *fileSet
	encoder encoder
	out     *output
	life    int
}

func (b *fileBolt) Prepare(_ context.Context, task *bolt.Task) error {
	out, err := b.set.of(task)
	if err != nil {
		return err
	}
	b.out, b.life = out, task.Life
	return out.take(b.life)
}

func (b *fileBolt) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	o := b.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.life != b.life {
		return errLate
	}
	before := len(o.buf)
	buf, err := b.encoder.append(o.buf, in)
	if err != nil {
		return bolt.Reject(err)
	}
	if o.buf = buf; len(buf) < o.limit {
		return nil
	}
	if err = o.flush(); err != nil {
		o.buf = o.buf[:before] // the tuple will come again
	}
	return err
}

var errLate = errors.New("a later life of this task writes the file now")

func (b *fileBolt) Tick(*bolt.Collector) error   { return b.locked((*output).flush) }
func (b *fileBolt) Finish(*bolt.Collector) error { return b.locked((*output).publish) }

// Close leaves what it cannot write to the next life: it is acked.
func (b *fileBolt) Close() error {
	if err := b.locked((*output).leave); err != errLate {
		return err
	}
	return nil
}

func (b *fileBolt) locked(f func(*output) error) error {
	b.out.mu.Lock()
	defer b.out.mu.Unlock()
	if b.out.life != b.life {
		return errLate
	}
	return f(b.out)
}
