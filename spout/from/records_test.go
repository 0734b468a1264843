package from

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

// declared are the streams of a spout with the given fields and, behind them, a
// stream for bad records.
func declared(fields ...string) []*tuple.Schema {
	return []*tuple.Schema{
		{Component: "in", Stream: "default", Fields: fields},
		{Component: "in", Stream: "bad", Fields: []string{"error", "record"}},
	}
}

// some calls Next once for at most max messages. A bad record is its error's text
// and its own, behind "bad".
func some(r spout.Reader, streams []*tuple.Schema, max int) (rows [][]any, err error) {
	out, b := spout.NewOut(streams), &spout.Batch{}
	out.Collect(b, max)
	err = r.Next(context.Background(), out)
	for i := range b.Len() {
		seg, cells := b.Message(i)
		p := &tuple.Parcel{Schema: streams[seg.Stream]}
		p.Begin(seg.Kinds, 1)
		p.AppendRun(cells, 1)
		var row []any
		if seg.Stream == 1 {
			row = append(row, "bad")
		}
		for k := range p.Tuple(0).Len() {
			row = append(row, p.Tuple(0).At(k).Any())
		}
		rows = append(rows, row)
	}
	return rows, err
}

// rest reads a split from a position.
func rest(s spout.Source, streams []*tuple.Schema, split spout.Split, position string, max int) (rows [][]any, err error) {
	r, err := s.Open(context.Background(), split, position)
	if err != nil {
		return nil, err
	}
	for err == nil {
		var more [][]any
		more, err = some(r, streams, max)
		rows = append(rows, more...)
		if err != nil && err != io.EOF && len(more) > 0 {
			return nil, fmt.Errorf("messages together with the error %w", err)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return rows, errors.Join(err, r.(io.Closer).Close())
}

// rowsOf reads all splits.
func rowsOf(s spout.Source, streams []*tuple.Schema, max int) (rows [][]any, err error) {
	splits, err := s.Splits(context.Background())
	if err != nil {
		return nil, err
	}
	for _, split := range splits {
		more, err := rest(s, streams, split, "", max)
		if rows = append(rows, more...); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func TestCSV(t *testing.T) {
	text := "\ufeffscheduled,delay,note,late,share\r\n" +
		"2001-01-01T00:01,33,plain,true,0.5\n" +
		"\n" +
		"2001-01-31T13:46,-2,\"two\r\nlines, a comma and a \"\"quote\"\"\",F,1e3\r\n" +
		",,,,"
	want := [][]any{
		{time.Date(2001, 1, 1, 0, 1, 0, 0, time.UTC), int64(33), "plain", true, 0.5},
		{time.Date(2001, 1, 31, 13, 46, 0, 0, time.UTC), int64(-2), "two\nlines, a comma and a \"quote\"", false, 1e3},
		{nil, nil, "", nil, nil},
	}
	typed := func(s *RecordSource) *RecordSource {
		return s.Time("2006-01-02T15:04", "scheduled").Int("delay").Bool("late").Float("share").Text("note")
	}
	fsys := fstest.MapFS{"a.csv": {Data: []byte(text)}, "a.csv.gz": {Data: zip(text[:60], text[60:])}}
	for name, s := range map[string]*RecordSource{
		"file":        CSV(write(t, "a.csv", []byte(text))),
		"gzip":        CSV(write(t, "a.csv.gz", zip(text))),
		"file system": CSVFS(fsys, "a.csv"),
		"no seeking":  CSVFS(noSeek{fsys}, "a.csv"),
		"embedded":    CSVFS(fsys, "a.csv.gz"),
	} {
		t.Run(name, func(t *testing.T) {
			typed(s)
			streams := declared("scheduled", "delay", "note", "late", "share")
			rows, err := rowsOf(s, streams, 100)
			require.NoError(t, err)
			require.Equal(t, want, rows)

			splits, err := s.Splits(t.Context())
			require.NoError(t, err)
			require.Len(t, splits, 1)
			r, err := s.Open(t.Context(), splits[0], "")
			require.NoError(t, err)
			for i, line := range []string{":3", ":6", ":7"} {
				_, err := some(r, streams, 1)
				require.NoError(t, err)
				require.Contains(t, r.Position(), line+"@")
				more, err := rest(s, streams, splits[0], r.Position(), 1)
				require.NoError(t, err)
				require.Equal(t, want[i+1:], append([][]any{}, more...))
			}
		})
	}
}

func TestCSVColumns(t *testing.T) {
	s := CSVFS(fstest.MapFS{"a": {Data: []byte("b;a;a\n1;2,5;3\n")}}, "a").Comma(';').Whole("all")
	rows, err := rowsOf(s, declared("b", "all"), 10)
	require.NoError(t, err)
	require.Equal(t, [][]any{{"1", "1;2,5;3"}}, rows)
	_, err = rowsOf(s, declared("all", "a", "c"), 10)
	require.EqualError(t, err, "there are several columns \"a\": give them names that differ\nthere is no column \"c\"; the columns are \"b\", \"a\", \"a\"")
	require.True(t, spout.IsFatal(err))
}

// A file is divided if every record is a line, and each part knows the columns.
func TestCSVOneLine(t *testing.T) {
	var text strings.Builder
	text.WriteString("n,double\n")
	var want [][]any
	for i := range int64(1000) {
		fmt.Fprintf(&text, "%d,\"%d\"\n", i, 2*i)
		want = append(want, []any{i, 2 * i})
	}
	s := CSV(write(t, "a.csv", []byte(text.String()))).OneLine().Int("n", "double")
	s.lines.rangeSize = 999
	splits, err := s.Splits(t.Context())
	require.NoError(t, err)
	require.Greater(t, len(splits), 5)
	rows, err := rowsOf(s, declared("n", "double"), 64)
	require.NoError(t, err)
	require.Equal(t, want, rows)

	r, err := s.Open(t.Context(), splits[3], "")
	require.NoError(t, err)
	first, err := some(r, declared("n", "double"), 2)
	require.NoError(t, err)
	require.NotContains(t, r.Position(), ":", "the number of the line is not known")
	after, err := rest(s, declared("n", "double"), splits[3], r.Position(), 7)
	require.NoError(t, err)
	all, err := rest(s, declared("n", "double"), splits[3], "", 100)
	require.NoError(t, err)
	require.Equal(t, all, append(first, after...))
	require.NoError(t, r.(io.Closer).Close())
}

func TestJSONLines(t *testing.T) {
	text := "\ufeff" + `{"id":"a","n":1,"big":18446744073709551615,"f":1.0,"p":{"mag":4.7,"deep":{"x":null}},"t":true,"list":[1, "]"],"when":"2001-02-03"}` + "\n \r\n" +
		`{"n":-5,"f":1e2,"p":{"mag":4},"id":"é\n\u0041\ud83d\ude00","p.list":[],"esc\u0061pe":"x","t":false,"when":"","other":{"p":1}}` + "\r\n" +
		`{}`
	streams := declared("id", "n", "big", "f", "p.mag", "p.deep.x", "p.list", "t", "list", "p", "when", "escape")
	want := [][]any{
		{"a", int64(1), uint64(math.MaxUint64), 1.0, 4.7, nil, nil, true, `[1, "]"]`, `{"mag":4.7,"deep":{"x":null}}`, time.Date(2001, 2, 3, 0, 0, 0, 0, time.UTC), nil},
		{"é\nA😀", int64(-5), nil, 100.0, 4.0, nil, "[]", false, nil, `{"mag":4}`, nil, "x"},
		{nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil},
	}
	s := JSONLines(write(t, "a", []byte(text))).Float("p.mag").Time(time.DateOnly, "when")
	rows, err := rowsOf(s, streams, 10)
	require.NoError(t, err)
	require.Equal(t, want, rows)

	fsys := fstest.MapFS{"a.gz": {Data: zip(`{"a": 12345678901234567890123, "b": [2], "c": true, "d": "7"}`)}}
	rows, err = rowsOf(JSONLinesFS(fsys, "a.gz").Text("a", "b", "c").Int("d").Whole("line"), declared("c", "b", "a", "d", "line"), 10)
	require.NoError(t, err)
	require.Equal(t, [][]any{{"true", "[2]", "12345678901234567890123", int64(7), `{"a": 12345678901234567890123, "b": [2], "c": true, "d": "7"}`}}, rows)
}

// A wrong record ends the reading behind the good ones, or goes its own way and
// the good ones go on.
func TestBadRecords(t *testing.T) {
	longText := strings.Repeat("x", 100)
	for _, tt := range []struct {
		name  string
		json  bool
		texts string // a good record, a bad one, a good one
		want  string // of the bad one
	}{
		{"int", false, "n,s\n1,\nx,\n2,", `line 3 of FILE, at byte 7: column "n" is "x", not a whole number`},
		{"behind a record of two lines", false, "n,s\n1,\"\n\"\nx,\n2,", `line 4 of FILE, at byte 10: column "n" is "x", not a whole number`},
		{"too big", false, "n,s\n1,\n9223372036854775808,\n2,", `line 3 of FILE, at byte 7: column "n" is "9223372036854775808", which does not fit in 64 bits`},
		{"blank", false, "n,s\n1,\n 2,\n2,", `line 3 of FILE, at byte 7: column "n" is " 2", not a whole number`},
		{"few cells", false, "n,s\n1,\n2\n2,", `line 3 of FILE, at byte 7: 1 cell where the first line names 2 columns: "2"`},
		{"many cells", false, "n,s\n1,\n2,3,4\n2,", `line 3 of FILE, at byte 7: 3 cells where the first line names 2 columns: "2,3,4"`},
		{"stray quote", false, "n,s\n1,\n2,a\"b\n2,", `line 3 of FILE, at byte 7: bare " in non-quoted-field: "2,a\"b"`},
		{"text behind a quote", false, "n,s\n1,\n2,\"a\"" + longText + "\n2,", `line 3 of FILE, at byte 7: extraneous or missing " in quoted-field: "2,\"a\"` + longText[:55] + `"...`},
		{"float", false, "n,f\n1,\n2,1e999\n2,", `line 3 of FILE, at byte 7: column "f" is "1e999", which does not fit in a float64`},
		{"no float", false, "n,f\n1,\n2,1.2.3\n2,", `line 3 of FILE, at byte 7: column "f" is "1.2.3", not a number`},
		{"bool", false, "n,b\n1,\n2,maybe\n2,", `line 3 of FILE, at byte 7: column "b" is "maybe", neither true nor false`},
		{"time", false, "n,t\n1,\n2,yesterday\n2,", `line 3 of FILE, at byte 7: column "t" is "yesterday", not a time like "2006"`},
		{"far time", false, "n,t\n1,\n2,0001\n2,", `line 3 of FILE, at byte 7: column "t" is "0001": time with Unix second -62135596800 is outside 1678-2262, which nanoseconds since 1970 can hold`},

		{"no object", true, "{\"n\":1}\n[1]\n{\"n\":2}", `line 2 of FILE, at byte 8: is an array, not an object`},
		{"no JSON", true, "{\"n\":1}\nhello\n{\"n\":2}", `line 2 of FILE, at byte 8: invalid character 'h' at start of value`},
		{"cut off", true, "{\"n\":1}\n{\"n\":[1,\n{\"n\":2}", `line 2 of FILE, at byte 16, in "/n": unexpected EOF`},
		{"more", true, "{\"n\":1}\n{\"n\":2} {\n{\"n\":2}", `line 2 of FILE, at byte 16: more behind the object`},
		{"more that is no JSON", true, "{\"n\":1}\n{\"n\":2}}\n{\"n\":2}", `line 2 of FILE, at byte 15: invalid character '}' at start of value`},
		{"twice", true, "{\"n\":1}\n{\"n\":2,\"n\":2}\n{\"n\":2}", `line 2 of FILE, at byte 15, in "/n": duplicate object member name`},
		{"twice where nobody looks", true, "{\"n\":1}\n{\"x\":{\"y\":2,\"y\":2}}\n{\"n\":2}", `line 2 of FILE, at byte 20, in "/x/y": duplicate object member name`},
		{"not UTF-8", true, "{\"n\":1}\n{\"x\":\"\xff\"}\n{\"n\":2}", `line 2 of FILE, at byte 14, in "/x": invalid UTF-8`},
		{"half a surrogate", true, "{\"n\":1}\n{\"s\":\"\\ud800\"}\n{\"n\":2}", `line 2 of FILE, at byte 14, in "/s": invalid surrogate pair ` + "`\\ud800\"}` in string"},
		{"beyond 64 bits", true, "{\"n\":1}\n{\"s\":18446744073709551616}\n{\"n\":2}", `line 2 of FILE, at byte 8: field "s" is "18446744073709551616", which does not fit in 64 bits: read it with Text or Float`},
		{"beyond a float", true, "{\"n\":1}\n{\"s\":1e400}\n{\"n\":2}", `line 2 of FILE, at byte 8: field "s" is "1e400", which does not fit in a float64`},
		{"fraction", true, "{\"n\":1}\n{\"n\":1.5}\n{\"n\":2}", `line 2 of FILE, at byte 8: field "n" is "1.5", not a whole number`},
		{"array", true, "{\"n\":1}\n{\"n\":[1]}\n{\"n\":2}", `line 2 of FILE, at byte 8: field "n" is an array, of which no Int can be made`},
		{"dots", true, "{\"n\":1}\n{\"d.x\":1,\"d\":{\"x\":2}}\n{\"n\":2}", `line 2 of FILE, at byte 8: field "d.x" is there twice, once as a member with a dot in its name`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, "a", []byte(tt.texts))
			source := func() *RecordSource {
				if tt.json {
					return JSONLines(path).Int("n")
				}
				s := CSV(path).Int("n")
				for f, k := range map[string]fieldKind{"f": {kind: toFloat}, "b": {kind: toBool}, "t": {kind: toTime, layout: "2006"}} {
					if strings.HasPrefix(tt.texts, "n,"+f) {
						s.as(k, []string{f})
					}
				}
				return s
			}
			head, _, _ := strings.Cut(tt.texts, "\n")
			fields := strings.Split(head, ",")
			if tt.json {
				fields = []string{"n", "s", "d.x"}
			}
			want := strings.ReplaceAll(tt.want, "FILE", path)
			rows, err := rowsOf(source(), declared(fields...), 10)
			unnamed := strings.Replace(want, " of "+path, "", 1) // the split has the name
			require.EqualError(t, err, unnamed)
			require.True(t, spout.IsFatal(err))
			require.Len(t, rows, 1)
			require.Equal(t, int64(1), rows[0][0])

			splits, err := source().Splits(t.Context())
			require.NoError(t, err)
			r, err := source().Open(t.Context(), splits[0], "")
			require.NoError(t, err)
			_, err = some(r, declared(fields...), 10)
			require.NoError(t, err, "the good record first")
			_, err = some(r, declared(fields...), 10)
			require.EqualError(t, err, unnamed)
			position := r.Position()
			require.NoError(t, r.(io.Closer).Close())

			rows, err = rowsOf(source().BadTo("bad"), declared(fields...), 10)
			require.NoError(t, err)
			require.Len(t, rows, 3)
			require.Equal(t, int64(1), rows[0][0])
			require.Equal(t, int64(2), rows[2][0])
			require.Equal(t, []any{"bad", want}, rows[1][:2])
			at := strings.Index(tt.texts, "\n"+rows[1][2].(string)+"\n") + 1
			require.Positive(t, at)
			require.Regexp(t, fmt.Sprintf("^%d:", at), position, "before the bad one")
		})
	}
}

// What is wrong with the source or a whole file ends the run, bad stream or not.
func TestRecordErrors(t *testing.T) {
	file := func(text string) fstest.MapFS { return fstest.MapFS{"a": {Data: []byte(text)}} }
	for _, tt := range []struct {
		source *RecordSource
		fields []string
		want   string
	}{
		{CSV(), nil, "a source of records has no files: name at least one"},
		{CSVFS(file(""), "a"), nil, "the file is empty: its first line must name the columns"},
		{CSVFS(file("\n\n"), "a"), nil, "the file is empty: its first line must name the columns"},
		{CSVFS(file("a,\"b\nc"), "a"), nil, `the first line, which names the columns: extraneous or missing " in quoted-field: "a,\"b\nc"`},
		{CSVFS(file("a,b"), "a"), []string{"a", "d"}, `there is no column "d"; the columns are "a", "b"`},
		{CSVFS(file("a;b"), "a"), []string{"a"}, `there is no column "a"; the columns are "a;b" (one column: is the separator another one than ','? see Comma)`},
		{CSVFS(file("a\tb"), "a").Comma(';'), []string{"a"}, `there is no column "a"; the columns are "a\tb" (one column: is the separator another one than ';'? see Comma)`},
		{CSVFS(file("\"a,b\""), "a"), []string{"a"}, `there is no column "a"; the columns are "a,b"`},
		{CSVFS(file("b"), "a"), []string{"a"}, `there is no column "a"; the columns are "b"`},
		{CSVFS(file("a,b"), "a").Int("b", "c"), []string{"a"}, "the source of in.default is told what the field \"b\" is, which is not among its fields (\"a\")\nthe source of in.default is told what the field \"c\" is, which is not among its fields (\"a\")"},
		{CSVFS(file("a,b"), "a").Whole("line"), []string{"a"}, `the source of in.default is told what the field "line" is, which is not among its fields ("a")`},
		{CSVFS(file("a,b"), "a").Int("b").Float("b"), []string{"b"}, `the field "b" is to be Int and Float: choose one`},
		{CSVFS(file("a,b"), "a").Comma('"'), []string{"b"}, `Comma is '"': it must be ASCII and neither a quote nor a line end`},
		{JSONLinesFS(file("{}"), "a").Comma(';'), []string{"b"}, `Comma is for CSV: JSON has a comma of its own`},
		{JSONLinesFS(file("{}"), "a").BadTo("wrong"), []string{"b"}, `bad records of in are to go to its stream "wrong", which is not declared as a second stream of two fields: add .EmitsTo("wrong", "error", "record")`},
		{JSONLinesFS(file("{}"), "a").BadTo("default"), []string{"b"}, `bad records of in are to go to its stream "default", which is not declared as a second stream of two fields: add .EmitsTo("default", "error", "record")`},
		{CSVFS(file("a\n\"long and without an end\n"), "a").MaxLine(10), []string{"a"}, "the line at byte 2 is longer than 10 bytes: a quote in it may have no end; if that is how it should be, set a higher limit with MaxLine"},
		{JSONLinesFS(file("{}\n{\"a\": 12345}"), "a").MaxLine(10), []string{"a"}, "the line at byte 3 is longer than 10 bytes: if that is how it should be, set a higher limit with MaxLine"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			if tt.source.bad == "" {
				tt.source.BadTo("bad")
			}
			_, err := rowsOf(tt.source, declared(tt.fields...), 10)
			require.EqualError(t, err, tt.want)
			require.True(t, spout.IsFatal(err))
		})
	}
	for _, position := range []string{"3:x", "3:0", "3:", "x:1"} {
		_, err := JSONLinesFS(file("{}\n{}"), "a").Open(t.Context(), "a", position)
		require.ErrorContains(t, err, "the position belongs to another source")
	}
}

// bothReadings is what encoding/csv makes of a text, and what we do. Of a bad
// record there is "bad" alone.
func bothReadings(t require.TestingT, text string, size func() int) (theirs, ours [][]string) {
	theirReader := csv.NewReader(strings.NewReader(text))
	theirReader.FieldsPerRecord = -1
	for {
		cells, err := theirReader.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			cells = []string{"bad"}
		}
		theirs = append(theirs, cells)
	}
	f := &csvFormat{comma: ','}
	r := &lineReader{c: cutter{r: &pieces{text: text, size: size}, max: 1 << 20, quotes: &quotes{comma: ','}}}
	for {
		line, ok := r.c.line()
		if !ok {
			var err error
			if line, ok, err = r.more(context.Background(), true); err == io.EOF {
				return theirs, ours
			}
			require.NoError(t, err)
		}
		if !ok || line == "" {
			continue
		}
		cells, err := f.split(line)
		if err != nil {
			cells = []string{"bad"}
		}
		ours = append(ours, append([]string{}, cells...))
	}
}

