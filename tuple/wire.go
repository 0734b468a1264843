package tuple

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// The wire form of a parcel. Numbers are varints unless their width is given,
// signed ones zigzag; fixed widths are little-endian.
//
//	version     1 byte; another one if it is of a batch
//	from, to, life of from, life of to, input, plan
//	batch       only then: its number, epoch, round, and 1 for a marker or else 0
//	kinds       count, then 1 byte each
//	tuples      count
//	slots       count, then for each: task, life, seq, edge (8 bytes), tuples
//	refs        only if there are slots: slot (2 bytes) and message index (2
//	            bytes) of each tuple
//	lists       for each ref of slot 65,535: count, then its refs, as above
//	text bytes  count
//	columns     one after the other, for each tuple:
//	              nil 1 byte, 0             string, []byte   length
//	              bool 1 byte, 0 or 1       int64, duration  signed
//	              float64, time 8 bytes     uint64           unsigned
//	              any  number of its codec (of the next number: length, name),
//	                   length (4 bytes), bytes
//	text        of all strings and bytes, in the order of their lengths
//
// It goes column by column, so that one kind is handled in one loop, and every
// cell takes at least a byte, so that few bytes cannot ask for many cells. The
// text is in one piece so that a receiver copies it once.
const (
	wireVersion = 1
	wireBatch   = 2
)

// ErrCorrupt reports bytes that are no parcel of the stream they came for.
// Decoding them again does not help: never retry.
var ErrCorrupt = errors.New("corrupt parcel")

const (
	minSlot = 1 + 1 + 1 + 8 + 1 // the fewest bytes of a slot
	refSize = 4
)

// AppendParcel appends the wire form of p to dst. The error is of the codec of
// an [Any] value; dst is then returned as it was.
func AppendParcel(dst []byte, p *Parcel) ([]byte, error) {
	start := len(dst)
	dst = slices.Grow(dst, 64+(minSlot+16)*len(p.Slots)+refSize*len(p.Refs)+3*len(p.Cells)+p.text)
	if p.Batch.Tx == 0 {
		dst = append(dst, wireVersion)
	} else {
		dst = append(dst, wireBatch)
	}
	dst = binary.AppendUvarint(dst, uint64(p.From))
	dst = binary.AppendUvarint(dst, uint64(p.To))
	dst = binary.AppendUvarint(dst, uint64(p.FromLife))
	dst = binary.AppendUvarint(dst, uint64(p.ToLife))
	dst = binary.AppendUvarint(dst, uint64(p.Input))
	dst = binary.AppendUvarint(dst, uint64(p.Plan))
	dst = appendBatch(dst, p)
	dst = binary.AppendUvarint(dst, uint64(len(p.Kinds)))
	for _, k := range p.Kinds {
		dst = append(dst, byte(k))
	}
	dst = binary.AppendUvarint(dst, uint64(p.n))
	dst = appendSlots(dst, p)
	// Not p.text: that is what the callers of Append said, and here it has to be true.
	dst = binary.AppendUvarint(dst, uint64(TextOf(p.Cells, p.Kinds)))
	var err error
	for c, k := range p.Kinds {
		if k != KindAny {
			dst = appendColumn(dst, p, c)
		} else if dst, err = appendAnyColumn(dst, p, c); err != nil {
			return dst[:start], err
		}
	}
	w := len(p.Kinds)
	for c, k := range p.Kinds {
		if k != KindString && k != KindBytes {
			continue
		}
		for i := c; i < len(p.Cells); i += w {
			dst = append(dst, p.Cells[i].text()...)
		}
	}
	return dst, nil
}

func appendBatch(dst []byte, p *Parcel) []byte {
	if p.Batch.Tx == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(p.Batch.Tx))
	dst = binary.AppendUvarint(dst, uint64(p.Batch.Epoch))
	dst = binary.AppendUvarint(dst, uint64(p.Batch.Round))
	if p.Marker {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func appendSlots(dst []byte, p *Parcel) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(p.Slots)))
	if len(p.Slots) == 0 {
		return dst
	}
	for i := range p.Slots {
		s := &p.Slots[i]
		dst = binary.AppendUvarint(dst, uint64(s.Tree.Task))
		dst = binary.AppendUvarint(dst, uint64(s.Tree.Incarnation))
		dst = binary.AppendUvarint(dst, s.Tree.Seq)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Edge))
		dst = binary.AppendUvarint(dst, uint64(s.Count))
	}
	dst = appendRefs(dst, p.Refs)
	for _, refs := range p.Lists {
		dst = binary.AppendUvarint(dst, uint64(len(refs)))
		dst = appendRefs(dst, refs)
	}
	return dst
}

func appendRefs(dst []byte, refs []Ref) []byte {
	for _, r := range refs {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(r.Slot)|uint32(r.Index)<<16)
	}
	return dst
}

// appendColumn appends column c of p, which is of any kind but any.
func appendColumn(dst []byte, p *Parcel, c int) []byte {
	cells, w := p.Cells, len(p.Kinds)
	switch p.Kinds[c] {
	case KindNil:
		for i := c; i < len(cells); i += w {
			dst = append(dst, 0)
		}
	case KindBool:
		for i := c; i < len(cells); i += w {
			dst = append(dst, byte(cells[i].num))
		}
	case KindInt64, KindDuration:
		for i := c; i < len(cells); i += w {
			n := int64(cells[i].num)
			dst = appendUvarint(dst, uint64(n<<1)^uint64(n>>63))
		}
	case KindUint64, KindString, KindBytes: // of a text, num is the length
		for i := c; i < len(cells); i += w {
			dst = appendUvarint(dst, cells[i].num)
		}
	case KindFloat64, KindTime:
		for i := c; i < len(cells); i += w {
			dst = binary.LittleEndian.AppendUint64(dst, cells[i].num)
		}
	}
	return dst
}

func appendAnyColumn(dst []byte, p *Parcel, c int) ([]byte, error) {
	var used []*anyCodec // their numbers on the wire, within this column
	w := len(p.Kinds)
	for i := c; i < len(p.Cells); i += w {
		v := *(*any)(p.Cells[i].ptr)
		codec := codecs.byType[reflect.TypeOf(v)]
		n := slices.Index(used, codec)
		if n < 0 {
			n = len(used)
			used = append(used, codec)
			dst = binary.AppendUvarint(dst, uint64(n))
			dst = binary.AppendUvarint(dst, uint64(len(codec.name)))
			dst = append(dst, codec.name...)
		} else {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
		dst = append(dst, 0, 0, 0, 0)
		o := len(dst)
		b, err := codec.append(dst, v)
		if err == nil && len(b) < o {
			err = errors.New("it returned less than it was given to append to")
		}
		if err == nil && uint64(len(b)-o) > math.MaxUint32 {
			err = errors.New("the value takes more than 4 GB")
		}
		if err != nil {
			return dst, fmt.Errorf("codec %q, field %q of stream %s.%s: %w", codec.name, p.Schema.Fields[c], p.Schema.Component, p.Schema.Stream, err)
		}
		binary.LittleEndian.PutUint32(b[o-4:], uint32(len(b)-o))
		dst = b
	}
	return dst, nil
}

// appendUvarint is binary.AppendUvarint with a short way for small numbers,
// which most lengths, counts and indices are.
func appendUvarint(dst []byte, n uint64) []byte {
	if n < 0x80 {
		return append(dst, byte(n))
	}
	return binary.AppendUvarint(dst, n)
}
