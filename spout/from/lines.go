// Package from has the sources and queues that read files, need a clock or are
// shared with the rest of a program.
//
//	book.txt   It was the age of wisdom,\nit was the age of fool|ishness,\nit was
//	             split book.txt:0-52                           | split book.txt:52-104
//
// A file is read in splits, so that several tasks can share it. A split has the
// lines that begin in it: the one that crosses the border belongs to the first.
//
// The sources here may wait for a disk, a pipe or the time, so their readers are
// not called on a task's turn. Nothing here starts a goroutine.
package from

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/egretstream/egret/spout"
)

const (
	rangeSize   = 4 << 20  // bytes of a file in one split
	defaultLine = 16 << 20 // bytes of a line
	endless     = math.MaxInt64
)

// Lines returns a source of one message with one field, a string, for each line
// of the files with the given paths.
//
// A line ends with \n or \r\n, which are not in the message, or with its file. It
// may be empty, is not checked for valid UTF-8, and can be as long as
// [LineSource.MaxLine] says. Lines of one read share their memory: clone what you
// keep for long (strings.Clone).
//
// A regular file is divided into splits of 4 MB, and a position is a byte of it.
// A name that ends in .gz is decompressed; it is one split, whose position counts
// decompressed bytes, so going on from a position reads everything before it
// again. The path "-" is the standard input: like a pipe it is one split that
// cannot be read again, and opening it anywhere but where it is is an error.
//
// Files should not change while they are read: what is appended may be read or
// not, and a file that is cut off ends the run. A run that goes on from the positions
// of an earlier one reads what has been appended since, which should be whole lines: a
// last line without a newline is a message as it stands, and if it grows later the rest of
// it is another one, also where each message counts exactly once. Such a run
// ends with an error if the file is shorter now or its first 4 KB, as far as they
// had been read, are others. A file that does not exist, may not be read or is damaged
// ends the run, after the good lines before the damage.
func Lines(paths ...string) *LineSource {
	return &LineSource{names: paths, what: "lines", maxLine: defaultLine, rangeSize: rangeSize, stdin: os.Stdin}
}

// LinesFS is like [Lines] for files of fsys, such as an embed.FS. Each file is one
// split, and "-" is no special name.
func LinesFS(fsys fs.FS, names ...string) *LineSource {
	return &LineSource{fsys: fsys, names: names, what: "lines", maxLine: defaultLine}
}

// A LineSource is a [spout.Source] of lines, made by [Lines] or [LinesFS].
type LineSource struct {
	fsys      fs.FS // nil for the files of the machine
	names     []string
	what      string // it has, for errors
	maxLine   int
	rangeSize int64 // 0: a file is one split
	stdin     *os.File
	// records makes what decodes the lines of a file; nil: they are the messages.
	records func(name string) *records
	quotes  byte // the comma of records that may have line ends in quotes; 0: none may

	mu sync.Mutex
	// parts is what Splits found the first time. It stays, so that all tasks of a
	// process divide the same splits even if a file grows meanwhile. What it has grown
	// by is read by the next run that goes on from this one's positions.
	parts   []part
	index   map[spout.Split]int // in parts
	streams map[string]*stream  // by name; opened once
}

// A part is one split.
type part struct {
	split      spout.Split
	name       string
	kind       kind
	start, end int64 // of a range
	size       int64 // of the file, when it was divided
}

type kind uint8

const (
	ranged   kind = iota // a range of a regular file
	whole                // a file that is one split; its file system may be unable to seek
	zipped               // a .gz
	streamed             // standard input, a pipe, a device
)

// MaxLine sets how many bytes a line may have, without its line end, and returns
// s. The default is 16 MB. A longer line is an error that ends the run: raise the
// limit, or see whether the file is one of lines.
func (s *LineSource) MaxLine(bytes int) *LineSource {
	s.maxLine = bytes
	return s
}

// Splits lists the files' splits. It reports all files that cannot be read.
func (s *LineSource) Splits(context.Context) ([]spout.Split, error) {
	parts, err := s.list()
	if err != nil {
		return nil, err
	}
	splits := make([]spout.Split, len(parts))
	for i := range parts {
		splits[i] = parts[i].split
	}
	return splits, nil
}

func (s *LineSource) list() ([]part, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts != nil {
		return s.parts, nil
	}
	if len(s.names) == 0 {
		return nil, spout.Fatal(fmt.Errorf("a source of %s has no files: name at least one", s.what))
	}
	if s.maxLine < 1 {
		return nil, spout.Fatal(fmt.Errorf("MaxLine of a source of %s is %d: it must be at least 1", s.what, s.maxLine))
	}
	var parts []part
	var errs []error
	named := make(map[string]bool, len(s.names))
	for _, name := range s.names {
		if named[name] {
			errs = append(errs, spout.Fatal(fmt.Errorf("the file %s is named twice: to read a source several times use spout.Repeat", name)))
			continue
		}
		named[name] = true
		var err error
		if parts, err = s.divide(parts, name); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		err := errors.Join(errs...)
		if slices.ContainsFunc(errs, spout.IsFatal) {
			err = spout.Fatal(err)
		}
		return nil, err
	}
	s.parts, s.index = parts, make(map[spout.Split]int, len(parts))
	for i, p := range parts {
		s.index[p.split] = i
	}
	return parts, nil
}

