package mends_test

import (
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/mends"
	"github.com/anteroom/anteroom/internal/overlay"
)

var takeOut = flag.Bool("mends", false, "take each mend out and run the tests that must fail")

const root = "../.."

func changes() (all []overlay.Change) {
	for _, m := range mends.All() {
		c := overlay.Change{Name: m.Name}
		for _, e := range m.Edits {
			c.Edits = append(c.Edits, overlay.Edit(e))
		}
		all = append(all, c)
	}
	return all
}

// needsMachine reports whether tests of a package start processes or browsers.
func needsMachine(pkg string) bool { return pkg == "internal/live" || pkg == "internal/e2e" }

// testsOf are the names of the tests in a package.
func testsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}

// Each edit fits the source, and each test exists.
func TestTheListIsTrueToTheCode(t *testing.T) {
	if _, err := overlay.Apply(root, changes()); err != nil {
		t.Error(err)
	}
	known := map[string][]string{}
	for _, m := range mends.All() {
		if m.Attack < 1 || m.Attack > 17 || m.Name == "" || len(m.Edits) == 0 || len(m.Fails) == 0 {
			t.Errorf("%d %q: an entry has an attack, a name, edits and tests", m.Attack, m.Name)
		}
		for _, test := range m.Fails {
			if known[test.Package] == nil {
				known[test.Package] = testsOf(t, test.Package)
			}
			if !slices.Contains(known[test.Package], test.Name) {
				t.Errorf("%q: there is no %s in %s", m.Name, test.Name, test.Package)
			}
			if test.Says == "" {
				t.Errorf("%q: what does %s say then?", m.Name, test.Name)
			}
		}
	}
}

// TestWithoutItsMendEachTestFails compiles the tests of each package with all
// edits in them, and wakes one at a time.
func TestWithoutItsMendEachTestFails(t *testing.T) {
	if !*takeOut {
		t.Skip("NOT RUN: takes minutes; give -mends")
	}
	dir := t.TempDir()
	abs, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	config, err := overlay.Write(abs, dir, changes())
	if err != nil {
		t.Fatal(err)
	}
	of := map[string][]trial{}
	for _, m := range mends.All() {
		for _, test := range m.Fails {
			of[test.Package] = append(of[test.Package], trial{m, test})
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(of)) {
		t.Run(strings.ReplaceAll(pkg, "/", "-"), func(t *testing.T) {
			if needsMachine(pkg) && os.Getenv("ANTEROOM_E2E") == "" {
				t.Skip("NOT RUN: with real processes; set ANTEROOM_E2E=1")
			}
			bin := compile(t, pkg, config, filepath.Join(dir, strings.ReplaceAll(pkg, "/", "_")+".test"))
			t.Run("all mends in", func(t *testing.T) { bin.passes(t, of[pkg]) })
			for _, one := range of[pkg] {
				t.Run(one.test.Name+"/"+one.mend.Name, func(t *testing.T) {
					if !needsMachine(pkg) {
						t.Parallel()
					}
					bin.fails(t, one)
				})
			}
		})
	}
}

// trial is a test without one of its mends.
type trial struct {
	mend mends.Mend
	test mends.Test
}

// binary has the tests of a package.
type binary struct{ file, dir, overlay string }

func compile(t *testing.T, pkg, overlay, file string) binary {
	t.Helper()
	c := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", file, "./"+pkg)
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	return binary{file, filepath.Join(root, filepath.FromSlash(pkg)), overlay}
}

// run runs tests with a mend out. What the tests build has the edits as well.
func (b binary) run(t *testing.T, out string, tests ...string) (said string, failed bool) {
	t.Helper()
	c := exec.Command(b.file, "-test.run=^("+strings.Join(tests, "|")+")$", "-test.count=1", "-test.timeout=5m")
	if filepath.Base(b.dir) == "simtest" {
		c.Args = append(c.Args, "-seeds=200", "-fails=1")
	}
	c.Dir = b.dir
	c.Env = append(os.Environ(), overlay.Variable+"="+out, "GOFLAGS=-overlay="+b.overlay, "RAPID_NOFAILFILE=1")
	text, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(text), err != nil
}

func (b binary) passes(t *testing.T, of []trial) {
	t.Helper()
	var names []string
	for _, one := range of {
		if one.test.Name != "TestSwarm" { // takes long, and runs anyway
			names = append(names, one.test.Name)
		}
	}
	slices.Sort(names)
	if said, failed := b.run(t, "", slices.Compact(names)...); failed || strings.Contains(said, "no tests to run") {
		t.Errorf("with all mends in:\n%s", shortened(said))
	}
}

// fails demands that the test itself says that it failed, and why: to stop with
// a panic or for want of time is no answer.
func (b binary) fails(t *testing.T, one trial) {
	t.Helper()
	said, failed := b.run(t, one.mend.Name, one.test.Name)
	verdict := regexp.MustCompile(`(?m)^--- FAIL: ` + regexp.QuoteMeta(one.test.Name) + ` `).MatchString(said)
	switch {
	case !failed:
		t.Errorf("it passes without its mend")
	case !verdict || strings.Contains(said, "panic: "):
		t.Errorf("it ends without a verdict:\n%s", shortened(said))
	case !strings.Contains(said, one.test.Says):
		t.Errorf("it fails without %q:\n%s", one.test.Says, shortened(said))
	}
	for line := range strings.Lines(said) {
		if strings.Contains(line, one.test.Says) {
			t.Log(strings.TrimSpace(line))
			break
		}
	}
}

func shortened(s string) string {
	const most = 3000
	if len(s) > most {
		return s[:most/2] + "\n…\n" + s[len(s)-most/2:]
	}
	return s
}
