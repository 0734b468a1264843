package tuple

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
	"unsafe"
)

// A Kind says what a value is. The numbers are part of the wire format.
type Kind uint8

const (
	KindNil Kind = iota
	KindBool
	KindInt64
	KindUint64
	KindFloat64
	KindString
	KindBytes
	KindTime
	KindDuration
	KindAny // a Go value with a registered codec
	kinds   // how many there are
)

var kindNames = [kinds]string{"nil", "bool", "int64", "uint64", "float64", "string", "[]byte", "time.Time", "time.Duration", "any"}

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// A Cell is a value without its kind, in 16 bytes: the kinds of a parcel's
// columns stand once in its header. The zero Cell is the zero value of every
// kind but KindTime, whose zero is 1970.
type Cell struct {
	ptr unsafe.Pointer // text of strings and bytes; *any of a KindAny
	num uint64         // length of a text; the bits of everything else
}

// A Value is a cell with its kind: what a tuple holds at one position. The zero
// Value is nil. A Value is immutable; bytes read from it must not be written.
type Value struct {
	cell Cell
	kind Kind
}

func textCell(s string) Cell {
	return Cell{ptr: unsafe.Pointer(unsafe.StringData(s)), num: uint64(len(s))}
}

func bytesCell(b []byte) Cell {
	return Cell{ptr: unsafe.Pointer(unsafe.SliceData(b)), num: uint64(len(b))}
}

func (c Cell) text() string { return unsafe.String((*byte)(c.ptr), int(c.num)) }

// bytes returns what c holds. No bytes are never nil, whether they were emitted
// here or came over the wire, where the two cannot be told apart.
func (c Cell) bytes() []byte {
	if c.num == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(c.ptr), int(c.num))
}

// size is what c keeps alive beyond its own 16 bytes, as far as is known.
func (c Cell) size(k Kind) int {
	if k == KindString || k == KindBytes {
		return int(c.num)
	}
	return 0
}

// Kind returns what v is.
func (v Value) Kind() Kind { return v.kind }

// IsNil reports whether v is nil.
func (v Value) IsNil() bool { return v.kind == KindNil }

func (v Value) want(k Kind) {
	if v.kind != k {
		panic(misuse{fmt.Sprintf("value is %v, not %v", v.kind, k)})
	}
}

// Bool returns v's value. Like the methods below it must be called on a value
// of its own kind; anything else is a misuse, which rejects the tuple in hand.
func (v Value) Bool() bool       { v.want(KindBool); return v.cell.num != 0 }
func (v Value) Int64() int64     { v.want(KindInt64); return int64(v.cell.num) }
func (v Value) Uint64() uint64   { v.want(KindUint64); return v.cell.num }
func (v Value) Float64() float64 { v.want(KindFloat64); return math.Float64frombits(v.cell.num) }

// Bytes returns the bytes of v, which are shared and must not be written.
func (v Value) Bytes() []byte { v.want(KindBytes); return v.cell.bytes() }

// Time returns v in UTC.
func (v Value) Time() time.Time {
	v.want(KindTime)
	return time.Unix(0, int64(v.cell.num)).UTC()
}

func (v Value) Duration() time.Duration { v.want(KindDuration); return time.Duration(v.cell.num) }

// Any returns v as a Go value: nil, bool, int64, uint64, float64, string,
// []byte, time.Time, time.Duration, or what was given to [Any].
func (v Value) Any() any {
	switch v.kind {
	case KindNil:
		return nil
	case KindBool:
		return v.cell.num != 0
	case KindInt64:
		return int64(v.cell.num)
	case KindUint64:
		return v.cell.num
	case KindFloat64:
		return math.Float64frombits(v.cell.num)
	case KindString:
		return v.cell.text()
	case KindBytes:
		return v.cell.bytes()
	case KindTime:
		return v.Time()
	case KindDuration:
		return time.Duration(v.cell.num)
	default:
		return *(*any)(v.cell.ptr)
	}
}

// String returns the text of a string, and of any other value a text for people.
func (v Value) String() string {
	switch v.kind {
	case KindNil:
		return "nil"
	case KindString:
		return v.cell.text()
	case KindInt64:
		return strconv.FormatInt(int64(v.cell.num), 10)
	case KindTime:
		return v.Time().Format(time.RFC3339Nano)
	default:
		return fmt.Sprint(v.Any())
	}
}

