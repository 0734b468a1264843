package view

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/tuple"
)

type point struct {
	X, Y  int
	Names []string      `json:",omitempty"`
	For   time.Duration `json:"for"`
}

type panics struct{ n int }

func (panics) MarshalJSON() ([]byte, error) { panic("oops") }

type refuses struct{ n int }

func (refuses) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }
func (r refuses) String() string             { return "refuses " + strings.Repeat("x", r.n) }

type lies struct{ n int }

func (lies) MarshalJSON() ([]byte, error) { return []byte(`{"a":`), nil }

func init() {
	codec[point]("view.point")
	codec[panics]("view.panics")
	codec[refuses]("view.refuses")
	codec[lies]("view.lies")
}

func codec[T any](name string) {
	tuple.RegisterCodec(name, func(dst []byte, _ T) ([]byte, error) { return dst, nil }, func([]byte) (v T, _ error) { return v, nil })
}

// tupleOf returns a tuple with these values, of the stream a.s with fields f0, f1, ...
func tupleOf(masked []string, values ...any) (*tuple.Schema, tuple.Tuple) {
	s := &tuple.Schema{Component: "a", Stream: "s", Masked: masked}
	for i := range values {
		s.Fields = append(s.Fields, "f"+string(rune('0'+i)))
	}
	var r tuple.Row
	r.Set(s, values)
	p := &tuple.Parcel{Schema: s}
	p.Begin(r.Kinds, 1)
	p.Append(&r)
	return s, p.Tuple(0)
}

func TestValues(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   any
		want string
	}{
		{"nil", nil, `null`},
		{"bool", true, `true`},
		{"int", -3, `-3`},
		{"large int", int64(math.MaxInt64), `9223372036854775807`},
		{"large uint", uint64(math.MaxUint64), `18446744073709551615`},
		{"float", 2.5, `2.5`},
		{"NaN", math.NaN(), `"NaN"`},
		{"infinity", math.Inf(1), `"+Inf"`},
		{"minus infinity", math.Inf(-1), `"-Inf"`},
		{"text", `é"<script>`, `"é\"\u003cscript\u003e"`},
		{"bad text", "a\xffb", `"a\ufffdb"`},
		{"bytes", []byte("abc"), `"YWJj"`},
		{"no bytes", []byte{}, `""`},
		{"time", time.Date(2026, 7, 1, 3, 0, 0, 5e8, time.FixedZone("", 3600)), `"2026-07-01T02:00:00.5Z"`},
		{"duration", 90 * time.Second, `"1m30s"`},
		{"any", tuple.Any(point{X: 1, For: time.Second}), `{"X":1,"Y":0,"for":1000000000}`},
		{"any that panics", tuple.Any(panics{1}), `"view.panics: panic: oops"`},
		{"any without JSON", tuple.Any(refuses{3}), `"refuses xxx"`},
		{"any with bad JSON", tuple.Any(lies{3}), `"{3}"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, row := tupleOf(nil, tt.in)
			got := Values(s, Copy(s, row))
			require.Equal(t, tt.want, string(got[0]))
		})
	}
}

func TestLongValues(t *testing.T) {
	long := strings.Repeat("x", MaxShown)
	for _, tt := range []struct {
		name string
		in   any
		want string // decoded
	}{
		{"text that fits", long, long},
		{"text", long + "y", long + "…"},
		{"text cut in a rune", long[1:] + "é", long[1:] + "…"},
		{"text with a rune that fits", long[2:] + "é", long[2:] + "é"},
		{"nothing but bad text", strings.Repeat("\x80", 1<<20), strings.Repeat("\ufffd", MaxShown-4) + "…"},
		{"any", tuple.Any(point{Names: []string{strings.Repeat("x", 1<<20)}}), `{"X":0,"Y":0,"Names":["` + long[:MaxShown-23] + "…"},
		{"any without JSON", tuple.Any(refuses{1 << 20}), "refuses " + long[8:] + "…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, row := tupleOf(nil, tt.in)
			var got string
			require.NoError(t, json.Unmarshal(Values(s, Copy(s, row))[0], &got))
			require.Equal(t, tt.want, got)
		})
	}
	s, row := tupleOf(nil, make([]byte, 1<<20))
	got := string(Values(s, Copy(s, row))[0])
	require.Equal(t, `"`+strings.Repeat("A", MaxShown)+`…"`, got)
}

// What is copied has nothing of masked values, nor of the tuple's memory.
func TestCopy(t *testing.T) {
	s, row := tupleOf([]string{"f1"}, "a", "secret", []byte("b"), strings.Repeat("x", 1<<20))
	vs := Copy(s, row)
	require.True(t, vs[1].IsNil())
	require.Less(t, len(vs[3].String()), 2*MaxShown)
	got, err := json.Marshal(Values(s, vs)[:3])
	require.NoError(t, err)
	require.Equal(t, `["a","•••","Yg=="]`, string(got))
	all, _ := json.Marshal(Values(s, row.AppendValues(nil)))
	require.NotContains(t, string(all), "secret", "nor is it shown if it was copied in another way")
}

func FuzzValues(f *testing.F) {
	f.Add("a\xff<", int64(5), 2.5, []byte{1, 2}, false)
	f.Add(strings.Repeat("é", 501), int64(math.MinInt64), math.NaN(), make([]byte, 751), true)
	f.Fuzz(func(t *testing.T, text string, n int64, x float64, b []byte, masked bool) {
		var masks []string
		if masked {
			masks = []string{"f0"}
		}
		s, row := tupleOf(masks, text, n, uint64(n), x, b, time.Duration(n), tuple.Any(point{X: int(n), Names: []string{text}}), tuple.Any(refuses{len(text)}))
		for i, v := range Values(s, Copy(s, row)) {
			require.True(t, json.Valid(v), "%d: %q", i, v)
			require.LessOrEqual(t, len(v), 6*MaxShown+20)
		}
		v := Values(s, Copy(s, row))[0]
		var got string
		require.NoError(t, json.Unmarshal(v, &got))
		switch valid := strings.ToValidUTF8(text, "\ufffd"); {
		case masked:
			require.Equal(t, "•••", got)
		case len(text) <= MaxShown && valid == text:
			require.Equal(t, text, got)
		case valid == text:
			require.True(t, strings.HasPrefix(text, strings.TrimSuffix(got, "…")))
		}
	})
}
