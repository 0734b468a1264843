package tuple

import (
	"fmt"
	"math"
	"reflect"
	"time"
)

// Bool makes a value of v. The functions below do the same for the other kinds; they
// allocate nothing, unless they say so.
func Bool(v bool) Value {
	if v {
		return Value{Cell{num: 1}, KindBool}
	}
	return Value{Cell{}, KindBool}
}

func Int64(v int64) Value            { return Value{Cell{num: uint64(v)}, KindInt64} }
func Uint64(v uint64) Value          { return Value{Cell{num: v}, KindUint64} }
func Float64(v float64) Value        { return Value{Cell{num: math.Float64bits(v)}, KindFloat64} }
func String(v string) Value          { return Value{textCell(v), KindString} }
func Duration(v time.Duration) Value { return Value{Cell{num: uint64(v)}, KindDuration} }

// Bytes makes a value of a copy of v.
func Bytes(v []byte) Value { return Value{bytesCell(append([]byte(nil), v...)), KindBytes} }

// Time makes a value of v. A time outside 1678-2262 is a misuse.
func Time(v time.Time) Value {
	c, ok := timeCell(v)
	if !ok {
		panic(misuse{badValue(v).Error()})
	}
	return Value{c, KindTime}
}

// HashValues is [Hash] of a key whose fields are values.
func HashValues(values []Value) uint64 {
	h := uint64(0)
	for _, v := range values {
		h = hashCell(v.cell, v.kind, h)
	}
	return h
}

// HasCodec reports whether values of type t are fit for [Any].
func HasCodec(t reflect.Type) bool { return codecs.byType[t] != nil }

// AppendAny appends what the codec of v's type makes of v.
func AppendAny(dst []byte, v any) ([]byte, error) {
	c := codecs.byType[reflect.TypeOf(v)]
	if c == nil {
		return dst, fmt.Errorf("type %v has no codec", reflect.TypeOf(v))
	}
	return c.append(dst, v)
}

// DecodeAny returns the value of type t that [AppendAny] has written.
func DecodeAny(t reflect.Type, b []byte) (any, error) {
	c := codecs.byType[t]
	if c == nil {
		return nil, fmt.Errorf("type %v has no codec", t)
	}
	return c.decode(b)
}

// Input returns which of the receiver's subscriptions t came by, counted from 0.
func (t Tuple) Input() int { return t.parcel().Input }
