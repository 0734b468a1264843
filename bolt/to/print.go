// Package to has the bolts that write to what is outside of a topology.
//
//	Print, Stdout       tuple --> task 0's buffer --64 KB, tick, end--+
//	                    tuple --> task 1's buffer --------------------+--> one writer, whole lines
//
//	Lines, JSONLines    tuple --> task 0's file.partial --end--> file
//
// A file is a store: a tuple is acked when its line is written. A terminal or a pipe
// is none, so a tuple to be printed is acked when it is in the buffer: what had not
// been written when the process was killed is not written again.
package to

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"golang.org/x/term"

	"github.com/egretstream/egret/bolt"
	"github.com/egretstream/egret/tuple"
)

const bufferSize = 64 << 10

// Print returns a factory of bolts that write a line to w for each tuple: its
// values with a space between them, strings and bytes as they are. The lines of all tasks
// go to the same w, one task after the other and never a part of a line; nothing
// else should write to w, unless it is an os.File.
//
// A task collects 64 KB before it writes. It writes what it has when its input
// ends, at each tick, and when it is closed; so give the component of an endless
// topology an interval. A line is acked when it is collected: what a task had not
// written when its process was killed is not printed again, not by the next run with
// the same egret.Config.StateDir either. Use [Lines] where every line counts.
//
// A tuple whose lines cannot be written fails with the error of w. Lines that were
// collected before it stay and are tried again.
func Print(w io.Writer) bolt.Factory {
	s := &shared{w: w}
	return func() bolt.Bolt { return &printer{to: s, limit: bufferSize} }
}

// Stdout is Print for the standard output. On a terminal each line is written at
// once, over what a line of progress has left there.
func Stdout() bolt.Factory {
	s := &shared{w: os.Stdout}
	limit := bufferSize
	if term.IsTerminal(int(os.Stdout.Fd())) {
		s.w, limit = overProgress{os.Stdout}, 1
	}
	return func() bolt.Bolt { return &printer{to: s, limit: limit} }
}

// overProgress clears the line that the cursor is in before it writes.
type overProgress struct{ w io.Writer }

func (o overProgress) Write(b []byte) (int, error) {
	const clear = "\r\x1b[K"
	n, err := o.w.Write(append([]byte(clear), b...))
	return max(0, n-len(clear)), err
}

// shared is the writer of all tasks of a component.
type shared struct {
	mu   sync.Mutex
	w    io.Writer
	left []byte // of printers that have ended
}

// leave keeps bytes that a printer that has ended could not write.
func (s *shared) leave(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = append(s.left, b...)
}

// take puts what was left before b.
func (s *shared) take(b []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.left) == 0 {
		return b
	}
	b, s.left = append(s.left, b...), nil
	return b
}

func (s *shared) write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

// Invariant: buf begins at the beginning of a line unless the last write failed
// in the middle of one, and ends at the end of a line. It has less than limit
// bytes between two calls, unless a write failed.
type printer struct {
	to    *shared
	limit int
	buf   []byte
}

func (p *printer) Execute(in tuple.Tuple, _ *bolt.Collector) error {
	before := len(p.buf)
	for i := range in.Len() {
		if i > 0 {
			p.buf = append(p.buf, ' ')
		}
		p.buf = appendValue(p.buf, in.At(i))
	}
	p.buf = append(p.buf, '\n')
	line := len(p.buf) - before
	if len(p.buf) < p.limit {
		return nil
	}
	err := p.flush()
	if err != nil && len(p.buf) >= line {
		// Nothing of this line is written, and its tuple will come again.
		p.buf = p.buf[:len(p.buf)-line]
	}
	return err
}

func (p *printer) Tick(*bolt.Collector) error   { return p.flush() }
func (p *printer) Finish(*bolt.Collector) error { return p.flush() }

// Close hands what could not be written to the printers that are left, or that
// come after this one: its lines are acked.
func (p *printer) Close() error {
	err := p.flush()
	p.to.leave(p.buf)
	p.buf = nil
	return err
}

// flush writes what there is, and keeps what could not be written.
func (p *printer) flush() error {
	p.buf = p.to.take(p.buf)
	if len(p.buf) == 0 {
		return nil
	}
	n, err := p.to.write(p.buf)
	if err == nil && n < len(p.buf) {
		err = io.ErrShortWrite
	}
	if err != nil {
		err = fmt.Errorf("printing %d bytes, of which %d were written: %w", len(p.buf), n, err)
	}
	p.buf = p.buf[:copy(p.buf, p.buf[n:])]
	return err
}

func appendValue(dst []byte, v tuple.Value) []byte {
	switch v.Kind() {
	case tuple.KindInt64:
		return strconv.AppendInt(dst, v.Int64(), 10)
	case tuple.KindUint64:
		return strconv.AppendUint(dst, v.Uint64(), 10)
	case tuple.KindBytes:
		return append(dst, v.Bytes()...)
	default:
		return append(dst, v.String()...)
	}
}