// Any makes a value of a Go value whose type has a codec (see [RegisterCodec]).
// It panics if the type has none: such a value could not leave its process.
func Any(v any) Value {
	if _, ok := codecs.byType[reflect.TypeOf(v)]; !ok {
		panic(misuse{fmt.Sprintf("type %v has no codec: register one with tuple.RegisterCodec before the topology runs", reflect.TypeOf(v))})
	}
	return Value{cell: Cell{ptr: unsafe.Pointer(&v)}, kind: KindAny}
}

// ValueOf makes a value of v, which must be of a type that Emit accepts.
func ValueOf(v any) (Value, error) {
	r := Row{Cells: make([]Cell, 1), Kinds: make([]Kind, 1)}
	if bad := r.fill([]any{v}); bad >= 0 {
		return Value{}, badValue(v)
	}
	return Value{r.Cells[0], r.Kinds[0]}, nil
}

const (
	minSecond = math.MinInt64 / 1_000_000_000 // Unix seconds whose nanoseconds fit
	maxSecond = math.MaxInt64 / 1_000_000_000
)

// timeCell returns the cell of t, or false if its nanoseconds do not fit.
func timeCell(t time.Time) (Cell, bool) {
	s := t.Unix()
	if s <= minSecond || s >= maxSecond {
		return Cell{}, false
	}
	return Cell{num: uint64(t.UnixNano())}, true
}

// fill sets r, which has as many cells and kinds, from values. It returns the
// index of the first value that is of no kind, or -1.
//
// Nothing here may store a value itself or hand it to fmt: then the compiler
// would move every box that the caller of Emit makes to the heap.
func (r *Row) fill(values []any) (bad int) {
	cells, kinds := r.Cells, r.Kinds[:len(r.Cells)]
	text, s := 0, shape(0)
	for i := range cells {
		// Most values are texts, and an assertion is one comparison where the switch
		// has to search.
		if v, ok := values[i].(string); ok {
			cells[i], kinds[i] = textCell(v), KindString
			text += len(v)
			s = s<<4 | shape(KindString+1)
			continue
		}
		var c Cell
		var k Kind
		switch v := values[i].(type) {
		case int:
			c, k = Cell{num: uint64(v)}, KindInt64
		case int64:
			c, k = Cell{num: uint64(v)}, KindInt64
		case float64:
			c, k = Cell{num: math.Float64bits(v)}, KindFloat64
		case bool:
			n := uint64(0)
			if v {
				n = 1
			}
			c, k = Cell{num: n}, KindBool
		case uint64:
			c, k = Cell{num: v}, KindUint64
		case []byte:
			b := make([]byte, len(v))
			copy(b, v)
			c, k = bytesCell(b), KindBytes
			text += len(v)
		case time.Time:
			t, ok := timeCell(v)
			if !ok {
				return i
			}
			c, k = t, KindTime
		case time.Duration:
			c, k = Cell{num: uint64(v)}, KindDuration
		case nil:
			c, k = Cell{}, KindNil
		case Value:
			c, k = v.cell, v.kind
			text += v.cell.size(v.kind)
		case int8:
			c, k = Cell{num: uint64(int64(v))}, KindInt64
		case int16:
			c, k = Cell{num: uint64(int64(v))}, KindInt64
		case int32:
			c, k = Cell{num: uint64(int64(v))}, KindInt64
		case uint:
			c, k = Cell{num: uint64(v)}, KindUint64
		case uint8:
			c, k = Cell{num: uint64(v)}, KindUint64
		case uint16:
			c, k = Cell{num: uint64(v)}, KindUint64
		case uint32:
			c, k = Cell{num: uint64(v)}, KindUint64
		case uintptr:
			c, k = Cell{num: uint64(v)}, KindUint64
		case float32:
			c, k = Cell{num: math.Float64bits(float64(v))}, KindFloat64
		default:
			return i
		}
		cells[i], kinds[i] = c, k
		s = s<<4 | shape(k+1)
	}
	r.Text = text
	if r.shape = s; len(cells) > mostShape {
		r.shape = 0
	}
	return -1
}

// badValue says why setCells refused v. It runs once per mistake, on a copy of
// the type's name or the time, never on v itself.
func badValue(v any) error {
	if t, ok := v.(time.Time); ok {
		s := t.Unix()
		return fmt.Errorf("time with Unix second %d is outside 1678-2262, which nanoseconds since 1970 can hold", s)
	}
	name := reflect.TypeOf(v).String()
	return fmt.Errorf("a %s is no value: use a built-in integer, float, bool, string, []byte, time.Time or time.Duration, or tuple.Any with a registered codec", name)
}