// We read what encoding/csv reads, wherever blocks end, and after a bad record
// both go on with the same one.
func TestCSVIsThatOfEncodingCSV(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("a\"\"\",,\n\n\r")), 0, 30, -1).Draw(t, "text")
		theirs, ours := bothReadings(t, text, func() int { return rapid.IntRange(1, 5).Draw(t, "read") })
		require.Equal(t, theirs, ours, "%q", text)
	})
}

func FuzzCSV(f *testing.F) {
	f.Add("a,b\n1,\"2\r\n3\"\r\n\"\"\"\"\n")
	f.Add("\"a\"b,c\n\"d")
	f.Add("\"\"\r\r\na")
	f.Add("a\r\r\n\"a\r\r\n\"\r\n\r")
	f.Fuzz(func(t *testing.T, text string) {
		theirs, ours := bothReadings(t, text, func() int { return 4 })
		require.Equal(t, theirs, ours)
	})
}

// What the decoder takes, encoding/json takes too, with the same values; what it
// refuses is refused there too, or is refused here on purpose.
func FuzzJSONLines(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":{"c":"x\u0041"}}`, `{"a":1.5e3,"b.c":[1,{"a":2}]}`, `{"a":-0,"b":{"c":{}}} `, `{"b":{"c":1},"b.c":2}`, "{\"a\":\"\xff\"}", `{"\u0061":null}`, `{"a":1e999}`} {
		f.Add(s)
	}
	fields := []field{{name: "a"}, {name: "b.c"}, {name: "b"}}
	f.Fuzz(func(t *testing.T, text string) {
		d := newJSONFormat()
		require.NoError(t, d.begin("", fields))
		values := make([]tuple.Value, len(fields))
		before := strings.Clone(text)
		err := d.decode(text, fields, values)
		require.Equal(t, before, text, "the decoder wrote into its input")
		want := map[string]json.RawMessage{}
		theirs := json.Unmarshal([]byte(text), &want)
		if err != nil {
			return
		}
		require.NoError(t, theirs)
		require.True(t, utf8.ValidString(text))
		check := func(v tuple.Value, raw json.RawMessage) {
			var x any
			if raw != nil {
				n := json.NewDecoder(strings.NewReader(string(raw)))
				n.UseNumber()
				require.NoError(t, n.Decode(&x))
			}
			switch x := x.(type) {
			case json.Number:
				theirs, err := x.Float64()
				require.NoError(t, err)
				switch v.Kind() {
				case tuple.KindInt64:
					require.Equal(t, theirs, float64(v.Int64()))
				case tuple.KindUint64:
					require.Equal(t, theirs, float64(v.Uint64()))
				default:
					require.Equal(t, theirs, v.Float64())
				}
			case map[string]any, []any:
				require.Equal(t, strings.TrimSpace(string(raw)), v.String())
			default:
				require.Equal(t, x, v.Any())
			}
		}
		check(values[0], want["a"])
		check(values[2], want["b"])
		c, b := want["b.c"], map[string]json.RawMessage{}
		if json.Unmarshal(want["b"], &b) == nil && b["c"] != nil {
			c = b["c"]
		}
		check(values[1], c)
	})
}

