package trident

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/egretstream/egret/tuple"
)

// A layout is how a Go type lies in the fields of a tuple: it is made once, when the
// topology is built, so that nothing has to be looked up for an element.
type layout struct {
	typ    reflect.Type
	fields []string
	ops    []op // one for each field
	text   bool // a value of the type may share memory with what it was read from
}

// An op moves one field between a Go value, at an offset, and a tuple.
type op struct {
	field    string // of the tuple
	path     string // of the Go value, for people
	code     code
	offset   uintptr
	typ      reflect.Type // what is at offset, or what the pointer there points to
	optional bool         // there is a pointer: nil is nil
}

// A code says what is in memory.
type code uint8

const (
	asBool code = iota
	asInt
	asInt8
	asInt16
	asInt32
	asInt64
	asUint
	asUint8
	asUint16
	asUint32
	asUint64
	asFloat32
	asFloat64
	asString
	asBytes
	asTime
	asDuration
	asAny
)

var codes = map[reflect.Kind]code{
	reflect.Bool: asBool,
	reflect.Int:  asInt, reflect.Int8: asInt8, reflect.Int16: asInt16, reflect.Int32: asInt32, reflect.Int64: asInt64,
	reflect.Uint: asUint, reflect.Uint8: asUint8, reflect.Uint16: asUint16, reflect.Uint32: asUint32, reflect.Uint64: asUint64,
	reflect.Float32: asFloat32, reflect.Float64: asFloat64,
	reflect.String: asString,
}

// kind returns what the field is in a tuple.
func (c code) kind() tuple.Kind {
	switch {
	case c == asBool:
		return tuple.KindBool
	case c <= asInt64:
		return tuple.KindInt64
	case c <= asUint64:
		return tuple.KindUint64
	case c <= asFloat64:
		return tuple.KindFloat64
	}
	return [...]tuple.Kind{tuple.KindString, tuple.KindBytes, tuple.KindTime, tuple.KindDuration, tuple.KindAny}[c-asString]
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
)

// whole is the name of the one field of a type that is no struct.
const whole = "value"

// layoutOf returns the layout of t, or what of it cannot be in a tuple.
func layoutOf(t reflect.Type) (*layout, error) {
	l := &layout{typ: t}
	if err := l.add(t, "", "", 0, false); err != nil {
		return nil, err
	}
	for i, f := range l.fields {
		for k := range i {
			if l.fields[k] == f {
				return nil, fmt.Errorf("type %v: %s and %s are both the field %q of a tuple: give one of them another name, as in `egret:\"name\"`", t, l.ops[k].path, l.ops[i].path, f)
			}
		}
	}
	return l, nil
}

// add adds what is of type t at offset. path is that of a Go field.
func (l *layout) add(t reflect.Type, name, path string, offset uintptr, optional bool) error {
	o := op{field: name, path: path, offset: offset, typ: t, optional: optional}
	if name == "" {
		o.field = whole
	}
	if path == "" {
		o.path = "its value"
	}
	c, known := codes[t.Kind()]
	switch {
	case t == timeType:
		o.code = asTime
	case t == durationType:
		o.code = asDuration
	case tuple.HasCodec(t):
		o.code = asAny
	case known:
		o.code = c
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		o.code = asBytes
	case t.Kind() == reflect.Pointer && !optional && t.Elem().Kind() != reflect.Pointer && (t.Elem().Kind() != reflect.Struct || t.Elem() == timeType):
		return l.add(t.Elem(), name, path, offset, true)
	case t.Kind() == reflect.Struct && !optional:
		return l.addStruct(t, name, path, offset)
	default:
		where := fmt.Sprintf("type %v", l.typ)
		if path != "" {
			where += ", field " + path
		}
		return fmt.Errorf("%s: a %v is no value of a tuple: use a bool, number, string, []byte, time.Time or time.Duration, a struct of them, or register a codec for it with tuple.RegisterCodec", where, t)
	}
	l.text = l.text || o.code == asString || o.code == asBytes || o.code == asAny || o.optional
	l.fields, l.ops = append(l.fields, o.field), append(l.ops, o)
	return nil
}

func (l *layout) addStruct(t reflect.Type, name, path string, offset uintptr) error {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			continue
		}
		sub := f.Name
		if path != "" {
			sub = path + "." + f.Name
		}
		if !f.IsExported() {
			return fmt.Errorf("type %v, field %s: it is not exported, so it would be lost on the way to another task: export it, or register a codec for %v with tuple.RegisterCodec", l.typ, sub, t)
		}
		field := snake(f.Name)
		if tag := f.Tag.Get("egret"); tag != "" {
			field = tag
		}
		if f.Anonymous && f.Type.Kind() == reflect.Struct && f.Type != timeType && !tuple.HasCodec(f.Type) && f.Tag.Get("egret") == "" {
			field = name
		} else if name != "" {
			field = name + "." + field
		}
		if err := l.add(f.Type, field, sub, offset+f.Offset, false); err != nil {
			return err
		}
	}
	return nil
}

// snake returns the name of a field in a tuple: DelayMin is delay_min, UserID user_id.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) {
			after := i > 0 && !unicode.IsUpper(runes[i-1]) && runes[i-1] != '_'
			before := i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) && unicode.IsUpper(runes[i-1])
			if after || before {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// key says why values of l's type cannot be keys, or returns nil.
func (l *layout) key() error {
	for _, o := range l.ops {
		switch {
		case o.optional:
			return fmt.Errorf("type %v cannot be a key: %s is a pointer, and two pointers to the same value differ", l.typ, o.path)
		case o.code == asFloat32 || o.code == asFloat64:
			return fmt.Errorf("type %v cannot be a key: %s is a %v, and there are floats that differ from themselves: use a whole number or a text", l.typ, o.path, o.typ)
		case o.code == asAny:
			return fmt.Errorf("type %v cannot be a key: %s is a %v with a codec, whose bytes may be equal where it is not: use a text", l.typ, o.path, o.typ)
		}
	}
	return nil
}
