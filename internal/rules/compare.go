package rules

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// comparison compiles a field, an operator and a constant.
func (c *compiler) comparison(n *ast.BinaryNode) (node, *Error) {
	switch n.Operator {
	case "==", "!=", "in", "contains", "startsWith", "endsWith", "matches":
	case "<", "<=", ">", ">=":
		return nil, c.fail(n, "nothing here is larger or smaller; there are eq, ne, in, contains and matches")
	default:
		return nil, c.fail(n, "%q is not known here; there are eq, ne, in, contains, matches, and, or and not", n.Operator)
	}
	o, err := c.operand(n.Left)
	switch {
	case err != nil:
		return nil, err
	case o.flag != nil:
		return nil, c.fail(n, "%s is compared with nothing; write %s, or not %s", o.name, o.name, o.name)
	case n.Operator == "in":
		return c.in(n, o)
	}
	value, ok := n.Right.(*ast.StringNode)
	if !ok {
		return nil, c.fail(n.Right, "a constant is wanted here: a text in double quotes, or an address; only fields are compared with it")
	}
	if o.isAddress() {
		return c.address(n, value.Value)
	}
	if n.Operator == "!=" {
		return not(c.text(n, o, "==", value))
	}
	return c.text(n, o, n.Operator, value)
}

// test compiles the functions that are conditions.
func (c *compiler) test(n ast.Node) (node, *Error) {
	name, args := "", []ast.Node(nil)
	switch n := n.(type) {
	case *ast.CallNode:
		name, args = calleeOf(n), n.Arguments
	case *ast.BuiltinNode:
		name, args = n.Name, n.Arguments
	}
	op := map[string]string{"starts_with": "startsWith", "ends_with": "endsWith"}[name]
	if op == "" {
		o, err := c.called(n, name, args)
		if err != nil {
			return nil, err
		}
		return nil, c.fail(n, `%s alone is no condition; compare it, as in … eq "value"`, o.name)
	}
	if len(args) != 2 {
		return nil, c.fail(n, `%s has two arguments: %s(http.request.uri.path, "/assets/")`, name, name)
	}
	o, err := c.operand(args[0])
	if err != nil {
		return nil, err
	}
	value, ok := args[1].(*ast.StringNode)
	if !ok || o.text == nil {
		return nil, c.fail(n, `%s is of a field of text and a text in double quotes`, name)
	}
	return c.text(n, o, op, value)
}

// text compiles the comparison of a text.
func (c *compiler) text(n ast.Node, o operand, op string, value *ast.StringNode) (node, *Error) {
	want := value.Value
	if op == "matches" {
		return c.pattern(o, value)
	}
	if op != "==" && want == "" {
		return nil, c.fail(value, "every text has nothing in it, so this would be met by everyone; give some text")
	}
	if why := o.never(op, want); why != "" {
		return nil, c.fail(value, "%s", why)
	}
	met := map[string]func(have, want string) bool{
		"==":         func(have, want string) bool { return have == want },
		"contains":   strings.Contains,
		"startsWith": strings.HasPrefix,
		"endsWith":   strings.HasSuffix,
	}[op]
	if met == nil {
		return nil, c.fail(n, "%q is not known here", op)
	}
	folded := Fold(want)
	return o.when(
		func(have string) bool { return met(have, want) },
		func(have string) bool { return met(Fold(have), folded) },
	), nil
}

// when asks met about what a request tells, if it tells it. Some origins tell capitals
// from small letters in a path, and some do not: where alike, which is met without that,
// says otherwise nobody here knows.
func (o *operand) when(met, alike func(string) bool) node {
	text, known, path := o.text, o.known, o.style == pathStyle || o.style == uriStyle
	return func(r *Request) Truth {
		if known != nil && !known(r) {
			return Unknown
		}
		have := text(r)
		if len(have) > textMax {
			return Unknown
		}
		m := met(have)
		if path && alike(have) != m {
			return Unknown
		}
		return truth(m)
	}
}

// never says why no value of the field can meet a constant; empty: one can.
func (o *operand) never(op, want string) string {
	switch {
	case o.style == lowerCase && want != strings.ToLower(want):
		return o.name + " is in lower case; write " + strings.ToLower(want)
	case o.style == upperCase && want != strings.ToUpper(want):
		return o.name + " is in capitals; write " + strings.ToUpper(want)
	case o.style == pathStyle && (op == "==" || op == "startsWith") && want != "" && want[0] != '/':
		return "a path begins with a slash; write /" + want
	case o.style == pathStyle && strings.Contains(pathOf(want), "//"):
		return "paths are compared without double slashes; write one"
	case o.style == pathStyle && encoded(pathOf(want)):
		return "paths are compared decoded; write the character itself, and not its %-code"
	case o.style == pathStyle && (op == "==" && ambiguous(pathOf(want)) || op == "startsWith" && ambiguous(pathOf(want)+"x")):
		return "a path with a backslash, a semicolon, or a space or dot at the end of a segment meets no rule, because servers read it in different ways"
	case (o.name == "http.request.uri.path" || o.name == "path") && strings.Contains(want, "?"):
		return "what comes after ? is http.request.uri.query; http.request.uri has both"
	case o.style == queryStyle && strings.HasPrefix(want, "?"):
		return "the query is without its question mark; write " + want[1:]
	}
	return ""
}