// divide appends the parts of one file.
func (s *LineSource) divide(parts []part, name string) ([]part, error) {
	if name == "-" && s.fsys == nil {
		return append(parts, part{split: "-", name: name, kind: streamed}), nil
	}
	if name == "" {
		return parts, spout.Fatal(fmt.Errorf("the name of a file of %s is empty", s.what))
	}
	info, err := s.stat(name)
	if err != nil {
		if _, ok := errors.AsType[*fs.PathError](err); !ok {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return parts, hopeless(err)
	}
	regular := info.Mode().IsRegular()
	one := part{split: spout.Split(name), name: name, size: info.Size()}
	switch {
	case info.IsDir():
		return parts, spout.Fatal(fmt.Errorf("%s is a directory: name the files in it", name))
	case strings.HasSuffix(name, ".gz"):
		if !regular {
			return parts, spout.Fatal(fmt.Errorf("%s is not a regular file, which a .gz must be: decompress it into the standard input and name that with -", name))
		}
		one.kind = zipped
		return append(parts, one), nil
	case s.fsys == nil && !regular:
		one.kind = streamed
		return append(parts, one), nil
	case s.fsys != nil || s.rangeSize == 0:
		one.kind = whole
		return append(parts, one), nil
	}
	for start := int64(0); ; start += s.rangeSize {
		// The last range has a border like the others, so that the positions of its
		// split are those of the same lines when the file has grown.
		p := part{name: name, kind: ranged, start: start, end: start + s.rangeSize, size: info.Size()}
		p.split = spout.Split(fmt.Sprintf("%s:%d-%d", name, start, p.end))
		parts = append(parts, p)
		if p.end >= info.Size() {
			return parts, nil
		}
	}
}

func (s *LineSource) stat(name string) (fs.FileInfo, error) {
	if s.fsys != nil {
		return fs.Stat(s.fsys, name)
	}
	return os.Stat(name)
}

// Open opens a split's file at a position.
func (s *LineSource) Open(ctx context.Context, split spout.Split, position string) (spout.Reader, error) {
	p, pos, err := s.place(split, position)
	if err != nil {
		return nil, err
	}
	if p.kind == streamed {
		return s.openStream(p, pos.at)
	}
	r, err := s.openPart(ctx, p, pos, position == "")
	if err != nil {
		return nil, err
	}
	return r, nil
}

// place returns the part that a split is, and the position that a text is.
func (s *LineSource) place(split spout.Split, text string) (p part, pos position, err error) {
	parts, err := s.list()
	if err != nil {
		return p, pos, err
	}
	i, ok := s.index[split] // list has made it, and nobody changes it
	if !ok {
		return p, pos, spout.Fatal(fmt.Errorf("there is no split %q: the file has changed since it was divided", split))
	}
	p = parts[i]
	if text == "" {
		return p, position{at: p.start}, nil
	}
	if pos, ok = parsePosition(text); !ok || pos.at < p.start || pos.line > 0 && s.records == nil {
		return p, pos, spout.Fatal(fmt.Errorf("position %q of split %q is not a byte of it: the position belongs to another source", text, split))
	}
	return p, pos, nil
}

// openPart opens a part that is no stream. first says that nothing of it has been
// read.
func (s *LineSource) openPart(ctx context.Context, p part, pos position, first bool) (*lineReader, error) {
	f, err := s.open(p.name)
	if err != nil {
		return nil, failed(err)
	}
	r := &lineReader{name: p.name, file: f, end: endless}
	s.decode(r)
	if p.kind == ranged {
		r.end = p.end
		if first && pos.at > 0 {
			// The byte before tells whether a line begins here.
			r.skip = true
			pos.at--
		}
	}
	r.c.max, r.c.pos = s.maxLine, pos.at
	if err := r.begin(ctx, f, p, pos); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// begin makes the reader begin at a position of the file f.
func (r *lineReader) begin(ctx context.Context, f fs.File, p part, pos position) error {
	whole, err := sized(f, p.size)
	if err != nil {
		return err
	}
	text := io.Reader(whole)
	if p.kind == zipped {
		if text, err = unzip(whole); err != nil {
			return err
		}
	}
	return r.goTo(ctx, whole, text, pos)
}

// decode makes r a reader of records if that is what s has.
func (s *LineSource) decode(r *lineReader) {
	if s.records != nil {
		r.records = s.records(r.name)
	}
	if s.quotes != 0 {
		r.c.quotes = &quotes{comma: s.quotes}
	}
}

func (s *LineSource) open(name string) (fs.File, error) {
	if s.fsys != nil {
		return s.fsys.Open(name)
	}
	return os.Open(name)
}
