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
	name string // of the file, for the records
	c    cutter
	file io.Closer
	end  int64 // a line that begins here or behind belongs to the next split
	// skip: the text begins in a line that belongs to the split before.
	skip bool
	// ready says whether a read would return at once, and may wait a little until
	// it would. It is nil for files.
	ready func(wait bool) (bool, error)
	// records decodes the lines; nil: a line is the message.
	records *records
	wrong   error       // with the line at c.pos, which is the end of the reading
	head    []byte      // of the text; nil of a stream
	mark    fingerprint // of head as far as it lies before the last Position
}

func (r *lineReader) Next(ctx context.Context, out *spout.Out) error {
	if r.wrong != nil {
		return r.wrong
	}
	for r.skip {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.skip = !r.c.skip() && r.c.pos < r.end
		if r.skip && r.c.lo == r.c.hi && r.c.err != nil && r.c.err != io.EOF {
			return failed(r.c.err)
		}
	}
	for !out.Full() {
		if r.c.pos >= r.end {
			return io.EOF
		}
		at := r.c.pos
		line, ok := r.c.line()
		if !ok {
			var err error
			if line, ok, err = r.more(ctx, out.Len() == 0); err != nil {
				if out.Len() > 0 && err != io.EOF {
					return nil // what is wrong is still wrong at the next call
				}
				return err
			}
		}
		switch {
		case !ok:
		case r.records == nil:
			out.Emit(line)
		default:
			if r.wrong = r.records.take(line, at, out); r.wrong == nil {
				continue
			}
			if r.c.pos = at; out.Len() > 0 {
				return nil
			}
			return r.wrong
		}
	}
	return nil
}

// errLater says that there is nothing to read now.
var errLater = errors.New("nothing to read yet")

// more reads on, or says why it cannot, or returns the last line, which has no
// line end.
func (r *lineReader) more(ctx context.Context, wait bool) (line string, ok bool, err error) {
	c := &r.c
	switch {
	case c.tooLong():
		hint := ""
		if c.quotes != nil && c.quotes.at == inQuotes {
			hint = "a quote in it may have no end; "
		}
		return "", false, spout.Fatal(fmt.Errorf("the line at byte %d is longer than %s: %sif that is how it should be, set a higher limit with MaxLine", c.pos, size(c.max), hint))
	case c.err == io.EOF:
		if line, ok = c.rest(); ok {
			return line, true, nil
		}
		if r.records != nil {
			if err := r.records.ended(); err != nil {
				return "", false, err
			}
		}
		return "", false, io.EOF
	case c.err != nil:
		return "", false, failed(c.err)
	}
	if err := ctx.Err(); err != nil {
		return "", false, err
	}
	if r.ready != nil {
		if ok, err := r.ready(wait); err != nil {
			return "", false, failed(err)
		} else if !ok {
			return "", false, errLater
		}
	}
	c.fill()
	return "", false, nil
}

func (r *lineReader) Position() string {
	if r.skip {
		return "" // not yet at a line of its own
	}
	p := position{at: r.c.pos}
	if r.records != nil {
		p.line = r.records.line
	}
	if n := int(min(r.c.pos, int64(len(r.head)))); n != r.mark.n {
		r.mark = fingerprintOf(r.head[:n])
	}
	p.head = r.mark
	return p.String()
}

func (r *lineReader) Close() error { return r.file.Close() }

// failed makes an error of a split fatal if no other try can help. It takes the
// file's name out of it, which is in that of the split, and no error of a reader
// has it.
func failed(err error) error {
	if spout.IsFatal(err) {
		return err
	}
	if p, ok := err.(*fs.PathError); ok {
		err = fmt.Errorf("%s: %w", p.Op, p.Err)
	}
	return hopeless(err)
}

// hopeless makes an error fatal if no other try can help.
func hopeless(err error) error {
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
