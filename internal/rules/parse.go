package rules

import (
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// Truth is what an expression says of a request.
type Truth int8

// The opposite of unknown is unknown, so that negation is a change of sign, and
// is the smaller of two, or the larger.
const (
	False   Truth = -1
	Unknown Truth = 0
	True    Truth = 1
)

func (t Truth) String() string {
	switch t {
	case True:
		return "yes"
	case False:
		return "no"
	default:
		return "unknown"
	}
}

func truth(b bool) Truth {
	if b {
		return True
	}
	return False
}

// Expression is one that can be asked, from many goroutines at once.
type Expression struct{ eval node }

type node func(*Request) Truth

// Eval says whether r meets the expression. An error is a defect of ours: what
// Parse accepts should not break.
func (e *Expression) Eval(r *Request) (t Truth, err error) {
	defer func() {
		if p := recover(); p != nil {
			t, err = Unknown, fmt.Errorf("rules: a rule broke: %v", p)
		}
	}()
	return e.eval(r), nil
}

// Parse reads an expression that may ask for lists. Its errors are of type
// *Error.
func Parse(text string, lists Lists) (e *Expression, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, &Error{Line: 1, Column: 1, Text: `empty; give one such as starts_with(http.request.uri.path, "/assets/")`}
	}
	if len(text) > expressionMax {
		return nil, &Error{Line: 1, Column: 1, Text: fmt.Sprintf("%d bytes; an expression has at most %d, so make two of it, or a list of addresses", len(text), expressionMax)}
	}
	s, wrong := translate(text)
	if wrong != nil {
		return nil, wrong
	}
	defer func() { // the parser is not ours
		if p := recover(); p != nil {
			e, err = nil, s.fail(0, "it cannot be read; write it in simpler parts")
		}
	}()
	tree, err := parser.Parse(string(s.out))
	if err != nil {
		return nil, s.syntax(err)
	}
	c := compiler{s, lists}
	eval, wrong := c.condition(tree.Node)
	if wrong != nil {
		return nil, wrong
	}
	return &Expression{eval}, nil
}

// syntax puts the parser's error in our words, at the place in the text.
func (s *source) syntax(err error) *Error {
	var e *file.Error
	if !errors.As(err, &e) {
		return s.fail(0, "it cannot be read; write it in simpler parts")
	}
	at := s.origin(e.From)
	if at >= len(s.text) || strings.Contains(e.Message, "EOF") {
		return s.fail(len(s.text), "something is missing at the end; a comparison is a field, an operator and a value, and each ( has a )")
	}
	return s.fail(at, "%q is not expected here; between two comparisons stands and or or, between a field and a value an operator such as eq",
		strings.Fields(string(s.text[at:min(len(s.text), at+20)]) + " .")[0])
}

// compiler makes closures of a tree, node by node. What it does not know is
// refused, so nothing else can run.
type compiler struct {
	source *source
	lists  Lists
}

func (c *compiler) fail(n ast.Node, format string, args ...any) *Error {
	at := n
	for { // a name with dots is at its first letter, not at its last dot
		m, ok := at.(*ast.MemberNode)
		if !ok {
			break
		}
		at = m.Node
	}
	return c.source.fail(c.source.origin(at.Location().From), format, args...)
}

// condition compiles what is true or not.
func (c *compiler) condition(n ast.Node) (node, *Error) {
	switch n := n.(type) {
	case *ast.UnaryNode:
		if n.Operator != "not" && n.Operator != "!" {
			return nil, c.fail(n, "%q is not known here", n.Operator)
		}
		return not(c.condition(n.Node))
	case *ast.BinaryNode:
		switch n.Operator {
		case "and", "&&", "or", "||":
			return c.both(n)
		}
		// The parser takes not a == b for (not a) == b, and we for not (a == b).
		if u, ok := n.Left.(*ast.UnaryNode); ok && (u.Operator == "not" || u.Operator == "!") {
			inner := *n
			inner.Left = u.Node
			return not(c.condition(&inner))
		}
		return c.comparison(n)
	case *ast.CallNode, *ast.BuiltinNode:
		return c.test(n)
	case *ast.BoolNode:
		return nil, c.fail(n, "true and false are no conditions; to let everyone through, suspend the room")
	}
	if name, ok := dotted(n); ok {
		if o, ok := field(name); ok && o.flag != nil {
			return func(r *Request) Truth { return truth(o.flag(r)) }, nil
		}
	}
	o, err := c.operand(n)
	if err != nil {
		return nil, err
	}
	return nil, c.fail(n, "%s alone is no condition; compare it, as in %s", o.name, o.example())
}

func (o *operand) example() string {
	switch {
	case o.isAddress():
		return "ip.src in {192.0.2.0/24}"
	case o.style == pathStyle:
		return `starts_with(http.request.uri.path, "/assets/")`
	}
	return `… eq "value"`
}

func not(n node, err *Error) (node, *Error) {
	if err != nil {
		return nil, err
	}
	return func(r *Request) Truth { return -n(r) }, nil
}

