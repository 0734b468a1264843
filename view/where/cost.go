package where

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"github.com/egretstream/egret/tuple"
)

const (
	// MaxText is how many bytes of a text an expression sees.
	MaxText = 4 << 10
	// MaxCost is what asking an expression of a tuple may cost, in the worst case: bytes
	// that are read or made, and instructions of patterns at the bytes of a text.
	MaxCost = 1 << 20

	maxLength  = 1000 // of an expression, in bytes
	maxNodes   = 200  // of its tree
	maxPattern = 256  // bytes of a pattern
	maxSteps   = 200  // of it, as regexp has it: each may be asked at each byte of a text
	maxLayout  = 100  // bytes of a date's layout
	scalar     = 128  // bytes at most of a number, a time or a kind as a text
	element    = 16   // and of a list, beside what is in it
)

// functions are those that an expression may call: none that loops, makes much of little,
// or asks the clock or the disk.
var functions = strings.Fields("abs ceil date duration float floor hasPrefix hasSuffix indexOf int lastIndexOf len lower" +
	" max min round string trim trimPrefix trimSuffix type upper")

// methods are those of a time or a duration that an expression may call. None makes text,
// takes a layout, or asks for a place.
var methods = strings.Fields("Abs Add After Before Compare Day Equal Hour Hours IsZero Microseconds Milliseconds Minute Minutes Month" +
	" Nanosecond Nanoseconds Round Second Seconds Sub Truncate UTC Unix UnixMicro UnixMilli UnixNano Weekday Year YearDay")

// A meter goes through an expression once. It refuses what is not in the language, finds
// the fields that are asked for, and adds up what asking may cost.
//
// Invariant: what a node gives has at most the size that was returned for it as a text, so
// nothing is made that was not paid for.
type meter struct {
	stream *tuple.Schema
	own    map[string]bool // names of fields in it
	nodes  int
	cost   int
	err    *file.Error // the first
}

func (m *meter) refuse(n ast.Node, format string, args ...any) {
	if m.err == nil {
		m.err = &file.Error{Location: n.Location(), Message: fmt.Sprintf(format, args...)}
	}
}

// pay adds to the cost. It is not added to beyond its bound, so that nothing overflows.
func (m *meter) pay(n ast.Node, cost int) {
	if m.cost = min(m.cost+min(cost, MaxCost+1), MaxCost+1); m.cost > MaxCost {
		m.refuse(n, "this may take too long for a tuple with long texts: use fewer or smaller texts and patterns")
	}
}

// of returns how many bytes the value of a node has at most.
//
// A tree may have one node in several places, as of a < b < c: so it ends with the first
// refusal, and nodes are counted as often as they are met.
func (m *meter) of(n ast.Node) (size int) {
	if m.nodes++; m.nodes > maxNodes {
		m.refuse(n, "exceeds maximum allowed nodes: the expression has more than %d parts", maxNodes)
	}
	if m.err != nil {
		return 0
	}
	size = m.node(n)
	m.pay(n, 1)
	return min(size, MaxCost)
}

func (m *meter) node(n ast.Node) (size int) {
	switch x := n.(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return scalar
	case *ast.StringNode:
		return max(len(x.Value), scalar)
	case *ast.BytesNode:
		return max(len(x.Value), scalar)
	case *ast.IdentifierNode:
		if x.Value == "$env" {
			m.refuse(x, `$env stands for all fields: use it for one, as in $env["a name"]`)
		}
		return m.field(x, x.Value)
	case *ast.UnaryNode:
		m.pay(x, m.of(x.Node))
		return scalar
	case *ast.BinaryNode:
		return m.binary(x)
	case *ast.ChainNode:
		return m.of(x.Node)
	case *ast.MemberNode:
		return m.member(x)
	case *ast.SliceNode:
		for _, at := range []ast.Node{x.From, x.To} {
			if at != nil {
				m.of(at)
			}
		}
		return m.of(x.Node)
	case *ast.CallNode:
		return m.call(x)
	case *ast.BuiltinNode:
		return m.function(x)
	case *ast.ConditionalNode:
		m.of(x.Cond)
		return max(m.of(x.Exp1), m.of(x.Exp2))
	case *ast.ArrayNode:
		for _, e := range x.Nodes {
			size += m.of(e) + element
		}
		m.pay(x, size)
		return max(size, scalar)
	case *ast.VariableDeclaratorNode:
		m.refuse(x, "let is not allowed")
	case *ast.PredicateNode, *ast.PointerNode:
		m.refuse(x, "loops are not allowed")
	case *ast.MapNode:
		m.refuse(x, "maps are not allowed")
	case *ast.SequenceNode:
		m.refuse(x, "several expressions are not allowed: use one")
	default:
		m.refuse(x, "this is not allowed")
	}
	return 0
}

// field is a field that is asked for.
func (m *meter) field(n ast.Node, name string) int {
	if i := slices.Index(m.stream.Fields, name); i >= 0 && m.stream.Masks(i) {
		m.refuse(n, "the field %s is masked: nobody may ask for it", name)
	}
	if !m.own[name] {
		m.own[name] = true
		m.pay(n, MaxText) // bytes are copied
	}
	return MaxText
}

