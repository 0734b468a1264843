package sim

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/zeebo/xxh3"
)

// A trace is what a run was, event by event: its hash after each. With the hashes of
// a run before, a run is compared as it goes, and ends with the first event that is
// another.
type trace struct {
	hashes  []uint64
	compare bool
	differs int // the first event that is not as it was, counted from 1; 0: none
	stop    int // ends the run with this event; 0: does not
}

// again has a run compared with that of t, and looked at. It ends with the first
// difference, at the latest with event stop if that is not 0.
func (t *trace) again(w *World, stop int) {
	w.trace, w.look = &trace{hashes: t.hashes, compare: true, stop: stop}, new(look)
}

var (
	errDiffers = errors.New("not the run that it was before")
	errStop    = errors.New("looked at")
)

// seen keeps the event that is over, or compares it. Where the run ends for that, the
// look at it is put into words.
func (t *trace) seen(w *World) {
	switch n := w.count - 1; {
	case !t.compare:
		t.hashes = append(t.hashes, w.hash)
		return
	case n >= len(t.hashes) || t.hashes[n] != w.hash:
		t.differs = w.count
		w.fail(errDiffers)
	case w.count == t.stop:
		w.fail(errStop)
	default:
		return
	}
	w.look.tell(w)
}

// A deed is what code does to the world in an event, beside what the log says.
type deed uint8

const (
	sends deed = iota
	sets       // a timer
	asks       // for a function to be called, with Block
	gets       // the result of that
	posts
	watches
	stops
	spends
	hung
	rests // wants another turn
	logs  // has the log say something
)

// did makes a deed a part of the run. n is how long or how much.
func (w *World) did(d deed, to *proc, body any, n time.Duration) {
	b := append(w.line[:0], byte(d))
	if to != nil {
		b = binary.LittleEndian.AppendUint32(b, uint32(to.number))
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(n))
	if body != nil {
		b = append(b, w.class(body)...)
		if w.content != nil {
			b = w.content(b, body)
		}
	}
	w.hash = xxh3.HashSeed(b, w.hash)
	w.line = b
	if w.look != nil {
		w.look.did(w, d, to, body, n)
	}
}