func (c *compiler) both(n *ast.BinaryNode) (node, *Error) {
	a, err := c.condition(n.Left)
	if err != nil {
		return nil, err
	}
	b, err := c.condition(n.Right)
	if err != nil {
		return nil, err
	}
	if n.Operator == "and" || n.Operator == "&&" {
		return func(r *Request) Truth {
			t := a(r)
			if t == False {
				return False
			}
			return min(t, b(r))
		}, nil
	}
	return func(r *Request) Truth {
		t := a(r)
		if t == True {
			return True
		}
		return max(t, b(r))
	}, nil
}

// dotted is the name of a field: a, or a.b.c.
func dotted(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return n.Value, true
	case *ast.MemberNode:
		p, ok := n.Property.(*ast.StringNode)
		if !ok || n.Optional {
			return "", false
		}
		front, ok := dotted(n.Node)
		return front + "." + p.Value, ok
	}
	return "", false
}

// operand compiles what is compared.
func (c *compiler) operand(n ast.Node) (operand, *Error) {
	if name, ok := dotted(n); ok {
		if o, ok := field(name); ok {
			return o, nil
		}
		return operand{}, c.fail(n, "%s", unknownField(name))
	}
	switch n := n.(type) {
	case *ast.MemberNode:
		return c.element(n)
	case *ast.CallNode:
		return c.called(n, calleeOf(n), n.Arguments)
	case *ast.BuiltinNode:
		return c.called(n, n.Name, n.Arguments)
	case *ast.StringNode:
		return operand{}, c.fail(n, "a field is wanted here, and not the text %q; write the field first, as in http.host eq \"shop.example.com\"", n.Value)
	case *ast.UnaryNode, *ast.BinaryNode:
		return operand{}, c.fail(n, "a field is wanted here, and not a condition; put brackets around each comparison")
	}
	return operand{}, c.fail(n, "this is not known here; there are fields, comparisons, and, or and not")
}

func unknownField(name string) string {
	switch {
	case strings.HasPrefix(name, "cf."), strings.HasPrefix(name, "http.response"), strings.HasPrefix(name, "ip.src."), strings.HasPrefix(name, "ip.geoip."):
		return name + " is known at Cloudflare only; docs/rules.md has the fields that there are"
	case name == "http.x_forwarded_for":
		return name + " is what anybody can send; ip.src is the visitor's address, as trusted_proxies tell it"
	case strings.HasPrefix(name, "http.request.headers") || strings.HasPrefix(name, "http.request.cookies"):
		return `only the first value of a header or a cookie can be had; write ` + name[:len("http.request.headers")] + `["name"][0]`
	}
	return name + " is no field" + nearest(name, fieldNames())
}

// element compiles http.request.headers["name"][0], and cookies likewise.
func (c *compiler) element(n *ast.MemberNode) (operand, *Error) {
	inner, isMember := n.Node.(*ast.MemberNode)
	i, isNumber := n.Property.(*ast.IntegerNode)
	if !isMember || !isNumber || n.Optional || inner.Optional || i.Value != 0 {
		return operand{}, c.fail(n, `only the first value of a header or a cookie can be had; write http.request.headers["name"][0]`)
	}
	name, isText := inner.Property.(*ast.StringNode)
	of, ok := dotted(inner.Node)
	if !isText || !ok {
		return operand{}, c.fail(n, `give the name in quotes, as in http.request.headers["name"][0]`)
	}
	return c.named(n, of, name.Value)
}

func (c *compiler) named(n ast.Node, of, name string) (o operand, err *Error) {
	var why string
	switch of {
	case "http.request.headers", "header":
		o, why = headerField(name)
	case "http.request.cookies", "cookie":
		o, why = cookieField(name)
	default:
		why = of + ` has no elements; http.request.headers["name"][0] and http.request.cookies["name"][0] do`
	}
	if why != "" {
		return o, c.fail(n, "%s", why)
	}
	return o, nil
}

func calleeOf(n *ast.CallNode) string {
	name, _ := dotted(n.Callee)
	return name
}

// called compiles a function that makes text.
func (c *compiler) called(n ast.Node, name string, args []ast.Node) (operand, *Error) {
	switch name {
	case "lower", "upper":
		if len(args) != 1 {
			return operand{}, c.fail(n, "%s has one argument, a field", name)
		}
		o, err := c.operand(args[0])
		if err != nil {
			return o, err
		}
		if o.text == nil {
			return o, c.fail(n, "%s is of text, and %s is none", name, o.name)
		}
		text, change := o.text, strings.ToLower
		o.style = lowerCase
		if name == "upper" {
			change, o.style = strings.ToUpper, upperCase
		}
		o.text = func(r *Request) string {
			t := text(r)
			if len(t) > textMax {
				return t // it is unknown in any case
			}
			return change(t)
		}
		return o, nil
	case "header", "cookie":
		if len(args) == 1 {
			if s, ok := args[0].(*ast.StringNode); ok {
				return c.named(n, name, s.Value)
			}
		}
		return operand{}, c.fail(n, `%s has one argument, a name in quotes: %s("name")`, name, name)
	case "starts_with", "ends_with":
		return operand{}, c.fail(n, "%s is a condition by itself; leave out what it is compared with", name)
	}
	return operand{}, c.fail(n, "%s is no function%s", name, nearest(name, []string{"starts_with", "ends_with", "lower", "upper", "header", "cookie"}))
}
