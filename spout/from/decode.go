package from

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

// records decodes the records of one reader.
//
// Owner: the reader, or the stream that several readers go on with.
type records struct {
	source *RecordSource
	name   string // of the file
	line   int64  // number of the next line, from 1; 0: not known
	head   string // the header, if there is one and it has been read
	format format // nil until the first record
	fields []field
	values []tuple.Value // room
}

// take emits what a record says that begins at a byte. An error ends the reading.
func (r *records) take(text string, at int64, out *spout.Out) error {
	record := withoutMark(text, at)
	switch {
	case strings.TrimSpace(record) == "" && (r.source.json || record == ""):
		// A line with nothing in it is no record, as in encoding/csv.
	case r.head == "" && !r.source.json:
		r.head = strings.Clone(record)
		if err := r.begin(out); err != nil {
			return err
		}
	default:
		if r.format == nil {
			if err := r.begin(out); err != nil {
				return err
			}
		}
		clear(r.values)
		if err := r.format.decode(record, r.fields, r.values); err != nil {
			in := ""
			if bad, ok := errors.AsType[*syntaxError](err); ok {
				at += int64(len(text)-len(record)) + bad.offset
				in, err = bad.in, bad.err
			}
			if r.source.bad == "" {
				return spout.Fatal(fmt.Errorf("%s%s: %w", r.where("", at), in, err))
			}
			out.EmitTo(r.source.bad, fmt.Sprintf("%s%s: %v", r.where(" of "+r.name, at), in, err), record)
		} else {
			out.EmitValues(r.values)
		}
	}
	if r.line > 0 {
		r.line++
		if !r.source.json {
			r.line += int64(strings.Count(text, "\n"))
		}
	}
	return nil
}

const byteOrderMark = "\ufeff"

// withoutMark removes the mark that some programs put at the beginning of a file.
func withoutMark(text string, at int64) string {
	if at == 0 {
		return strings.TrimPrefix(text, byteOrderMark)
	}
	return text
}

// A syntaxError says where in a record something is wrong.
type syntaxError struct {
	offset int64  // in bytes, from 0
	in     string // the member, for people; may be empty
	err    error
}

func (s *syntaxError) Error() string { return s.err.Error() }

// where says where something is for people: lines are counted from 1, bytes of the
// file from 0, as in positions and the names of splits.
func (r *records) where(of string, at int64) string {
	if r.line > 0 {
		return fmt.Sprintf("line %d%s, at byte %d", r.line, of, at)
	}
	return fmt.Sprintf("the line at byte %d%s", at, of)
}

// ended says what is wrong with a file that has no further line.
func (r *records) ended() error {
	if r.head == "" && !r.source.json {
		return spout.Fatal(errors.New("the file is empty: its first line must name the columns"))
	}
	return nil
}

// begin finds out which fields are wanted. What is wrong with them is wrong with
// every record, so it ends the run.
func (r *records) begin(out *spout.Out) error {
	s := r.source
	streams := out.Streams()
	if len(streams) == 0 {
		tuple.Misuse("the spout declares no stream: add .Emits(...) with the fields that are wanted")
	}
	first := streams[0]
	for i, name := range first.Fields {
		f := field{name: name, kind: s.kinds[name], whole: slices.Contains(s.whole, name)}
		for k, other := range first.Fields { // also what is in a masked one
			in := i == k || slices.Contains(s.whole, other) || s.json && strings.HasPrefix(name, other+".")
			f.kind.masked = f.kind.masked || in && first.Masks(k)
		}
		r.fields = append(r.fields, f)
	}
	r.values = make([]tuple.Value, len(r.fields))
	var errs []error
	for _, name := range s.named() {
		if first.Index(name) < 0 {
			errs = append(errs, fmt.Errorf("the source of %s.%s is told what the field %q is, which is not among its fields (%s)", first.Component, first.Stream, name, quotedNames(first.Fields)))
		}
	}
	if s.bad != "" {
		i := slices.IndexFunc(streams, func(to *tuple.Schema) bool { return to.Stream == s.bad })
		if i < 1 || len(streams[i].Fields) != 2 {
			errs = append(errs, fmt.Errorf("bad records of %s are to go to its stream %q, which is not declared as a second stream of two fields: add .EmitsTo(%q, \"error\", \"record\")", first.Component, s.bad, s.bad))
		}
	}
	if len(errs) > 0 {
		return spout.Fatal(errors.Join(errs...))
	}
	if s.json {
		r.format = newJSONFormat()
	} else {
		r.format = &csvFormat{comma: s.comma}
	}
	if err := r.format.begin(r.head, r.fields); err != nil {
		return spout.Fatal(err)
	}
	return nil
}

// named returns the fields that the source was told something about, in order.
func (s *RecordSource) named() []string {
	names := slices.Clone(s.whole)
	for name := range s.kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// valueOf makes a value of a text.
func (k fieldKind) valueOf(text string) (tuple.Value, error) {
	var err error
	switch {
	case k.kind == asIs || k.kind == toText:
		return tuple.ValueOf(text)
	case text == "":
		return tuple.Value{}, nil
	case k.kind == toInt:
		var n int64
		if n, err = strconv.ParseInt(text, 10, 64); err == nil {
			return tuple.ValueOf(n)
		}
		if errors.Is(err, strconv.ErrRange) {
			return tuple.Value{}, fmt.Errorf("is %s, which does not fit in 64 bits", k.shown(text))
		}
		return tuple.Value{}, fmt.Errorf("is %s, not a whole number", k.shown(text))
	case k.kind == toFloat:
		var f float64
		if f, err = strconv.ParseFloat(text, 64); err == nil {
			return tuple.ValueOf(f)
		}
		if errors.Is(err, strconv.ErrRange) {
			return tuple.Value{}, fmt.Errorf("is %s, which does not fit in a float64", k.shown(text))
		}
		return tuple.Value{}, fmt.Errorf("is %s, not a number", k.shown(text))
	case k.kind == toBool:
		var yes bool
		if yes, err = strconv.ParseBool(text); err == nil {
			return tuple.ValueOf(yes)
		}
		return tuple.Value{}, fmt.Errorf("is %s, neither true nor false", k.shown(text))
	default:
		var t time.Time
		if t, err = time.Parse(k.layout, text); err != nil {
			return tuple.Value{}, fmt.Errorf("is %s, not a time like %q", k.shown(text), k.layout)
		}
		v, err := tuple.ValueOf(t)
		if err != nil && k.masked {
			err = fmt.Errorf("is %s, a time that no tuple can hold", tuple.Mask)
		} else if err != nil {
			err = fmt.Errorf("is %s: %w", k.shown(text), err)
		}
		return v, err
	}
}

// shown is a text as it stands in an error of a field.
func (k fieldKind) shown(text string) string {
	if k.masked {
		return tuple.Mask
	}
	return shown(text)
}

// shown is a text as it stands in an error.
func shown(text string) string {
	const most = 60
	if len(text) > most {
		return strconv.Quote(strings.ToValidUTF8(text[:most], "")) + "..."
	}
	return strconv.Quote(text)
}

func quotedNames(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = strconv.Quote(n)
	}
	return strings.Join(q, ", ")
}
