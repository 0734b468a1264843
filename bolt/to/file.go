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
// stopped or has failed.
//
// A run begins the file anew, and so does the .partial of one that follows. But where
// the input goes on, the output does: a run that goes on from what an earlier one has
// left in egret.Config.StateDir (see [bolt.Task.Continued]) keeps the lines that are
// there. It adds to the .partial of a run that was killed, from which it cuts off
// a line that is not whole, or else to a copy of the finished file, which it makes at
// the first line and which takes the place of the old one in the end.
//
// Two runs, programs or components cannot write to the same path at the same time:
// on Unix the second one ends with an error that says who does, and has written nothing.
// For as long, there is a file .NAME.lock beside the output.
//
// One task writes one file. A component with several of them needs {task} in the
// path, which stands for the number of the task: "part-{task}.txt". A run with fewer
// tasks than the one before leaves the files of the others as they are.
//
// A tuple is acked when its line is written, with a call of the operating system
// for each, and so is in the file whatever becomes of the task or the process. What a
// machine that loses power has not put on its disk is another matter: that is sure when
// the file has its name. A message that is replayed is written again: at
// least once means that a line may be there twice. A tuple whose line cannot be written
// fails with path and cause. No directory, no permission, and other mistakes that no
// other try would mend end the run at once.
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
		return nil, bolt.Reject(errors.New("the path of the file to write is empty"))
	case task.Parallel > 1 && path == s.path:
		return nil, bolt.Reject(fmt.Errorf("component %s has %d tasks and one file to write, %s: put {task} into its name, or give the component one task", task.Component, task.Parallel, s.path))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fileKey{task.Component, task.Index}
	if s.outputs[key] == nil {
		s.outputs[key] = &output{path: path}
	}
	return s.outputs[key], nil
}

// A fileBolt is one life of a task that writes a file.
type fileBolt struct {
	set     *fileSet
	encoder encoder
	out     *output
	life    int
	line    []byte // room for one
}

func (b *fileBolt) Prepare(_ context.Context, task *bolt.Task) error {
	out, err := b.set.of(task)
	if err != nil {
		return err
	}
	b.out, b.life = out, task.Life
	return out.take(task)
}

func (b *fileBolt) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	line, err := b.encoder.append(b.line[:0], in)
	if err != nil {
		return bolt.Reject(err)
	}
	if b.line = line; cap(line) > mostRoom {
		b.line = nil
	}
	return b.locked(func(o *output) error { return o.write(line) })
}

const mostRoom = 256 << 10 // bytes that are kept for the next line

var errLate = errors.New("a later life of this task writes the file now")

func (b *fileBolt) Finish(*bolt.Collector) error { return b.locked((*output).publish) }

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
