package trident

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"github.com/egretstream/egret/tuple"
)

// A key or value in a store is its fields, one behind the other. Each is a byte, the
// number of its tuple.Kind, and then
//
//	nil        nothing              string, []byte  length, bytes
//	bool       1 byte, 0 or 1       int64, duration signed varint
//	uint64     varint               float64         8 bytes, its bits
//	time       8 bytes, nanoseconds since 1970
//	any        length, what its codec makes of it
//
// Lengths are varints, fixed widths little-endian. Equal keys have equal bytes. The
// kinds are there so that a program whose types have changed notices, and so that a
// tool can show what it knows nothing of: [Show].

var errCorrupt = errors.New("the bytes are cut off or damaged")

// appendBytes appends the bytes of the value at p, which is of l's type.
func (l *layout) appendBytes(dst []byte, p unsafe.Pointer) ([]byte, error) {
	for i := range l.ops {
		if err := l.ops[i].keeps(p); err != nil {
			return dst, fmt.Errorf("%s of type %v: %w", l.ops[i].path, l.typ, err)
		}
		v := l.ops[i].load(p)
		dst = append(dst, byte(v.Kind()))
		switch v.Kind() {
		case tuple.KindNil:
		case tuple.KindBool:
			b := byte(0)
			if v.Bool() {
				b = 1
			}
			dst = append(dst, b)
		case tuple.KindInt64:
			dst = binary.AppendVarint(dst, v.Int64())
		case tuple.KindDuration:
			dst = binary.AppendVarint(dst, int64(v.Duration()))
		case tuple.KindUint64:
			dst = binary.AppendUvarint(dst, v.Uint64())
		case tuple.KindFloat64:
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Float64()))
		case tuple.KindTime:
			dst = binary.LittleEndian.AppendUint64(dst, uint64(v.Time().UnixNano()))
		case tuple.KindString:
			dst = binary.AppendUvarint(dst, uint64(len(v.String())))
			dst = append(dst, v.String()...)
		case tuple.KindBytes:
			dst = binary.AppendUvarint(dst, uint64(len(v.Bytes())))
			dst = append(dst, v.Bytes()...)
		case tuple.KindAny:
			b, err := tuple.AppendAny(nil, v.Any())
			if err != nil {
				return dst, fmt.Errorf("%s of type %v: its codec: %w", l.ops[i].path, l.typ, err)
			}
			dst = binary.AppendUvarint(dst, uint64(len(b)))
			dst = append(dst, b...)
		}
	}
	return dst, nil
}

// keeps returns an error for a time that is none of those that a value can be.
func (o *op) keeps(p unsafe.Pointer) error {
	if o.code != asTime {
		return nil
	}
	p = unsafe.Add(p, o.offset)
	if o.optional {
		if p = *(*unsafe.Pointer)(p); p == nil {
			return nil
		}
	}
	t := *(*time.Time)(p)
	_, err := tuple.ValueOf(t)
	if err != nil && t.IsZero() {
		return errors.New("the zero time cannot be kept (times are of the years 1678 to 2262): where there may be none, use a *time.Time that is nil")
	}
	return err
}

// parse sets the value at p, which is of l's type, from what appendBytes has made.
// Its text shares memory with b.
func (l *layout) parse(b string, p unsafe.Pointer) error {
	for i := range l.ops {
		o := &l.ops[i]
		v, raw, rest, err := parseValue(b)
		if err == nil && v.Kind() == tuple.KindBytes && o.code == asAny {
			err = fmt.Errorf("it is []byte, not a %v", o.typ)
		}
		if err == nil && raw {
			if o.code != asAny {
				err = errors.New(o.other(tuple.Value{}))
			} else if x, bad := tuple.DecodeAny(o.typ, []byte(v.String())); bad != nil {
				err = bad
			} else {
				v = tuple.Any(x)
			}
		}
		if err == nil {
			if what := o.store(p, v); what != "" {
				err = errors.New(what)
			}
		}
		if err != nil {
			return fmt.Errorf("a stored value for %s of type %v: %w", o.path, l.typ, err)
		}
		b = rest
	}
	if b != "" {
		return fmt.Errorf("a stored value of type %v: there is more than its %d fields: %w", l.typ, len(l.ops), errCorrupt)
	}
	return nil
}

// parseValue takes the first value off b. raw says that it is the bytes of a codec.
func parseValue(b string) (v tuple.Value, raw bool, rest string, err error) {
	if b == "" {
		return v, false, "", errCorrupt
	}
	k := tuple.Kind(b[0])
	b = b[1:]
	switch k {
	case tuple.KindNil:
		return tuple.Value{}, false, b, nil
	case tuple.KindBool:
		if b == "" || b[0] > 1 {
			return v, false, "", errCorrupt
		}
		return tuple.Bool(b[0] == 1), false, b[1:], nil
	case tuple.KindFloat64, tuple.KindTime:
		if len(b) < 8 {
			return v, false, "", errCorrupt
		}
		n := binary.LittleEndian.Uint64([]byte(b[:8]))
		if k == tuple.KindTime {
			v, err := tuple.ValueOf(time.Unix(0, int64(n)))
			if err != nil {
				return v, false, "", errCorrupt
			}
			return v, false, b[8:], nil
		}
		return tuple.Float64(math.Float64frombits(n)), false, b[8:], nil
	case tuple.KindInt64, tuple.KindDuration, tuple.KindUint64, tuple.KindString, tuple.KindBytes, tuple.KindAny:
	default:
		return v, false, "", errCorrupt
	}
	head := []byte(b[:min(len(b), binary.MaxVarintLen64)])
	if k == tuple.KindInt64 || k == tuple.KindDuration {
		n, w := binary.Varint(head)
		if w <= 0 {
			return v, false, "", errCorrupt
		}
		if k == tuple.KindDuration {
			return tuple.Duration(time.Duration(n)), false, b[w:], nil
		}
		return tuple.Int64(n), false, b[w:], nil
	}
	n, w := binary.Uvarint(head)
	if w <= 0 {
		return v, false, "", errCorrupt
	}
	b = b[w:]
	if k == tuple.KindUint64 {
		return tuple.Uint64(n), false, b, nil
	}
	if n > uint64(len(b)) {
		return v, false, "", errCorrupt
	}
	text, rest := b[:n], b[n:]
	if k == tuple.KindBytes {
		return tuple.Bytes([]byte(text)), false, rest, nil
	}
	return tuple.String(text), k == tuple.KindAny, rest, nil
}

// Show returns the bytes of a key or a value in a store as text for people.
func Show(b []byte) string {
	text := ""
	for rest := string(b); rest != ""; {
		v, raw, after, err := parseValue(rest)
		if text != "" {
			text += " "
		}
		switch {
		case err != nil:
			return text + fmt.Sprintf("(%d bytes that are damaged)", len(rest))
		case raw || v.Kind() == tuple.KindBytes:
			text += fmt.Sprintf("%x", v.Any())
		default:
			text += v.String()
		}
		rest = after
	}
	return text
}