func BenchmarkRecords(b *testing.B) {
	for _, tt := range []struct {
		name, head, record string
		source             func(fstest.MapFS) *RecordSource
	}{
		{"format=csv", "scheduled,delay_min,distance,origin,destination\n", "2001-01-31T13:46,3,1634,STT,EWR\n", func(f fstest.MapFS) *RecordSource { return CSVFS(f, "a").Int("delay_min") }},
		{"format=csv-quoted", "scheduled,delay_min,distance,origin,destination\n", "\"2001-01-31T13:46\",3,1634,\"STT\",\"EWR\"\n", func(f fstest.MapFS) *RecordSource { return CSVFS(f, "a").Int("delay_min") }},
		{"format=json", "", `{"scheduled":"2001-01-31T13:46","delay_min":3,"distance":1634,"origin":"STT","destination":"EWR"}` + "\n", func(f fstest.MapFS) *RecordSource { return JSONLinesFS(f, "a") }},
	} {
		b.Run(tt.name, func(b *testing.B) {
			s := tt.source(fstest.MapFS{"a": {Data: []byte(tt.head + strings.Repeat(tt.record, 100_000))}})
			streams := declared("scheduled", "delay_min", "origin")
			b.SetBytes(int64(len(tt.record)))
			b.ReportAllocs()
			var r spout.Reader
			out, batch := spout.NewOut(streams), &spout.Batch{}
			for n := 0; n < b.N; n += batch.Len() {
				if r == nil {
					var err error
					r, err = s.Open(b.Context(), "a", "")
					require.NoError(b, err)
				}
				batch.Reset()
				out.Collect(batch, 256)
				if err := r.Next(b.Context(), out); err == io.EOF {
					r = nil
				} else {
					require.NoError(b, err)
				}
			}
		})
	}
}
