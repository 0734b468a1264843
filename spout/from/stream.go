package from

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/egretstream/egret/spout"
)

// inputWait bounds how long one call of Next waits for standard input or a pipe,
// so that the end of a run does not wait for a key.
const inputWait = 20 * time.Millisecond

// A stream is what can be read only once. It belongs to the source and not to a
// reader, because what has been read of it and not been cut is nowhere else: the
// reader of a task that is started again goes on with it.
//
// A stream that is not read to its end is closed with its process, or when its
// source is collected.
type stream struct {
	mu      sync.Mutex
	r       lineReader
	readers int // opened so far; only the last one may read
}

// openStream returns a reader of a stream, which must be at pos.
func (s *LineSource) openStream(p part, pos int64) (spout.Reader, error) {
	st, err := s.stream(p)
	if err != nil {
		return nil, err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if at := st.r.c.pos; at != pos {
		return nil, spout.Fatal(fmt.Errorf("the stream cannot be read again from byte %d: it is at byte %d and can only go on; copy it into a file to have its lines replayed", pos, at))
	}
	st.readers++
	return &streamReader{st: st, number: st.readers}, nil
}

func (s *LineSource) stream(p part) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[p.name]; st != nil {
		return st, nil
	}
	name, f := "standard input", s.stdin
	if p.name != "-" {
		var err error
		// Not to wait for a writer here: whether there is something to read is asked
		// before each read, and asking can be interrupted.
		if f, err = os.OpenFile(p.name, os.O_RDONLY|openNow, 0); err != nil {
			return nil, failed(err)
		}
		name = p.name
	}
	st := &stream{r: lineReader{name: name, end: endless, file: f, c: cutter{r: f, max: s.maxLine}}}
	s.decode(&st.r)
	if p.name == "-" {
		st.r.file = nil // not ours to close
	}
	st.r.ready = func(wait bool) (bool, error) {
		if wait {
			return readable(f, inputWait)
		}
		return readable(f, 0)
	}
	if s.streams == nil {
		s.streams = map[string]*stream{}
	}
	s.streams[p.name] = st
	return st, nil
}

var errStale = errors.New("the stream has been opened again since")

// A streamReader is one task's turn at a stream.
type streamReader struct {
	st     *stream
	number int
}

func (r *streamReader) Next(ctx context.Context, out *spout.Out) error {
	r.st.mu.Lock()
	defer r.st.mu.Unlock()
	if r.number != r.st.readers {
		return errStale
	}
	err := r.st.r.Next(ctx, out)
	if err == errLater {
		return nil // the task calls again
	}
	return err
}

func (r *streamReader) Position() string {
	r.st.mu.Lock()
	defer r.st.mu.Unlock()
	return r.st.r.Position()
}

// Close frees a stream that has been read to its end, and leaves another one to
// the next reader.
func (r *streamReader) Close() error {
	r.st.mu.Lock()
	defer r.st.mu.Unlock()
	file := r.st.r.file
	if r.st.r.c.err == nil || file == nil {
		return nil
	}
	r.st.r.file = nil
	return file.Close()
}