func pathOf(uri string) string {
	p, _, _ := strings.Cut(uri, "?")
	return p
}

func encoded(p string) bool {
	for i := 0; i+2 < len(p); i++ {
		if p[i] == '%' && isHex(p[i+1]) && isHex(p[i+2]) {
			return true
		}
	}
	return false
}

// pattern compiles a regular expression, in the syntax of RE2.
func (c *compiler) pattern(o operand, value *ast.StringNode) (node, *Error) {
	if len(value.Value) > patternMax {
		return nil, c.fail(value, "a pattern of %d bytes; give one of at most %d, or starts_with, ends_with and in", len(value.Value), patternMax)
	}
	re, err := regexp.Compile(value.Value)
	if err != nil {
		return nil, c.fail(value, "no pattern of RE2: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if re.MatchString("") && re.MatchString("\x00") {
		return nil, c.fail(value, "a pattern that everything meets; say what has to be there")
	}
	alike, err := regexp.Compile("(?i)" + value.Value)
	if err != nil {
		return nil, c.fail(value, "no pattern of RE2: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return o.when(re.MatchString, alike.MatchString), nil
}

// address compiles the comparison with one address.
func (c *compiler) address(n *ast.BinaryNode, want string) (node, *Error) {
	if n.Operator != "==" && n.Operator != "!=" {
		return nil, c.fail(n, "an address is no text; write ip.src in {192.0.2.0/24}, or ip.src eq 192.0.2.7")
	}
	a, err := netip.ParseAddr(want)
	if err != nil {
		return nil, c.fail(n.Right, "%q is no single address; give one such as 192.0.2.7, or write ip.src in {192.0.2.0/24}", want)
	}
	a = a.Unmap()
	is := func(r *Request) Truth {
		if !r.Addr.IsValid() {
			return Unknown
		}
		return truth(r.Addr.WithZone("") == a)
	}
	if n.Operator == "!=" {
		return not(is, nil)
	}
	return is, nil
}

// in compiles the membership of a set.
func (c *compiler) in(n *ast.BinaryNode, o operand) (node, *Error) {
	if name, ok := n.Right.(*ast.IdentifierNode); ok && strings.HasPrefix(name.Value, "$") {
		l := c.lists[name.Value[1:]]
		switch {
		case !o.isAddress():
			return nil, c.fail(n.Right, "%s is a list of addresses, for ip.src only", name.Value)
		case l == nil:
			return nil, c.fail(n.Right, "there is no list %s; put it under ip_lists of the room", name.Value[1:])
		}
		return l.has, nil
	}
	array, ok := n.Right.(*ast.ArrayNode)
	if !ok || len(array.Nodes) == 0 {
		return nil, c.fail(n.Right, `a set is wanted here, such as {"a" "b"}, {192.0.2.0/24}, or the name of a list such as $office`)
	}
	var words []string
	for _, item := range array.Nodes {
		s, ok := item.(*ast.StringNode)
		if !ok {
			return nil, c.fail(item, "a set has texts in double quotes, or addresses")
		}
		if why := o.never("==", s.Value); why != "" {
			return nil, c.fail(item, "%s", why)
		}
		words = append(words, s.Value)
	}
	if !o.isAddress() {
		var folded []string
		for _, w := range words {
			folded = append(folded, Fold(w))
		}
		return o.when(
			func(have string) bool { return slices.Contains(words, have) },
			func(have string) bool { return slices.Contains(folded, Fold(have)) },
		), nil
	}
	l := new(List)
	for i, item := range array.Nodes {
		p, err := ParseItem(words[i])
		if err != nil {
			return nil, c.fail(item, "%v", err)
		}
		l.table.Insert(p)
	}
	return l.has, nil
}

func (l *List) has(r *Request) Truth {
	if !r.Addr.IsValid() {
		return Unknown
	}
	return truth(l.Contains(r.Addr))
}

// nearest is a hint at the word that name may have been meant to be.
func nearest(name string, words []string) string {
	best, least := "", 1+len(name)/3
	for _, w := range words {
		if d := distance(name, w); d < least {
			best, least = w, d
		}
	}
	if best == "" {
		return "; docs/rules.md has those that there are"
	}
	return "; did you mean " + best + "?"
}

// distance is how many letters to insert, remove or replace between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			replace := last[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, last[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
