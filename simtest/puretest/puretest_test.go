package puretest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/simtest/puretest"
)

const root = "../.."

func TestProtocolIsPure(t *testing.T) {
	for _, pkg := range []string{"qpid", "eviction", "internal/node", "internal/estimate", "internal/pqueue", "internal/broker", "internal/fairness"} {
		t.Run(pkg, func(t *testing.T) {
			found, err := puretest.Check(filepath.Join(root, pkg))
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range found {
				t.Error(v)
			}
		})
	}
}

// TestImpureLinesAreFound checks that in testdata/rules the lines that end in
// "want" and rules are found to break these rules, and no other lines are.
func TestImpureLinesAreFound(t *testing.T) {
	const dir = "testdata/rules"
	found, err := puretest.Check(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range found {
		got = append(got, fmt.Sprintf("%s:%d: %s", v.Pos.Filename, v.Pos.Line, v.Rule))
	}
	want := wants(t, dir)
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%s: not found", w)
		}
	}
	for i, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("found in a pure line: %v", found[i])
		}
	}
	rules := []puretest.Rule{
		puretest.RuleImport, puretest.RuleUse, puretest.RuleGo, puretest.RuleChan, puretest.RuleMapRange,
		puretest.RuleVar, puretest.RuleDirective, puretest.RuleSource,
	}
	for _, r := range rules {
		if !slices.ContainsFunc(got, func(g string) bool { return strings.HasSuffix(g, ": "+string(r)) }) {
			t.Errorf("%s has no line that breaks rule %q", dir, r)
		}
	}
}

// wants returns "file:line: rule" for each rule of each want comment in dir.
func wants(t *testing.T, dir string) []string {
	t.Helper()
	comment := regexp.MustCompile(`/[/*] want ([a-z ]+)`)
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(src), "\n") {
			if m := comment.FindStringSubmatch(line); m != nil {
				for rule := range strings.FieldsSeq(m[1]) {
					want = append(want, fmt.Sprintf("%s:%d: %s", name, i+1, rule))
				}
			}
		}
	}
	return want
}

func TestPackageThatDoesNotCompileIsAnError(t *testing.T) {
	if found, err := puretest.Check("testdata/broken"); err == nil {
		t.Errorf("Check(broken) = %v, want an error", found)
	}
}
