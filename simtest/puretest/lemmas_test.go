package puretest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	lemma = regexp.MustCompile(`(?m)^Lemma (\d+) \(`)
	kept  = regexp.MustCompile(`(?s)\nKept by (.*?)\.\nSeen by (.*?)\.\n`)
)

// TestLemmasNameWhatThereIs: each lemma of package eviction says which functions keep it
// and which tests see its breach, and all of them exist. Whoever renames one, or takes it
// out, comes by the lemma.
func TestLemmasNameWhatThereIs(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../eviction/doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	doc := file.Doc.Text()
	functions := funcsOf(t, func(path string) bool {
		return strings.HasPrefix(path, "../../eviction/") && !strings.HasSuffix(path, "_test.go")
	})
	tests := funcsOf(t, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	starts := lemma.FindAllStringSubmatchIndex(doc, -1)
	if len(starts) < 12 {
		t.Errorf("%d lemmas; has their form changed?", len(starts))
	}
	for i, at := range starts {
		if n := doc[at[2]:at[3]]; n != strconv.Itoa(i+1) {
			t.Errorf("lemma %s comes in place %d", n, i+1)
		}
		end := len(doc)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		says := kept.FindStringSubmatch(doc[at[0]:end])
		if says == nil {
			t.Errorf("lemma %d does not say which functions keep it and which tests see its breach", i+1)
			continue
		}
		for _, name := range strings.Split(says[1], ", ") {
			if !slices.Contains(functions, name) {
				t.Errorf("lemma %d: package eviction has no function %s", i+1, name)
			}
		}
		for _, name := range strings.Split(says[2], ", ") {
			if !slices.Contains(tests, name) || !strings.HasPrefix(name, "Test") {
				t.Errorf("lemma %d: neither eviction nor simtest has a test %s", i+1, name)
			}
		}
	}
}

// TestTheWayThroughTheCodeLeadsThroughItsFiles: the files that package eviction names in its
// comment are there.
func TestTheWayThroughTheCodeLeadsThroughItsFiles(t *testing.T) {
	text, err := os.ReadFile("../../eviction/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile(`\b[a-z]+\.go\b`).FindAllString(string(text), -1)
	if len(files) < 15 {
		t.Errorf("%d files are named; has the form changed?", len(files))
	}
	for _, name := range files {
		if _, err := os.Stat("../../eviction/" + name); err != nil {
			t.Error(err)
		}
	}
}

// funcsOf lists the functions of the packages eviction and simtest in the files that are
// wanted, methods as Type.Name.
func funcsOf(t *testing.T, wanted func(path string) bool) (names []string) {
	t.Helper()
	fset := token.NewFileSet()
	for _, dir := range []string{"../../eviction", "../../simtest"} {
		entries, err := fs.Glob(os.DirFS(dir), "*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			path := filepath.ToSlash(filepath.Join(dir, entry))
			if !wanted(path) {
				continue
			}
			file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					names = append(names, receiver(f)+f.Name.Name)
				}
			}
		}
	}
	return names
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}
