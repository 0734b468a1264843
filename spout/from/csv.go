package from

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/egretstream/egret/amount"
	"github.com/egretstream/egret/tuple"
)

// CSV returns a source of the records of comma-separated files (RFC 4180, as
// encoding/csv reads it). The first line of each file names its columns; a field
// of the spout's first stream is the column of that name, as a string unless the
// source is told otherwise, and columns that no field names are passed over:
//
//	flights := from.CSV("flights.csv.gz").Int("delay").Time("2006-01-02T15:04", "scheduled")
//	b.Spout("flights", flights).Emits("scheduled", "origin", "delay")
//
// A record must have as many cells as there are columns. Cells keep their blanks.
// Empty lines are no records. Paths, .gz and - are as in [Lines], but a file is
// one split, because only who reads it from the beginning knows which line ends
// are in quotes; see [RecordSource.OneLine]. A file without a first line, or
// without a column that a field names, ends the run.
func CSV(paths ...string) *RecordSource { return newCSV(Lines(paths...)) }

// CSVFS is like [CSV] for files of fsys, such as an embed.FS.
func CSVFS(fsys fs.FS, names ...string) *RecordSource { return newCSV(LinesFS(fsys, names...)) }

func newCSV(lines *LineSource) *RecordSource {
	lines.rangeSize, lines.quotes = 0, ','
	return newRecordSource(lines, false)
}

// csvFormat splits records without a quote itself, so that their cells share the
// memory of the block, and leaves those with one to encoding/csv.
type csvFormat struct {
	comma   byte
	columns []string
	of      []int    // by field: its column
	cells   []string // room
	feed    oneRecord
	quoted  *csv.Reader // reads from feed; nil after an error
	masked  bool        // no record is told
}

func (f *csvFormat) begin(header string, fields []field) error {
	f.masked = masks(fields)
	columns, err := f.split(header)
	if err != nil {
		return fmt.Errorf("the first line, which names the columns: %w", err)
	}
	f.columns = slices.Clone(columns)
	have := quotedNames(f.columns)
	if f.masked {
		have = fmt.Sprintf("those %d of the first line, which may be values to be masked", len(f.columns))
	} else if len(f.columns) == 1 && !strings.Contains(f.columns[0], string(rune(f.comma))) && strings.ContainsAny(f.columns[0], ",;\t|") {
		have += fmt.Sprintf(" (one column: is the separator another one than %q? see Comma)", f.comma)
	}
	var errs []error
	for _, field := range fields {
		i := slices.Index(f.columns, field.name)
		switch {
		case field.whole:
		case i < 0:
			errs = append(errs, fmt.Errorf("there is no column %q; the columns are %s", field.name, have))
		case slices.Contains(f.columns[i+1:], field.name):
			errs = append(errs, fmt.Errorf("there are several columns %q: give them names that differ", field.name))
		}
		f.of = append(f.of, i)
	}
	return errors.Join(errs...)
}

func (f *csvFormat) decode(text string, fields []field, values []tuple.Value) error {
	cells, err := f.split(text)
	if err != nil {
		return err
	}
	if len(cells) != len(f.columns) {
		return f.about(fmt.Errorf("%s where the first line names %s", amount.Of(len(cells), "cell"), amount.Of(len(f.columns), "column")), text)
	}
	for i := range fields {
		if fields[i].whole {
			values[i], _ = tuple.ValueOf(text)
			continue
		}
		if values[i], err = fields[i].kind.valueOf(cells[f.of[i]]); err != nil {
			return fmt.Errorf("column %q %w", fields[i].name, err)
		}
	}
	return nil
}

// split returns the cells of a record, until the next call.
func (f *csvFormat) split(text string) ([]string, error) {
	f.cells = f.cells[:0]
	if strings.IndexByte(text, '"') < 0 {
		for {
			i := strings.IndexByte(text, f.comma)
			if i < 0 {
				f.cells = append(f.cells, text)
				return f.cells, nil
			}
			f.cells = append(f.cells, text[:i])
			text = text[i+1:]
		}
	}
	if f.quoted == nil {
		f.quoted = csv.NewReader(&f.feed)
		f.quoted.Comma, f.quoted.FieldsPerRecord, f.quoted.ReuseRecord = rune(f.comma), -1, true
	}
	f.feed = oneRecord{text, "\r\n"} // \r\n, so that a \r before it stays
	begun := f.quoted.InputOffset()
	cells, err := f.quoted.Read()
	if err == nil && f.quoted.InputOffset()-begun != int64(len(text)+2) {
		err = errors.New("a quote that ends a cell in the middle") // never: then it would be no record
	}
	if err != nil {
		f.quoted = nil
		if e, ok := errors.AsType[*csv.ParseError](err); ok {
			err = e.Err
		}
		if err == io.EOF {
			err = csv.ErrQuote
		}
		return nil, f.about(err, text)
	}
	return cells, nil
}

// about adds the record to an error: which cell is which is not known.
func (f *csvFormat) about(err error, text string) error {
	if f.masked {
		return err
	}
	return fmt.Errorf("%w: %s", err, shown(text))
}

// oneRecord reads its texts, one behind the other.
type oneRecord [2]string

func (r *oneRecord) Read(b []byte) (int, error) {
	for i, text := range r {
		if text != "" {
			n := copy(b, text)
			r[i] = text[n:]
			return n, nil
		}
	}
	return 0, io.EOF
}
