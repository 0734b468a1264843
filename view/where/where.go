// Package where says of tuples whether people want to see them, by an expression over the
// fields of their stream. It is not for use outside Egret.
//
//	word == "whale" && count > 10    in the language of github.com/expr-lang/expr
//
// An expression cannot do much harm to the task that asks it. There is a list of what it may
// have, and loops, ranges, maps, variables and methods that make text are not among it. It
// has at most 1,000 bytes and 200 nodes, each of which is asked at most once, and it sees
// [MaxText] bytes of a text. From that follows what it may cost in the worst case, which is
// computed before it is asked: one that may read and make more than [MaxCost] bytes, a
// pattern's instruction at a byte counting as one, is refused. Asking takes at most so many
// steps, then, and some times as much memory, whatever the tuples are.
package where

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/egretstream/egret/tuple"
)

// maxSaid is how many bytes of what is wrong are told: it may repeat a text.
const maxSaid = 1000

// memory is what an expression may make in one go, in expr's units, about one a value.
const memory = 1000

// A Filter is an expression that fits a stream. It is not changed.
type Filter struct {
	stream  *tuple.Schema
	program *vm.Program
	fields  []field // that it asks for
	cost    int     // at most
}

type field struct {
	name string
	at   int
}

// Compile returns the filter for an expression over the fields of a stream. The error says
// what is wrong, in which column, and what there is. Masked fields cannot be asked for.
func Compile(text string, s *tuple.Schema) (*Filter, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("the expression has %d bytes: at most %d are allowed", len(text), maxLength)
	}
	tree, err := parser.Parse(text)
	if err != nil {
		return nil, told(err, s)
	}
	m := &meter{stream: s, own: map[string]bool{}}
	m.of(tree.Node)
	if m.err != nil {
		return nil, told(m.err.Bind(tree.Source), s)
	}
	env := types.Map{}
	for i, name := range s.Fields {
		if !s.Masks(i) {
			env[name] = types.Any
		}
	}
	options := []expr.Option{expr.Env(env), expr.MaxNodes(maxNodes), expr.DisableAllBuiltins()}
	for _, name := range functions {
		if s.Index(name) < 0 {
			options = append(options, expr.EnableBuiltin(name))
		}
	}
	p, err := compile(text, append(options, expr.AsBool()))
	if err != nil {
		return nil, told(err, s)
	}
	f := &Filter{stream: s, program: p, cost: m.cost}
	for i, name := range s.Fields {
		if !s.Masks(i) && m.own[name] {
			f.fields = append(f.fields, field{name, i})
		}
	}
	return f, nil
}

// compile calls expr, which runs constant parts of the expression.
func compile(text string, options []expr.Option) (p *vm.Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the expression cannot be compiled: %v", r)
		}
	}()
	p, err = expr.Compile(text, options...)
	if err != nil {
		if kind, is := strings.CutPrefix(err.Error(), "expected bool, but got "); is {
			err = notBool(kind)
		}
	}
	return p, err
}

// New returns what says whether a tuple is wanted. It is for one goroutine. An error is of
// that tuple, such as that a field has a value of another kind there.
func (f *Filter) New() func(tuple.Tuple) (bool, error) {
	machine := &vm.VM{MemoryBudget: memory}
	env := make(map[string]any, len(f.fields))
	return func(t tuple.Tuple) (yes bool, err error) {
		defer func() {
			if r := recover(); r != nil {
				yes, err = false, fmt.Errorf("the expression cannot be asked: %.*s", maxSaid, fmt.Sprint(r))
			}
		}()
		for _, x := range f.fields {
			v, err := value(t.At(x.at))
			if err != nil {
				return false, fmt.Errorf("field %s %w", x.name, err)
			}
			env[x.name] = v
		}
		got, err := machine.Run(f.program, env)
		clear(env) // it keeps nothing of a tuple
		if err != nil {
			return false, told(err, f.stream)
		}
		yes, _ = got.(bool) // it is one
		return yes, nil
	}
}

// errOpaque is of a value whose methods would be user code.
var errOpaque = errors.New("is a value of the program's own, which an expression cannot look at")

// value returns what an expression sees of a value.
func value(v tuple.Value) (any, error) {
	switch v.Kind() {
	case tuple.KindAny:
		return nil, errOpaque
	case tuple.KindBytes:
		b := v.Bytes()
		return string(b[:min(len(b), MaxText)]), nil
	case tuple.KindString:
		s := v.String()
		return s[:min(len(s), MaxText)], nil
	case tuple.KindUint64:
		if n := v.Uint64(); n > math.MaxInt64 {
			return float64(n), nil // expr compares whole numbers as int
		}
	}
	return v.Any(), nil
}

// told says where in an expression something is wrong, and what there is.
func told(err error, s *tuple.Schema) error {
	e, is := errors.AsType[*file.Error](err)
	if !is {
		return err
	}
	text := strings.ReplaceAll(e.Message, "unexpected token EOF", "it ends too early")
	if kind, is := strings.CutPrefix(text, "invalid operation: bool("); is {
		return notBool(strings.TrimSuffix(kind, ")"))
	}
	if strings.HasPrefix(text, "unknown name") {
		var have []string
		for i, f := range s.Fields {
			if !s.Masks(i) {
				have = append(have, f)
			}
		}
		text += fmt.Sprintf(": the fields of %s.%s are %s", s.Component, s.Stream, strings.Join(have, ", "))
	}
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "..."
	}
	return fmt.Errorf("column %d: %s", e.Column+1, text)
}

func notBool(kind string) error {
	return fmt.Errorf("it gives a value of type %s: it has to say true or false", kind)
}
