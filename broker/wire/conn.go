package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	lengthBytes = 4 // a frame begins with the number of bytes that follow, little-endian
	readBuffer  = 256 << 10
	batchBytes  = 32 << 10 // frames handed over in one piece of memory, if it is more than one
	writeBytes  = 64 << 10 // written at once
)

// A ConnConfig is what a Conn tells its owner, and how. The functions are called from
// goroutines of the Conn: Arrived from one and Wrote from another, one call after the
// other, and Broken last of all.
type ConnConfig struct {
	// Arrived gets frames as they have come, at least one, each with its length before
	// it. They belong to the receiver and are never written to again; those of one call
	// lie in one piece of memory. Nothing is read until it returns.
	Arrived func(frames [][]byte)
	// Wrote says how many more of the bytes that were handed to Write the system has
	// taken. That does not mean that they arrive.
	Wrote func(bytes int)
	// Broken says that the connection is over, and why: net.ErrClosed if Close was called.
	Broken func(error)
	// Most bytes that a frame may have with its length; a longer one breaks the
	// connection before it is read.
	Most int
}

// A Conn carries frames over a connection that nobody else uses. Its methods may be
// called from any goroutine.
//
// It has two goroutines. Who makes one calls Close at the end, and Wait.
type Conn struct {
	conn   net.Conn
	config ConnConfig
	wake   chan struct{}  // holds one if the writer has something to look at
	both   sync.WaitGroup // the reader and the writer
	all    sync.WaitGroup // and who tells that they have ended

	mu      sync.Mutex
	waiting [][]byte // not taken by the writer
	cause   error    // why it is over; nil: it is not
}

// NewConn begins to read and write frames. The connection belongs to the Conn.
func NewConn(conn net.Conn, config ConnConfig) *Conn {
	c := &Conn{conn: conn, config: config, wake: make(chan struct{}, 1)}
	c.both.Go(func() { c.end(c.read()) })
	c.both.Go(func() { c.end(c.write()) })
	c.all.Go(func() {
		c.both.Wait()
		c.config.Broken(c.over())
	})
	return c
}

// Write hands over buffers, which are written in this order as if they were one. It
// does not wait: what is handed over and not told by Wrote is for the caller to bound.
// The bytes must not change until then. If the connection is over they are dropped.
func (c *Conn) Write(buffers [][]byte) {
	c.mu.Lock()
	if c.cause == nil {
		c.waiting = append(c.waiting, buffers...)
	}
	c.mu.Unlock()
	c.look()
}

// Close breaks the connection; what waits is not written. It does not wait: Broken is
// still to be called.
func (c *Conn) Close() { c.end(net.ErrClosed) }

// Wait returns when the connection is over and Broken has returned.
func (c *Conn) Wait() { c.all.Wait() }

// look wakes the writer.
func (c *Conn) look() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// end breaks the connection; the first cause counts.
func (c *Conn) end(cause error) {
	c.mu.Lock()
	first := c.cause == nil
	if first {
		c.cause, c.waiting = cause, nil
	}
	c.mu.Unlock()
	if first {
		// Closing TLS says goodbye first, and may wait for the socket with it.
		under(c.conn).Close()
		c.look()
	}
}

// under returns the socket below TLS.
func under(c net.Conn) net.Conn {
	for {
		t, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = t.NetConn()
	}
}

func (c *Conn) over() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// take exchanges what waits for an empty slice, in which what comes next will wait.
func (c *Conn) take(empty [][]byte) ([][]byte, error) {
	for {
		c.mu.Lock()
		all, cause := c.waiting, c.cause
		if cause == nil && len(all) > 0 {
			c.waiting = empty
		}
		c.mu.Unlock()
		if cause != nil || len(all) > 0 {
			return all, cause
		}
		<-c.wake
	}
}

// write writes what waits until the connection is over, and returns why. Small buffers
// are copied together: a vector of them costs the system more than that costs us, and
// TLS would seal each alone.
func (c *Conn) write() error {
	room := make([]byte, 0, writeBytes)
	var all [][]byte
	for {
		clear(all) // the frames are not ours any more
		var err error
		if all, err = c.take(all[:0]); err != nil {
			return err
		}
		for i := 0; i < len(all); {
			room = room[:0]
			for i < len(all) && len(room)+len(all[i]) <= writeBytes {
				room = append(room, all[i]...)
				i++
			}
			b := room
			if len(room) == 0 && i < len(all) { // a long one, as it is
				b = all[i]
				i++
			}
			if err := c.send(b); err != nil {
				return fmt.Errorf("write: %w", err)
			}
		}
	}
}

// send writes b, and tells how it goes.
func (c *Conn) send(b []byte) error {
	for len(b) > 0 {
		c.conn.SetWriteDeadline(time.Now().Add(stall))
		n, err := c.conn.Write(b[:min(len(b), writeBytes)])
		if n > 0 {
			c.config.Wrote(n)
		}
		// If it is slow but moves, it goes on. TLS can not go on after a deadline and
		// says so; it has a deadline for writeBytes.
		if err != nil && (n == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return err
		}
		b = b[n:]
	}
	return nil
}

// read hands over frames until the connection is over, and returns why.
func (c *Conn) read() error {
	buffer := make([]byte, readBuffer)
	have := 0 // bytes in it, which begin with a frame
	for {
		n, err := c.conn.Read(buffer[have:])
		have += n
		done := 0
		for {
			frames, size, err := cut(buffer[done:have], c.config.Most)
			if err != nil {
				return err
			}
			if size == 0 {
				break
			}
			done += size
			c.config.Arrived(frames)
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		have = copy(buffer, buffer[done:have])
		switch {
		case have == len(buffer): // of a long frame: it grows with what has come, not with what was promised
			buffer = append(buffer, make([]byte, len(buffer))...)
		case done > 0 && len(buffer) > readBuffer && have < readBuffer:
			buffer = append(make([]byte, 0, readBuffer), buffer[:have]...)[:readBuffer]
		}
	}
}

// cut returns copies of the first whole frames of b, up to batchBytes or one frame, in
// one new piece of memory, and how many bytes they have: 0 if no frame is whole.
func cut(b []byte, most int) (frames [][]byte, size int, err error) {
	count := 0
	for {
		rest := b[size:]
		if len(rest) < lengthBytes {
			break
		}
		// Not as an int, which may have 32 bits.
		n := uint64(binary.LittleEndian.Uint32(rest)) + lengthBytes
		if n > uint64(most) {
			if count > 0 {
				break // those before it are good
			}
			return nil, 0, fmt.Errorf("read: a frame of %d bytes, and %d are allowed", n, most)
		}
		if n > uint64(len(rest)) || count > 0 && size+int(n) > batchBytes {
			break
		}
		size += int(n)
		count++
	}
	if count == 0 {
		return nil, 0, nil
	}
	memory := slices.Clone(b[:size])
	frames = make([][]byte, 0, count)
	for len(memory) > 0 {
		n := int(binary.LittleEndian.Uint32(memory)) + lengthBytes
		frames = append(frames, memory[:n:n])
		memory = memory[n:]
	}
	return frames, size, nil
}
