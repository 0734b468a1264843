package to

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/egretstream/egret/tuple"
)

type lineEncoder struct{ fields []string }

func (e *lineEncoder) append(dst []byte, in tuple.Tuple) ([]byte, error) {
	n, breaks := len(e.fields), "\n\r\t"
	if n == 0 {
		n = in.Len()
	}
	if n == 1 {
		breaks = "\n\r"
	}
	for i := range n {
		var v tuple.Value
		if len(e.fields) == 0 {
			v = in.At(i)
		} else {
			v = in.Value(e.fields[i])
		}
		if i > 0 {
			dst = append(dst, '\t')
		}
		if v.IsNil() {
			continue
		}
		begin := len(dst)
		dst = appendValue(dst, v)
		switch v.Kind() {
		case tuple.KindString, tuple.KindBytes, tuple.KindAny:
			if k := bytes.IndexAny(dst[begin:], breaks); k >= 0 {
				name := in.Fields()[i]
				if len(e.fields) > 0 {
					name = e.fields[i]
				}
				return nil, fmt.Errorf("field %q of stream %s.%s has a %q at byte %d, which would end its line or column: write it with to.JSONLines, or without", name, in.Component(), in.Stream(), dst[begin+k], k)
			}
		}
	}
	return append(dst, '\n'), nil
}

// A jsonEncoder keeps the text between the values for the stream it saw last.
type jsonEncoder struct {
	fields []string // that are wanted; none: all
	of     []string // the fields of that stream
	names  []string // of the members
	before [][]byte // a member's value: a brace or comma, and the name
}

func (e *jsonEncoder) know(in tuple.Tuple) error {
	names := e.fields
	if len(names) == 0 {
		names = in.Fields()
	}
	e.before = e.before[:0]
	for i, name := range names {
		text := []byte{','}
		if i == 0 {
			text[0] = '{'
		}
		text, err := jsontext.AppendQuote(text, name)
		if err != nil {
			return fmt.Errorf("the name of field %q of stream %s.%s: %w", name, in.Component(), in.Stream(), err)
		}
		e.before = append(e.before, append(text, ':'))
	}
	e.of, e.names = in.Fields(), names
	return nil
}

func (e *jsonEncoder) append(dst []byte, in tuple.Tuple) ([]byte, error) {
	// The fields of a stream are one slice for as long as it runs.
	if f := in.Fields(); len(f) != len(e.of) || len(f) > 0 && &f[0] != &e.of[0] {
		if err := e.know(in); err != nil {
			return nil, err
		}
	}
	for i, name := range e.names {
		var v tuple.Value
		if len(e.fields) == 0 {
			v = in.At(i)
		} else {
			v = in.Value(name)
		}
		dst = append(dst, e.before[i]...)
		var err error
		if dst, err = appendJSON(dst, v); err != nil {
			return nil, fmt.Errorf("field %q of stream %s.%s: %w", name, in.Component(), in.Stream(), err)
		}
	}
	if len(e.names) == 0 {
		dst = append(dst, '{')
	}
	return append(dst, '}', '\n'), nil
}

func appendJSON(dst []byte, v tuple.Value) ([]byte, error) {
	switch v.Kind() {
	case tuple.KindNil:
		return append(dst, "null"...), nil
	case tuple.KindBool:
		return strconv.AppendBool(dst, v.Bool()), nil
	case tuple.KindInt64:
		return strconv.AppendInt(dst, v.Int64(), 10), nil
	case tuple.KindUint64:
		return strconv.AppendUint(dst, v.Uint64(), 10), nil
	case tuple.KindFloat64:
		return appendFloat(dst, v.Float64())
	case tuple.KindString:
		dst, err := jsontext.AppendQuote(dst, v.String())
		if err != nil {
			err = fmt.Errorf("a string that is not valid UTF-8 cannot be written as JSON: emit it as bytes")
		}
		return dst, err
	case tuple.KindBytes:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, v.Bytes())
		return append(dst, '"'), nil
	case tuple.KindTime:
		dst = append(dst, '"')
		dst = v.Time().AppendFormat(dst, time.RFC3339Nano)
		return append(dst, '"'), nil
	case tuple.KindDuration:
		dst = append(dst, '"')
		dst = append(dst, v.Duration().String()...)
		return append(dst, '"'), nil
	default:
		text, err := json.Marshal(v.Any())
		return append(dst, text...), err
	}
}

// appendFloat writes a float so that it is read as one.
func appendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, fmt.Errorf("%v cannot be written as JSON: emit nil instead", f)
	}
	begin := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', -1, 64)
	if !bytes.ContainsAny(dst[begin:], ".e") {
		dst = append(dst, ".0"...)
	}
	return dst, nil
}
