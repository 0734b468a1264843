package tuple

import (
	"fmt"
	"reflect"
)

// codecs are the codecs of Any values. They are registered by init functions and
// before a topology runs, and only read afterwards, so there is no lock.
var codecs = struct {
	byType map[reflect.Type]*anyCodec
	byName map[string]*anyCodec
}{map[reflect.Type]*anyCodec{}, map[string]*anyCodec{}}

type anyCodec struct {
	name   string
	append func(dst []byte, v any) ([]byte, error)
	decode func(b []byte) (any, error)
}

// RegisterCodec makes values of type T fit for [Any]. The name says on the wire
// which codec wrote a value and must be the same in every version of a program.
// decode must copy what it keeps of its argument, which may be any bytes: what it
// cannot read is an error. The bytes are also the value's key when a stream is
// grouped by it, so equal values must have equal bytes. Both functions are called
// by many tasks at the same time.
//
// RegisterCodec is called before any topology runs, usually from an init
// function; it panics if the name or the type is taken, or if T is an interface.
func RegisterCodec[T any](name string, appendTo func(dst []byte, v T) ([]byte, error), decode func(b []byte) (T, error)) {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Interface {
		panic(fmt.Sprintf("tuple: %v is an interface: register a codec for each type that implements it", t))
	}
	if codecs.byType[t] != nil || codecs.byName[name] != nil {
		panic(fmt.Sprintf("tuple: a codec for %v or with the name %q is registered already", t, name))
	}
	c := &anyCodec{
		name:   name,
		append: func(dst []byte, v any) ([]byte, error) { return appendTo(dst, v.(T)) },
		decode: func(b []byte) (any, error) { return decode(b) },
	}
	codecs.byType[t], codecs.byName[name] = c, c
}