func (m *meter) binary(x *ast.BinaryNode) int {
	if x.Operator == ".." {
		m.refuse(x, "ranges are not allowed")
	}
	a := m.of(x.Left)
	if x.Operator == "matches" {
		m.pay(x, a*m.pattern(x.Right))
		return scalar
	}
	b := m.of(x.Right)
	switch x.Operator {
	case "&&", "||", "and", "or":
	case "??":
		return max(a, b)
	case "+":
		m.pay(x, a+b)
		return a + b
	case "==", "!=", "<", ">", "<=", ">=", "in", "contains", "startsWith", "endsWith", "-", "*", "/", "%", "**", "^":
		m.pay(x, a+b)
	default:
		m.refuse(x, "%s is not allowed", x.Operator)
	}
	return scalar
}

// member is an element of a list or of a text, or a field. All else that a value may have
// is reached by call alone.
func (m *meter) member(x *ast.MemberNode) int {
	name, named := x.Property.(*ast.StringNode)
	of := x.Node
	if c, is := of.(*ast.ChainNode); is {
		of = c.Node
	}
	if i, is := of.(*ast.IdentifierNode); is && named && i.Value == "$env" {
		return m.field(x, name.Value)
	}
	at := x.Property
	if minus, is := at.(*ast.UnaryNode); is && minus.Operator == "-" {
		at = minus.Node
	}
	if named {
		m.refuse(x, "%s is not allowed: of a value there are the methods %s", name.Value, strings.Join(methods, ", "))
	} else if _, is := at.(*ast.IntegerNode); !is {
		if i, is := of.(*ast.IdentifierNode); !is || i.Value != "$env" {
			m.refuse(x, "what stands in [ ] has to be a number")
		}
	}
	return m.of(x.Node)
}

// call is one of a method.
func (m *meter) call(x *ast.CallNode) int {
	callee := x.Callee
	if c, is := callee.(*ast.ChainNode); is {
		callee = c.Node
	}
	switch of := callee.(type) {
	case *ast.IdentifierNode:
		m.refuse(x, "there is no function %s: there are %s", of.Value, strings.Join(functions, ", "))
	case *ast.MemberNode:
		name, is := of.Property.(*ast.StringNode)
		if !is || !slices.Contains(methods, name.Value) {
			m.refuse(of, "this method is not allowed: there are %s", strings.Join(methods, ", "))
		}
		m.of(of.Node)
	default:
		m.refuse(x, "this is no function")
	}
	for _, a := range x.Arguments {
		m.pay(x, m.of(a))
	}
	return scalar
}

// function is a call of one.
func (m *meter) function(x *ast.BuiltinNode) int {
	if !slices.Contains(functions, x.Name) {
		if slices.ContainsFunc(x.Arguments, func(a ast.Node) bool { _, is := a.(*ast.PredicateNode); return is }) {
			m.refuse(x, "loops are not allowed")
		}
		m.refuse(x, "the function %s is not allowed: there are %s", x.Name, strings.Join(functions, ", "))
		return 0
	}
	var sizes []int
	all := 0
	for _, a := range x.Arguments {
		n := m.of(a)
		sizes, all = append(sizes, n), all+n
	}
	m.pay(x, all)
	if len(sizes) == 0 {
		return scalar // it is not compiled
	}
	first := sizes[0]
	switch x.Name {
	case "lower", "upper":
		m.pay(x, 3*first)
		return 3 * first // of a byte that is no UTF-8
	case "string":
		m.pay(x, 4*first)
		return 4*first + scalar // of bytes, their numbers
	case "trim":
		if len(sizes) > 1 {
			m.pay(x, first*sizes[1])
		}
		return first
	case "trimPrefix", "trimSuffix":
		return first
	case "max", "min":
		return max(all, scalar)
	case "date":
		if len(sizes) > 2 {
			m.refuse(x, "date takes a text and a layout: a zone is read from the disk each time, and not allowed")
		}
		if len(sizes) > 1 {
			if s, is := x.Arguments[1].(*ast.StringNode); !is || len(s.Value) > maxLayout {
				m.refuse(x.Arguments[1], "a layout has to be a text of at most %d bytes", maxLayout)
			}
		}
		m.pay(x, 16*all) // it tries several layouts
	case "duration", "int", "float":
		m.pay(x, 16*all) // what is wrong with a text quotes it
	}
	return scalar
}

// pattern returns how many instructions one has. It refuses one that has many, or whose
// cost nobody knows.
func (m *meter) pattern(n ast.Node) (steps int) {
	text, is := n.(*ast.StringNode)
	if !is {
		m.refuse(n, "what stands behind matches has to be a text")
		return 0
	}
	if len(text.Value) > maxPattern {
		m.refuse(n, "the pattern is too large: it has %d bytes, and at most %d are allowed", len(text.Value), maxPattern)
		return 0
	}
	re, err := syntax.Parse(text.Value, syntax.Perl)
	if err != nil {
		m.refuse(n, "%v", err)
		return 0
	}
	if instructions(re) <= 2*maxSteps { // else it is not even made
		p, err := syntax.Compile(re.Simplify())
		if err == nil && len(p.Inst) <= maxSteps {
			return len(p.Inst)
		}
	}
	m.refuse(n, "the pattern is too large: use fewer or smaller repetitions")
	return 0
}

// instructions is at most how many a pattern has once its repetitions are written out, or
// some number above what is allowed.
func instructions(re *syntax.Regexp) int {
	const many = 1000 * maxSteps
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+instructions(sub), many)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Max, re.Min, 1)
	}
	return min(n, many)
}
