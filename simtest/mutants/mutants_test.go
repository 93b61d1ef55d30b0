package mutants_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/overlay"
	"github.com/anteroom/anteroom/simtest/mutants"
)

var (
	broken = regexp.MustCompile(`(seed [0-9]+: )?\b[SL][0-9]+ broken|panic: `)
	failed = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
)

var asleep = flag.Bool("asleep", false, "run each test that is named for a bug with none awake, too; it takes minutes")

// TestPlantedBugsAreCaught runs the simulated world with one mutant awake at a
// time, and tells which tests noticed. When none is, it is the world without them: the
// swarm goes through the same events.
func TestPlantedBugsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the simulator anew; left out of -short")
	}
	bins := map[string]string{}
	for pkg, list := range byPackage() {
		bin := compile(t, pkg, list)
		bins[pkg] = bin
		t.Run("asleep in "+pkg, func(t *testing.T) {
			t.Parallel()
			switch {
			case *asleep || pkg != (mutants.Mutant{}).Package():
				if out, err := run(bin, "", "-test.run=^("+strings.Join(directed(list), "|")+")$"); err != nil {
					t.Errorf("with no bug awake:\n%s", tail(out))
				}
			default:
				with, without := swarm(t, bin), swarm(t, compile(t, pkg, nil))
				if with != without {
					t.Errorf("the swarm with no bug awake:\n%swithout them:\n%s", with, without)
				}
			}
		})
	}
	hunts := func(list []mutants.Mutant) func(*testing.T) {
		return func(t *testing.T) {
			for _, m := range list {
				t.Run(m.Name, func(t *testing.T) { t.Parallel(); hunt(t, bins[m.Package()], m) })
			}
		}
	}
	t.Run("unsafe", hunts(mutants.Unsafe()))
	t.Run("bugs", hunts(mutants.Bugs()))
}

// TestPlantedBugsFit tells in a moment, before any is hunted, which edit no longer fits, and
// how many are planted for which tests to notice.
func TestPlantedBugsFit(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]mutants.Mutant{mutants.Unsafe(), mutants.Bugs(), mutants.Queues()} {
		if _, err := overlay.Apply(root, changes(list)); err != nil {
			t.Error(err)
		}
	}
	swarm, named, own := 0, 0, 0
	for pkg, list := range byPackage() {
		for _, m := range list {
			switch {
			case m.Run == "":
				swarm++
			case pkg == (mutants.Mutant{}).Package():
				named++
			default:
				own++
			}
		}
	}
	t.Logf("%d in the waiting room, for the swarm %d, for tests of simtest by name %d, for tests of the package that it is in %d; %d in the queues, for their swarm",
		swarm+named+own, swarm, named, own, len(mutants.Queues()))
}

// byPackage returns the mutants of the waiting room by the package whose tests are to notice them.
func byPackage() map[string][]mutants.Mutant {
	all := map[string][]mutants.Mutant{}
	for _, m := range slices.Concat(mutants.Unsafe(), mutants.Bugs()) {
		all[m.Package()] = append(all[m.Package()], m)
	}
	return all
}

// directed lists the tests that mutants of list name.
func directed(list []mutants.Mutant) (tests []string) {
	for _, m := range list {
		if m.Run != "" {
			tests = append(tests, strings.Split(m.Run, "|")...)
		}
	}
	slices.Sort(tests)
	return slices.Compact(tests)
}

// hunt demands that every test that m names fails, or that the swarm finds a
// broken promise.
func hunt(t *testing.T, bin string, m mutants.Mutant) {
	tests := []string{"TestSwarm"}
	args := []string{"-test.run=^TestSwarm$", "-seeds=400", fmt.Sprintf("-first=%d", max(1, m.First)), "-fails=1"}
	if m.Run != "" {
		tests = strings.Split(m.Run, "|")
		args = []string{"-test.run=^(" + m.Run + ")$"}
	}
	if len(tests) == 1 {
		args = append(args, "-test.failfast")
	}
	out, err := run(bin, m.Name, args...)
	var noticed []string
	for _, f := range failed.FindAllStringSubmatch(out, -1) {
		noticed = append(noticed, f[1])
	}
	for _, test := range tests {
		if err == nil || !slices.Contains(noticed, test) {
			t.Errorf("%s did not notice: %v\n%s", test, err, tail(out))
		}
	}
	how := broken.FindString(out)
	switch {
	case how == "" && m.Run == "":
		t.Errorf("the swarm failed, but not by a broken promise:\n%s", tail(out))
	case how == "":
		how = "what the test itself demands"
	}
	t.Logf("noticed by %s: %s", strings.Join(noticed, " and "), how)
}

// swarm is what 40 seeds of it reach, with no mutant awake.
func swarm(t *testing.T, bin string) (says string) {
	t.Helper()
	out, err := run(bin, "", "-test.run=^TestSwarm$", "-test.v", "-seeds=40")
	for line := range strings.Lines(out) {
		if strings.Contains(line, "swarm_test.go") {
			says += line
		}
	}
	if err != nil || says == "" {
		t.Fatalf("with no bug awake: %v\n%s", err, tail(out))
	}
	return says
}

// run runs the test binary with a mutant awake.
func run(bin, name string, args ...string) (string, error) {
	c := exec.Command(bin, args...)
	c.Dir = filepath.Dir(bin)
	c.Env = append(os.Environ(), overlay.Variable+"="+name)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", fmt.Errorf("run %s: %w", bin, err)
	}
	return string(out), err
}

// TestPlantedBugsOfQueuesAreCaught does the same with the priority queues.
func TestPlantedBugsOfQueuesAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the simulator anew; left out of -short")
	}
	bin := compile(t, "./simtest/queues", mutants.Queues())
	for _, m := range mutants.Queues() {
		t.Run(m.Name, func(t *testing.T) {
			out, err := run(bin, m.Name, "-test.run=^TestSwarm$", "-seeds=150", fmt.Sprintf("-first=%d", max(1, m.First)))
			if err == nil || !strings.Contains(out, "repeat it with") {
				t.Errorf("nobody noticed: %v\n%s", err, tail(out))
			} else if !strings.Contains(brief(out), m.By) {
				t.Errorf("noticed by another check than the one that says %q", m.By)
			}
			t.Log(brief(out))
		})
	}
}

// brief is the line that says what was noticed.
func brief(out string) string {
	for line := range strings.Lines(out) {
		if _, what, ok := strings.Cut(line, ": seed "); ok {
			return "seed " + strings.TrimSpace(what)
		}
	}
	return ""
}

// compile builds the tests of a package with all mutants of list in them.
func compile(t *testing.T, pkg string, list []mutants.Mutant) (bin string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config, err := overlay.Write(root, dir, changes(list))
	if err != nil {
		t.Fatal(err)
	}
	bin = filepath.Join(dir, filepath.Base(pkg)+".test")
	c := exec.Command("go", "test", "-c", "-overlay", config, "-o", bin, pkg)
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	return bin
}

func changes(list []mutants.Mutant) (changes []overlay.Change) {
	for _, m := range list {
		c := overlay.Change{Name: m.Name}
		for _, e := range m.Edits {
			c.Edits = append(c.Edits, overlay.Edit(e))
		}
		changes = append(changes, c)
	}
	return changes
}

func tail(s string) string {
	if len(s) > 2000 {
		s = "…" + s[len(s)-2000:]
	}
	return s
}
