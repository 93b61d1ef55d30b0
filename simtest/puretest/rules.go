package puretest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// pureStd returns the standard packages that a pure package may import: they
// compute, and neither read nor change anything outside. Before adding one,
// look for clocks, randomness, goroutines and global state in it.
func pureStd() []string {
	return []string{
		"bytes", "cmp", "container/heap", "container/list", "container/ring", "crypto/hmac", "crypto/sha256", "crypto/subtle",
		"encoding/base32", "encoding/base64", "encoding/binary", "encoding/hex", "errors", "fmt", "hash", "hash/crc32", "hash/fnv",
		"iter", "maps", "math", "math/big", "math/bits", "math/rand/v2", "slices", "sort", "strconv", "strings", "time",
		"unicode", "unicode/utf8",
	}
}

// forbiddenUse says why a pure package must not use name of the package at
// path, or "" if it may.
func forbiddenUse(path, name string) string {
	switch path {
	case "time":
		durations := []string{"Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}
		if !slices.Contains(durations, name) {
			return "time enters as data; of package time only Duration and its units"
		}
	case "math/rand/v2":
		types := []string{"Rand", "Source", "PCG", "ChaCha8", "Zipf"}
		if !slices.Contains(types, name) && !strings.HasPrefix(name, "New") {
			return "global randomness is not seeded; take a *rand.Rand"
		}
	case "fmt":
		if strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Scan") {
			return "no terminal here"
		}
	case "iter":
		if strings.HasPrefix(name, "Pull") {
			return "runs a coroutine"
		}
	case "": // builtins
		if name == "print" || name == "println" {
			return "no terminal here"
		}
	}
	return ""
}

// followsMapOrder reports whether a function of package maps does.
func followsMapOrder(name string) bool {
	return !slices.Contains([]string{"Clone", "Collect", "Copy", "Equal", "Insert"}, name)
}

// checker collects the violations of one package.
type checker struct {
	fset  *token.FileSet
	info  *types.Info
	found []Violation

	// Of the file at hand:
	excused map[int]bool        // lines with a puretest:sorted; true once it excused something
	sorted  map[*ast.Ident]bool // uses of package maps whose result goes straight into slices.Sorted
}

func (c *checker) report(p token.Pos, r Rule, format string, args ...any) {
	c.found = append(c.found, Violation{c.fset.Position(p), r, fmt.Sprintf(format, args...)})
}

func (c *checker) file(f *ast.File) {
	c.excused, c.sorted = map[int]bool{}, map[*ast.Ident]bool{}
	directives := c.directives(f)
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		if isStd(path) && !slices.Contains(pureStd(), path) {
			c.report(spec.Pos(), RuleImport, "%s is not known to be pure", path)
		}
	}
	for _, d := range f.Decls {
		c.packageVars(d)
	}
	ast.Inspect(f, c.node)
	for _, d := range directives {
		if !c.excused[c.fset.Position(d.Pos()).Line] {
			c.report(d.Pos(), RuleDirective, "nothing here follows map order")
		}
	}
}

// directives notes the lines with a puretest:sorted and returns the comments.
func (c *checker) directives(f *ast.File) []*ast.Comment {
	var found []*ast.Comment
	for _, group := range f.Comments {
		for _, comment := range group.List {
			reason, ok := strings.CutPrefix(comment.Text, "//puretest:sorted")
			if !ok {
				continue
			}
			if strings.TrimSpace(reason) == "" {
				c.report(comment.Pos(), RuleDirective, "say why the order cannot matter")
			}
			c.excused[c.fset.Position(comment.Pos()).Line] = false
			found = append(found, comment)
		}
	}
	return found
}

// packageVars reports variables at package level, except for var _ and for
// errors made by errors.New, which nobody has a reason to change.
func (c *checker) packageVars(d ast.Decl) {
	decl, ok := d.(*ast.GenDecl)
	if !ok || decl.Tok != token.VAR {
		return
	}
	for _, s := range decl.Specs {
		spec := s.(*ast.ValueSpec)
		for i, name := range spec.Names {
			sentinel := i < len(spec.Values) && c.isErrorsNew(spec.Values[i])
			if name.Name != "_" && !sentinel {
				c.report(name.Pos(), RuleVar, "%s is shared by all nodes of a process", name.Name)
			}
		}
	}
}

