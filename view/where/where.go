// Package where says of tuples whether people want to see them, by an expression over the
// fields of their stream. It is not for use outside Egret.
//
//	word == "whale" && count > 10    in the language of github.com/expr-lang/expr
//
// An expression cannot do much harm to the task that asks it: it has no loops, no ranges
// and few functions, its size is bounded, and so is what it sees of a text.
package where

import (
	"errors"
	"fmt"
	"math"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/egretstream/egret/tuple"
)

const (
	// MaxText is how many bytes of a text an expression sees.
	MaxText = 4 << 10

	maxLength = 1000 // of an expression, in bytes
	maxNodes  = 200  // of its tree
	maxSteps  = 200  // of a pattern, as regexp has it: each may be asked at each byte of a text
	memory    = 1000 // what it may make in one go, in expr's units, about one a value
)

// functions are those that an expression may call: none that loops, makes much of little,
// or asks the clock.
var functions = strings.Fields("abs ceil date duration float floor hasPrefix hasSuffix indexOf int lastIndexOf len lower" +
	" max min round string trim trimPrefix trimSuffix type upper")

// A Filter is an expression that fits a stream. It is not changed.
type Filter struct {
	stream  *tuple.Schema
	program *vm.Program
	fields  []field // that it asks for
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
	w := &walker{stream: s, own: map[string]bool{}}
	ast.Walk(&tree.Node, w)
	if w.env != nil {
		w.refuse(w.env, `$env stands for all fields: use it for one, as in $env["a name"]`)
	}
	if w.err != nil {
		return nil, told(w.err.Bind(tree.Source), s)
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
	f := &Filter{stream: s, program: p}
	for i, name := range s.Fields {
		if !s.Masks(i) && w.own[name] {
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
				yes, err = false, fmt.Errorf("the expression cannot be asked: %v", r)
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

// A walker looks for what an expression may not have, and for the fields that it asks for.
type walker struct {
	stream *tuple.Schema
	own    map[string]bool // names in it
	env    ast.Node        // $env, of which no field is taken
	err    *file.Error
}

func (w *walker) refuse(n ast.Node, format string, args ...any) {
	if w.err == nil {
		w.err = &file.Error{Location: n.Location(), Message: fmt.Sprintf(format, args...)}
	}
}

// Visit is called for each node, and for what is in it first.
func (w *walker) Visit(n *ast.Node) {
	switch x := (*n).(type) {
	case *ast.IdentifierNode:
		w.own[x.Value] = true
		if w.masked(x, x.Value); x.Value == "$env" && w.env == nil {
			w.env = x
		}
	case *ast.VariableDeclaratorNode:
		w.refuse(x, "let is not allowed")
	case *ast.MemberNode:
		of, name := x.Node, x.Property
		if c, is := of.(*ast.ChainNode); is {
			of = c.Node
		}
		if field, is := name.(*ast.StringNode); is && w.env == of {
			w.env, w.own[field.Value] = nil, true
			w.masked(x, field.Value)
		}
	case *ast.BinaryNode:
		switch x.Operator {
		case "..":
			w.refuse(x, "ranges are not allowed")
		case "matches":
			w.pattern(x.Right)
		}
	case *ast.BuiltinNode:
		if !slices.Contains(functions, x.Name) {
			w.refuse(x, "the function %s is not allowed: there are %s", x.Name, strings.Join(functions, ", "))
		}
	case *ast.PredicateNode:
		w.refuse(x, "loops are not allowed")
	}
}

// pattern refuses one that takes long, or whose cost nobody knows.
func (w *walker) pattern(n ast.Node) {
	text, is := n.(*ast.StringNode)
	if !is {
		w.refuse(n, "what stands behind matches has to be a text")
		return
	}
	re, err := syntax.Parse(text.Value, syntax.Perl)
	if err != nil {
		w.refuse(n, "%v", err)
		return
	}
	if p, err := syntax.Compile(re.Simplify()); err != nil || len(p.Inst) > maxSteps {
		w.refuse(n, "the pattern is too large: use fewer or smaller repetitions")
	}
}

func (w *walker) masked(n ast.Node, name string) {
	if i := slices.Index(w.stream.Fields, name); i >= 0 && w.stream.Masks(i) {
		w.refuse(n, "the field %s is masked: nobody may ask for it", name)
	}
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
	return fmt.Errorf("column %d: %s", e.Column+1, text)
}

func notBool(kind string) error {
	return fmt.Errorf("it gives a value of type %s: it has to say true or false", kind)
}
