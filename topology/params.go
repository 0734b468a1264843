package topology

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Param is a parameter that a definition declares.
type Param struct {
	Name    string    `json:"name"`
	Usage   string    `json:"usage"`
	Default string    `json:"default"` // as text; several strings with commas between them
	Kind    ParamKind `json:"kind"`
}

// A ParamKind says which texts a parameter takes.
type ParamKind string

const (
	StringParam   ParamKind = "string"   // any
	IntParam      ParamKind = "int"      // a decimal whole number
	FloatParam    ParamKind = "float"    // a number as Go writes it
	BoolParam     ParamKind = "bool"     // true or false
	DurationParam ParamKind = "duration" // 1.5s, 2m, 1h30m
	StringsParam  ParamKind = "strings"  // any number of any
)

// String declares a parameter and returns the value given for it, or def. Like
// the methods below it may be called again for the same name if kind and default
// are the same. The name is of lower-case letters and digits with dashes between
// them. A value that is not of the kind is a mistake for Build to report; the
// definition goes on with def.
func (b *Builder) String(name, def, usage string) string {
	return param(b, Param{name, usage, def, StringParam}, def, one(func(s string) (string, error) { return s, nil }, ""))
}

// Int declares a parameter that is a whole number.
func (b *Builder) Int(name string, def int, usage string) int {
	return param(b, Param{name, usage, strconv.Itoa(def), IntParam}, def, one(strconv.Atoi, "a whole number"))
}

// Float declares a parameter that is a number.
func (b *Builder) Float(name string, def float64, usage string) float64 {
	parse := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
	return param(b, Param{name, usage, strconv.FormatFloat(def, 'g', -1, 64), FloatParam}, def, one(parse, "a number"))
}

// Bool declares a parameter that is true or false.
func (b *Builder) Bool(name string, def bool, usage string) bool {
	return param(b, Param{name, usage, strconv.FormatBool(def), BoolParam}, def, one(strconv.ParseBool, "true or false"))
}

// Duration declares a parameter that is a duration.
func (b *Builder) Duration(name string, def time.Duration, usage string) time.Duration {
	return param(b, Param{name, usage, def.String(), DurationParam}, def, one(time.ParseDuration, "a duration such as 1.5s or 2m"))
}

// Strings declares a parameter with any number of values.
func (b *Builder) Strings(name string, def []string, usage string) []string {
	all := func(texts []string) ([]string, error) { return texts, nil }
	return slices.Clone(param(b, Param{name, usage, strings.Join(def, ","), StringsParam}, def, all))
}

// one makes of a parser of one text a parser of what was given for a parameter.
func one[T any](parse func(string) (T, error), what string) func([]string) (T, error) {
	return func(texts []string) (T, error) {
		if len(texts) != 1 {
			var zero T
			return zero, fmt.Errorf("takes one value, not %d", len(texts))
		}
		v, err := parse(texts[0])
		switch {
		case errors.Is(err, strconv.ErrRange):
			return v, fmt.Errorf("%q is too large or too small", texts[0])
		case err != nil:
			return v, fmt.Errorf("%q is not %s", texts[0], what)
		}
		return v, nil
	}
}

func param[T any](b *Builder, p Param, def T, parse func([]string) (T, error)) T {
	i := slices.IndexFunc(b.params, func(q Param) bool { return q.Name == p.Name })
	if i >= 0 {
		if q := b.params[i]; q.Kind != p.Kind || q.Default != p.Default {
			b.badParam(p.Name, fmt.Sprintf("is declared twice, as %s with default %q and as %s with default %q", q.Kind, q.Default, p.Kind, p.Default))
			return def
		}
	} else {
		b.params = append(b.params, p)
		if what := badParamName(p.Name); what != "" {
			b.badParam(p.Name, "the name "+what)
		}
	}
	texts, ok := b.given[p.Name]
	if !ok {
		return def
	}
	v, err := parse(texts)
	if err != nil {
		if i < 0 { // told once
			b.badParam(p.Name, err.Error())
		}
		return def
	}
	return v
}

func (b *Builder) badParam(name, what string) {
	b.paramErrs = append(b.paramErrs, &BuildError{Detail: fmt.Sprintf("parameter %q: %s", name, what), Err: ErrParam})
}
