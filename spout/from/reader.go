package from

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"github.com/egretstream/egret/spout"
)

// A lineReader reads the lines of one split.
//
// Owner: the task that reads the split; the methods are called one at a time.
type lineReader struct {
	name string
	c    cutter
	file io.Closer
	end  int64 // a line that begins here or behind belongs to the next split
	// skip: the text begins in a line that belongs to the split before.
	skip bool
	// ready says whether a read would return at once, and may wait a little until
	// it would. It is nil for files.
	ready func(wait bool) (bool, error)
}

func (r *lineReader) Next(ctx context.Context, out *spout.Out) error {
	for r.skip {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.skip = !r.c.skip() && r.c.pos < r.end
	}
	for !out.Full() {
		if r.c.pos >= r.end {
			return io.EOF
		}
		if line, ok := r.c.line(); ok {
			out.Emit(line)
			continue
		}
		if err := r.more(ctx, out); err != nil {
			if out.Len() > 0 && err != io.EOF {
				return nil // what is wrong is still wrong at the next call
			}
			return err
		}
	}
	return nil
}

// errLater says that there is nothing to read now.
var errLater = errors.New("nothing to read yet")

// more reads on, or says why it cannot.
func (r *lineReader) more(ctx context.Context, out *spout.Out) error {
	c := &r.c
	switch {
	case c.tooLong():
		return spout.Fatal(fmt.Errorf("the line at byte %d of %s is longer than %s: if that is how it should be, set a higher limit with MaxLine", c.pos, r.name, size(c.max)))
	case c.err == io.EOF:
		line, ok := c.rest()
		if !ok {
			return io.EOF
		}
		out.Emit(line)
		return nil
	case c.err != nil:
		return failed(r.name, c.err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.ready != nil {
		if ok, err := r.ready(out.Len() == 0); err != nil {
			return failed(r.name, err)
		} else if !ok {
			return errLater
		}
	}
	c.fill()
	return nil
}

func (r *lineReader) Position() string {
	if r.skip {
		return "" // not yet at a line of its own
	}
	return strconv.FormatInt(r.c.pos, 10)
}

func (r *lineReader) Close() error { return r.file.Close() }

// failed adds the file to an error that does not name it, and makes it fatal if
// no other try can help.
func failed(name string, err error) error {
	if spout.IsFatal(err) {
		return err
	}
	if _, ok := errors.AsType[*fs.PathError](err); !ok {
		err = fmt.Errorf("%s: %w", name, err)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrInvalid) {
		return spout.Fatal(err)
	}
	return err
}

// size writes a number of bytes for people.
func size(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.Itoa(n>>20) + " MB"
	case n >= 1<<10 && n%(1<<10) == 0:
		return strconv.Itoa(n>>10) + " KB"
	default:
		return strconv.Itoa(n) + " bytes"
	}
}
