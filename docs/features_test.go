// Package docs_test holds the documentation to what is there.
package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// row is one of a table in features.md.
type row struct {
	line  int
	cells []string
}

func rows(t *testing.T, name string) []row {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []row
	n := 0
	for l := range strings.Lines(string(b)) {
		n++
		if l = strings.TrimSpace(l); strings.HasPrefix(l, "| ") && !strings.HasPrefix(l, "| ---") {
			all = append(all, row{n, strings.Split(strings.Trim(l, "| "), " | ")})
		}
	}
	return all
}

// testsOf are the names of the tests in a package.
func testsOf(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names, nil
}

// A row without a test says so, or is about a file.
var without = regexp.MustCompile(`(?i)not (yet|released)|left out|LICENSE`)

var named = regexp.MustCompile("`([a-z0-9/-]+) ((?:Test|Fuzz|Example)[A-Za-z0-9_]*)`")

func TestTheFeaturesAreShownByTests(t *testing.T) {
	known := map[string][]string{}
	for _, r := range rows(t, "features.md") {
		what := strings.Join(r.cells, " | ")
		shown := named.FindAllStringSubmatch(what, -1)
		for _, m := range shown {
			dir := m[1]
			if known[dir] == nil {
				var err error
				if known[dir], err = testsOf(filepath.Join("..", filepath.FromSlash(dir))); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Contains(known[dir], m[2]) {
				t.Errorf("features.md:%d: there is no %s in %s", r.line, m[2], dir)
			}
		}
		if len(shown) == 0 && r.cells[0] != "#" && r.cells[0] != "from" && !without.MatchString(what) {
			t.Errorf("features.md:%d: neither a test nor \"not yet\" or \"left out\": %s", r.line, what)
		}
		if n := strings.Count(what, "`"); n%2 != 0 {
			t.Errorf("features.md:%d: %d backquotes", r.line, n)
		}
	}
}

func TestTheFeaturesHaveARowForEachOfOthers(t *testing.T) {
	next := 1
	var tables []int
	for _, r := range rows(t, "features.md") {
		switch r.cells[0] {
		case "#":
			next = 1
			tables = append(tables, 0)
		case fmt.Sprint(next):
			tables[len(tables)-1] = next
			next++
		default:
		}
	}
	if want := []int{25, 29}; !slices.Equal(tables, want) {
		t.Errorf("the tables have %v rows in order, want %v", tables, want)
	}
}
