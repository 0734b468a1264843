package from

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/egretstream/egret/spout"
	"github.com/egretstream/egret/tuple"
)

// A RecordSource is a [spout.Source] of records with named values, made by [CSV]
// or [JSONLines]. The fields of the spout's first stream choose which of them are
// in a message:
//
//	quakes := from.JSONLines("quakes.ndjson").Float("properties.mag").BadTo("bad")
//	b.Spout("quakes", quakes).Emits("id", "properties.mag").EmitsTo("bad", "error", "record")
//
// The methods that return the source set it up and are called before it is used.
// What is wrong in them is reported by Splits, or with the first record.
//
// A record that cannot be decoded ends the run, after the good ones before it,
// with an error that names file, line, byte and field; or see BadTo.
type RecordSource struct {
	lines *LineSource
	json  bool
	comma byte
	kinds map[string]fieldKind
	whole []string
	bad   string // stream
	errs  []error
}

// A fieldKind is what a text is made into.
type fieldKind struct {
	kind   kindName
	layout string // of a time
	masked bool   // no value of it is told
}

type kindName string

const (
	asIs    kindName = ""
	toText  kindName = "Text"
	toInt   kindName = "Int"
	toFloat kindName = "Float"
	toBool  kindName = "Bool"
	toTime  kindName = "Time"
)

// A format decodes the records of one file.
type format interface {
	// begin is told the fields, and the text of the header if the format has one.
	begin(header string, fields []field) error
	// decode sets the values of the fields that text has; the others are nil.
	decode(text string, fields []field, values []tuple.Value) error
}

// A field is one of the spout's first stream.
type field struct {
	name  string
	kind  fieldKind
	whole bool // its value is the text of the record
}

// masks reports whether a value of any field is told to nobody.
func masks(fields []field) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.kind.masked })
}

func newRecordSource(lines *LineSource, json bool) *RecordSource {
	s := &RecordSource{lines: lines, json: json, comma: ',', kinds: map[string]fieldKind{}}
	lines.what = "records"
	lines.records = func(name string) *records { return &records{source: s, name: name, line: 1} }
	return s
}

// Int makes the fields int64. In a text it is decimal digits, with a sign or not.
// An empty text is nil, for this kind and the three below.
func (s *RecordSource) Int(fields ...string) *RecordSource {
	return s.as(fieldKind{kind: toInt}, fields)
}

// Float makes the fields float64, as strconv.ParseFloat does.
func (s *RecordSource) Float(fields ...string) *RecordSource {
	return s.as(fieldKind{kind: toFloat}, fields)
}

// Bool makes the fields bool, as strconv.ParseBool does: true, false, 1, 0, ...
func (s *RecordSource) Bool(fields ...string) *RecordSource {
	return s.as(fieldKind{kind: toBool}, fields)
}

// Time makes the fields time.Time, as time.Parse does with the layout; without a
// zone in it they are UTC.
func (s *RecordSource) Time(layout string, fields ...string) *RecordSource {
	return s.as(fieldKind{kind: toTime, layout: layout}, fields)
}

// Text makes the fields strings whatever they look like: of JSON a number, true or
// false, or an array or object as it is written. Cells of CSV are strings anyway.
func (s *RecordSource) Text(fields ...string) *RecordSource {
	return s.as(fieldKind{kind: toText}, fields)
}

func (s *RecordSource) as(k fieldKind, fields []string) *RecordSource {
	for _, f := range fields {
		if before, ok := s.kinds[f]; ok {
			s.errs = append(s.errs, fmt.Errorf("the field %q is to be %s and %s: choose one", f, before.kind, k.kind))
		}
		s.kinds[f] = k
	}
	return s
}

// Whole makes the field the text of the whole record, without its line end.
func (s *RecordSource) Whole(field string) *RecordSource {
	s.whole = append(s.whole, field)
	return s
}

// BadTo emits a record that cannot be decoded on the given stream, which must
// have two fields: the error, and the text of the record, both strings. The good
// records go on. To skip and count bad records, let nobody subscribe to the
// stream: the statistics say how many were emitted on it. If fields of the first stream
// are masked, both of these are.
//
// What is wrong with a whole file ends the run as without it: a column that is not
// there, a line that is too long, a damage.
func (s *RecordSource) BadTo(stream string) *RecordSource {
	s.bad = stream
	return s
}

// BadStream returns the stream that was given to BadTo, or "": see [spout.Sifter].
func (s *RecordSource) BadStream() string { return s.bad }

// Comma makes the byte c separate the cells of CSV: ';', '\t'. It must be ASCII
// and neither a quote nor a line end.
func (s *RecordSource) Comma(c byte) *RecordSource {
	if s.comma = c; s.json {
		s.errs = append(s.errs, errors.New("Comma is for CSV: JSON has a comma of its own"))
	} else if c == 0 || c >= 0x80 || c == '"' || c == '\r' || c == '\n' {
		s.errs = append(s.errs, fmt.Errorf("Comma is %q: it must be ASCII and neither a quote nor a line end", c))
	} else if s.lines.quotes != 0 {
		s.lines.quotes = c
	}
	return s
}

// OneLine promises that each record of CSV is one line, so that no quoted cell
// has a line end in it. Then files are divided like those of [Lines], for several
// tasks, and errors name a byte instead of a line. For JSON it is always so.
func (s *RecordSource) OneLine() *RecordSource {
	s.lines.quotes = 0
	if s.lines.fsys == nil {
		s.lines.rangeSize = rangeSize
	}
	return s
}

// MaxLine sets how many bytes a record may have, like [LineSource.MaxLine].
func (s *RecordSource) MaxLine(bytes int) *RecordSource {
	s.lines.MaxLine(bytes)
	return s
}

// Splits lists the files' splits. It reports all files that cannot be read.
func (s *RecordSource) Splits(ctx context.Context) ([]spout.Split, error) {
	if len(s.errs) > 0 {
		return nil, spout.Fatal(errors.Join(s.errs...))
	}
	return s.lines.Splits(ctx)
}

// Open opens a split's file at a position, which is that of a line and, where it is
// known, has the number of the line.
func (s *RecordSource) Open(ctx context.Context, split spout.Split, position string) (spout.Reader, error) {
	p, pos, err := s.lines.place(split, position)
	if err != nil {
		return nil, err
	}
	if p.kind == streamed {
		return s.lines.openStream(p, pos.at)
	}
	r, err := s.lines.openPart(ctx, p, pos, position == "")
	if err != nil {
		return nil, err
	}
	if r.records.line = pos.line; pos.at == 0 {
		r.records.line = 1
	}
	if pos.at > 0 && !s.json {
		if r.records.head, err = s.readHeader(ctx, p); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// readHeader reads the first line of a file that is then read from elsewhere.
func (s *RecordSource) readHeader(ctx context.Context, p part) (string, error) {
	p.end = endless
	r, err := s.lines.openPart(ctx, p, position{}, true)
	if err != nil {
		return "", err
	}
	defer r.Close()
	for {
		at := r.c.pos
		line, ok := r.c.line()
		if !ok {
			if line, ok, err = r.more(ctx, true); err != nil {
				return "", err
			}
		}
		if line = withoutMark(line, at); ok && line != "" {
			return strings.Clone(line), nil
		}
	}
}
