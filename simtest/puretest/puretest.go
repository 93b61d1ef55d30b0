// Package puretest holds the protocol packages to being pure state machines:
// what they do is a function of what they are told, so one seed replays one
// run. It reads their source and reports whatever could make two runs differ
// (a clock, global randomness, map order, goroutines, shared variables) or
// reach the outside (I/O, logs). Imports reports imports that go the wrong way.
//
// A range over a map whose order cannot matter says why on its line:
//
//	for id := range m { //puretest:sorted ids are sorted below
package puretest

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Rule names what a violation breaks.
type Rule string

// The rules of Check, and the one of Imports.
const (
	RuleImport    Rule = "import"    // only standard packages known to be pure
	RuleUse       Rule = "use"       // of those, nothing that reads a clock, global randomness or a terminal
	RuleGo        Rule = "go"        // no goroutines
	RuleChan      Rule = "chan"      // no channels
	RuleMapRange  Rule = "maprange"  // no behaviour that follows map order
	RuleVar       Rule = "var"       // no package-level variables but sentinel errors
	RuleDirective Rule = "directive" // a puretest:sorted has a reason and something to excuse
	RuleSource    Rule = "source"    // all of a package's files are Go that always compiles
	RuleDirection Rule = "direction" // imports go one way
)

// Violation is one line that breaks a rule.
type Violation struct {
	Pos  token.Position
	Rule Rule
	Text string
}

func (v Violation) String() string { return fmt.Sprintf("%v: %s: %s", v.Pos, v.Rule, v.Text) }

// Check reports what makes the package in dir impure, in order of position.
// Test files are free. The package has to compile: an error says why it could
// not be judged.
func Check(dir string) ([]Violation, error) {
	// ImportDir reads the directory in this process, so that the test cache
	// notices a new file.
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	c := checker{fset: token.NewFileSet(), info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
	}}
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		f, err := parser.ParseFile(c.fset, filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		files = append(files, f)
	}
	export, err := exportData(dir, pkg.Imports)
	if err != nil {
		return nil, err
	}
	conf := types.Config{Importer: importer.ForCompiler(c.fset, "gc", export)}
	if _, err := conf.Check(dir, c.fset, files, c.info); err != nil {
		return nil, fmt.Errorf("type-check: %w", err)
	}
	for _, name := range slices.Concat(pkg.IgnoredGoFiles, pkg.CgoFiles, pkg.SFiles) {
		if !strings.HasSuffix(name, "_test.go") {
			pos := token.Position{Filename: filepath.Join(dir, name), Line: 1}
			c.found = append(c.found, Violation{pos, RuleSource, "assembly, cgo and build constraints escape this check"})
		}
	}
	for _, f := range files {
		c.file(f)
	}
	sortByPosition(c.found)
	return c.found, nil
}

// exportData returns a look-up of compiled type information for the imported
// paths and all they depend on.
func exportData(dir string, paths []string) (importer.Lookup, error) {
	where := map[string]string{}
	lookup := func(path string) (io.ReadCloser, error) {
		file, ok := where[path]
		if !ok || file == "" {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(file)
	}
	if len(paths) == 0 {
		return lookup, nil
	}
	args := []string{"list", "-deps", "-export", "-f", "{{.ImportPath}}\t{{.Export}}", "--"}
	cmd := exec.Command("go", append(args, paths...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("go list -export: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		where[path] = file
	}
	return lookup, nil
}

func sortByPosition(vs []Violation) {
	slices.SortFunc(vs, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Pos.Filename, b.Pos.Filename), cmp.Compare(a.Pos.Offset, b.Pos.Offset), cmp.Compare(a.Text, b.Text))
	})
}
