package bolt

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/tuple"
)

// Count returns a factory of bolts that count tuples by the values of some of
// their fields, and emit the values and the count, an int64, when all input has
// ended, ordered by the values. With no fields they count all tuples.
//
// The component's first stream needs one field for each of the given ones and one
// for the count:
//
//	sums := b.Bolt("count", bolt.Count("word"), words.By("word")).Emits("word", "count")
//
// Each task counts for itself, so group by the same fields. Integers and floats
// of the same value are the same key, as they are for grouping; a value of kind
// any cannot be counted and rejects its tuple. The memory grows with the number
// of keys. A task that is started again counts from 0 what is replayed and what
// comes after.
func Count(fields ...string) Factory {
	fields = slices.Clone(fields)
	return func() Bolt {
		return &count{fields: fields, texts: map[string]*int64{}, keys: map[string]*counter{}}
	}
}

// A count keeps keys that are one string, which most are, apart from the others,
// whose values it has to remember beside their encoding.
type count struct {
	fields []string
	texts  map[string]*int64
	keys   map[string]*counter // by encoding
	key    []byte              // room
	values []tuple.Value       // room
}

type counter struct {
	values []tuple.Value // of the first tuple with this key
	n      int64
}

func (c *count) Prepare(_ context.Context, task *Task) error {
	if len(task.Streams) == 0 {
		return Reject(fmt.Errorf("component %s counts and declares no stream: add .Emits(%s)", task.Component, c.emits()))
	}
	if s := task.Streams[0]; len(s.Fields) != len(c.fields)+1 {
		return Reject(fmt.Errorf("component %s counts by %s and its stream %s has %d (%s): it needs one more than it counts by, as in .Emits(%s)",
			task.Component, amount.Of(len(c.fields), "field"), s.Stream, len(s.Fields), strings.Join(s.Fields, ", "), c.emits()))
	}
	return nil
}

func (c *count) emits() string {
	s := ""
	for _, f := range c.fields {
		s += fmt.Sprintf("%q, ", f)
	}
	return s + `"count"`
}

func (c *count) Execute(in tuple.Tuple, _ *Collector) error {
	if len(c.fields) == 1 {
		if v := in.Value(c.fields[0]); v.Kind() == tuple.KindString {
			n := c.texts[v.String()]
			if n == nil {
				n = new(int64)
				c.texts[strings.Clone(v.String())] = n
			}
			*n++
			return nil
		}
	}
	c.key, c.values = c.key[:0], c.values[:0]
	for _, f := range c.fields {
		v := in.Value(f)
		if v.Kind() == tuple.KindAny {
			return Reject(fmt.Errorf("field %q of stream %s.%s is a %T, by which Count cannot count: emit a field with a plain value of it", f, in.Component(), in.Stream(), v.Any()))
		}
		c.key, c.values = appendKey(c.key, v), append(c.values, v)
	}
	k := c.keys[string(c.key)]
	if k == nil {
		k = &counter{values: appendClones(nil, c.values)}
		c.keys[string(c.key)] = k
	}
	k.n++
	return nil
}

func (c *count) Finish(out *Collector) error {
	all := make([]counter, 0, len(c.texts)+len(c.keys))
	for word, n := range c.texts {
		all = append(all, counter{[]tuple.Value{valueOf(word)}, *n})
	}
	for _, k := range c.keys {
		all = append(all, *k)
	}
	slices.SortFunc(all, func(a, b counter) int { return slices.CompareFunc(a.values, b.values, compare) })
	for _, k := range all {
		out.emitValues(append(k.values, valueOf(k.n)))
	}
	return nil
}

// appendKey appends an encoding of v that is the same for equal values and
// differs, with its neighbours, for others.
func appendKey(dst []byte, v tuple.Value) []byte {
	const negative, natural = '-', '+'
	switch v.Kind() {
	case tuple.KindBool:
		if v.Bool() {
			return append(dst, 't')
		}
		return append(dst, 'f')
	case tuple.KindInt64:
		if v.Int64() < 0 {
			return binary.BigEndian.AppendUint64(append(dst, negative), uint64(v.Int64()))
		}
		return binary.BigEndian.AppendUint64(append(dst, natural), uint64(v.Int64()))
	case tuple.KindUint64:
		return binary.BigEndian.AppendUint64(append(dst, natural), v.Uint64())
	case tuple.KindFloat64:
		f := v.Float64()
		switch {
		case f != f:
			return append(dst, 'N')
		case f == math.Trunc(f) && f >= 0 && f < 1<<64:
			return binary.BigEndian.AppendUint64(append(dst, natural), uint64(f))
		case f == math.Trunc(f) && f < 0 && f >= -1<<63:
			return binary.BigEndian.AppendUint64(append(dst, negative), uint64(int64(f)))
		default:
			return binary.BigEndian.AppendUint64(append(dst, 'F'), math.Float64bits(f))
		}
	case tuple.KindString:
		return appendText(append(dst, 's'), v.String())
	case tuple.KindBytes:
		return appendText(append(dst, 'b'), v.Bytes())
	case tuple.KindTime:
		return binary.BigEndian.AppendUint64(append(dst, 'T'), uint64(v.Time().UnixNano()))
	case tuple.KindDuration:
		return binary.BigEndian.AppendUint64(append(dst, 'D'), uint64(v.Duration()))
	default:
		return append(dst, '0') // nil
	}
}

func appendText[T string | []byte](dst []byte, text T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}
