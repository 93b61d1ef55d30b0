package mends_test

import (
	"errors"
	"flag"
	"fmt"
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

// named matches tests in SECURITY.md.
var named = regexp.MustCompile("`([a-z0-9/-]+) ((?:Test|Fuzz)[A-Za-z0-9_]*)`")

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
		if m.Attack < 1 || m.Attack > 18 || m.Name == "" || len(m.Edits) == 0 || len(m.Fails) == 0 {
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

// Every test that SECURITY.md names is seen to fail. Those in a browser take the
// same mends as others do.
func TestEveryTestOfTheTableHasAMend(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	fails := map[string]bool{}
	for _, m := range mends.All() {
		for _, test := range m.Fails {
			fails[fmt.Sprint(m.Attack, " ", test.Package, " ", test.Name)] = true
		}
	}
	row := regexp.MustCompile(`^\| ([0-9]+) \|`)
	for line := range strings.Lines(string(b)) {
		attack := row.FindStringSubmatch(line)
		if attack == nil {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(line, -1) {
			if m[1] != "internal/e2e" && !fails[attack[1]+" "+m[1]+" "+m[2]] {
				t.Errorf("attack %s: no mend is known without which %s %s fails", attack[1], m[1], m[2])
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
			if !needsMachine(pkg) { // those take long, and run anyway
				t.Run("all mends in", func(t *testing.T) { bin.passes(t, of[pkg]) })
			}
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
type binary struct {
	file, dir string
	flags     []string
}

// compile compiles them with the edits. Of tests that start a program it is that
// which has the edits, and not what attacks it.
func compile(t *testing.T, pkg, overlay, file string) binary {
	t.Helper()
	b := binary{file: file, dir: filepath.Join(root, filepath.FromSlash(pkg))}
	build := func(args ...string) {
		c := exec.Command("go", args...)
		c.Dir = root
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("compile: %v\n%s", err, out)
		}
	}
	switch pkg {
	case "internal/live":
		program := file + ".anteroom"
		build("build", "-overlay", overlay, "-o", program, "./cmd/anteroom")
		build("test", "-c", "-o", file, "./"+pkg)
		b.flags = []string{"-anteroom=" + program}
	case "simtest":
		b.flags = []string{"-seeds=200", "-fails=1"}
		fallthrough
	default:
		build("test", "-c", "-overlay", overlay, "-o", file, "./"+pkg)
	}
	return b
}

// run runs tests with a mend out.
func (b binary) run(t *testing.T, out string, tests ...string) (said string, failed bool) {
	t.Helper()
	c := exec.Command(b.file, "-test.run=^("+strings.Join(tests, "|")+")$", "-test.count=1", "-test.timeout=5m")
	c.Args = append(c.Args, b.flags...)
	c.Dir = b.dir
	c.Env = append(os.Environ(), overlay.Variable+"="+out, "RAPID_NOFAILFILE=1")
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
