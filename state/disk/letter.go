package disk

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/egretstream/egret/task"
	"github.com/egretstream/egret/tuple"
)

// A file of letters is a line "egret letters 1", the number of letters (4 bytes),
// and for each its length, its CRC-32C (4 bytes each, little-endian) and itself:
//
//	id, component, task, stream, error   length and bytes each
//	time                                 nanoseconds since 1970, signed
//	failures, losses, deaths, direct
//	fields                               count, then length and bytes each
//	history                              the same
//	values                               the wire form of a parcel with one tuple
//
// Numbers are varints unless their width is given.
const letterMagic = "egret letters 1\n"

// A record is one letter in a file. Its values may be unreadable here, when a codec
// of tuple.Any is missing; the record is kept as it is all the same.
type record struct {
	raw    []byte
	letter *task.DeadLetter
	err    error // of the values
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendTexts(b []byte, all []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, s := range all {
		b = appendText(b, s)
	}
	return b
}

func encodeLetter(l *task.DeadLetter) []byte {
	var b []byte
	for _, s := range []string{l.ID, l.Component, l.Task, l.Stream, l.Err} {
		b = appendText(b, s)
	}
	b = binary.AppendVarint(b, l.Time.UnixNano())
	for _, n := range []int{l.Failures, l.Losses, l.Deaths, l.Direct} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = appendTexts(b, l.Fields)
	values, err := encodeValues(l)
	if err == nil {
		return append(appendTexts(b, l.History), values...)
	}
	// A value whose codec fails would keep its message open for ever. Its text is
	// better than nothing.
	plain := *l
	plain.Values = nil
	for _, v := range l.Values {
		if v.Kind() == tuple.KindAny {
			v, _ = tuple.ValueOf(v.String())
		}
		plain.Values = append(plain.Values, v)
	}
	b = appendTexts(b, append(append([]string(nil), l.History...), "stored as text: "+err.Error()))
	values, _ = encodeValues(&plain)
	return append(b, values...)
}

func encodeValues(l *task.DeadLetter) ([]byte, error) {
	var r tuple.Row
	s := &tuple.Schema{Component: l.Component, Stream: l.Stream, Fields: l.Fields}
	r.SetValues(s, l.Values)
	p := &tuple.Parcel{Schema: s}
	p.Begin(r.Kinds, 1)
	p.Append(&r)
	return tuple.AppendParcel(nil, p)
}

// A cursor reads through a letter.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) number() uint64 {
	n, k := binary.Uvarint(c.b)
	if k <= 0 {
		c.bad, c.b = true, nil
		return 0
	}
	c.b = c.b[k:]
	return n
}

func (c *cursor) count() int {
	n := c.number()
	if n > math.MaxInt32 {
		c.bad = true
		return 0
	}
	return int(n)
}

func (c *cursor) text() string {
	n := c.number()
	if n > uint64(len(c.b)) {
		c.bad, c.b = true, nil
		return ""
	}
	s := string(c.b[:n])
	c.b = c.b[n:]
	return s
}

func (c *cursor) texts() (all []string) {
	n := c.number()
	if n > uint64(len(c.b)) { // each takes a byte
		c.bad, c.b = true, nil
		return nil
	}
	for range n {
		all = append(all, c.text())
	}
	return all
}

// decodeLetter reads what encodeLetter has written. An error is ErrCorrupt.
func decodeLetter(b []byte) (record, error) {
	c := cursor{b: b}
	l := &task.DeadLetter{ID: c.text(), Component: c.text(), Task: c.text(), Stream: c.text(), Err: c.text()}
	n := c.number()
	l.Time = time.Unix(0, int64(n>>1)^-int64(n&1)).UTC()
	l.Failures, l.Losses, l.Deaths, l.Direct = c.count(), c.count(), c.count(), c.count()
	l.Fields = c.texts()
	l.History = c.texts()
	if _, ok := parseID(l.ID); !ok || c.bad {
		return record{}, fmt.Errorf("%w: no letter", ErrCorrupt)
	}
	r := record{raw: b, letter: l}
	var p tuple.Parcel
	err := tuple.DecodeParcel(c.b, &p, &tuple.Schema{Component: l.Component, Stream: l.Stream, Fields: l.Fields})
	if err == nil && p.Len() != 1 {
		err = fmt.Errorf("%w: %d tuples", ErrCorrupt, p.Len())
	}
	if err != nil {
		r.err = fmt.Errorf("the values cannot be read: %w", err)
		return r, nil
	}
	l.Values = tuple.CloneRow(p.Row(0), p.Kinds)
	return r, nil
}

func encodeLetters(all []record) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(letterMagic), uint32(len(all)))
	for _, r := range all {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(r.raw)))
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(r.raw, castagnoli))
		b = append(b, r.raw...)
	}
	return b
}

// decodeLetters reads a file of letters. An error is ErrCorrupt or ErrNewer.
func decodeLetters(b []byte) ([]record, error) {
	if err := newer(b, "egret letters ", 1); err != nil {
		return nil, err
	}
	if len(b) < len(letterMagic)+4 || string(b[:len(letterMagic)]) != letterMagic {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrCorrupt, letterMagic)
	}
	o := len(letterMagic)
	n := int(binary.LittleEndian.Uint32(b[o:]))
	o += 4
	var all []record
	for i := range n {
		if len(b)-o < 8 {
			return nil, fmt.Errorf("%w: it ends behind letter %d of %d", ErrCorrupt, i, n)
		}
		size, sum := binary.LittleEndian.Uint32(b[o:]), binary.LittleEndian.Uint32(b[o+4:])
		o += 8
		if uint64(size) > uint64(len(b)-o) {
			return nil, fmt.Errorf("%w: it ends in letter %d of %d", ErrCorrupt, i+1, n)
		}
		raw := b[o : o+int(size)]
		if crc32.Checksum(raw, castagnoli) != sum {
			return nil, fmt.Errorf("%w: the sum of letter %d of %d is wrong", ErrCorrupt, i+1, n)
		}
		r, err := decodeLetter(raw)
		if err != nil {
			return nil, fmt.Errorf("letter %d of %d: %w", i+1, n, err)
		}
		all = append(all, r)
		o += int(size)
	}
	if o < len(b) {
		return nil, fmt.Errorf("%w: %d bytes behind the last letter", ErrCorrupt, len(b)-o)
	}
	return all, nil
}
