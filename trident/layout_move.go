package trident

import (
	"fmt"
	"math"
	"reflect"
	"time"
	"unsafe"

	"github.com/egretstream/egret/tuple"
)

// encode appends the fields of the value at p, which is of l's type.
func (l *layout) encode(dst []tuple.Value, p unsafe.Pointer) []tuple.Value {
	for i := range l.ops {
		dst = append(dst, l.ops[i].load(p))
	}
	return dst
}

// decode sets the value at p, which is of l's type, from the fields of in that begin
// at first. A field of another kind, or a number that is too large for its type, is a
// misuse.
func (l *layout) decode(in tuple.Tuple, first int, p unsafe.Pointer) {
	for i := range l.ops {
		if what := l.ops[i].store(p, in.At(first+i)); what != "" {
			if in.Masked(first + i) {
				what = fmt.Sprintf("what it is does not fit into %v", l.ops[i].typ)
			}
			tuple.Misuse(fmt.Sprintf("field %q of stream %s.%s for %s of type %v: %s", in.Fields()[first+i], in.Component(), in.Stream(), l.ops[i].path, l.typ, what))
		}
	}
}

func (o *op) load(p unsafe.Pointer) tuple.Value {
	p = unsafe.Add(p, o.offset)
	if o.optional {
		if p = *(*unsafe.Pointer)(p); p == nil {
			return tuple.Value{}
		}
	}
	switch o.code {
	case asString:
		return tuple.String(*(*string)(p))
	case asInt:
		return tuple.Int64(int64(*(*int)(p)))
	case asInt64:
		return tuple.Int64(*(*int64)(p))
	case asFloat64:
		return tuple.Float64(*(*float64)(p))
	case asBool:
		return tuple.Bool(*(*bool)(p))
	case asInt8:
		return tuple.Int64(int64(*(*int8)(p)))
	case asInt16:
		return tuple.Int64(int64(*(*int16)(p)))
	case asInt32:
		return tuple.Int64(int64(*(*int32)(p)))
	case asUint:
		return tuple.Uint64(uint64(*(*uint)(p)))
	case asUint8:
		return tuple.Uint64(uint64(*(*uint8)(p)))
	case asUint16:
		return tuple.Uint64(uint64(*(*uint16)(p)))
	case asUint32:
		return tuple.Uint64(uint64(*(*uint32)(p)))
	case asUint64:
		return tuple.Uint64(*(*uint64)(p))
	case asFloat32:
		return tuple.Float64(float64(*(*float32)(p)))
	case asBytes:
		return tuple.Bytes(*(*[]byte)(p))
	case asTime:
		return tuple.Time(*(*time.Time)(p))
	case asDuration:
		return tuple.Duration(*(*time.Duration)(p))
	default:
		return tuple.Any(reflect.NewAt(o.typ, p).Elem().Interface())
	}
}

// store returns what is wrong with v, or "".
func (o *op) store(p unsafe.Pointer, v tuple.Value) string {
	p = unsafe.Add(p, o.offset)
	if o.optional {
		if v.IsNil() {
			*(*unsafe.Pointer)(p) = nil
			return ""
		}
		to := reflect.New(o.typ).UnsafePointer()
		*(*unsafe.Pointer)(p) = to
		p = to
	}
	if k := o.code.kind(); v.Kind() != k {
		return o.other(v)
	}
	switch o.code {
	case asString:
		*(*string)(p) = v.String()
	case asInt:
		n := v.Int64()
		*(*int)(p) = int(n)
		return o.fits(int64(int(n)) == n, v)
	case asInt64:
		*(*int64)(p) = v.Int64()
	case asFloat64:
		*(*float64)(p) = v.Float64()
	case asBool:
		*(*bool)(p) = v.Bool()
	case asInt8:
		n := v.Int64()
		*(*int8)(p) = int8(n)
		return o.fits(int64(int8(n)) == n, v)
	case asInt16:
		n := v.Int64()
		*(*int16)(p) = int16(n)
		return o.fits(int64(int16(n)) == n, v)
	case asInt32:
		n := v.Int64()
		*(*int32)(p) = int32(n)
		return o.fits(int64(int32(n)) == n, v)
	case asUint:
		n := v.Uint64()
		*(*uint)(p) = uint(n)
		return o.fits(uint64(uint(n)) == n, v)
	case asUint8:
		n := v.Uint64()
		*(*uint8)(p) = uint8(n)
		return o.fits(n <= math.MaxUint8, v)
	case asUint16:
		n := v.Uint64()
		*(*uint16)(p) = uint16(n)
		return o.fits(n <= math.MaxUint16, v)
	case asUint32:
		n := v.Uint64()
		*(*uint32)(p) = uint32(n)
		return o.fits(n <= math.MaxUint32, v)
	case asUint64:
		*(*uint64)(p) = v.Uint64()
	case asFloat32:
		*(*float32)(p) = float32(v.Float64())
	case asBytes:
		*(*[]byte)(p) = v.Bytes()
	case asTime:
		*(*time.Time)(p) = v.Time()
	case asDuration:
		*(*time.Duration)(p) = v.Duration()
	case asAny:
		got := reflect.ValueOf(v.Any())
		if got.Type() != o.typ {
			return fmt.Sprintf("it is a %v, not a %v", got.Type(), o.typ)
		}
		reflect.NewAt(o.typ, p).Elem().Set(got)
	}
	return ""
}

func (o *op) other(v tuple.Value) string {
	what := fmt.Sprintf("it is %v, not %v", v.Kind(), o.code.kind())
	if v.IsNil() {
		what += fmt.Sprintf(": if it may be absent, declare it as *%v", o.typ)
	}
	return what
}

func (o *op) fits(yes bool, v tuple.Value) string {
	if yes {
		return ""
	}
	return fmt.Sprintf("%v does not fit into %v", v, o.typ)
}