func (c *checker) isErrorsNew(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && c.isFunc(call.Fun, "errors", "New")
}

// isFunc reports whether e names the function name of the package at path.
func (c *checker) isFunc(e ast.Expr, path, name string) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		return c.isFunc(e.Sel, path, name)
	case *ast.Ident:
		obj := c.info.Uses[e]
		return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == path && obj.Name() == name
	}
	return false
}

// node judges one node of the syntax tree; it has the shape ast.Inspect wants.
func (c *checker) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.report(n.Pos(), RuleGo, "goroutines run in an order of their own")
	case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
		c.report(n.Pos(), RuleChan, "channels belong to the loop around the core")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			c.report(n.Pos(), RuleChan, "channels belong to the loop around the core")
		}
	case *ast.RangeStmt:
		c.rangeOver(n)
	case *ast.CallExpr:
		c.sortedKeys(n)
	case *ast.Ident:
		c.use(n)
	}
	return true
}

func (c *checker) rangeOver(s *ast.RangeStmt) {
	t := c.info.TypeOf(s.X)
	switch {
	case hasCore[*types.Map](t):
		c.mapOrder(s.Pos(), "range over a map")
	case hasCore[*types.Chan](t):
		c.report(s.Pos(), RuleChan, "channels belong to the loop around the core")
	}
}

// sortedKeys notes the maps.Keys or maps.Values of slices.Sorted(maps.Keys(m)):
// equal elements cannot be told apart, so their order is gone. With SortedFunc
// they can.
func (c *checker) sortedKeys(call *ast.CallExpr) {
	if len(call.Args) != 1 || !c.isFunc(call.Fun, "slices", "Sorted") {
		return
	}
	inner, ok := ast.Unparen(call.Args[0]).(*ast.CallExpr)
	if !ok {
		return
	}
	if sel, ok := ast.Unparen(inner.Fun).(*ast.SelectorExpr); ok {
		c.sorted[sel.Sel] = true
	}
}

func (c *checker) use(id *ast.Ident) {
	obj := c.info.Uses[id]
	if obj == nil || isMember(obj) {
		return
	}
	if _, ok := obj.(*types.PkgName); ok {
		return
	}
	path := ""
	if obj.Pkg() != nil {
		path = obj.Pkg().Path()
	} else if _, ok := obj.(*types.Builtin); !ok {
		return
	}
	if why := forbiddenUse(path, obj.Name()); why != "" {
		c.report(id.Pos(), RuleUse, "%s: %s", obj.Name(), why)
	}
	if path == "maps" && followsMapOrder(obj.Name()) && !c.sorted[id] {
		c.mapOrder(id.Pos(), "maps."+obj.Name())
	}
}

// mapOrder reports something that follows map order, unless its line says that
// the order is gone afterwards.
func (c *checker) mapOrder(p token.Pos, what string) {
	line := c.fset.Position(p).Line
	if _, ok := c.excused[line]; ok {
		c.excused[line] = true
		return
	}
	c.report(p, RuleMapRange, "%s: order is behaviour; keep a sorted slice, or say //puretest:sorted and why", what)
}

// isMember reports whether obj is a method or a field: what it belongs to has
// been judged already.
func isMember(obj types.Object) bool {
	switch obj := obj.(type) {
	case *types.Func:
		return obj.Signature().Recv() != nil
	case *types.Var:
		return obj.IsField()
	}
	return false
}

// hasCore reports whether t, or any type that the type parameter t stands for,
// is a T underneath.
func hasCore[T types.Type](t types.Type) bool {
	switch u := t.Underlying().(type) {
	case T:
		return true
	case *types.Interface: // of a type parameter: only those can be ranged over
		for i := range u.NumEmbeddeds() {
			if hasCore[T](u.EmbeddedType(i)) {
				return true
			}
		}
	case *types.Union:
		for i := range u.Len() {
			if hasCore[T](u.Term(i).Type()) {
				return true
			}
		}
	}
	return false
}

// isStd reports whether path is in the standard library: the first element of
// all others is a host name.
func isStd(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
