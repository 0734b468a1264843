package trident

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/egretstream/egret/topology"
)

// New returns the topology that define describes, to be run as any other:
// egret.Main(trident.New("wordcount", define)). It is exactly-once. As with
// topology.New, define is called anew by each Build, should do nothing but describe, and
// its mistakes are reported by Build, all at once.
func New(name string, define func(*Builder)) *topology.Topology {
	return topology.New(name, func(b *topology.Builder) {
		t := &Builder{b: b}
		if define == nil {
			b.Check(errors.New("the definition is nil"))
			return
		}
		b.Check(t.run(define))
		t.compile()
	})
}

// run calls the definition. What is nil has no Builder to tell of it, so it ends the
// definition.
func (b *Builder) run(define func(*Builder)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			m, is := r.(*mistake)
			if !is {
				panic(r)
			}
			err = m
		}
	}()
	define(b)
	return nil
}

// given ends the definition if p is nil.
func given[T any](p *T, sentinel error, what string) *T {
	if p == nil {
		panic(&mistake{what + " is nil", sentinel})
	}
	return p
}

// A Builder takes the description of a topology. Functions such as [From] add to it.
//
// Owner: the run of the definition that it was given to. It is of no use after that,
// and not safe for concurrent use.
type Builder struct {
	b     *topology.Builder
	nodes []*node  // in the order of their making, so inputs come before who reads them
	masks []string // fields that are shown to nobody
}

// String declares a parameter and returns the value given for it, or def; see
// topology.Builder. So do the methods below.
func (b *Builder) String(name, def, usage string) string { return b.b.String(name, def, usage) }

// Int declares a parameter that is a whole number.
func (b *Builder) Int(name string, def int, usage string) int { return b.b.Int(name, def, usage) }

// Float declares a parameter that is a number.
func (b *Builder) Float(name string, def float64, usage string) float64 {
	return b.b.Float(name, def, usage)
}

// Bool declares a parameter that is true or false.
func (b *Builder) Bool(name string, def bool, usage string) bool { return b.b.Bool(name, def, usage) }

// Duration declares a parameter that is a duration.
func (b *Builder) Duration(name string, def time.Duration, usage string) time.Duration {
	return b.b.Duration(name, def, usage)
}

// Strings declares a parameter with any number of values.
func (b *Builder) Strings(name string, def []string, usage string) []string {
	return b.b.Strings(name, def, usage)
}

// Check adds a mistake of the definition's own, such as a parameter that is out of
// range, to those that Build reports. A nil error is no mistake.
func (b *Builder) Check(err error) { b.b.Check(err) }

// NoTaps forbids that anybody looks at elements while the topology runs; see
// topology.Builder.
func (b *Builder) NoTaps() { b.b.NoTaps() }

// Mask says that the values of these fields are shown to nobody, wherever elements go from
// task to task; see topology.Component. A field "card" is also the one of what has it as a
// part, such as "value.card" behind a By, and "value.card" is that one alone. Elements that
// are no struct are the field "value", and keys the field "key". What a state has is shown
// to who queries it; its errors name no keys.
func (b *Builder) Mask(fields ...string) { b.masks = append(b.masks, fields...) }

// masked returns those of the fields whose values are shown to nobody.
func (b *Builder) masked(fields []string) (all []string) {
	for _, f := range fields {
		if slices.ContainsFunc(b.masks, func(m string) bool { return hides(m, f) }) {
			all = append(all, f)
		}
	}
	return all
}

// hides reports whether a mask is of a field, or of a struct that it is a part of.
func hides(mask, field string) bool {
	return mask != "" && strings.Contains("."+field+".", "."+mask+".")
}

// unknownMasks tells of masks that are of none of the fields.
func (b *Builder) unknownMasks(fields []string) {
	slices.Sort(fields)
	for _, m := range b.masks {
		if !slices.ContainsFunc(fields, func(f string) bool { return hides(m, f) }) {
			b.mistake(topology.ErrField, "Mask: no stream has a field %q (they have %s)", m, strings.Join(slices.Compact(fields), ", "))
		}
	}
}

// Dropped says that earlier versions of the topology had sources or states of these names,
// which it has no more; see topology.Builder.
func (b *Builder) Dropped(names ...string) { b.b.Dropped(names...) }

func (b *Builder) mistake(err error, format string, args ...any) {
	b.b.Check(&mistake{fmt.Sprintf(format, args...), err})
}

// wants tells of a function that is nil, of an operator or one of its parts.
func (b *Builder) wants(f any, what string) {
	if reflect.ValueOf(f).IsNil() {
		b.mistake(ErrFunction, "%s is nil", what)
	}
}

// A mistake is a sentence about one of this package's sentinels.
type mistake struct {
	text string
	err  error
}

func (m *mistake) Error() string { return m.text }
func (m *mistake) Unwrap() error { return m.err }

// What can be wrong with a definition, beside the mistakes of package topology. Build's
// errors wrap them.
var (
	// ErrElement reports a type whose values cannot go from one task to another, or
	// cannot be kept in a store.
	ErrElement = errors.New("bad element")
	// ErrUnsound reports a state that would not be exact.
	ErrUnsound = errors.New("not exactly once")
	// ErrState reports a state that is used wrongly.
	ErrState = errors.New("bad state")
	// ErrStream reports a stream that is nil or of another Builder.
	ErrStream = errors.New("bad stream")
	// ErrFunction reports an operator without one of its functions.
	ErrFunction = errors.New("missing function")
	// ErrParallel reports two numbers of tasks for one component.
	ErrParallel = errors.New("bad parallelism")
	// ErrName reports a name that cannot be given.
	ErrName = errors.New("bad name")
)
