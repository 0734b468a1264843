package from

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/egretstream/egret/tuple"
)

// JSONLines returns a source of files with one JSON object on each line. A field
// of the spout's first stream is the member of that name; a dot leads into an
// object: "properties.mag" is mag in properties, or a member with a dot in its
// name. A member that is not there, and null, are nil.
//
// A string is a string, true and false are bool. A number is an int64 if it is
// written without fraction and exponent, beyond that a uint64, and otherwise a
// float64; it is bad if it fits none. A field that is sometimes 4 and sometimes
// 4.7 had better be a Float, so that it always has one kind. An array or object
// is its text. What the source is told of a field (Int, Time, ...) applies to
// strings and to the text of numbers, true and false.
//
// A line is bad if it is no object, is not valid JSON or not valid UTF-8, or names
// a member twice. Lines with nothing but blanks are no records. Paths, .gz and -
// are as in [Lines], and files are divided as there; the errors of a later part of
// a file name the byte where a line begins, and not its number.
func JSONLines(paths ...string) *RecordSource { return newRecordSource(Lines(paths...), true) }

// JSONLinesFS is like [JSONLines] for files of fsys, such as an embed.FS.
func JSONLinesFS(fsys fs.FS, names ...string) *RecordSource {
	return newRecordSource(LinesFS(fsys, names...), true)
}

// jsonFormat reads objects and keeps the values of the fields. Strings without
// an escape, numbers and arrays share the memory of the record.
type jsonFormat struct {
	root   member
	dec    *jsontext.Decoder
	input  bytes.Buffer
	text   string // of the record
	fields []field
	values []tuple.Value
	seen   []bool
	name   []byte // room
}

// A member says which fields a member of an object, and those below it, are.
type member struct {
	fields []int
	below  map[string]*member
}

func newJSONFormat() *jsonFormat { return &jsonFormat{dec: jsontext.NewDecoder(strings.NewReader(""))} }

func (f *jsonFormat) begin(_ string, fields []field) error {
	f.seen = make([]bool, len(fields))
	for i := range fields {
		if !fields[i].whole {
			f.root.add(fields[i].name, i)
		}
	}
	return nil
}

// add enters a field under its name, and under each way to read its dots.
func (m *member) add(name string, field int) {
	at := m.at(name)
	at.fields = append(at.fields, field)
	for i := range name {
		if name[i] == '.' {
			m.at(name[:i]).add(name[i+1:], field)
		}
	}
}

func (m *member) at(name string) *member {
	if m.below == nil {
		m.below = map[string]*member{}
	}
	if m.below[name] == nil {
		m.below[name] = &member{}
	}
	return m.below[name]
}

func (f *jsonFormat) decode(text string, fields []field, values []tuple.Value) error {
	f.text, f.fields, f.values = text, fields, values
	clear(f.seen)
	for i := range fields {
		if fields[i].whole {
			values[i], _ = tuple.ValueOf(text)
		}
	}
	// The decoder reads straight from the text, and never writes to it.
	f.input = *bytes.NewBuffer(unsafe.Slice(unsafe.StringData(text), len(text)))
	f.dec.Reset(&f.input)
	if k := f.dec.PeekKind(); k != '{' {
		v, err := f.dec.ReadValue()
		if err != nil {
			return f.syntax(err)
		}
		return fmt.Errorf("is %s, not an object", kindOf(v[0]))
	}
	if err := f.object(&f.root); err != nil {
		return err
	}
	if _, err := f.dec.ReadToken(); err == nil {
		return &syntaxError{f.dec.InputOffset() - 1, "", errors.New("more behind the object")}
	} else if err != io.EOF {
		return f.syntax(err)
	}
	return nil
}

// object reads an object of which some members are wanted.
func (f *jsonFormat) object(m *member) error {
	if _, err := f.dec.ReadToken(); err != nil {
		return f.syntax(err)
	}
	for f.dec.PeekKind() != '}' {
		name, err := f.dec.ReadValue()
		if err != nil {
			return f.syntax(err)
		}
		plain := name[1 : len(name)-1]
		if bytes.IndexByte(plain, '\\') >= 0 {
			if f.name, err = jsontext.AppendUnquote(f.name[:0], name); err != nil {
				return f.syntax(err)
			}
			plain = f.name
		}
		below := m.below[string(plain)]
		switch {
		case below == nil:
			err = f.dec.SkipValue()
		case len(below.fields) == 0 && f.dec.PeekKind() == '{':
			if err := f.object(below); err != nil {
				return err
			}
		default:
			if err := f.value(below); err != nil {
				return err
			}
		}
		if err != nil {
			return f.syntax(err)
		}
	}
	_, err := f.dec.ReadToken()
	if err != nil {
		err = f.syntax(err)
	}
	return err
}

// value reads a value that is wanted, or whose members are.
func (f *jsonFormat) value(m *member) error {
	v, err := f.dec.ReadValue()
	if err != nil {
		return f.syntax(err)
	}
	end := int(f.dec.InputOffset())
	text := f.text[end-len(v) : end]
	for _, i := range m.fields {
		if f.seen[i] {
			return fmt.Errorf("field %q is there twice, once as a member with a dot in its name", f.fields[i].name)
		}
		f.seen[i] = true
		if f.values[i], err = f.fields[i].kind.ofJSON(text); err != nil {
			return fmt.Errorf("field %q %w", f.fields[i].name, err)
		}
	}
	if text[0] != '{' || len(m.below) == 0 {
		return nil
	}
	// An object that is wanted as it is, and in parts: it is read once more.
	outer, input := f.dec, bytes.NewReader(v)
	f.dec = jsontext.NewDecoder(input)
	whole := f.text
	f.text = text
	err = f.object(m)
	f.dec, f.text = outer, whole
	return err
}

// syntax makes errors of the decoder those of a line.
func (f *jsonFormat) syntax(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		in := ""
		if p := e.JSONPointer; p != "" && !masks(f.fields) { // it may lead into what is masked
			in = ", in " + shown(string(p))
		}
		return &syntaxError{e.ByteOffset, in, e.Err}
	}
	return err
}

// ofJSON makes a value of a value's JSON text.
func (k fieldKind) ofJSON(text string) (tuple.Value, error) {
	switch text[0] {
	case 'n':
		return tuple.Value{}, nil
	case '"':
		s := text[1 : len(text)-1]
		if strings.IndexByte(s, '\\') >= 0 {
			b, err := jsontext.AppendUnquote(nil, text)
			if err != nil {
				return tuple.Value{}, err
			}
			s = string(b)
		}
		return k.valueOf(s)
	case '{', '[':
		if k.kind != asIs && k.kind != toText {
			return tuple.Value{}, fmt.Errorf("is %s, of which no %s can be made", kindOf(text[0]), k.kind)
		}
		return tuple.ValueOf(text)
	}
	switch {
	case k.kind != asIs:
		return k.valueOf(text)
	case text[0] == 't' || text[0] == 'f':
		return tuple.ValueOf(text[0] == 't')
	case strings.ContainsAny(text, ".eE"):
		return fieldKind{kind: toFloat, masked: k.masked}.valueOf(text)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return tuple.ValueOf(n)
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return tuple.ValueOf(n)
	}
	return tuple.Value{}, fmt.Errorf("is %s, which does not fit in 64 bits: read it with Text or Float", k.shown(text))
}

func kindOf(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a bool"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}
