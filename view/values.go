package view

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/egretstream/egret/tuple"
)

// What is shown of the values of tuples.
//
//	nil, bool        null, true, false
//	int64, uint64    a number, with all its digits: JavaScript reads those above 2^53 inexactly
//	float64          a number, or "NaN", "+Inf", "-Inf"
//	string           a string
//	[]byte           its base64, a string
//	time, duration   "2026-07-01T03:00:00.5Z", "1m30s"
//	any              what encoding/json makes of it, else its text
//	masked           "•••"
//
// What is longer than MaxShown bytes is cut, and ends with "…".

// MaxShown is how many bytes of a value are shown.
const MaxShown = 1000

// cutMark is behind what was cut.
const cutMark = "…"

// Copy returns what Values needs of a tuple: it shares no memory with it, has nothing of
// masked values, and no more of long texts than is shown. Values of kind any are shared;
// nobody may change them anyway.
func Copy(s *tuple.Schema, t tuple.Tuple) []tuple.Value {
	values := make([]tuple.Value, t.Len())
	for i := range values {
		v := t.At(i)
		switch {
		case s.Masks(i):
			v = tuple.Value{}
		case v.Kind() == tuple.KindString:
			text := v.String()
			v = tuple.String(strings.Clone(text[:min(len(text), MaxShown+utf8.UTFMax)]))
		case v.Kind() == tuple.KindBytes:
			b := v.Bytes()
			v = tuple.Bytes(b[:min(len(b), MaxShown+1)])
		}
		values[i] = v
	}
	return values
}

// Values returns what is shown of the values of a tuple of a stream.
func Values(s *tuple.Schema, values []tuple.Value) []json.RawMessage {
	all := make([]json.RawMessage, len(values))
	for i, v := range values {
		if s.Masks(i) {
			v = tuple.String(tuple.Mask)
		}
		all[i] = shown(v)
	}
	return all
}

func shown(v tuple.Value) json.RawMessage {
	switch v.Kind() {
	case tuple.KindNil:
		return json.RawMessage("null")
	case tuple.KindString:
		return quote(v.String())
	case tuple.KindBytes:
		b := v.Bytes()
		n := min(len(b), MaxShown/4*3)
		text := base64.StdEncoding.EncodeToString(b[:n])
		if n < len(b) {
			text += cutMark
		}
		return marshal(text)
	case tuple.KindTime:
		return marshal(v.Time().Format(time.RFC3339Nano))
	case tuple.KindDuration:
		return marshal(v.Duration().String())
	case tuple.KindFloat64:
		if f := v.Float64(); math.IsNaN(f) || math.IsInf(f, 0) {
			return marshal(fmt.Sprint(f))
		}
	case tuple.KindAny:
		return opaque(v.Any())
	}
	return marshal(v.Any())
}

// quote returns a text as JSON, cut if it is long.
func quote(s string) json.RawMessage {
	if len(s) > MaxShown {
		n := MaxShown
		for n > 0 && !utf8.RuneStart(s[n]) && n > MaxShown-utf8.UTFMax {
			n--
		}
		s = s[:n] + cutMark
	}
	return marshal(s)
}

func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // there is no such value
	}
	return b
}

var errLong = errors.New("long")

// A bounded keeps the first bytes that are written to it, and wants no others.
type bounded []byte

func (b *bounded) Write(p []byte) (int, error) {
	if *b = append(*b, p[:min(len(p), MaxShown+utf8.UTFMax-len(*b))]...); len(*b) > MaxShown {
		return 0, errLong
	}
	return len(p), nil
}

// opaque returns a value of the program's own as JSON, or, if it has none or a long one,
// the beginning of its text.
func opaque(v any) (shown json.RawMessage) {
	defer func() {
		if r := recover(); r != nil {
			shown = quote(fmt.Sprintf("%T: panic: %v", v, r))
		}
	}()
	var b bounded
	switch err := jsonv2.MarshalWrite(&b, v, jsonv1.DefaultOptionsV1()); {
	case err == nil && len(b) <= MaxShown && json.Valid(b):
		return json.RawMessage(b)
	case errors.Is(err, errLong):
		return quote(string(b))
	}
	return quote(fmt.Sprint(v))
}
