package from

import (
	"bytes"
	"io"
	"unsafe"
)

const (
	blockSize = 64 << 10 // bytes that are read at a time
	minRead   = 4 << 10  // a block with less room than this is not filled further
)

// A cutter cuts lines out of a reader's blocks without copying them.
//
// Invariant: bytes of a block below hi are never written again, because lines
// that were cut out of it share them. A block lives as long as one of its lines.
type cutter struct {
	r       io.Reader
	block   []byte
	lo, hi  int   // block[lo:hi] has been read and not been cut
	scanned int   // block[lo:lo+scanned] holds no line end
	pos     int64 // of block[lo] in the text
	max     int   // bytes of a line
	err     error // of r, io.EOF included; block[lo:hi] is what came before it
	// quotes finds the end of a record that may have line ends in quotes. It is nil
	// for lines. It has seen what was scanned.
	quotes *quotes
}

// line cuts off the next line if it is there up to its line end.
func (c *cutter) line() (line string, ok bool) {
	i := c.lineEnd(c.block[c.lo+c.scanned : c.hi])
	if i < 0 {
		c.scanned = c.hi - c.lo
		return "", false
	}
	return c.cut(c.scanned+i, 1)
}

// lineEnd finds the line end in text, which is what has not been scanned.
func (c *cutter) lineEnd(text []byte) int {
	if c.quotes != nil {
		return c.quotes.lineEnd(text)
	}
	return bytes.IndexByte(text, '\n')
}

// rest cuts off what is left behind the last line end, when r has ended.
func (c *cutter) rest() (line string, ok bool) {
	if c.lo == c.hi {
		return "", false
	}
	return c.cut(c.hi-c.lo, 0)
}

func (c *cutter) cut(n, end int) (line string, ok bool) {
	text := trimCR(c.block[c.lo : c.lo+n])
	if len(text) > c.max {
		return "", false
	}
	c.lo += n + end
	c.pos += int64(n + end)
	c.scanned = 0
	if c.quotes != nil {
		c.quotes.at = fieldStart
	}
	return unsafe.String(unsafe.SliceData(text), len(text)), true
}

// tooLong reports whether the line at pos is longer than max, as far as it has
// been read.
func (c *cutter) tooLong() bool {
	text := c.block[c.lo:c.hi]
	if len(text) <= c.max {
		return false
	}
	if i := c.lineEnd(text[c.scanned:]); i >= 0 {
		text = text[:c.scanned+i]
	}
	return len(trimCR(text)) > c.max
}

// fill reads more. It sets err when there is no more.
func (c *cutter) fill() {
	if len(c.block)-c.hi < minRead {
		tail := c.block[c.lo:c.hi]
		// Twice the tail, so that a long line is copied a few times and not once for
		// each block that it spans.
		block := make([]byte, max(blockSize, 2*len(tail)))
		copy(block, tail)
		c.block, c.lo, c.hi = block, 0, len(tail)
	}
	c.read()
}

func (c *cutter) read() {
	for range 100 {
		n, err := c.r.Read(c.block[c.hi:])
		c.hi += n
		c.err = err
		if n > 0 || err != nil {
			return
		}
	}
	c.err = io.ErrNoProgress
}

// skip passes over bytes up to the next line end, or reports that it has to read
// more and has done so, or cannot. It may only be called before the first line is cut,
// because it uses the block again.
func (c *cutter) skip() (done bool) {
	if i := bytes.IndexByte(c.block[c.lo:c.hi], '\n'); i >= 0 {
		c.lo += i + 1
		c.pos += int64(i + 1)
		return true
	}
	c.pos += int64(c.hi - c.lo)
	c.lo, c.hi = 0, 0
	if c.err != nil {
		return c.err == io.EOF
	}
	if c.block == nil {
		c.block = make([]byte, blockSize)
	}
	c.read()
	return false
}

func trimCR(text []byte) []byte {
	if n := len(text); n > 0 && text[n-1] == '\r' {
		return text[:n-1]
	}
	return text
}
