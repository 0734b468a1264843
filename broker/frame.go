package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// HeaderSize is how many bytes a frame has before its payload. Numbers are
// little-endian:
//
//	length   4   of what follows it
//	crc      4   CRC-32C of what follows it
//	version  1
//	kind     1   the highest bit is the lane
//	run      4
//	epoch    8
//	seq      8
//	acked    8
//	payload
const HeaderSize = 4 + checked

const (
	frameVersion = 1
	checked      = 4 + 1 + 1 + 4 + 8 + 8 + 8 // the header without its length
	dataBit      = 1 << 7
)

// ErrFrame reports bytes that are no frame, or a frame that is too large. Sending it
// again does not help: never retry.
var ErrFrame = errors.New("bad frame")

// A Lane is one of the two queues of a link. What is in one of them stays in order.
type Lane uint8

const (
	Control Lane = iota // goes first: reports, limits, notes
	Data                // parcels, and what must not overtake them
	lanes
)

// A Kind says what the payload of a frame is.
type Kind uint8

const (
	_      Kind = iota
	Hello       // a Greeting: the first frame of a connection, each way
	Ack         // nothing: it says only what has arrived
	Parcel      // tuples, in the form of tuple.AppendParcel
	Task        // what a task says to a task, in the form of task.AppendMessage
	Note        // what a node says to a node
	kinds
)

var kindNames = [kinds]string{"nothing", "hello", "ack", "parcel", "task", "note"}

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// A Frame is what travels between two nodes in one piece.
type Frame struct {
	Lane    Lane
	Kind    Kind
	Run     uint32 // which run it is for; 0: for the node itself
	Epoch   uint64 // of the link
	Seq     uint64 // of the frame in that epoch, from 1, both lanes together; 0: it has none
	Acked   uint64 // all up to this one have arrived at the sender of this frame
	Payload []byte
}

// Size returns how many bytes f takes.
func (f *Frame) Size() int { return HeaderSize + len(f.Payload) }

// AppendFrame appends f to dst. Its payload must be shorter than 4 GB.
func AppendFrame(dst []byte, f *Frame) []byte {
	return append(appendHeader(dst, f), f.Payload...)
}

func appendHeader(dst []byte, f *Frame) []byte {
	if len(f.Payload) > math.MaxUint32-checked {
		panic("broker: a frame of more than 4 GB")
	}
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(checked+len(f.Payload)))
	dst = append(dst, 0, 0, 0, 0, frameVersion, byte(f.Kind)|byte(f.Lane)*dataBit)
	dst = binary.LittleEndian.AppendUint32(dst, f.Run)
	dst = binary.LittleEndian.AppendUint64(dst, f.Epoch)
	dst = binary.LittleEndian.AppendUint64(dst, f.Seq)
	dst = binary.LittleEndian.AppendUint64(dst, f.Acked)
	binary.LittleEndian.PutUint32(dst[start+4:], sum(dst[start+8:], f.Payload))
	return dst
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(header, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(header, castagnoli), castagnoli, payload)
}

// ParseFrame reads b, which is one frame and nothing else. The payload is a part of b.
// An error is [ErrFrame]. It may be given any bytes, and allocates nothing.
func ParseFrame(b []byte) (Frame, error) {
	if len(b) < HeaderSize {
		return Frame{}, fmt.Errorf("%w: %d bytes, and its header has %d", ErrFrame, len(b), HeaderSize)
	}
	if n := binary.LittleEndian.Uint32(b); uint64(n) != uint64(len(b)-4) {
		return Frame{}, fmt.Errorf("%w: it says %d bytes and has %d", ErrFrame, n, len(b)-4)
	}
	if got, want := crc32.Checksum(b[8:], castagnoli), binary.LittleEndian.Uint32(b[4:]); got != want {
		return Frame{}, fmt.Errorf("%w: its checksum is %08x and should be %08x", ErrFrame, got, want)
	}
	if b[8] != frameVersion {
		return Frame{}, fmt.Errorf("%w: version %d, and this program knows %d", ErrFrame, b[8], frameVersion)
	}
	f := Frame{
		Lane:    Lane(b[9] / dataBit),
		Kind:    Kind(b[9] % dataBit),
		Run:     binary.LittleEndian.Uint32(b[10:]),
		Epoch:   binary.LittleEndian.Uint64(b[14:]),
		Seq:     binary.LittleEndian.Uint64(b[22:]),
		Acked:   binary.LittleEndian.Uint64(b[30:]),
		Payload: b[HeaderSize:],
	}
	if f.Kind == 0 || f.Kind >= kinds {
		return Frame{}, fmt.Errorf("%w: this program knows no frame of %v", ErrFrame, f.Kind)
	}
	if own := f.Kind == Hello || f.Kind == Ack; own != (f.Seq == 0) {
		return Frame{}, fmt.Errorf("%w: a %v with number %d", ErrFrame, f.Kind, f.Seq)
	}
	return f, nil
}
