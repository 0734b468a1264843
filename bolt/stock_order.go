package bolt

import (
	"bytes"
	"cmp"
	"math"
	"strings"

	"github.com/egretstream/egret/tuple"
)

// compare orders values: nil, false, true, numbers by their exact value whatever
// their kind, then the other kinds one behind the other. NaN is before all other
// numbers, as in package cmp.
func compare(a, b tuple.Value) int {
	if isNumber(a) && isNumber(b) {
		return compareNumbers(a, b)
	}
	if a.Kind() != b.Kind() {
		return cmp.Compare(order(a), order(b))
	}
	switch a.Kind() {
	case tuple.KindBool:
		switch {
		case a.Bool() == b.Bool():
			return 0
		case a.Bool():
			return 1
		}
		return -1
	case tuple.KindBytes:
		return bytes.Compare(a.Bytes(), b.Bytes())
	case tuple.KindTime:
		return a.Time().Compare(b.Time())
	case tuple.KindDuration:
		return cmp.Compare(a.Duration(), b.Duration())
	default: // a nil has no other, and an any is known by its text
		return strings.Compare(a.String(), b.String())
	}
}

// order ranks the kinds; numbers are one.
func order(v tuple.Value) int {
	if isNumber(v) {
		return int(tuple.KindInt64)
	}
	return int(v.Kind())
}

func isNumber(v tuple.Value) bool {
	k := v.Kind()
	return k == tuple.KindInt64 || k == tuple.KindUint64 || k == tuple.KindFloat64
}

func compareNumbers(a, b tuple.Value) int {
	ka, kb := a.Kind(), b.Kind()
	switch {
	case ka == tuple.KindFloat64 && kb == tuple.KindFloat64:
		return cmp.Compare(a.Float64(), b.Float64())
	case ka == tuple.KindFloat64:
		return compareFloat(a.Float64(), b)
	case kb == tuple.KindFloat64:
		return -compareFloat(b.Float64(), a)
	case ka == kb && ka == tuple.KindInt64:
		return cmp.Compare(a.Int64(), b.Int64())
	case ka == kb:
		return cmp.Compare(a.Uint64(), b.Uint64())
	case ka == tuple.KindInt64:
		return compareInts(a.Int64(), b.Uint64())
	default:
		return -compareInts(b.Int64(), a.Uint64())
	}
}

func compareInts(a int64, b uint64) int {
	if a < 0 {
		return -1
	}
	return cmp.Compare(uint64(a), b)
}

// compareFloat compares f with an integer, without making a float of it, which
// might round it.
func compareFloat(f float64, b tuple.Value) int {
	whole := math.Floor(f)
	var c int
	switch {
	case f != f || f < -1<<63:
		return -1
	case f >= 1<<64:
		return 1
	case b.Kind() == tuple.KindUint64 && whole < 0:
		return -1
	case b.Kind() == tuple.KindUint64:
		c = cmp.Compare(uint64(whole), b.Uint64())
	case whole >= 1<<63:
		return 1
	default:
		c = cmp.Compare(int64(whole), b.Int64())
	}
	if c == 0 && f > whole {
		return 1
	}
	return c
}

// appendClones appends values whose text is no longer shared with a parcel, so
// that keeping one does not keep the whole parcel's text.
func appendClones(dst, values []tuple.Value) []tuple.Value {
	for _, v := range values {
		switch v.Kind() {
		case tuple.KindString:
			v = valueOf(strings.Clone(v.String()))
		case tuple.KindBytes:
			v = valueOf(v.Bytes()) // which copies
		}
		dst = append(dst, v)
	}
	return dst
}

// valueOf makes a value of what always is one.
func valueOf[T string | []byte | int64](x T) tuple.Value {
	v, err := tuple.ValueOf(x)
	if err != nil {
		panic(err)
	}
	return v
}
