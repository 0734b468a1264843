package where

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/egretstream/egret/tuple"
)

var stream = &tuple.Schema{
	Component: "split", Stream: "default", Masked: []string{"card"},
	Fields: []string{"word", "count", "size", "ratio", "body", "at", "took", "ok", "none", "with-dash", "card", "own", "len"},
}

type own struct{ n int }

func (o own) String() string { panic("code of the user") }

func init() {
	tuple.RegisterCodec("where.own", func(dst []byte, v own) ([]byte, error) { return append(dst, byte(v.n)), nil },
		func(b []byte) (own, error) { return own{int(b[0])}, nil })
}

func row(t testing.TB, s *tuple.Schema, values ...any) tuple.Tuple {
	var r tuple.Row
	r.Set(s, values)
	p := &tuple.Parcel{Schema: s}
	p.Begin(r.Kinds, 1)
	p.Append(&r)
	return p.Tuple(0)
}

func whale(t testing.TB) tuple.Tuple {
	return row(t, stream, "whale", 12, uint64(1<<63+1), 0.5, []byte("spout"), time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC), 2*time.Second,
		true, nil, "dash", "4111", tuple.Any(own{1}), "long")
}

func TestFilters(t *testing.T) {
	for _, tt := range []struct {
		text string
		want bool
		err  string // of Compile, or of the tuple
	}{
		{text: `word == "whale" && count > 10`, want: true},
		{text: `word == "whale" && count > 12`},
		{text: `count == 12 and not (count < 12 or count > 12.5)`, want: true},
		{text: `size > 9e18 && size < 1e19`, want: true},
		{text: `size > 0`, want: true},
		{text: `ratio == 0.5`, want: true},
		{text: `body == "spout"`, want: true},
		{text: `body contains "pout" && word startsWith "wh" && word endsWith "le"`, want: true},
		{text: `at.Hour() == 3`, want: true},
		{text: `at > date("2026-06-30")`, want: true},
		{text: `took > duration("1s")`, want: true},
		{text: `took.Seconds() == 2`, want: true},
		{text: `ok`, want: true},
		{text: `none == nil`, want: true},
		{text: `$env["with-dash"] == "dash"`, want: true},
		{text: `len == "long"`, want: true},
		{text: `word in ["cow", "whale"]`, want: true},
		{text: `word matches "^w.*e$"`, want: true},
		{text: `upper(word) == "WHALE"`, want: true},
		{text: `word | upper() == "WHALE"`, want: true},
		{text: `type(none) == "nil"`, want: true},

		{text: ``, err: "column 1: it ends too early"},
		{text: `word ==`, err: "column 7: it ends too early"},
		{text: `wrod == "whale"`, err: "column 1: unknown name wrod: the fields of split.default are word, count, size, ratio, body, at, took, ok, none, with-dash, own, len"},
		{text: `ok && wrod`, err: "column 7: unknown name wrod: the fields"},
		{text: `$env["wrod"] == 1`, err: "unknown name wrod: the fields"},
		{text: `word + "x"`, err: "it gives a value of type string: it has to say true or false"},
		{text: `"x"`, err: "it gives a value of type string"},
		{text: `word`, err: "it gives a value of type string: it has to say true or false"},
		{text: `word > 3`, err: "column 6: invalid operation: string > int"},
		{text: `own == 3`, err: "field own is a value of the program's own, which an expression cannot look at"},
		{text: `card == "4111"`, err: "column 1: the field card is masked: nobody may ask for it"},
		{text: `ok || $env["card"] == "4111"`, err: "the field card is masked"},
		{text: `ok || $env.card == "4111"`, err: "the field card is masked"},
		{text: `ok || $env?.card == "4111"`, err: "the field card is masked"},
		{text: `"4111" in $env`, err: "column 11: $env stands for all fields"},
		{text: `$env[word] == 1`, err: "column 1: $env stands for all fields"},
		{text: `$env["word"] == $env[word]`, err: "column 17: $env stands for all fields"},
		{text: `any([1], true)`, err: "loops are not allowed"},
		{text: `repeat(word, 1000000) == ""`, err: "the function repeat is not allowed"},
		{text: `now() > at`, err: "the function now is not allowed"},
		{text: `toJSON($env) contains "4111"`, err: "the function toJSON is not allowed"},
		{text: `count in 1..1000000000`, err: "column 11: ranges are not allowed"},
		{text: `at.Format("2006") == "2026"`, err: "column 4: this method is not allowed: there are Abs, Add"},
		{text: `at?.String() == "2026"`, err: "this method is not allowed"},
		{text: `at["Format"]("2006") == "2026"`, err: "unexpected token"},
		{text: `at["Format"] == nil`, err: "Format is not allowed"},
		{text: `at[word] == 1`, err: "what stands in [ ] has to be a number"},
		{text: `at["For" + "mat"] == nil`, err: "what stands in [ ] has to be a number"},
		{text: `(at.Hour)() == 3`, err: "unexpected token"},
		{text: `at.Format == nil`, err: "Format is not allowed"},
		{text: `at.Location().String() == "x"`, err: "this method is not allowed"},
		{text: `at.Zone == nil`, err: "Zone is not allowed"},
		{text: `took.String() == "2s"`, err: "this method is not allowed"},
		{text: `date(word, "2006", word) == at`, err: "a zone is read from the disk"},
		{text: `date(word, word) == at`, err: "a layout has to be a text"},
		{text: `date("2026-07-01").Before(at) && at.Sub(date("2026-07-01")).Hours() == 3`, want: true},
		{text: `int(at.Month()) == 7 && int(at.Weekday()) == 3`, want: true},
		{text: `at?.Year() == 2026`, want: true},
		{text: `word[0] == 119 && word[-1] == 101 && [1, count][1] == 12`, want: true},
		{text: `word not in ["cow"] && word not contains "cow"`, want: true},
		{text: `1 < count < 13 && count - 2 ** 3 == 4 && -count < 0`, want: true},
		{text: `(none ?? word) == "whale"`, want: true},
		{text: `ok ? word == "whale" : count`, want: true},
		{text: `{"a": 1} == none`, err: "maps are not allowed"},
		{text: `1; ok`, err: "several expressions are not allowed"},
		{text: `nothing(1) == 1`, err: "column 1: there is no function nothing: there are abs"},
		{text: `word(1)`, err: "there is no function word"},
		{text: `any(word, # == 1)`, err: "loops are not allowed"},
		{text: bomb(30), err: "this method is not allowed"},
		{text: chain(150), err: "exceeds maximum allowed nodes"},
		{text: strings.Repeat("word+", 90) + `word == "x"`, err: "this may take too long"},
		{text: strings.Repeat("upper(", 9) + "word" + strings.Repeat(")", 9) + ` == ""`, err: "this may take too long"},
		{text: `word matches "(.*a.*){9}b" && body matches "(.*a.*){9}b"`},
		{text: strings.Repeat(`word matches "(.*a.*){20}b" || `, 9) + "ok", err: "this may take too long"},
		{text: `(word + word + word + word) matches "(.*a.*){20}b"`, err: "this may take too long"},
		{text: `word matches "` + strings.Repeat("a", maxPattern+1) + `"`, err: "the pattern is too large: it has 257 bytes"},
		{text: `word matches "` + strings.Repeat(`(\\pL{9}){99}`, 20) + `"`, err: "the pattern is too large: use fewer"},
		{text: `trim(word, word) == ""`, err: "this may take too long"},
		{text: `trim(word, "we") == "hal"`, want: true},
		{text: `let x = count; x > 1`, err: "let is not allowed"},
		{text: `word matches word`, err: "column 14: what stands behind matches has to be a text"},
		{text: `word matches "("`, err: "missing closing )"},
		{text: `word matches "(a{1000}){1000}"`, err: "invalid repeat count"},
		{text: `word matches "(a{30}){30}"`, err: "the pattern is too large"},
		{text: strings.Repeat("ok && ", 200) + "ok", err: "at most 1000 are allowed"},
		{text: strings.Repeat("ok&&", 200) + "ok", err: "exceeds maximum allowed nodes"},
	} {
		t.Run(tt.text[:min(len(tt.text), 40)], func(t *testing.T) {
			f, err := Compile(tt.text, stream)
			got := false
			if err == nil {
				got, err = f.New()(whale(t))
			}
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// bomb doubles a text n times, if times may be formatted.
func bomb(n int) string {
	return strings.Repeat(`date("2026-11-11").Format(`, n) + `"1"` + strings.Repeat(")", n) + ` == "x"`
}

// chain is a small tree that is as large as 2^n for who does not see that nodes are shared.
func chain(n int) string {
	return strings.Repeat("1<(", n) + "count" + strings.Repeat(")<1", n)
}

// What a filter sees of a long text is bounded.
func TestLongText(t *testing.T) {
	s := &tuple.Schema{Component: "c", Stream: "s", Fields: []string{"x"}}
	f, err := Compile(`x contains "end"`, s)
	require.NoError(t, err)
	is := f.New()
	for _, pad := range []int{0, MaxText - 3, MaxText - 2, 1 << 20} {
		text := strings.Repeat("x", pad) + "end"
		yes, err := is(row(t, s, text))
		require.NoError(t, err)
		require.Equal(t, pad+3 <= MaxText, yes, pad)
		again, err := is(row(t, s, []byte(text)))
		require.NoError(t, err)
		require.Equal(t, yes, again)
	}
}

// A filter that was asked keeps nothing: the next tuple has none of the last one's values.
func TestFilterForgets(t *testing.T) {
	s := &tuple.Schema{Component: "c", Stream: "s", Fields: []string{"x"}}
	f, err := Compile(`x`, s)
	require.NoError(t, err)
	is := f.New()
	for _, v := range []any{true, "x", false, nil, true} {
		yes, err := is(row(t, s, v))
		want, isBool := v.(bool)
		require.Equal(t, want, yes)
		require.Equal(t, isBool || v == nil, err == nil) // nil is false
	}
}

func FuzzFilter(f *testing.F) {
	for _, s := range []string{`word == "whale" && count > 10`, `$env["card"]`, `1..9`, `at.Hour() == 3 ? ok : !ok`, `{"a": [word]}.a[0] == "x"`,
		`word[1:3] == "ha"`, `count ** 99 > size % 3`, `took / 0 == nil`, `"\xff" in [body, none]`, `card ?? word`, "`x` == #", bomb(9), chain(9), `ok ? own : card`, `word matches "a*"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := Compile(text, stream)
		if err != nil {
			require.NotContains(t, err.Error(), "4111")
			return
		}
		bounded(t, filter)
		is := filter.New()
		yes, err := is(whale(t))
		again, twice := is(whale(t))
		require.Equal(t, yes, again)
		require.Equal(t, err == nil, twice == nil)
		// Another value of what is masked changes nothing.
		other, _ := is(row(t, stream, "whale", 12, uint64(1<<63+1), 0.5, []byte("spout"), time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC), 2*time.Second,
			true, nil, "dash", "another", tuple.Any(own{2}), "long"))
		require.Equal(t, yes, other)
	})
}

func BenchmarkFilter(b *testing.B) {
	f, err := Compile(`word == "whale" && count > 10`, stream)
	require.NoError(b, err)
	is, t := f.New(), whale(b)
	b.ReportAllocs()
	for b.Loop() {
		if yes, err := is(t); !yes || err != nil {
			b.Fatal(err)
		}
	}
}
